"""What Pillow does for us: JPEG, WebP, BMP, PNG of up to 8 bits, and the TIFF compressions that need libtiff."""

from __future__ import annotations

import io
import os
import struct
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from PIL import Image, ImageFile, UnidentifiedImageError

from denoiser.images.picture import Picture, check_size, join_alpha, split_alpha

_LOCK = threading.Lock()
_SAMPLES = {"L": "L", "LA": "LA", "1": "L", "RGB": "RGB", "RGBA": "RGBA", "RGBX": "RGB", "YCbCr": "RGB"}
_MAX_SCANS = 100  # a progressive JPEG has about ten; thousands of empty ones are an attack
_JPEG_QUALITY = 95
_EXIF, _EXIF_PART = b"Exif\0\0", 65533 - 6  # the mark of EXIF in a JPEG, and how much of it fits a segment


@contextmanager
def _opened(data: bytes, codec: str, max_pixels: int) -> Iterator[ImageFile.ImageFile]:
    """Open `data` as this one format. Pillow's warnings stay inside, and our limit replaces its global one.

    Filters for warnings, Pillow's limit and stderr belong to the whole process, hence the lock.
    """
    with _LOCK, warnings.catch_warnings(), _silent_libtiff() if codec == "TIFF" else nullcontext():
        warnings.simplefilter("ignore")
        limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
        try:
            with Image.open(io.BytesIO(data), formats=(codec,)) as picture:
                check_size(*picture.size, max_pixels)
                yield picture
        except UnidentifiedImageError:
            raise ValueError(f"damaged: it begins like a {codec} file but is none") from None
        except (OSError, SyntaxError, struct.error) as error:
            raise ValueError(f"damaged: {error}") from None
        finally:
            Image.MAX_IMAGE_PIXELS = limit


@contextmanager
def _silent_libtiff() -> Iterator[None]:
    """libtiff reports damage straight to the terminal; the user gets our one line instead."""
    try:
        terminal = os.dup(2)
    except OSError:  # closed: nothing to silence
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(nowhere)
        os.close(terminal)


def _samples(picture: ImageFile.ImageFile) -> np.ndarray:
    """(height, width, samples), 8 bits each."""
    if picture.mode == "CMYK":
        raise ValueError("CMYK colours, made for printing; convert it to RGB with its colour profile first")
    if picture.mode in ("P", "PA"):
        clear = picture.mode == "PA" or "transparency" in picture.info
        return np.array(picture.convert("RGBA" if clear else "RGB"))
    if picture.mode not in _SAMPLES:
        raise ValueError(f"pixels of the kind {picture.mode} are not supported; convert to grey or RGB")
    values = np.array(picture.convert(_SAMPLES[picture.mode]))
    return values.reshape(*values.shape[:2], -1)


def samples(data: bytes, codec: str, max_pixels: int) -> np.ndarray:
    """Only the pixels, (height, width, samples), 8 bits each."""
    with _opened(data, codec, max_pixels) as picture:
        return _samples(picture)


