"""How close an image is to the truth."""

from __future__ import annotations

import numpy as np


def _pair(truth: np.ndarray, image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    truth, image = np.asarray(truth, dtype=np.float64), np.asarray(image, dtype=np.float64)
    if truth.shape != image.shape:
        raise ValueError(f"images must have the same shape, got {truth.shape} and {image.shape}")
    return truth, image


def psnr(truth: np.ndarray, image: np.ndarray, *, data_range: float) -> float:
    """Peak signal-to-noise ratio in dB, 20 log10(data_range / RMSE); infinite for equal images.

    >>> round(psnr(np.zeros((8, 8)), np.ones((8, 8)), data_range=255), 2)
    48.13
    """
    truth, image = _pair(truth, image)
    rmse = np.sqrt(np.mean((truth - image) ** 2))
    return float(20 * np.log10(data_range / rmse)) if rmse > 0 else float("inf")


def ssim(truth: np.ndarray, image: np.ndarray, *, data_range: float, channel_axis: int | None = None) -> float:
    """Structural similarity as Wang et al. (2004) define it: 11x11 Gaussian window of sigma 1.5."""
    from skimage.metrics import structural_similarity  # slow to import

    truth, image = _pair(truth, image)
    sides = np.delete(truth.shape, channel_axis) if channel_axis is not None else np.array(truth.shape)
    if sides.min() < 11:
        raise ValueError(f"SSIM needs images of at least 11x11 pixels, got shape {truth.shape}")
    return float(
        structural_similarity(
            truth,
            image,
            data_range=data_range,
            channel_axis=channel_axis,
            gaussian_weights=True,
            sigma=1.5,
            use_sample_covariance=False,
        )
    )
