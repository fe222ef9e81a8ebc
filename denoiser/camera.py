"""Making camera noise: shot and read noise on a mosaic, spread by demosaicing, bent by the tone curve, cut by JPEG."""

from __future__ import annotations

import io

import numpy as np

#: Electrons at white of a full-frame sensor at ISO 1: at ISO 100 that is a full well of 60,000.
_ELECTRONS = 6e6
#: Read noise in electrons at high ISO; modern sensors have 1.5 to 4.
_READ = 3.0
#: A typical matrix from a sensor's white-balanced colours to linear sRGB; rows sum to 1, so grey stays grey.
_MATRIX = np.array([[1.65, -0.53, -0.12], [-0.22, 1.52, -0.30], [0.03, -0.51, 1.48]])
_INVERSE = np.linalg.inv(_MATRIX)

# Bilinear interpolation of a channel from its sites in the mosaic, times the weight of what is there: green has every
# second site, red and blue every fourth.
_GREEN = np.array([[0, 1, 0], [1, 4, 1], [0, 1, 0]]) / 4
_RED = np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]]) / 4


def poisson_gaussian(image: np.ndarray, gain: float, read: float, rng: np.random.Generator) -> np.ndarray:
    """The image as counted in photons: variance gain * brightness + read^2, float64, neither clipped nor rounded.

    image: grey levels, any shape; negative ones count as 0 photons.
    gain: grey levels a photon, > 0. read: standard deviation of the read noise in grey levels, >= 0.

    >>> flat = np.full((200, 200), 100.0)
    >>> round(poisson_gaussian(flat, 2.0, 5.0, np.random.default_rng(0)).std())  # sqrt(2 * 100 + 5^2)
    15
    """
    if not np.isfinite(gain) or gain <= 0:
        raise ValueError(f"the gain must be > 0, got {gain}")
    if not np.isfinite(read) or read < 0:
        raise ValueError(f"the read noise must be >= 0, got {read}")
    image = np.asarray(image, dtype=np.float64)
    return rng.poisson(np.maximum(image, 0) / gain) * gain + read * rng.standard_normal(image.shape)


def camera_noise(
    image: np.ndarray,
    iso: float,
    rng: np.random.Generator,
    quality: int | None = 95,
    smooth: float = 0.0,
    smooth_chroma: float = 1.5,
    subsampling: int = 2,
) -> np.ndarray:
    """The image as a camera's JPEG at that ISO would show it, float64 whole grey levels in 0..255.

    image: sRGB grey levels 0..255, shape (height, width) or (height, width, 3); a grey one is taken as a colour one
    with equal channels and comes back as the mean of its channels (not rounded).
    iso: of a full-frame camera; 1600 to 12800 give a standard deviation of 2 to 8 grey levels, a telephone about three
    times that. rng decides the white balance, the phase of the mosaic and the noise.
    quality: of the JPEG, None for no JPEG at all (8 bits then, too). subsampling: its chroma's, 0 (4:4:4) or 2 (4:2:0).
    smooth, smooth_chroma: standard deviation in pixels of the Gaussians with which the camera blurs the noise of the
    brightness and of the colours, as their own denoising does. Measured on Canon, Nikon and Sony JPEGs at ISO 1600 to
    12800: colour noise correlated by 0.7 to 0.9 two pixels apart, brightness noise by 0 to 0.25.

    The picture itself keeps its sharpness: it counts as demosaiced already, and demosaicing is linear, so only the
    noise goes through it. What it then differs by from `image` is noise, quantisation and JPEG.

    >>> grey = np.full((256, 256), 128.0)
    >>> noise = camera_noise(grey, 6400, np.random.default_rng(0)) - grey
    >>> bool(1.5 < noise.std() < 8), bool((noise[:, 1:] * noise[:, :-1]).mean() / noise.var() > 0.2)
    (True, True)
    """
    image = np.asarray(image, dtype=np.float64)
    if image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] != 3):
        raise ValueError(f"an image of shape (height, width) or (height, width, 3) is needed, got {image.shape}")
    if not np.isfinite(iso) or iso <= 0:
        raise ValueError(f"the ISO must be > 0, got {iso}")
    if quality is not None and not 1 <= quality <= 100:
        raise ValueError(f"the JPEG quality must be 1..100, got {quality}")
    if not (0 <= smooth <= 100 and 0 <= smooth_chroma <= 100):
        raise ValueError(f"the smoothing must be 0..100 pixels, got {smooth} and {smooth_chroma}")
    colour = image if image.ndim == 3 else np.repeat(image[..., None], 3, axis=2)
    linear = _to_linear(np.clip(colour, 0, 255) / 255)
    balance = np.array([rng.uniform(1.6, 2.6), 1.0, rng.uniform(1.3, 2.2)])  # gains of red and blue over green
    raw = np.maximum(linear @ _INVERSE.T, 0) / balance
    noise = _blur((_demosaic_noise(raw, iso, rng) * balance) @ _MATRIX.T, smooth, smooth_chroma)
    noisy = _to_srgb(np.clip(linear + noise, 0, 1)) * 255
    pixels = np.round(noisy).astype(np.uint8)
    result = (jpeg(pixels, quality, subsampling) if quality is not None else pixels).astype(np.float64)
    return result if image.ndim == 3 else result.mean(axis=2)


def _demosaic_noise(raw: np.ndarray, iso: float, rng: np.random.Generator) -> np.ndarray:
    """Shot and read noise at the sites of a Bayer mosaic, interpolated bilinearly to three channels."""
    from scipy.ndimage import convolve

    height, width = raw.shape[:2]
    row, column = rng.integers(2, size=2)  # where the first red site is
    rows, columns = (np.arange(height)[:, None] + row) % 2, (np.arange(width)[None] + column) % 2
    red, blue = (rows == 0) & (columns == 0), (rows == 1) & (columns == 1)
    sites = np.stack([red, ~(red | blue), blue], axis=2)
    electrons = _ELECTRONS / iso
    counted = (raw * sites).sum(axis=2)
    noise = rng.standard_normal((height, width)) * np.sqrt(counted / electrons + (_READ / electrons) ** 2)
    kernels = (_RED, _GREEN, _RED)
    return np.stack([convolve(noise * sites[..., c], kernels[c], mode="mirror") for c in range(3)], axis=2)


def _blur(noise: np.ndarray, smooth: float, smooth_chroma: float) -> np.ndarray:
    """The noise of three channels with its brightness and its colours blurred apart."""
    from scipy.ndimage import gaussian_filter

    grey = noise.mean(axis=2, keepdims=True)
    colours = gaussian_filter(noise - grey, (smooth_chroma, smooth_chroma, 0)) if smooth_chroma > 0 else noise - grey
    return colours + (gaussian_filter(grey, (smooth, smooth, 0)) if smooth > 0 else grey)


def _to_linear(srgb: np.ndarray) -> np.ndarray:
    """SRGB 0..1 -> linear light 0..1."""
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def _to_srgb(linear: np.ndarray) -> np.ndarray:
    """Linear light 0..1 -> sRGB 0..1."""
    return np.where(linear <= 0.0031308, linear * 12.92, 1.055 * np.maximum(linear, 1e-9) ** (1 / 2.4) - 0.055)


def jpeg(pixels: np.ndarray, quality: int, subsampling: int) -> np.ndarray:
    """What is left of 8-bit grey or RGB pixels after a JPEG."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=int(quality), subsampling=subsampling)
    return np.asarray(Image.open(file))
