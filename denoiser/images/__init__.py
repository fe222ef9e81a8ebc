"""Image files in and out, losslessly and safely; the only package that opens a file format.

`read` gives a `Picture`: upright pixels of the file's own depth, and all that is needed to write the same kind
of file again with `write`. `read_stack` gives every page of a TIFF, `write_stack` writes them again. Formats: PNG,
JPEG, TIFF, WebP, BMP, PBM/PGM/PPM, AVIF and, with an extra, HEIC, told by their first bytes.

    picture.py      what a file held               png.py          PNG of any depth
    exif.py         EXIF and TIFF directories      tiff.py         TIFF in: pages and tags
    pillow.py       JPEG, WebP, BMP, AVIF          tiff_pixels.py  TIFF in: strips and tiles
    jpeg.py         the segments of a JPEG         tiff_write.py   TIFF out
    heif.py         HEIC                           pnm.py          PBM, PGM, PPM

A bad file is a ValueError or OSError of one line that names it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from denoiser import files
from denoiser.files import same_file
from denoiser.images import heif, pillow, png, pnm, tiff, tiff_write
from denoiser.images.picture import SUFFIXES, Picture, remarked, upright, with_units

__all__ = [
    "MAX_PIXELS",
    "SUFFIXES",
    "Picture",
    "check_target",
    "encode_stack",
    "lost",
    "read",
    "read_stack",
    "remarked",
    "same_file",
    "with_units",
    "write",
    "write_float_tiff",
    "write_png",
    "write_stack",
    "write_uint16_png",
]

MAX_PIXELS = 200_000_000  # the largest cameras have 150 million
_MAX_SIDE = {"JPEG": 65500, "WEBP": 16383, "AVIF": 16384, "HEIF": 16384}
_DEEP = {"PNG", "PNM", "HEIF"}  # formats of up to 16 bits a sample; TIFF holds any numbers
_ROWS = 256
_REMARKS = (b"tEXt", b"zTXt", b"iTXt", b"\xfe", b"\xed")  # of PNG and of JPEG
_JPEG_BLOCK = 65533 - 6  # bytes of EXIF that fit


def read(source: str | Path | BinaryIO, *, max_pixels: int = MAX_PIXELS) -> Picture:
    """Read an image file, or a binary stream such as `sys.stdin.buffer`.

    Files of more than `max_pixels` pixels are refused before memory is asked for them, and so are stacks.

    >>> import io, numpy as np
    >>> file = io.BytesIO()
    >>> write_uint16_png(file, np.array([[0, 1000], [40000, 65535]]))
    >>> read(io.BytesIO(file.getvalue())).pixels
    array([[    0,  1000],
           [40000, 65535]], dtype=uint16)
    """
    pictures = read_stack(source, max_pixels=max_pixels)
    if len(pictures) > 1:
        raise ValueError(f"{pictures[0].name}: a stack of {len(pictures)} pictures, where one is wanted")
    return pictures[0]


def read_stack(source: str | Path | BinaryIO, *, max_pixels: int = MAX_PIXELS) -> list[Picture]:
    """All pages of a TIFF; of other files their one picture. `max_pixels` is for all of them together.

    `with_units` gives them the same black and white, measured over all.
    """
    name = files.label(source)
    try:
        pictures = [upright(picture) for picture in _decode(files.read_bytes(source), max_pixels)]
    except ValueError as error:
        raise ValueError(f"{name}: {_line(error)}") from None
    except MemoryError:
        raise ValueError(f"{name}: there is not enough memory to read it") from None
    except OSError as error:
        raise OSError(f"{name}: {_line(error.strerror or error)}") from None
    except Exception as error:  # the decoders meet bytes that nobody foresaw
        raise ValueError(f"{name}: damaged: {type(error).__name__}: {_line(error)}") from None
    return [replace(picture, name=name) for picture in pictures]


def _line(error: object) -> str:
    return " ".join(str(error).split())


def _decode(data: bytes, max_pixels: int) -> list[Picture]:
    if data[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"):
        return tiff.decode(data, max_pixels)
    if data.startswith(png.SIGNATURE):
        return [png.decode(data, max_pixels)]
    if data[:1] == b"P" and data[1:2] in b"123456" and data[2:3] in (b" ", b"\n", b"\r", b"\t", b"#"):
        return [pnm.decode(data, max_pixels)]
    if data[4:8] == b"ftyp" and any(brand in data[8:64] for brand in (b"avif", b"avis")):
        return [pillow.decode(data, "AVIF", max_pixels)]
    if data[4:8] == b"ftyp" and data[8:12] in heif.BRANDS:
        return [heif.decode(data, max_pixels)]
    for start, codec in ((b"\xff\xd8\xff", "JPEG"), (b"RIFF", "WEBP"), (b"BM", "BMP")):
        if data.startswith(start) and (codec != "WEBP" or data[8:12] == b"WEBP"):
            return [pillow.decode(data, codec, max_pixels)]
    if not data:
        raise ValueError("the file is empty")
    raise ValueError("not a PNG, JPEG, TIFF, WebP, BMP, PGM, PPM, AVIF or HEIC image")


def check_target(target: str | Path | BinaryIO, like: Picture) -> str:
    """The format in which `write` would write to `target`; a ValueError if that cannot hold a picture like this.

    The name's suffix decides; a stream, or a name without a suffix, gets the format that was read.
    """
    suffix = Path(target).suffix.lower() if isinstance(target, str | Path) else ""
    name = files.label(target)
    if suffix and suffix not in SUFFIXES:
        better = f"name it {like.suffix}" if suffix == ".pbm" else f"use one of {' '.join(SUFFIXES)}"
        raise ValueError(f"{name}: {suffix} cannot be written; {better}")
    codec = SUFFIXES[suffix] if suffix else like.format
    dtype, height, width = like.pixels.dtype, *like.pixels.shape[:2]
    if codec == "HEIF":
        heif.check()
    if dtype != np.uint8 and codec != "TIFF" and (dtype != np.uint16 or codec not in _DEEP):
        what = f"{8 * dtype.itemsize}-bit { {'f': 'real ', 'i': 'signed '}.get(dtype.kind, '') }pixels"
        raise ValueError(f"{name}: {codec} cannot hold {what}; use {'.png or .tif' if dtype == np.uint16 else '.tif'}")
    if like.alpha is not None and codec in ("JPEG", "PNM"):
        raise ValueError(f"{name}: {codec} cannot hold transparency; use .png or .tif")
    if like.premultiplied and codec != "TIFF":
        raise ValueError(f"{name}: only TIFF can hold premultiplied transparency; use .tif")
    if suffix in (".pgm", ".ppm") and (like.pixels.ndim == 2) != (suffix == ".pgm"):
        raise ValueError(f"{name}: {suffix} does not fit; use {'.pgm' if like.pixels.ndim == 2 else '.ppm'}")
    if max(height, width) > _MAX_SIDE.get(codec, 2**31 - 1):
        raise ValueError(f"{name}: {codec} is limited to {_MAX_SIDE[codec]} pixels a side; use .png or .tif")
    if codec == "JPEG" != like.format and max(len(like.exif), len(like.xmp)) > _JPEG_BLOCK:
        raise ValueError(f"{name}: JPEG cannot hold such long EXIF or XMP data; use .png or .tif")
    return codec


def lost(target: str | Path | BinaryIO, like: Picture) -> list[str]:
    """What of the file read `target` cannot keep, in words for a warning; nothing as long as the format stays."""
    codec = check_target(target, like)
    if codec == like.format:
        return list(like.notes)
    bare = codec in ("BMP", "PNM")
    remarks = (body for kind, body in like.chunks if kind in _REMARKS and body != png.XMP_MARK + like.xmp)
    found = {
        "the video behind the photograph": like.trailer,
        "EXIF data": like.exif and bare,
        "the colour profile": like.icc and (bare or (codec in ("WEBP", "AVIF") and like.icc[16:20] == b"GRAY")),
        "XMP data": like.xmp and bare,
        f"remarks that only {like.format} can hold": any(remarks),
    }
    return [*like.notes, *(name for name, missing in found.items() if missing)]


def write(target: str | Path | BinaryIO, pixels: np.ndarray, like: Picture) -> None:
    """Write `pixels`, on the scale of `like.pixels`, as a file like the one that `like` was read from.

    Same depth, alpha bit for bit, EXIF, colour profile and resolution as they were; whole numbers are rounded
    and clipped. The format is the one that `target` names (see `check_target`). Palette pictures are written
    as 8-bit RGB and those of 1, 2 or 4 bits as 8-bit grey, because denoised pixels have more shades. WebP is
    written lossless; JPEG at quality 95 without subsampling, or finer where the original was finer.
    A file is replaced as a whole or not at all; see `files.write_bytes` for links and permissions.
    """
    write_stack(target, [pixels], [like])


def write_stack(target: str | Path | BinaryIO, pages: list[np.ndarray], like: list[Picture]) -> None:
    """Write the pages of a stack as a TIFF like the one that was read; a single one as `write` does."""
    files.write_bytes(target, encode_stack(target, pages, like))


def encode_stack(target: str | Path | BinaryIO, pages: list[np.ndarray], like: list[Picture]) -> bytes:
    """The bytes that `write_stack` would write."""
    if len(pages) != len(like) or not pages:
        raise ValueError(f"a stack of {len(like)} pictures cannot be written with {len(pages)}")
    codecs = {check_target(target, picture) for picture in like}
    if len(pages) > 1 and codecs != {"TIFF"}:
        raise ValueError(f"{files.label(target)}: only TIFF can hold a stack of pictures; use .tif")
    codec, pixels, first = codecs.pop(), pages[0], like[0]
    if codec == "TIFF":
        return tiff_write.encode(
            [(_values(*pair, codec), pair[1].alpha, pair[1]) for pair in zip(pages, like, strict=True)]
        )
    if codec == "PNG":
        return png.encode(_values(pixels, first, codec), first.alpha, first)
    if codec == "PNM":
        return pnm.encode(_values(pixels, first, codec), int(first.top))
    if codec == "HEIF":
        return heif.encode(_values(pixels, first, codec), first.alpha, first)
    # the values have no name here: a copy of a large picture that Pillow lets go
    return pillow.encode(_values(pixels, first, codec), first.alpha, codec, first)


def _values(pixels: np.ndarray, like: Picture, codec: str) -> np.ndarray:
    """The pixels as numbers of the type that was read, on the scale of the format to write."""
    dtype = like.pixels.dtype
    if np.shape(pixels) != like.pixels.shape:
        raise ValueError(f"pixels must have the shape {like.pixels.shape} of the picture read, got {np.shape(pixels)}")
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            values = np.asarray(pixels, dtype)
        if not np.isfinite(values).all():
            raise ValueError("pixels must be finite numbers to be written")
        return values
    most = like.top
    full = most if codec in ("PNM", like.format) else float(np.iinfo(dtype).max)
    return _whole(pixels, full, dtype, full / most)


def _whole(values: np.ndarray, white: float, dtype: np.dtype, scale: float = 1.0) -> np.ndarray:
    """Scaled, rounded and clipped to what `dtype` holds up to `white`; by rows, because real numbers take memory."""
    out = np.empty(np.shape(values), dtype)
    for y in range(0, len(out), _ROWS):
        rows = np.asarray(values[y : y + _ROWS], np.float64) * scale
        if not np.isfinite(rows).all():
            raise ValueError("pixels must be finite numbers to be written")
        out[y : y + _ROWS] = np.clip(np.rint(rows), np.iinfo(dtype).min, white)
    return out


def write_png(target: str | Path | BinaryIO, image: np.ndarray) -> None:
    """A grey or RGB image on the 0-255 scale as an 8-bit PNG."""
    files.write_bytes(target, png.encode(_whole(image, 255, np.dtype(np.uint8)), None))


def write_uint16_png(target: str | Path | BinaryIO, image: np.ndarray) -> None:
    """A grey or RGB image on the 0-65535 scale as a 16-bit PNG."""
    files.write_bytes(target, png.encode(_whole(image, 65535, np.dtype(np.uint16)), None))


def write_float_tiff(target: str | Path | BinaryIO, image: np.ndarray) -> None:
    """A grey or RGB image as a TIFF of 32-bit real numbers: nothing rounded, nothing clipped."""
    files.write_bytes(target, tiff_write.encode([(np.asarray(image, np.float32), None, None)]))
