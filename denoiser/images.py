"""Image files in and out; the only module that opens a file format."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError


def read(path: str | Path) -> np.ndarray:
    """An 8-bit picture as uint8, shape (height, width) for grey and (height, width, 3) for colour."""
    try:
        with Image.open(path, formats=("PNG", "JPEG", "TIFF", "WEBP", "BMP", "PPM")) as picture:
            if picture.mode not in ("1", "L", "LA", "P", "RGB", "RGBA"):
                raise ValueError(f"{path}: pixels of mode {picture.mode} are not supported yet; convert to 8 bits")
            grey = picture.mode in ("1", "L", "LA")
            return np.asarray(picture.convert("L" if grey else "RGB"))
    except UnidentifiedImageError:
        raise ValueError(f"{path}: not a PNG, JPEG, TIFF, WebP, BMP or PPM image") from None
    except (OSError, Image.DecompressionBombError) as error:
        raise ValueError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def write_png(path: str | Path, image: np.ndarray) -> None:
    """Write an image on the 0-255 scale as an 8-bit PNG: whole or not at all, never in part."""
    path = Path(path)
    pixels = np.clip(np.rint(image), 0, 255).astype(np.uint8)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            Image.fromarray(pixels).save(file, format="PNG")
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
