"""What a user hands in, checked once, at the door: a ValueError says what is wrong with it."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

_ALIKE = 2.0  # grey levels between the channels of a grey picture, after a lossy format or a colour profile
_CONTRAST = 64.0  # grey levels of brightness that such a picture has at least
_FLOOR = 1e-3  # of the noise level: what a noise map means by 0, since a solver knows no infinite precision


def checked_picture(image: Any, channel_axis: int | None) -> np.ndarray:
    """The image as an array that can be denoised, or a ValueError that says what is wrong with it."""
    if isinstance(image, np.ma.MaskedArray) and np.ma.is_masked(image):
        raise ValueError("image must not be masked; fill the masked pixels first")
    image = np.asarray(image)
    if image.dtype.kind not in "uif":
        raise ValueError(f"image must hold whole or real numbers, got dtype {image.dtype}")
    if channel_axis is None:
        if image.ndim != 2:
            raise ValueError(f"image must have 2 axes unless channel_axis is given, got shape {image.shape}")
    elif not isinstance(channel_axis, numbers.Integral):
        raise ValueError(f"channel_axis must be a whole number or None, got {channel_axis!r}")
    elif image.ndim != 3 or not -3 <= channel_axis < 3:
        raise ValueError(f"channel_axis {channel_axis} does not fit an image of shape {image.shape}")
    elif image.shape[channel_axis] not in (1, 3):
        raise ValueError(f"image must have 1 or 3 channels, got {image.shape[channel_axis]}")
    if not image.size:
        raise ValueError(f"image must have pixels, got shape {image.shape}")
    if image.dtype.kind == "f" and not np.isfinite(image).all():
        raise ValueError(f"image must be finite, got {np.count_nonzero(~np.isfinite(image))} NaN or Inf pixels")
    return image


def checked_noise(noise: Any, shape: tuple[int, ...], channel_axis: int | None = None) -> float | np.ndarray:
    """A number, or a map for a picture of this shape, channels last; or a ValueError that says what is wrong.

    No pixel is known exactly: what a map holds below a thousandth of its level becomes that.
    """
    if isinstance(noise, bool | str) or noise is None or np.asarray(noise).dtype.kind not in "uif":
        raise ValueError(f"sigma must be > 0, got {noise!r}")
    values = np.asarray(noise, np.float64)
    if values.ndim == 0:
        if not (np.isfinite(values) and values > 0):
            raise ValueError(f"sigma must be > 0, got {noise}")
        return float(values)
    flat = shape if channel_axis is None else tuple(np.delete(shape, channel_axis))
    if values.shape not in (shape, flat):
        raise ValueError(f"a noise map must have the picture's shape, {shape}; got {values.shape}")
    if not np.isfinite(values).all() or values.min() < 0 or not values.any():
        raise ValueError("a noise map must hold finite numbers >= 0, and not zeros alone")
    values = np.maximum(values, _FLOOR * noise_level(values))
    return np.moveaxis(values, channel_axis, -1) if channel_axis is not None and values.ndim == 3 else values


def noise_level(noise: float | np.ndarray) -> float:
    """A noise map as one number, its root mean square.

    >>> round(noise_level(np.array([[3.0, 4.0]])), 3)
    3.536
    """
    values = np.asarray(noise, np.float64)
    first = float(values.flat[0])
    # not by the sum of squares when they are all the same: a map that is constant makes the bytes of the number
    return first if (values == first).all() else float(np.sqrt(np.mean(values**2)))


def all_alike(picture: np.ndarray, grey: float) -> bool:
    """Whether three channels, last, hold one grey picture: nowhere apart by more than _ALIKE grey levels of `grey`.

    Their noise is then one and the same, so that they must be denoised as one. A picture without much contrast is
    taken for what it says: in the dark, colours are close to each other too.
    """
    if picture.ndim != 3 or picture.shape[-1] != 3:
        return False
    low, high = np.inf, -np.inf
    for y in range(0, len(picture), 256):  # most colour pictures are known after the first rows
        rows = picture[y : y + 256].astype(np.float64)
        if (rows.max(axis=2) - rows.min(axis=2)).max() > _ALIKE * grey:
            return False
        low, high = min(low, rows.min()), max(high, rows.max())
    return bool(high - low > _CONTRAST * grey) or bool((picture == picture[..., :1]).all())
