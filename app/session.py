"""What the window works on, without Qt: a picture, what to do with it, and what came of it.

Arrays are in the file's own units, as on the command line, so that both write the same bytes; `grey` is one grey level
of 255 in these units.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import csv
import io
import shlex
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from denoiser import images, metrics, noise, outputs, tiles
from denoiser.region import Region, iterate_region
from denoiser.run import Progress
from denoiser.samplers import Sampler

_REPORTING = 0.15  # share of a run's time that may go into showing it
_EVERY = 0.1  # seconds between two Snapshots
_MEMORY = 1 << 30  # bytes of particles to keep over all runs; the oldest go first
_LEVELS = 0.1, 100.0  # the noise levels that the window offers

Curve = tuple[list[int], list[float]]


@dataclass(frozen=True, eq=False)
class Source:
    """An opened picture."""

    picture: images.Picture
    path: str | None  # None: pasted
    measured: float  # noise level found in it, in grey levels

    @property
    def name(self) -> str:
        """For titles."""
        return Path(self.path).name if self.path else "pasted picture"

    @property
    def pixels(self) -> np.ndarray:
        """As they are in the file."""
        return self.picture.pixels

    @property
    def grey(self) -> float:
        """One grey level of 255 in the file's units."""
        return self.picture.grey

    @property
    def axis(self) -> int | None:
        """Where the channels are."""
        return self.picture.channel_axis


def measure(picture: images.Picture, path: str | None) -> Source:
    """A picture with its noise level."""
    level = noise.estimate_sigma(picture.pixels, picture.channel_axis) * 255 / picture.white
    level = level if np.isfinite(level) else 0.0
    return Source(picture, path, float(np.clip(round(level, 2), *_LEVELS)))


def load(path: str) -> Source:
    """Read a file and measure its noise."""
    return measure(images.read(path), path)


