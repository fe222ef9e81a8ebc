"""What a file held: the pixels, and everything needed to write the same kind of file again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from denoiser.images import exif
from denoiser.images.exif import Value


@dataclass(frozen=True)
class Picture:
    """An image file in memory, upright: a camera's orientation tag has been applied and set to 1.

    pixels: (height, width) or (height, width, 3), of the file's own type: uint8, uint16, float32 or float64.
    alpha: (height, width) of the same type, or None.
    white: the value of white: 255, 65535, a PGM's own maximum; for real pixels 1, 255 or 65535, by their size.
    """

    pixels: np.ndarray
    alpha: np.ndarray | None = None
    white: float = 255.0
    format: str = "PNG"  # PNG, JPEG, TIFF, WEBP, BMP or PNM
    mode: str = ""  # how the file stored it, where that is not how it is written: "1-bit", "palette", ...
    name: str = ""  # the file's name, for messages
    exif: bytes = b""  # a TIFF-style block, without the "Exif" mark that JPEG puts before it
    icc: bytes = b""
    xmp: bytes = b""
    dpi: tuple[float, float] | None = None
    chunks: tuple[tuple[bytes, bytes], ...] = ()  # PNG and JPEG: kind and body of those to write again as they are
    tags: Mapping[int, Value] = field(default_factory=dict)  # TIFF: the tags to write again as they are
    byte_order: str = "<"  # of `tags`
    compressed: bool = True  # TIFF: False when the file was not
    premultiplied: bool = False  # TIFF: colour already multiplied by alpha
    tables: tuple[tuple[int, ...], ...] = ()  # JPEG: the quantisation tables
    notes: tuple[str, ...] = ()  # what a copy will not keep, a sentence each, for the user

    @property
    def grey(self) -> float:
        """One grey level of 255 in the picture's own units."""
        return self.white / 255

    @property
    def channel_axis(self) -> int | None:
        """Where the channels are; None for a grey picture."""
        return -1 if self.pixels.ndim == 3 else None

    @property
    def suffix(self) -> str:
        """The usual end of the name of such a file."""
        if self.format == "PNM":
            return ".pgm" if self.pixels.ndim == 2 else ".ppm"
        return {"PNG": ".png", "JPEG": ".jpg", "TIFF": ".tif", "WEBP": ".webp", "BMP": ".bmp"}[self.format]


def check_size(width: int, height: int, max_pixels: int) -> None:
    """Refuse an impossible or too large picture before any memory is asked for."""
    if width < 1 or height < 1:
        raise ValueError(f"damaged: it claims to be {width} x {height} pixels")
    if width * height > max_pixels:
        raise ValueError(
            f"{width} x {height} pixels are more than the limit of {max_pixels}; raise the limit if you trust the file"
        )


def split_alpha(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """(height, width, 1 to 4 samples) -> grey or RGB pixels, and alpha if the samples are 2 or 4."""
    colours = 1 if samples.shape[2] < 3 else 3
    alpha = np.ascontiguousarray(samples[..., colours]) if samples.shape[2] > colours else None
    return np.ascontiguousarray(samples[..., 0] if colours == 1 else samples[..., :3]), alpha


def join_alpha(pixels: np.ndarray, alpha: np.ndarray | None) -> np.ndarray:
    """The inverse of `split_alpha`."""
    samples = pixels.reshape(*pixels.shape[:2], -1)
    return samples if alpha is None else np.concatenate([samples, alpha[..., None]], axis=2)


def upright(picture: Picture) -> Picture:
    """Apply the orientation that EXIF asks for, once: the tag says 1 afterwards."""
    order, turn = picture.byte_order, exif.orientation(picture.exif)
    if turn == 1:
        return picture

    def turned(array: np.ndarray) -> np.ndarray:
        if turn >= 5:
            array = array.swapaxes(0, 1)
        # 2, 3, 6, 7 are then mirrored left to right; 3, 4, 7, 8 top to bottom
        array = array[:, ::-1] if turn in (2, 3, 6, 7) else array
        return np.ascontiguousarray(array[::-1] if turn in (3, 4, 7, 8) else array)

    tags = dict(picture.tags)
    if exif.ORIENTATION in tags:
        tags[exif.ORIENTATION] = exif.short(1, order)
    block = exif.reset_orientation(picture.exif)
    chunks = ((kind, block if kind == b"eXIf" else exif.reset_xmp(body)) for kind, body in picture.chunks)
    return replace(
        picture,
        pixels=turned(picture.pixels),
        alpha=None if picture.alpha is None else turned(picture.alpha),
        dpi=picture.dpi[::-1] if picture.dpi and turn >= 5 else picture.dpi,
        exif=block,
        xmp=exif.reset_xmp(picture.xmp),
        tags=tags,
        chunks=tuple(chunks),
    )
