"""Noise: adding it and measuring it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_LARGE = 12_000_000  # numbers in an image of which only parts are measured
_SIDE = 384  # pixels a side of such a part
_QUARTILE = 0.6744897501960817  # half of a standard normal variable's values are closer to 0


def add_noise(image: np.ndarray, sigma: float, seed: int | Sequence[int] = 0) -> np.ndarray:
    """The image plus white Gaussian noise of standard deviation sigma, float64, neither clipped nor rounded.

    seed: of `numpy.random.default_rng`, for which 7 and [7, 0] are the same.

    >>> add_noise(np.zeros((2, 2)), 1.0, seed=0).round(3)
    array([[ 0.126, -0.132],
           [ 0.64 ,  0.105]])
    """
    if not np.isfinite(sigma) or sigma < 0:
        raise ValueError(f"sigma must be >= 0, got {sigma}")
    image = np.asarray(image, dtype=np.float64)
    return image + sigma * np.random.default_rng(seed).standard_normal(image.shape)


def estimate_sigma(image: np.ndarray, channel_axis: int | None = None) -> float:
    """The noise level in the image's own units: median absolute deviation of its finest diagonal wavelets.

    Fine texture counts as noise, so detailed images come out a little too noisy. A flat image has level 0. Of very
    large images, parts are measured that are spread over all of it. Donoho and Johnstone, Biometrika 81 (1994).

    >>> round(estimate_sigma(add_noise(np.zeros((200, 200)), 10)), 1)
    10.1
    """
    image = np.asarray(image)
    upright = image[..., None] if channel_axis is None else np.moveaxis(image, channel_axis, -1)
    parts = _parts(upright) if image.size > _LARGE else [upright]
    levels = [np.mean([_level(part[..., c]) for c in range(part.shape[-1])]) for part in parts]
    return float(np.median(levels))


def _level(plane: np.ndarray) -> float:
    import pywt

    values = plane.astype(np.float64)
    details = np.abs(pywt.dwt2(values, "db2")[1][2])
    details = details[details > 1e-12 * np.abs(values).max()]  # painted areas say nothing about the rest
    return float(np.median(details) / _QUARTILE) if details.size else 0.0


def _parts(image: np.ndarray) -> list[np.ndarray]:
    """Sixteen squares, as far apart as can be."""
    starts = [np.linspace(0, max(length - _SIDE, 0), 4).astype(int) for length in image.shape[:2]]
    return [image[y : y + _SIDE, x : x + _SIDE] for y in starts[0] for x in starts[1]]