@dataclass(frozen=True, eq=False)
class Request:
    """A run to be done. `sigma` in grey levels; in an experiment so much noise is added first."""

    source: Source
    experiment: bool
    sigma: float
    sampler: Sampler
    prior: str
    seed: int

    def noisy(self) -> np.ndarray:
        """The picture to denoise."""
        if not self.experiment:
            return self.source.pixels
        return noise.add_noise(self.source.pixels, self.sigma * self.source.grey, self.seed)

    def command(self) -> str:
        """The command that does the same."""
        parts = ["denoise", self.source.path or "pasted.png", "--sigma", f"{self.sigma:g}"]
        parts += ["--add-noise", f"{self.sigma:g}"] if self.experiment else []
        parts += ["--method", self.sampler.name, "--prior", self.prior, "--seed", str(self.seed)]
        for name, (kind, spec) in self.sampler.options().items():
            value, flag = getattr(self.sampler, name), name.replace("_", "-")
            if value == spec.default:
                continue
            if kind is bool:
                parts.append(f"--{flag}" if value else f"--no-{flag}")
            else:
                parts += [f"--{self.sampler.name}-{flag}" if flag == "samples" else f"--{flag}", str(value)]
        return shlex.join(parts)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A run so far, or at its end. Nothing of it changes any more."""

    request: Request
    noisy: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    step: int
    total: int
    seconds: float
    eta: float
    curves: dict[str, Curve]  # psnr, change, std: iterations and values
    count: int  # particles behind the mean; 0 for a point estimate
    progress: Progress | None = field(repr=False)
    complete: bool = False
    samples: np.ndarray | None = None  # once the run has ended
    scored: bool = False  # `finish` has been here
    psnr: float | None = None
    ssim: float | None = None

    @property
    def particles(self) -> int:
        """How many particles can be looked at."""
        if self.samples is not None:
            return len(self.samples)
        return self.progress.particles if self.progress else 0

    def particle(self, index: int) -> np.ndarray:
        """One of them."""
        if self.samples is not None:
            return self.samples[index]
        assert self.progress is not None
        return self.progress.sample(index)

    def interval(self, row: int, column: int) -> tuple[np.ndarray, np.ndarray]:
        """The values between which 90 % of the probability lies, a channel each."""
        reach = metrics.credible_factor(0.9, self.count if self.count > 1 else None) * self.std[row, column]
        return self.mean[row, column] - reach, self.mean[row, column] + reach


def execute(request: Request, task: Any) -> Iterator[Snapshot]:
    """Do a run; Snapshots as often as the window looks, and the last one always."""
    source, grey = request.source, request.source.grey
    noisy = request.noisy()
    steps = tiles.iterate_tiles(
        noisy, request.sigma * grey, method=request.sampler, prior=request.prior, seed=request.seed,
        channel_axis=source.axis, data_range=source.picture.white,
    )  # fmt: skip
    curves: dict[str, Curve] = {name: ([], []) for name in ("psnr", "change", "std")}
    before = np.asarray(noisy, np.float32), 0  # the last mean shown, and its step
    began = time.perf_counter()
    latest, spent = -_EVERY, 0.0  # when the last Snapshot was made; what they took
    last: Progress | None = None
    shown = 0

    def snapshot(progress: Progress, complete: bool) -> Snapshot:
        nonlocal before, shown
        mean, std = np.array(progress.mean), np.array(progress.std)
        if progress.step > shown:
            values = {"std": progress.figures["std"] / grey, "change": _rms(mean - before[0]) / grey}
            values["change"] /= progress.step - before[1]
            if request.experiment:
                values["psnr"] = 20 * np.log10(source.picture.white / max(_rms(mean - source.pixels), 1e-9))
            for name, value in values.items():
                curves[name][0].append(progress.step)
                curves[name][1].append(float(value))
            before, shown = (mean, progress.step), progress.step
        total = progress.step if complete else progress.total
        copied = {name: (list(x), list(y)) for name, (x, y) in curves.items()}
        kept = progress.detached() if progress.particles else None
        return Snapshot(
            request, noisy, mean, std, progress.step, total, progress.seconds, progress.eta, copied,
            progress.particles, kept, complete,
        )  # fmt: skip

    for last in steps:
        now = time.perf_counter()
        due = now - latest >= _EVERY and spent <= _REPORTING * (now - began) and not task.waiting
        if last.step == 1 or due:
            made = snapshot(last, False)
            latest = time.perf_counter()
            spent += latest - now
            yield made
    assert last is not None  # every sampler yields at least once
    yield snapshot(last, True)


def _rms(difference: np.ndarray) -> float:
    flat = np.asarray(difference, np.float32).ravel()
    return float(np.sqrt(np.dot(flat, flat) / flat.size))


def finish(snapshot: Snapshot) -> Snapshot:
    """What is worth computing only once: the particles as pictures, PSNR and SSIM."""
    request, grey = snapshot.request, snapshot.request.source.grey
    samples = snapshot.progress.samples if snapshot.progress is not None else None
    psnr = ssim = None
    if request.experiment:
        psnr, ssim = outputs.compare(request.source.pixels / grey, snapshot.mean / grey, request.source.axis)
    return replace(snapshot, samples=samples, progress=None, scored=True, psnr=psnr, ssim=ssim)


def preview(request: Request, region: Region) -> Iterator[tuple[Region, np.ndarray]]:
    """The mean in a region, in grey levels, as the whole run will give it."""
    source = request.source
    parts = iterate_region(
        request.noisy(), request.sigma * source.grey, region, method=request.sampler, prior=request.prior,
        seed=request.seed, channel_axis=source.axis, data_range=source.picture.white,
    )  # fmt: skip
    for part in parts:
        yield region, np.asarray(part.mean / source.grey)


@dataclass(eq=False)
class Run:
    """A row of the table."""

    number: int
    snapshot: Snapshot
    saved: bool = False

    def row(self) -> dict[str, Any]:
        """What the table and the CSV say."""
        s, r = self.snapshot, self.snapshot.request
        options = ", ".join(f"{k}={v}" for k, v in asdict(r.sampler).items())
        return {
            "run": self.number, "method": r.sampler.title, "M": s.count or 1, "sigma": r.sigma,
            "PSNR": s.psnr, "SSIM": s.ssim, "seconds": s.seconds, "iterations": s.step, "whole": s.complete,
            "mode": "experiment" if r.experiment else "restore", "prior": r.prior, "seed": r.seed,
            "mean std": s.curves["std"][1][-1], "options": options, "picture": r.source.name,
        }  # fmt: skip


def table_csv(runs: list[Run]) -> str:
    """The table for other programs."""
    out = io.StringIO()
    names = list(runs[0].row()) if runs else ["run"]
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    for run in runs:
        row = run.row()
        writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else "" if v is None else v for k, v in row.items()})
    return out.getvalue()


def save_memory(runs: list[Run]) -> None:
    """Let the particles of the oldest runs go when there are too many to keep."""
    held = 0
    for run in reversed(runs):
        samples = run.snapshot.samples
        held += 0 if samples is None else samples.nbytes
        if held > _MEMORY and samples is not None and run is not runs[-1]:
            run.snapshot = replace(run.snapshot, samples=None)
