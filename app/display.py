"""What a view can show, as bytes for the screen. No Qt: this is done off the window's thread.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from denoiser import panels
from denoiser.pieces import Region

from .session import Snapshot
from .source import Source
from .tone import PLAIN, Tone, few

LARGE = 2_000_000  # pixels of a picture that is drawn in parts

CONTENTS = {
    "clean": ("Clean", "The picture before noise was added"),
    "noisy": ("Noisy", "The picture that is denoised"),
    "a": ("Result A", "The denoised picture: the mean of all candidates"),
    "b": ("Result B", "Another run to compare with: Shift+click it in the table"),
    "residual": ("Residual of A", "What was taken away, grey where nothing was; it should look like pure noise"),
    "uncertainty": ("Uncertainty of A", "How far every pixel may be off: dark is sure, bright is not"),
    "particle": ("Particle of A", "One candidate picture; the slider goes through them"),
}


@dataclass(frozen=True, eq=False)
class Scene:
    """All that views can show at a moment."""

    source: Source
    experiment: bool
    noisy: np.ndarray
    a: Snapshot | None = None
    b: Snapshot | None = None
    tone: Tone = PLAIN
    looking: bool = False  # a first look lies over result A, or where there is none yet


def levels(values: np.ndarray, source: Source) -> np.ndarray:
    """A picture in the file's units as grey levels of 255, float32."""
    scaled = np.asarray(values, np.float32) * np.float32(1 / source.grey)
    scaled -= np.float32(source.black / source.grey)
    return scaled


def picture_bytes(values: np.ndarray, source: Source, tone: Tone = PLAIN) -> np.ndarray:
    """A picture in the file's units as it is shown."""
    return tone.bytes(levels(values, source))


class Part(NamedTuple):
    """What of a picture is drawn: every `step`-th row and column of a region."""

    region: Region
    step: int

    def of(self, values: np.ndarray) -> np.ndarray:
        """These of an array (height, width, ...)."""
        return self.region.of(values)[:: self.step, :: self.step]

    def holds(self, seen: Region, step: int) -> bool:
        """Whether another part of the picture can be seen in this one, and as sharp."""
        here = self.region
        inside = here.top <= seen.top and here.left <= seen.left and here.bottom >= seen.bottom
        return inside and here.right >= seen.right and self.step <= step


