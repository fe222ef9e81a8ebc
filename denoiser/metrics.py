"""How close an image is to the truth, and whether its uncertainty is honest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_WINDOW = 11  # pixels a side that SSIM compares


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
    if sides.min() < _WINDOW:
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


def compare(truth: np.ndarray, image: np.ndarray, channel_axis: int | None) -> tuple[float, float | None]:
    """PSNR, and SSIM where the picture is large enough for its window; both pictures on the 0-255 scale."""
    decibels = psnr(truth, image, data_range=255)
    if min(truth.shape[:2]) < _WINDOW:
        return decibels, None
    return decibels, ssim(truth, image, data_range=255, channel_axis=channel_axis)


def credible_factor(level: float, count: int | None = None) -> float:
    """Half the width of the central credible interval, in posterior standard deviations.

    Known mean and standard deviation: the normal quantile. Both taken from `count` draws of a Gaussian: Student's
    t quantile times sqrt(1 + 1 / count), with which the interval holds another draw with probability `level` exactly.
    50 draws with the normal quantile would cover 89.0 % instead of 90, and their own empirical quantiles 86 %.

    >>> round(credible_factor(0.9), 3), round(credible_factor(0.9, 50), 3)
    (1.645, 1.693)
    """
    from scipy.special import ndtri, stdtrit  # scipy.stats would take a second to import

    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}")
    if count is None:
        return float(ndtri((1 + level) / 2))
    if count < 2:
        raise ValueError(f"count must be >= 2, got {count}")
    return float(stdtrit(count - 1, (1 + level) / 2) * np.sqrt(1 + 1 / count))


def coverage(
    truth: np.ndarray, mean: np.ndarray, std: np.ndarray, level: float = 0.9, *, count: int | None = None
) -> float:
    """Share of pixels whose true value lies in the central credible interval; nan for a point estimate (std 0).

    The interval is mean +- credible_factor(level, count) * std, `count` being the draws behind mean and std.

    >>> rng = np.random.default_rng(0)
    >>> round(coverage(rng.normal(5, 2, 100_000), np.full(100_000, 5), np.full(100_000, 2)), 2)
    0.9
    """
    truth, mean = _pair(truth, mean)
    _, std = _pair(truth, std)
    if not std.any():
        return float("nan")
    return float(np.mean(np.abs(truth - mean) <= credible_factor(level, count) * std))


def errors_by_std(
    truth: np.ndarray, mean: np.ndarray, std: np.ndarray, edges: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pixels sorted by their predicted standard deviation: how many lie in each bin, and their RMS error.

    edges: bounds of the bins; the last bin also holds what lies beyond. An empty bin has error 0.
    """
    truth, mean = _pair(truth, mean)
    bins = np.clip(np.digitize(std.ravel(), edges[1:-1]), 0, len(edges) - 2)
    counts = np.bincount(bins, minlength=len(edges) - 1)
    squares = np.bincount(bins, ((truth - mean) ** 2).ravel(), minlength=len(edges) - 1)
    return counts, np.sqrt(squares / np.maximum(counts, 1))


def joint_coverage(truth: np.ndarray, samples: np.ndarray, level: float = 0.9) -> dict[str, float]:
    """Share of pixels, of differences of neighbours and of means of n x n blocks that their intervals hold.

    truth: shape (height, width) or (height, width, channels). samples: particles, shape (M, ...), M >= 2. The interval
    of a quantity is its mean over the particles +- credible_factor(level, M) times its standard deviation over them.
    Blocks that do not fit are left out; nan where none does.

    >>> draws = np.random.default_rng(0).normal(size=(51, 64, 64))
    >>> {name: round(share, 1) for name, share in joint_coverage(draws[0], draws[1:]).items()}
    {'pixels': 0.9, 'differences': 0.9, '2x2': 0.9, '4x4': 0.9, '8x8': 0.9, '16x16': 0.9}
    """
    truth, samples = np.asarray(truth, np.float64), np.asarray(samples)
    if len(samples) < 2 or samples.shape[1:] != truth.shape:
        raise ValueError(f"at least two samples of shape {truth.shape} are needed, got {samples.shape}")
    factor = credible_factor(level, len(samples))

    def held(quantity: Callable[[np.ndarray], np.ndarray]) -> float:
        true = quantity(truth)
        if not true.size:
            return float("nan")
        drawn = np.stack([quantity(sample.astype(np.float64)) for sample in samples])
        return float(np.mean(np.abs(true - drawn.mean(axis=0)) <= factor * drawn.std(axis=0, ddof=1)))

    found = {"pixels": held(lambda x: x), "differences": held(_differences)}
    for n in (2, 4, 8, 16):
        found[f"{n}x{n}"] = held(lambda x, n=n: _block_means(x, n))  # type: ignore[misc]
    return found


def _differences(x: np.ndarray) -> np.ndarray:
    """Of neighbours, to the right and down, as one flat array."""
    return np.concatenate([np.diff(x, axis=0).ravel(), np.diff(x, axis=1).ravel()])


def _block_means(x: np.ndarray, n: int) -> np.ndarray:
    """Means of the n x n blocks that fit."""
    rows, columns = (length // n for length in x.shape[:2])
    return x[: rows * n, : columns * n].reshape(rows, n, columns, n, *x.shape[2:]).mean(axis=(1, 3))
