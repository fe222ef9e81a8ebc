"""What a file held: the pixels, and everything needed to write the same kind of file again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from denoiser.images import exif
from denoiser.images.exif import Value
from denoiser.units import Units, units

_DESCRIPTION = 270  # TIFF's tag
#: Formats by the ends of names; of several, the usual one first.
SUFFIXES = {
    ".png": "PNG",
    ".jpg": "JPEG",
    ".jpeg": "JPEG",
    ".tif": "TIFF",
    ".tiff": "TIFF",
    ".webp": "WEBP",
    ".bmp": "BMP",
    ".pgm": "PNM",
    ".ppm": "PNM",
    ".pnm": "PNM",
    ".avif": "AVIF",
    ".heic": "HEIF",
    ".heif": "HEIF",
}


@dataclass(frozen=True)
class Picture:
    """An image file in memory, upright: a camera's orientation tag has been applied and set to 1.

    pixels: (height, width) or (height, width, 3), of the file's own type: whole or real numbers.
    alpha: (height, width) of the same type, or None.
    claim: what the file says of black and white, where that is not what its type can hold.
    scale: black and white, if they were decided already (see `with_units`); else `units` decides.
    """

    pixels: np.ndarray
    alpha: np.ndarray | None = None
    claim: Units | None = None
    scale: Units | None = None
    largest: float | None = None  # what the file's samples can hold, where that is less than their type: 2**12 - 1
    format: str = "PNG"  # PNG, JPEG, TIFF, WEBP, BMP, PNM, AVIF or HEIF
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
    pages: int = 1  # TIFF: of the stack that it was read from
    premultiplied: bool = False  # TIFF: colour already multiplied by alpha
    tables: tuple[tuple[int, ...], ...] = ()  # JPEG: the quantisation tables
    trailer: bytes = b""  # JPEG: what follows the picture, such as the video of a motion photo
    notes: tuple[str, ...] = ()  # what a copy will not keep, for the user

    @cached_property
    def units(self) -> Units:
        """Black and white, decided by `denoiser.units`; a ValueError of one line if that cannot be."""
        return self.scale or with_units([self])[0].units

    @property
    def white(self) -> float:
        """The value of white."""
        return self.units.white

    @property
    def black(self) -> float:
        """The value of black."""
        return self.units.black

    @property
    def grey(self) -> float:
        """One grey level of 255 in the picture's own units."""
        return self.units.grey

    @property
    def top(self) -> float:
        """What a sample of the file can hold, of whole numbers."""
        return self.largest or float(np.iinfo(self.pixels.dtype).max)

    @property
    def channel_axis(self) -> int | None:
        """Where the channels are; None for a grey picture."""
        return -1 if self.pixels.ndim == 3 else None

    @property
    def suffix(self) -> str:
        """The usual end of the name of such a file."""
        if self.format == "PNM":
            return ".pgm" if self.pixels.ndim == 2 else ".ppm"
        return next(suffix for suffix, name in SUFFIXES.items() if name == self.format)


def with_units(pictures: list[Picture], white: float | None = None, black: float | None = None) -> list[Picture]:
    """The same pictures, all with the same black and white: as given, or measured over all of them."""
    first = pictures[0]
    try:
        scale = units([picture.pixels for picture in pictures], white=white, black=black, claim=first.claim)
    except ValueError as error:
        raise ValueError(f"{first.name}: {error}" if first.name else str(error)) from None
    return [replace(picture, scale=scale) for picture in pictures]


def remarked(picture: Picture, words: str) -> Picture:
    """The same, with words about it for those who open a copy in the same format: a text of a PNG, a comment of a JPEG,
    the description of a TIFF that has none. Words of an earlier copy give way. Other formats have no place for them."""
    text = b"Denoised\0" + words.encode("latin-1", "replace")
    if picture.format in ("PNG", "JPEG"):
        others = tuple(chunk for chunk in picture.chunks if not chunk[1].startswith(b"Denoised\0"))
        return replace(picture, chunks=(*others, (b"tEXt" if picture.format == "PNG" else b"\xfe", text)))
    old = picture.tags.get(_DESCRIPTION)
    if picture.format == "TIFF" and (old is None or bytes(getattr(old, "raw", b"")).startswith(b"Denoised")):
        raw = text.replace(b"\0", b": ") + b"\0"
        return replace(picture, tags={**picture.tags, _DESCRIPTION: exif.Entry(2, len(raw), raw)})
    return picture


def check_size(width: int, height: int, max_pixels: int, pages: int = 1) -> None:
    """Refuse an impossible or too large picture before any memory is asked for."""
    if width < 1 or height < 1:
        raise ValueError(f"damaged: it claims to be {width} x {height} pixels")
    if width * height * pages > max_pixels:
        what = f"{pages} x {width} x {height}" if pages > 1 else f"{width} x {height}"
        raise ValueError(
            f"{what} pixels are more than the limit of {max_pixels}; raise the limit if you trust the file"
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
    """Apply the orientation that EXIF asks for, once: the tag says 1 afterwards, and resolutions change places."""
    order, turn = picture.byte_order, exif.orientation(picture.exif)
    if turn == 1:
        return picture
    on_its_side = turn >= 5

    def turned(array: np.ndarray) -> np.ndarray:
        if on_its_side:
            array = array.swapaxes(0, 1)
        # 2, 3, 6, 7 are then mirrored left to right; 3, 4, 7, 8 top to bottom
        array = array[:, ::-1] if turn in (2, 3, 6, 7) else array
        return np.ascontiguousarray(array[::-1] if turn in (3, 4, 7, 8) else array)

    tags = dict(picture.tags)
    if exif.ORIENTATION in tags:
        tags[exif.ORIENTATION] = exif.shorts([1], order)
    if on_its_side:
        swapped = dict(zip(exif.RESOLUTIONS, (tags.get(tag) for tag in reversed(exif.RESOLUTIONS)), strict=True))
        tags |= {tag: value for tag, value in swapped.items() if value is not None}
    block = exif.reset_orientation(picture.exif)

    def mended(kind: bytes, body: bytes) -> bytes:
        if kind == b"eXIf":
            return block
        if on_its_side and kind == b"pHYs" and len(body) == 9:
            return body[4:8] + body[:4] + body[8:]
        if on_its_side and kind == b"\xe0" and body.startswith(b"JFIF\0") and len(body) >= 12:
            return body[:8] + body[10:12] + body[8:10] + body[12:]
        return exif.reset_xmp(body)

    return replace(
        picture,
        pixels=turned(picture.pixels),
        alpha=None if picture.alpha is None else turned(picture.alpha),
        dpi=picture.dpi[::-1] if picture.dpi and on_its_side else picture.dpi,
        exif=block,
        xmp=exif.reset_xmp(picture.xmp),
        tags=tags,
        chunks=tuple((kind, mended(kind, body)) for kind, body in picture.chunks),
    )