def decode(data: bytes, codec: str, max_pixels: int) -> Picture:
    """A JPEG, WebP or BMP file."""
    if codec == "JPEG" and data.count(b"\xff\xda") > _MAX_SCANS:
        raise ValueError(f"a JPEG of more than {_MAX_SCANS} scans; save it again as a plain one")
    if codec == "BMP" and len(data) >= 34 and data[14] >= 40 and struct.unpack_from("<I", data, 30)[0] in (1, 2):
        raise ValueError("a run-length encoded BMP; save it uncompressed, or as a PNG")
    with _opened(data, codec, max_pixels) as picture:
        blocks = (picture.width // 8) * (picture.height // 8)
        if codec == "JPEG" and blocks > 8 * len(data):  # a block of 8 x 8 pixels takes a bit at least
            raise ValueError("damaged: the file is too short for the picture it claims to hold")
        frames = getattr(picture, "n_frames", 1)
        if frames > 1 and codec != "JPEG":
            raise ValueError(f"an animation of {frames} pictures; only single pictures can be denoised")
        # Phones hide depth or brightness maps behind the photograph; the photograph is the first.
        notes = (f"only the first of its {frames} pictures is read",) if frames > 1 else ()
        mode, info = picture.mode, picture.info
        tables = getattr(picture, "quantization", None) or {}
        pixels, alpha = split_alpha(_samples(picture))
        dpi = info.get("dpi")
        return Picture(
            pixels,
            alpha,
            format=codec,
            mode={"1": "1-bit", "P": "palette"}.get(mode, ""),
            exif=_bytes(info.get("exif")).removeprefix(_EXIF),
            icc=_bytes(info.get("icc_profile")),
            xmp=_bytes(info.get("xmp")),
            chunks=tuple(_segments(data)) if codec == "JPEG" else (),
            dpi=(float(dpi[0]), float(dpi[1])) if dpi and min(dpi) > 0 else None,
            tables=tuple(tuple(tables[key]) for key in sorted(tables)) if codec == "JPEG" else (),
            notes=notes,
        )


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else b""


def encode(pixels: np.ndarray, alpha: np.ndarray | None, codec: str, like: Picture) -> bytes:
    """JPEG, WebP or BMP of 8-bit pixels with the metadata of `like`."""
    values = join_alpha(pixels, alpha)
    if codec == "BMP" and alpha is not None:
        return _alpha_bmp(values, like)
    if codec == "WEBP" and values.shape[2] < 3:  # WebP has no grey
        values = np.concatenate([values[..., :1]] * 3 + [values[..., 1:]], axis=2)
    options: dict[str, Any] = {}
    if codec in ("JPEG", "WEBP"):
        options = {"exif": _EXIF + like.exif if like.exif else b"", "icc_profile": like.icc or None}
        if like.xmp:
            options["xmp"] = like.xmp
    if codec == "JPEG":
        options |= {"subsampling": 0, **_tables(like)}
    if codec == "WEBP":
        options |= {"lossless": True, "exact": True, "quality": 40, "method": 2}
    if codec == "JPEG" and like.format == "JPEG":
        options = {"subsampling": 0, **_tables(like)}  # the rest comes from its own segments
    if codec == "WEBP" and like.icc[16:20] == b"GRAY":
        options["icc_profile"] = None  # does not fit pixels that had to become RGB
    if like.dpi and codec in ("JPEG", "BMP"):
        options["dpi"] = like.dpi
    out = io.BytesIO()
    Image.fromarray(np.squeeze(values, 2) if values.shape[2] == 1 else values).save(out, codec, **options)
    return _with_segments(out.getvalue(), like) if codec == "JPEG" and like.format == "JPEG" else out.getvalue()


def _segments(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """What programs and cameras wrote into a JPEG beside the pixels (IPTC, XMP, profiles, remarks): marker, body."""
    place = 2
    while place + 4 <= len(data) and data[place] == 0xFF and data[place + 1] not in (0xDA, 0xD9):
        marker, length = data[place + 1], int.from_bytes(data[place + 2 : place + 4], "big")
        if marker == 0xFF:  # padding
            place += 1
            continue
        body = data[place + 4 : place + 2 + length]
        # not the index of further pictures, which are gone, nor Adobe's note on how colours were stored
        if (0xE0 <= marker <= 0xED or marker in (0xEF, 0xFE)) and not body.startswith(b"MPF\0"):
            yield bytes([marker]), body
        place += 2 + max(length, 2)


def _with_segments(jpeg: bytes, like: Picture) -> bytes:
    """Put the segments of the original into a fresh JPEG, whose own first segment (JFIF) gives way to theirs."""
    own = int.from_bytes(jpeg[4:6], "big")
    theirs = [(kind, body) for kind, body in like.chunks if not body.startswith(_EXIF)]
    if theirs and theirs[0][1].startswith(b"JFIF\0"):
        first, theirs = theirs[:1], theirs[1:]
    else:
        first = [(b"\xe0", jpeg[6 : 4 + own])]
    exif = [(b"\xe1", _EXIF + like.exif[at : at + _EXIF_PART]) for at in range(0, len(like.exif), _EXIF_PART)]
    parts = (b"\xff" + kind + struct.pack(">H", len(body) + 2) + body for kind, body in [*first, *exif, *theirs])
    return jpeg[:2] + b"".join(parts) + jpeg[4 + own :]


def _tables(like: Picture) -> dict[str, Any]:
    """Quality 95, or finer where the original was finer: every quantisation step is the smaller of the two."""
    if not like.tables:
        return {"quality": _JPEG_QUALITY}
    small = io.BytesIO()
    Image.new("RGB", (8, 8)).save(small, "JPEG", quality=_JPEG_QUALITY)
    with Image.open(small) as picture:
        ours = [picture.quantization[0], picture.quantization[1]]  # type: ignore[attr-defined]
    theirs = [like.tables[0], like.tables[min(1, len(like.tables) - 1)]]
    return {"qtables": [[min(pair) for pair in zip(*both, strict=True)] for both in zip(ours, theirs, strict=True)]}


def _alpha_bmp(values: np.ndarray, like: Picture) -> bytes:
    """A BMP with alpha, which Pillow can read but not write: 32 bits, masks in a version 4 header."""
    height, width = values.shape[:2]
    if values.shape[2] == 2:
        values = np.concatenate([values[..., :1]] * 3 + [values[..., 1:]], axis=2)
    body = values[::-1, :, [2, 1, 0, 3]].tobytes()
    across, down = (round(dpi / 0.0254) for dpi in like.dpi or (0, 0))
    masks = struct.pack("<4I", 0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    info = struct.pack("<IiiHHIIiiII", 108, width, height, 1, 32, 3, len(body), across, down, 0, 0)
    tail = masks + b"BGRs" + bytes(48)  # sRGB
    return struct.pack("<2sIHHI", b"BM", 122 + len(body), 0, 0, 122) + info + tail + body
