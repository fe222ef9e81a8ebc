"""An opened picture, and the noise that was found in it, or in a flat rectangle that a person has drawn. No Qt.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from denoiser import images, noise
from denoiser.noise import Noise
from denoiser.pieces import Region

from .tone import PLAIN, Tone, few, first

_LEVELS = 0.1, 100.0  # the noise levels that the window offers
_FEWEST = 25  # pixels; with fewer, the level is off by more than a sixth


@dataclass(frozen=True, eq=False)
class Source:
    """An opened picture."""

    picture: images.Picture
    path: str | None  # None: pasted
    measured: float  # noise level found in it, in grey levels
    noise: Noise | None = None  # all that was found of it, in the file's units; None for nothing
    tone: Tone = PLAIN  # what it is shown with at first
    page: int = 0  # of a stack
    pages: int = 1

    @property
    def name(self) -> str:
        """For titles."""
        return Path(self.path).name + self.where if self.path else "pasted picture"

    @property
    def where(self) -> str:
        """Which page of a stack; empty for a single picture."""
        return f", page {self.page + 1} of {self.pages}" if self.pages > 1 else ""

    @property
    def pixels(self) -> np.ndarray:
        """As they are in the file."""
        return self.picture.pixels

    @property
    def grey(self) -> float:
        """One grey level of 255 in the file's units."""
        return self.picture.grey

    @property
    def black(self) -> float:
        """The value of black in the file's units."""
        return self.picture.black

    @property
    def axis(self) -> int | None:
        """Where the channels are."""
        return self.picture.channel_axis

    @property
    def description(self) -> str:
        """Size, depth and kind: 4000 × 3000, 8-bit colour, JPEG."""
        height, width = self.pixels.shape[:2]
        real = self.pixels.dtype.kind == "f"
        depth = "float" if real else f"{int(self.picture.largest or np.iinfo(self.pixels.dtype).max).bit_length()}-bit"
        kind = "grey" if self.axis is None else "colour"
        return f"{width} × {height}, {depth} {kind}, {self.picture.format}{self.where}"


def shown_level(level: float) -> float:
    """A noise level in grey levels as the window can show it."""
    return float(np.clip(round(level, 2), *_LEVELS))


def measure(picture: images.Picture, path: str | None, page: int = 0, pages: int = 1) -> Source:
    """A picture with its noise level."""
    found = noise.measure_noise(picture.pixels, picture.channel_axis, picture.units)
    level = found.level / picture.grey
    tone = first((np.asarray(few(picture.pixels), np.float32) - picture.black) / picture.grey)
    return Source(picture, path, shown_level(level), found if level > 0 else None, tone, page, pages)


def load(path: str, page: int = 0) -> Source:
    """Read a file, or a page of a stack, and measure its noise."""
    pages = images.read_stack(path)
    return measure(pages[min(page, len(pages) - 1)], path, min(page, len(pages) - 1), len(pages))


class Spot(NamedTuple):
    """brightness, level: of the pixels, mean and standard deviation in grey levels. times: that of the picture."""

    brightness: float
    level: float
    times: float


def measure_spot(source: Source, place: Region) -> Spot:
    """The standard deviation of pixels that would be equal without noise, but for a slope; RMS over the channels.

    A few pixels say little about how noise follows brightness, and about its grain: these stay as they were measured
    in the whole picture, which the level is compared with.
    """
    height, width = place.shape
    if height * width < _FEWEST or min(height, width) < 3:
        raise ValueError(f"a rectangle of {width} x {height} pixels is too small to measure the noise in")
    part = place.of(source.pixels)
    pixels = part.astype(np.float64).reshape(height * width, -1)
    rows, columns = np.mgrid[0:height, 0:width].reshape(2, -1)
    slope = np.stack([np.ones(height * width), rows - rows.mean(), columns - columns.mean()], axis=1)
    rest = pixels - slope @ np.linalg.lstsq(slope, pixels, rcond=None)[0]
    variance = float((rest**2).sum(axis=0).mean() / (height * width - 3))
    if not variance > 0:
        raise ValueError("there is no noise in this rectangle: all of its pixels are equal")
    level = variance**0.5 / source.grey
    brightness = float((pixels.mean() - source.black) / source.grey)
    if source.noise is None:
        return Spot(brightness, level, 1.0)
    expected = float(np.sqrt(np.mean(source.noise.map(part, source.axis) ** 2))) / source.grey
    return Spot(brightness, level, float(f"{level / expected:.4g}"))  # as the command line will say it
