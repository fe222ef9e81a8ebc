"""What becomes of a result on the disk, for the command line and the window alike."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np

from denoiser import images, panels
from denoiser.files import write_bytes

_MAP_PIXELS = 2_000_000  # a readable map needs no more


def map_name(std: str) -> str:
    """Where the readable uncertainty map goes."""
    path = Path(std)
    return str(path.with_name(f"{path.stem}-map.png"))


def write_std(target: str, std: np.ndarray, grey: float) -> None:
    """The uncertainty as numbers, and a readable map beside it. `grey`: a grey level of 255 in the units of `std`."""
    _write_numbers(target, std, 257 / grey, 0)
    images.write_png(map_name(target), panels.heat_map(_shrunk(std) / grey))


def write_residual(target: str, residual: np.ndarray, grey: float) -> None:
    """What was taken away, as numbers; around mid-grey in a PNG."""
    _write_numbers(target, residual, 257 / grey, 32768)


def write_samples(target: str, mean: np.ndarray, std: np.ndarray, samples: np.ndarray) -> None:
    """Mean, uncertainty and candidate pictures as numpy's .npz."""
    out = io.BytesIO()
    np.savez_compressed(out, mean=mean, std=std, samples=samples)
    write_bytes(target, out.getvalue())


def _write_numbers(target: str, values: np.ndarray, scale: float, middle: float) -> None:
    """Real numbers: as they are in a TIFF, scaled to 16 bits in a PNG."""
    if target.lower().endswith(".png"):
        whole = np.empty(values.shape, np.uint16)
        for y in range(0, len(whole), 256):  # in strips, because real numbers take much memory
            whole[y : y + 256] = np.clip(np.rint(values[y : y + 256] * scale + middle), 0, 65535)
        images.write_uint16_png(target, whole)
    else:
        images.write_float_tiff(target, values)


def _shrunk(values: np.ndarray) -> np.ndarray:
    """Every n-th pixel of a picture that is too large to look at."""
    n = math.ceil(math.sqrt(values.shape[0] * values.shape[1] / _MAP_PIXELS))
    return values[::n, ::n] if n > 1 else values
