"""The noise in a flat rectangle that a person has drawn. No Qt.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from denoiser.pieces import Region

from .source import Source

_FEWEST = 25  # pixels; with fewer, the level is off by more than a sixth


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
