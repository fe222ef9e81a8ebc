"""Image files in and out, losslessly and safely; the only package that opens a file format.

`read` gives a `Picture`: upright pixels of the file's own depth, and all that is needed to write the same kind
of file again with `write`. Formats: PNG, JPEG, TIFF, WebP, BMP and PBM/PGM/PPM, told by their first bytes.

    picture.py  what a file held              png.py     PNG of any depth
    exif.py     EXIF and TIFF directories     tiff.py    TIFF of any depth
    pillow.py   JPEG, WebP, BMP               pnm.py     PBM, PGM, PPM

A bad file is a ValueError or OSError of one line that names it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from denoiser import files
from denoiser.files import same_file
from denoiser.images import pillow, png, pnm, tiff
from denoiser.images.picture import Picture, upright

__all__ = [
    "MAX_PIXELS",
    "SUFFIXES",
    "Picture",
    "check_target",
    "encode",
    "lost",
    "read",
    "same_file",
    "write",
    "write_float_tiff",
    "write_png",
    "write_uint16_png",
]

MAX_PIXELS = 200_000_000  # the largest cameras have 150 million
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
}
_MAX_SIDE = {"JPEG": 65500, "WEBP": 16383}
_DEEP = {"PNG": "u", "PNM": "u", "TIFF": "uf"}  # formats of more than 8 bits a sample, and the kinds they hold
_ROWS = 256
_REMARKS = (b"tEXt", b"zTXt", b"iTXt", b"\xfe", b"\xed")  # of PNG and of JPEG
_JPEG_BLOCK = 65533 - 6  # bytes of EXIF that fit


def read(source: str | Path | BinaryIO, *, max_pixels: int = MAX_PIXELS) -> Picture:
    """Read an image file, or a binary stream such as `sys.stdin.buffer`.

    Files of more than `max_pixels` pixels are refused before memory is asked for them.

    >>> import io, numpy as np
    >>> file = io.BytesIO()
    >>> write_uint16_png(file, np.array([[0, 1000], [40000, 65535]]))
    >>> read(io.BytesIO(file.getvalue())).pixels
    array([[    0,  1000],
           [40000, 65535]], dtype=uint16)
    """
    name = files.label(source)
    try:
        picture = upright(_decode(files.read_bytes(source), max_pixels))
    except ValueError as error:
        raise ValueError(f"{name}: {_line(error)}") from None
    except MemoryError:
        raise ValueError(f"{name}: there is not enough memory to read it") from None
    except OSError as error:
        raise OSError(f"{name}: {_line(error.strerror or error)}") from None
    except Exception as error:  # the decoders meet bytes that nobody foresaw
        raise ValueError(f"{name}: damaged: {type(error).__name__}: {_line(error)}") from None
    return replace(picture, name=name)


def _line(error: object) -> str:
    return " ".join(str(error).split())


def _decode(data: bytes, max_pixels: int) -> Picture:
    if data.startswith(png.SIGNATURE):
        return png.decode(data, max_pixels)
    if data[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"):
        return tiff.decode(data, max_pixels)
    if data[:1] == b"P" and data[1:2] in b"123456" and data[2:3] in (b" ", b"\n", b"\r", b"\t", b"#"):
        return pnm.decode(data, max_pixels)
    if data[:3] == b"\xff\xd8\xff":
        return pillow.decode(data, "JPEG", max_pixels)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return pillow.decode(data, "WEBP", max_pixels)
    if data[:2] == b"BM":
        return pillow.decode(data, "BMP", max_pixels)
    if not data:
        raise ValueError("the file is empty")
    raise ValueError("not a PNG, JPEG, TIFF, WebP, BMP, PGM or PPM image")


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
    if dtype != np.uint8 and dtype.kind not in _DEEP.get(codec, ""):
        what = f"{8 * dtype.itemsize}-bit {'real ' if dtype.kind == 'f' else ''}pixels"
        raise ValueError(f"{name}: {codec} cannot hold {what}; use {'.tif' if dtype.kind == 'f' else '.png or .tif'}")
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
        "EXIF data": like.exif and bare,
        "the colour profile": like.icc and (bare or (codec == "WEBP" and like.icc[16:20] == b"GRAY")),
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
    files.write_bytes(target, encode(target, pixels, like))


def encode(target: str | Path | BinaryIO, pixels: np.ndarray, like: Picture) -> bytes:
    """The bytes that `write` would write."""
    codec = check_target(target, like)
    if pixels.shape != like.pixels.shape:
        raise ValueError(f"pixels must have the shape {like.pixels.shape} of the picture read, got {pixels.shape}")
    white, dtype = like.white, like.pixels.dtype
    if dtype.kind == "f":
        values = np.asarray(pixels, dtype)
    else:
        full = white if codec == "PNM" else float(np.iinfo(dtype).max)
        values = _whole(pixels, full, dtype, full / white)
    if codec == "PNG":
        return png.encode(values, like.alpha, like)
    if codec == "TIFF":
        return tiff.encode(values, like.alpha, like)
    if codec == "PNM":
        return pnm.encode(values, white)
    return pillow.encode(values, like.alpha, codec, like)


def _whole(values: np.ndarray, white: float, dtype: np.dtype, scale: float = 1.0) -> np.ndarray:
    """Scaled, rounded and clipped to 0 .. white; some rows at a time, because real numbers take much memory."""
    out = np.empty(np.shape(values), dtype)
    for y in range(0, len(out), _ROWS):
        rows = np.asarray(values[y : y + _ROWS], np.float64) * scale
        if not np.isfinite(rows).all():
            raise ValueError("pixels must be finite numbers to be written")
        out[y : y + _ROWS] = np.clip(np.rint(rows), 0, white)
    return out


def write_png(target: str | Path | BinaryIO, image: np.ndarray) -> None:
    """A grey or RGB image on the 0-255 scale as an 8-bit PNG."""
    files.write_bytes(target, png.encode(_whole(image, 255, np.dtype(np.uint8)), None))


def write_uint16_png(target: str | Path | BinaryIO, image: np.ndarray) -> None:
    """A grey or RGB image on the 0-65535 scale as a 16-bit PNG."""
    files.write_bytes(target, png.encode(_whole(image, 65535, np.dtype(np.uint16)), None))


def write_float_tiff(target: str | Path | BinaryIO, image: np.ndarray) -> None:
    """A grey or RGB image as a TIFF of 32-bit real numbers: nothing rounded, nothing clipped."""
    files.write_bytes(target, tiff.encode(np.asarray(image, np.float32), None))
