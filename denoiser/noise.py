"""Noise: adding it and measuring it."""

from __future__ import annotations

import numpy as np

_LARGE = 12_000_000  # numbers in an image of which only parts are measured
_SIDE = 384  # pixels a side of such a part


def add_noise(image: np.ndarray, sigma: float, seed: int = 0) -> np.ndarray:
    """The image plus white Gaussian noise of standard deviation sigma, float64, neither clipped nor rounded.

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

    Fine texture counts as noise, so detailed images come out a little too noisy. Of very large images, parts are
    measured that are spread over all of it.
    """
    from skimage.restoration import estimate_sigma as wavelet_sigma  # slow to import

    image = np.asarray(image)
    if image.size > _LARGE and image.ndim == (2 if channel_axis is None else 3):
        upright = image if channel_axis is None else np.moveaxis(image, channel_axis, -1)
        parts = _parts(upright)
        axis = None if channel_axis is None else -1
    else:
        parts, axis = [image], channel_axis
    levels = [wavelet_sigma(part.astype(np.float64), average_sigmas=True, channel_axis=axis) for part in parts]
    return float(np.median(levels))


def _parts(image: np.ndarray) -> list[np.ndarray]:
    """Sixteen squares, as far apart as can be."""
    starts = [np.linspace(0, max(length - _SIDE, 0), 4).astype(int) for length in image.shape[:2]]
    return [image[y : y + _SIDE, x : x + _SIDE] for y in starts[0] for x in starts[1]]
