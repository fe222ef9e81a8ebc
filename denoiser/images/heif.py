"""HEIC, as iPhones write it, by the package pillow-heif: the extra "heif"."""

from __future__ import annotations

import io
from types import ModuleType
from typing import Any

import numpy as np

from denoiser.data import install
from denoiser.images import exif
from denoiser.images.picture import Picture, check_size, join_alpha, split_alpha

BRANDS = (b"heic", b"heix", b"heim", b"heis", b"mif1", b"msf1", b"hevc", b"hevx")
_SAMPLES = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4}
_QUALITY = 95


def check() -> ModuleType:
    """The package, or a ValueError that says how to get it."""
    try:
        import pillow_heif
    except ImportError:
        raise ValueError(f"HEIC needs the package pillow-heif: {install('heif')}") from None
    return pillow_heif


def decode(data: bytes, max_pixels: int) -> Picture:
    """The main picture of a HEIC file, 8 bits a sample, or 16 where it has 10 or 12."""
    heif = check()
    try:
        file = heif.open_heif(io.BytesIO(data), convert_hdr_to_8bit=False)
        picture = file[file.primary_index]
        width, height = picture.size
        check_size(width, height, max_pixels)
        mode, info = picture.mode, picture.info
        values = np.array(picture)
    except (OSError, EOFError, RuntimeError, SyntaxError) as error:
        raise ValueError(f"damaged: {error}") from None
    count = _SAMPLES.get(mode.removesuffix(";16").removesuffix(";12").removesuffix(";10"))
    if count is None or values.dtype not in (np.uint8, np.uint16):
        raise ValueError(f"pixels of the kind {mode} are not supported; convert to grey or RGB")
    pixels, alpha = split_alpha(values.reshape(*values.shape[:2], count))
    block = (info.get("exif") or b"").removeprefix(b"Exif\0\0")
    return Picture(
        pixels,
        alpha,
        format="HEIF",
        # libheif has turned the picture already
        exif=exif.reset_orientation(block) if exif.orientation(block) > 1 else block,
        icc=info.get("icc_profile") or b"",
        xmp=exif.reset_xmp(info.get("xmp") or b""),
        notes=tuple(_left_out(info, len(file))),
    )


def _left_out(info: dict[str, Any], pictures: int) -> list[str]:
    aux = " ".join(map(str, info.get("aux") or {})).lower()
    found = {
        "its depth map": info.get("depth_images"),
        "its gain map, with the brightness for HDR screens": "gainmap" in aux,
        "masks or other maps that belong to it": aux and "gainmap" not in aux,
        f"all but the main one of its {pictures} pictures": pictures > 1,
    }
    return [name for name, there in found.items() if there]


def encode(pixels: np.ndarray, alpha: np.ndarray | None, like: Picture) -> bytes:
    """A HEIC file without subsampling, of 8 bits, or 10 for 16-bit pixels, with the metadata of `like`."""
    values = join_alpha(pixels, alpha)
    height, width, count = values.shape
    mode = {number: name for name, number in _SAMPLES.items()}[count] + (";16" if values.itemsize == 2 else "")
    kept = {"exif": like.exif, "xmp": like.xmp, "icc_profile": like.icc}
    out = io.BytesIO()
    check().encode(
        mode, (width, height), values.tobytes(), out, quality=_QUALITY, chroma=444,
        **{name: value for name, value in kept.items() if value},
    )  # fmt: skip
    return out.getvalue()
