"""What Pillow does for us: JPEG, WebP, BMP, AVIF, and PNG of up to 8 bits."""

from __future__ import annotations

import io
import struct
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from PIL import Image, ImageFile, UnidentifiedImageError, features

from denoiser.images import jpeg
from denoiser.images.picture import Picture, check_size, join_alpha, split_alpha

_LOCK = threading.Lock()
_SAMPLES = {"L": "L", "LA": "LA", "1": "L", "RGB": "RGB", "RGBA": "RGBA", "RGBX": "RGB", "YCbCr": "RGB"}
_QUALITY = 95  # of JPEG and AVIF
_OPTIONS: dict[str, dict[str, Any]] = {
    "JPEG": {"subsampling": 0},
    "WEBP": {"lossless": True, "exact": True, "quality": 40, "method": 2},
    "AVIF": {"quality": _QUALITY, "subsampling": "4:4:4"},
    "BMP": {},
}
_MERELY = ("unsupported", "not supported", "not implemented", "cannot handle", "unknown")  # Pillow's words, not damage


@contextmanager
def _opened(data: bytes, codec: str, max_pixels: int) -> Iterator[ImageFile.ImageFile]:
    """Open `data` as this one format. Pillow's warnings stay inside, and our limit replaces its global one.

    Filters for warnings and Pillow's limit belong to the whole process, hence the lock.
    """
    with _LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
        try:
            with Image.open(io.BytesIO(data), formats=(codec,)) as picture:
                check_size(*picture.size, max_pixels)
                yield picture
        except UnidentifiedImageError:
            raise ValueError(f"damaged: it begins like a {codec} file but is none") from None
        except (OSError, SyntaxError, struct.error) as error:
            merely = any(word in str(error).lower() for word in _MERELY)
            raise ValueError(
                f"{codec} of a kind that is not read: {error}" if merely else f"damaged: {error}"
            ) from None
        finally:
            Image.MAX_IMAGE_PIXELS = limit


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
    """A JPEG, WebP, BMP or AVIF file."""
    found = jpeg.anatomy(data) if codec == "JPEG" else None
    if codec == "BMP" and len(data) >= 34 and data[14] >= 40 and struct.unpack_from("<I", data, 30)[0] in (1, 2):
        raise ValueError("a run-length encoded BMP; save it uncompressed, or as a PNG")
    if codec == "AVIF" and not ("avif" in features.modules and features.check("avif")):
        raise ValueError("AVIF needs a newer Pillow: pip install --upgrade pillow")
    with _opened(data, codec, max_pixels) as picture:
        blocks = (picture.width // 8) * (picture.height // 8)
        if found is not None and blocks > 8 * found.end:  # a block of 8 x 8 pixels takes a bit at least
            raise ValueError("damaged: the file is too short for the picture it claims to hold")
        frames = getattr(picture, "n_frames", 1)
        if frames > 1 and found is None:
            raise ValueError(f"an animation of {frames} pictures; only single pictures can be denoised")
        mode, info = picture.mode, picture.info
        tables = getattr(picture, "quantization", None) or {}
        pixels, alpha = split_alpha(_samples(picture))
        dpi, xmp = info.get("dpi"), _bytes(info.get("xmp"))
        return Picture(
            pixels,
            alpha,
            format=codec,
            mode={"1": "1-bit", "P": "palette"}.get(mode, ""),
            exif=_bytes(info.get("exif")).removeprefix(jpeg.EXIF_MARK),
            icc=_bytes(info.get("icc_profile")),
            xmp=xmp,
            chunks=found.segments if found else (),
            dpi=(float(dpi[0]), float(dpi[1])) if dpi and min(dpi) > 0 else None,
            tables=tuple(tuple(tables[key]) for key in sorted(tables)) if found else (),
            trailer=jpeg.trailer(data, found, xmp) if found else b"",
            notes=jpeg.left_out(found, xmp) if found else _deeper(data) if codec == "AVIF" else (),
        )


def _deeper(data: bytes) -> tuple[str, ...]:
    """Pillow gives 8 bits of an AVIF's 10 or 12; the third byte of its av1C box says how many there are."""
    place = data.find(b"av1C")
    flags = data[place + 6] if 0 <= place < len(data) - 6 else 0
    return (f"{12 if flags & 0x20 else 10} bits a sample; they become 8",) if flags & 0x40 else ()


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else b""


def encode(pixels: np.ndarray, alpha: np.ndarray | None, codec: str, like: Picture) -> bytes:
    """JPEG, WebP, BMP or AVIF of 8-bit pixels with the metadata of `like`."""
    values = join_alpha(pixels, alpha)
    no_grey = codec in ("WEBP", "AVIF") or (codec == "BMP" and alpha is not None)
    if no_grey and values.shape[2] < 3:
        values = np.concatenate([values[..., :1]] * 3 + [values[..., 1:]], axis=2)
    if codec == "BMP" and alpha is not None:
        return _alpha_bmp(values, like)
    options = _OPTIONS[codec] | (_tables(like) if codec == "JPEG" else {})
    again = codec == like.format == "JPEG"  # what it holds besides comes from its own segments
    if codec != "BMP" and not again:
        misfit = no_grey and like.icc[16:20] == b"GRAY"  # of pixels that had to become RGB
        options["exif"] = jpeg.EXIF_MARK + like.exif if like.exif else b""
        options["icc_profile"] = None if misfit else like.icc or None
        options |= {"xmp": like.xmp} if like.xmp else {}
    if like.dpi and codec in ("JPEG", "BMP"):
        options["dpi"] = like.dpi
    out = io.BytesIO()
    image = Image.fromarray(np.squeeze(values, 2) if values.shape[2] == 1 else values)
    del pixels, values  # Pillow has its own copy
    image.save(out, codec, **options)
    if again:
        return jpeg.with_segments(out.getvalue(), list(like.chunks), like.exif) + like.trailer
    return out.getvalue()


def _tables(like: Picture) -> dict[str, Any]:
    """Quality 95, or finer where the original was finer: every quantisation step is the smaller of the two."""
    if not like.tables:
        return {"quality": _QUALITY}
    small = io.BytesIO()
    Image.new("RGB", (8, 8)).save(small, "JPEG", quality=_QUALITY)
    with Image.open(small) as picture:
        ours = [picture.quantization[0], picture.quantization[1]]  # type: ignore[attr-defined]
    theirs = [like.tables[0], like.tables[min(1, len(like.tables) - 1)]]
    return {"qtables": [[min(pair) for pair in zip(*both, strict=True)] for both in zip(ours, theirs, strict=True)]}


def _alpha_bmp(values: np.ndarray, like: Picture) -> bytes:
    """A BMP with alpha, which Pillow can read but not write: 32 bits, masks in a version 4 header."""
    height, width = values.shape[:2]
    body = values[::-1, :, [2, 1, 0, 3]].tobytes()
    across, down = (round(dpi / 0.0254) for dpi in like.dpi or (0, 0))
    masks = struct.pack("<4I", 0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    info = struct.pack("<IiiHHIIiiII", 108, width, height, 1, 32, 3, len(body), across, down, 0, 0)
    tail = masks + b"BGRs" + bytes(48)  # sRGB
    return struct.pack("<2sIHHI", b"BM", 122 + len(body), 0, 0, 122) + info + tail + body
