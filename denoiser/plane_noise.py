"""The noise of a single plane: how strong it is at every brightness, and how it is correlated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

_INFLATION = 0.33  # power of a grain's area by which correlated noise counts as stronger white noise
_SMOOTH = 2  # pixels to each side over which a picture is averaged before its brightness is looked up
_MOST_AREA = 80.0  # pixels; what is larger than that is shading


@dataclass(frozen=True)
class PlaneNoise:
    """The noise of one plane or channel.

    sigma: its standard deviation at each of the values `brightness`, which rise; between them it is interpolated, and
        beyond them it is that of the nearest.
    correlation: between pixels so many (rows, columns) apart, the same in all four directions; ((1,),) for white noise.
    """

    brightness: tuple[float, ...]
    sigma: tuple[float, ...]
    correlation: tuple[tuple[float, ...], ...] = ((1.0,),)

    def __post_init__(self) -> None:
        if len(self.brightness) != len(self.sigma) or not self.sigma:
            raise ValueError("a noise curve needs as many standard deviations as values of brightness")
        if not all(math.isfinite(v) for v in (*self.brightness, *self.sigma)) or min(self.sigma) < 0:
            raise ValueError("a noise curve must hold finite numbers, and standard deviations >= 0")
        if any(b <= a for a, b in zip(self.brightness, self.brightness[1:], strict=False)):
            raise ValueError("a noise curve needs rising values of brightness")

    @property
    def level(self) -> float:
        """The standard deviation as one number, RMS over the curve."""
        return math.sqrt(sum(s * s for s in self.sigma) / len(self.sigma))

    @property
    def white(self) -> bool:
        """Whether neighbouring pixels have nothing to do with each other."""
        return len(self.correlation) == 1

    @property
    def area(self) -> float:
        """Over how many pixels one grain spreads: the sum of the autocorrelation, 1 for white noise."""
        rho = np.array(self.correlation)
        twice = np.where(np.arange(len(rho)) > 0, 2, 1)
        return float(max((np.maximum(rho, 0) * twice[:, None] * twice).sum(), 1))

    @property
    def inflation(self) -> float:
        """What to multiply sigma by for a likelihood that takes the noise for white.

        Averaging pixels removes correlated noise more slowly than white noise. Between 1 and the square root of
        `area`, which would be right for flat areas alone; chosen on camera pictures for error and coverage
        (docs/noise.md).
        """
        return min(self.area, _MOST_AREA) ** _INFLATION

    def map(self, brightness: np.ndarray) -> np.ndarray:
        """The standard deviation at every value of brightness."""
        return np.interp(brightness, self.brightness, self.sigma)

    @staticmethod
    def from_document(document: dict[str, Any]) -> PlaneNoise:
        """From what JSON makes of one."""
        correlation = tuple(tuple(map(float, row)) for row in document["correlation"])
        return PlaneNoise(tuple(map(float, document["brightness"])), tuple(map(float, document["sigma"])), correlation)


def smoothed(upright: np.ndarray) -> np.ndarray:
    """Means of squares of pixels around each, mirrored at the border, channel by channel; float64."""
    side = 2 * _SMOOTH + 1
    values = np.pad(upright.astype(np.float64), ((_SMOOTH, _SMOOTH), (_SMOOTH, _SMOOTH), (0, 0)), mode="symmetric")
    rows, columns = upright.shape[:2]
    values = np.mean([values[first : first + rows] for first in range(side)], axis=0)
    return np.mean([values[:, first : first + columns] for first in range(side)], axis=0)
