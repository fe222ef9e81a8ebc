"""Measurements with error bars: any number computed from a picture, computed from every particle instead.

Where the particles agree the number is sure; their spread is its uncertainty, correlations between pixels included,
which no map of single standard deviations could give. Intervals are those of `metrics.credible_factor`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from denoiser import metrics


@dataclass(frozen=True, eq=False)
class Measurement:
    """A number, or an array of them, and its interval. value: mean over `count` particles. std: their spread."""

    value: np.ndarray
    std: np.ndarray
    level: float
    count: int

    @property
    def reach(self) -> np.ndarray:
        """Half the width of the interval."""
        return np.asarray(metrics.credible_factor(self.level, self.count) * self.std)

    @property
    def low(self) -> np.ndarray:
        """Where the interval begins."""
        return np.asarray(self.value - self.reach)

    @property
    def high(self) -> np.ndarray:
        """Where it ends."""
        return np.asarray(self.value + self.reach)


def measure(samples: np.ndarray, function: Callable[[np.ndarray], object], level: float = 0.9) -> Measurement:
    """What `function` says of a picture, with its interval, from particles (M,) + shape, M >= 2.

    function: a picture -> a number, or an array of the same shape for every picture.

    >>> particles = np.random.default_rng(0).normal(5, 1, (50, 8, 8))
    >>> found = measure(particles, np.mean)
    >>> bool(found.low < 5 < found.high), float(found.reach.round(1))
    (True, 0.2)
    """
    if len(samples) < 2:
        raise ValueError(f"to measure takes at least 2 particles, got {len(samples)}")
    values = np.array([function(np.asarray(sample, np.float64)) for sample in samples], np.float64)
    return Measurement(values.mean(axis=0), values.std(axis=0, ddof=1), level, len(values))


# ------------------------------------------------------------------------------------------------ regions


def rectangle(shape: tuple[int, ...], x: float, y: float, width: float, height: float) -> np.ndarray:
    """The pixels of a picture whose centres lie in a rectangle: bool, (height, width). (x, y) is its upper left corner.

    >>> int(rectangle((10, 10), 2, 3, 4, 5).sum())
    20
    """
    rows, columns = _centres(shape)
    return _some((x <= columns) & (columns < x + width) & (y <= rows) & (rows < y + height), "rectangle")


def ellipse(shape: tuple[int, ...], x: float, y: float, width: float, height: float) -> np.ndarray:
    """Like `rectangle`, for the ellipse in it."""
    rows, columns = _centres(shape)
    across, down = (columns - x - width / 2) / max(width / 2, 1e-9), (rows - y - height / 2) / max(height / 2, 1e-9)
    return _some(across**2 + down**2 <= 1, "ellipse")


def _centres(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(shape[0])[:, None] + 0.5, np.arange(shape[1])[None] + 0.5


def _some(mask: np.ndarray, name: str) -> np.ndarray:
    if not mask.any():
        raise ValueError(f"the {name} holds no pixel of the picture")
    return mask


def bounds(mask: np.ndarray) -> tuple[int, int, int, int]:
    """The smallest box around a mask: top, left, bottom, right, the ends not included."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        raise ValueError("the mask holds no pixel")
    return int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1


def region(samples: np.ndarray, mask: np.ndarray, level: float = 0.9) -> dict[str, Measurement]:
    """Mean, sum and standard deviation of the pixels in a mask, of every channel where there are channels.

    samples: particles, (M, height, width) or (M, height, width, channels). mask: bool, (height, width).

    >>> particles = np.random.default_rng(0).normal(5, 1, (50, 8, 8))
    >>> found = region(particles, rectangle((8, 8), 0, 0, 4, 4))
    >>> list(found), bool(found["sum"].value == 16 * found["mean"].value)
    (['mean', 'sum', 'std'], True)
    """
    inside = _inside(samples, mask)
    return {
        "mean": measure(inside, lambda pixels: pixels.mean(axis=0), level),
        "sum": measure(inside, lambda pixels: pixels.sum(axis=0), level),
        "std": measure(inside, lambda pixels: pixels.std(axis=0), level),
    }


def _inside(samples: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """(M, pixels in the mask) or (M, pixels, channels), float64."""
    mask = np.asarray(mask, bool)
    if mask.shape != samples.shape[1:3]:
        raise ValueError(f"the mask must have the picture's shape {samples.shape[1:3]}, got {mask.shape}")
    return np.asarray(samples[:, _some(mask, "mask")], np.float64)


# ------------------------------------------------------------------------------------------------ profiles


@dataclass(frozen=True, eq=False)
class Profile:
    """Values along a line: `distance` from its beginning in pixels, (n,), and `values`, (n,) or (n, channels)."""

    distance: np.ndarray
    values: Measurement


def profile(samples: np.ndarray, start: tuple[float, float], end: tuple[float, float], level: float = 0.9) -> Profile:
    """Values along the line from `start` to `end`, points (x, y) in the picture, about a pixel apart.

    A pixel's own value is found at its centre, (0.5, 0.5) for the first; between centres values are interpolated.
    """
    from scipy.ndimage import map_coordinates  # slow to import

    check_line(samples.shape[1:3], start, end)
    length = float(np.hypot(end[0] - start[0], end[1] - start[1]))
    at = np.linspace(0, 1, round(length) + 1)
    points = [begin + at * (stop - begin) - 0.5 for begin, stop in zip(start[::-1], end[::-1], strict=True)]

    def along(picture: np.ndarray) -> np.ndarray:
        channels = picture.reshape(*picture.shape[:2], -1)
        values = [map_coordinates(c, points, order=1, mode="nearest") for c in np.moveaxis(channels, -1, 0)]
        return np.stack(values, axis=-1) if picture.ndim == 3 else values[0]

    return Profile(at * length, measure(samples, along, level))


def check_line(shape: tuple[int, ...], start: tuple[float, float], end: tuple[float, float]) -> None:
    """A ValueError for a line that is too short, or leaves a picture of this shape."""
    for x, y in (start, end):
        if not (0 <= x <= shape[1] and 0 <= y <= shape[0]):
            raise ValueError(f"the line must lie in the picture of {shape[1]} x {shape[0]} pixels, got {x:g},{y:g}")
    if np.hypot(end[0] - start[0], end[1] - start[1]) < 1:
        raise ValueError("the line must be at least a pixel long")
