"""Noise: adding it and measuring it."""

from __future__ import annotations

import numpy as np


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

    Fine texture counts as noise, so detailed images come out a little too noisy.
    """
    from skimage.restoration import estimate_sigma as wavelet_sigma  # slow to import

    return float(wavelet_sigma(np.asarray(image, dtype=np.float64), average_sigmas=True, channel_axis=channel_axis))