def part_for(shape: tuple[int, ...], seen: Region, step: int) -> Part:
    """All of a small picture; of a large one what is seen and as much around it, no finer than the screen."""
    height, width = shape[:2]
    if height * width <= LARGE:
        return Part(Region(0, 0, height, width), 1)
    rows, columns = seen.shape
    region = Region(
        max(seen.top - rows // 2, 0) // step * step, max(seen.left - columns // 2, 0) // step * step,
        min(seen.bottom + rows // 2, height), min(seen.right + columns // 2, width),
    )  # fmt: skip
    return Part(region, step)


def render(scene: Scene, content: str, particle: int = 0, part: Part | None = None) -> np.ndarray | None:
    """The picture of a content, or a part of it, uint8 grey or RGB; None where there is nothing to show."""
    source, a, tone = scene.source, scene.a, scene.tone

    def cut(values: np.ndarray) -> np.ndarray:
        return values if part is None else part.of(values)

    def shown(values: np.ndarray) -> np.ndarray:
        return picture_bytes(cut(values), source, tone)

    if content == "clean":
        return shown(source.pixels) if scene.experiment else None
    if content == "noisy" or (content == "a" and a is None and scene.looking):
        return shown(scene.noisy)
    if content == "b":
        return shown(scene.b.mean) if scene.b is not None else None
    if a is None:
        return None
    done = None if a.done is None else cut(a.done)
    if content == "a":
        return veil(shown(a.mean), done)
    if content == "residual":  # three standard deviations of the noise are three quarters of the way to black or white
        taken = np.asarray(cut(a.noisy) - cut(a.mean), np.float32) * np.float32(1 / (source.grey * a.level / 32))
        return veil(PLAIN.bytes(taken + np.float32(128)), done)
    if content == "uncertainty":
        return veil(panels.heat(flat_std(cut(a.std)), heat_top(a)), done) if a.sure else None
    return shown(a.particle(min(particle, a.particles - 1))) if a.particles else None


def flat_std(std: np.ndarray) -> np.ndarray:
    """One standard deviation a pixel, float32; 0 where it is not known."""
    one = std if std.ndim == 2 else np.sqrt((std**2).mean(axis=-1))
    return np.nan_to_num(np.asarray(one, np.float32))


def heat_top(snapshot: Snapshot) -> float:
    """The standard deviation at the bright end of the uncertainty map, in the file's units."""
    std = flat_std(few(snapshot.std))
    known = std if snapshot.done is None else std[few(snapshot.done, snapshot.std.size)]
    return float(np.percentile(known, 99.5)) if known.size else 0.0


def scale(scene: Scene, content: str) -> float | None:
    """Grey levels at the bright end of a map of uncertainty; None for any other content."""
    there = content == "uncertainty" and scene.a is not None and scene.a.sure
    return heat_top(scene.a) / scene.source.grey if there else None


def veil(pixels: np.ndarray, done: np.ndarray | None) -> np.ndarray:
    """Bytes with a striped veil over what is not finished."""
    if done is None or done.all():
        return pixels
    rows, columns = np.nonzero(~done)
    stripe = np.where((rows + columns) % 12 < 6, 150, 110)
    under = pixels[rows, columns].astype(np.int16)
    stripe = stripe if under.ndim == 1 else stripe[:, None]
    out = pixels.copy()
    out[rows, columns] = (under + 2 * stripe) // 3
    return out


def why_empty(scene: Scene, content: str) -> str:
    """What to say in a view that has nothing to show."""
    if content == "clean":
        return "The clean picture is not known.\nIn Experiment mode it is."
    if content == "b":
        return "Shift+click a run in the table\nto compare it with A."
    if content == "particle" and scene.a is not None:
        return f"No particles to show:\n{scene.a.outcome.without}"
    if content == "uncertainty" and scene.a is not None and not scene.a.sure:
        return f"{scene.a.plan.sampler.title} does not say\nhow sure it is."
    return "Run (Ctrl+R) to see the result."


def caption(scene: Scene, content: str) -> str:
    """A word beside the name of a content."""
    snapshot = scene.b if content == "b" else scene.a
    if content == "a" and scene.looking:
        return "a first look, with the quick model"
    if content in ("clean", "noisy") or snapshot is None:
        return ""
    title = snapshot.plan.sampler.title
    if snapshot.finished < 1:
        title += f", {100 * snapshot.finished:.0f} % finished"
    if content == "uncertainty":
        return f"mean {snapshot.uncertainty:.1f} grey levels" if snapshot.sure else ""
    if content == "residual":
        return f"{title}, noise level {snapshot.level:.4g}"
    _, values = snapshot.curves["psnr"]
    psnr = snapshot.psnr if snapshot.psnr is not None else values[-1] if values else None
    return title if psnr is None else f"{title}, {psnr:.2f} dB"


def duration(seconds: float) -> str:
    """A time for people.

    >>> duration(8), duration(100), duration(28139)
    ('8 s', '2 min', '7 h 49 min')
    """
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    minutes = round(seconds / 60)
    hours, rest = divmod(minutes, 60)
    return f"{minutes} min" if not hours else f"{hours} h {rest} min" if rest else f"{hours} h"


def progress_words(snapshot: Snapshot, number: int, of: int) -> str:
    """How far a run is, the `number`-th `of` several."""
    which = f"{snapshot.plan.sampler.title} ({number} of {of})  " if of > 1 else ""
    left = f"{duration(snapshot.eta)} left" if snapshot.eta >= 1 else "almost done"
    return f"{which}{snapshot.step} of {snapshot.total} · {left}"


def histograms(scene: Scene) -> dict[str, np.ndarray]:
    """How often each grey level occurs, in per mille."""
    out = {}
    plain = replace(scene, tone=PLAIN, looking=False)
    height, width = scene.source.pixels.shape[:2]
    part = Part(Region(0, 0, height, width), 4 if height * width > LARGE else 1)
    for content in ("clean", "noisy", "a"):
        pixels = render(plain, content, part=part)
        if pixels is not None:
            counts = np.bincount(pixels.ravel(), minlength=256)
            out[content] = 1000 * counts / pixels.size
    return out


def readout(scene: Scene | None, at: tuple[int, int] | None) -> str:
    """The values under the cursor, at (row, column), in the file's units; nothing where there are none."""
    if scene is None or at is None:
        return ""
    row, column = at
    digits = -math.floor(math.log10(scene.source.grey))  # that make up a grey level
    coarse, fine = f".{max(digits, 0)}f", f".{max(digits + 1, 0)}f"

    def say(values: np.ndarray) -> str:
        return ", ".join(f"{float(v):{coarse}}" for v in np.atleast_1d(values))

    parts = [f"x {column}  y {row}"]
    if scene.experiment:
        parts.append(f"clean {say(scene.source.pixels[row, column])}")
    parts.append(f"noisy {say(scene.noisy[row, column])}")
    if scene.a is not None:
        there = scene.a.done is None or bool(scene.a.done[row, column])
        mean, std = np.atleast_1d(scene.a.mean[row, column]), np.atleast_1d(scene.a.std[row, column])
        sure = there and scene.a.sure
        pairs = ", ".join(f"{m:{fine}} ± {s:{fine}}" if sure else f"{m:{fine}}" for m, s in zip(mean, std, strict=True))
        parts.append(f"mean {pairs}" if there else "not finished here")
        if sure:
            low, high = (np.atleast_1d(v) for v in scene.a.interval(row, column))
            spans = ", ".join(f"{lo:{coarse}} to {hi:{coarse}}" for lo, hi in zip(low, high, strict=True))
            parts.append(f"90 % {spans}")
    return "   ·   ".join(parts)
