"""Clean photographs, several reductions of each, and crops of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from denoiser import images
from denoiser.files import label

#: Reductions and how often they are drawn: a smaller picture is sharper, and free of its JPEG's blocks.
REDUCTIONS = {1.0: 0.3, 0.7: 0.35, 0.5: 0.35}
#: Brightness of red, green and blue.
GREY = np.array([0.299, 0.587, 0.114], np.float32)
_ENDINGS = {".png", ".webp", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".ppm"}


class Photographs:
    """Pictures as 8-bit RGB arrays, at every reduction; smaller ones than a crop are left out."""

    def __init__(self, files: Sequence[Path], smallest: int = 96) -> None:
        self.files = list(files)
        self.reduced: dict[float, list[np.ndarray]] = {scale: [] for scale in REDUCTIONS}
        for file in self.files:
            for scale, pixels in _read(file):
                if min(pixels.shape[:2]) >= smallest:
                    self.reduced[scale].append(pixels)
        self.scales = [scale for scale, pictures in self.reduced.items() if pictures]
        if not self.scales:
            raise ValueError(f"no photograph of at least {smallest} x {smallest} pixels among {len(self.files)} files")
        odds = np.array([REDUCTIONS[scale] for scale in self.scales])
        self.odds = odds / odds.sum()

    def crop(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """A random square of a random picture, flipped and turned, (size, size, 3), 8 bits; smaller if it must be."""
        pictures = self.reduced[self.scales[rng.choice(len(self.scales), p=self.odds)]]
        pixels = pictures[rng.integers(len(pictures))]
        size = min(size, *pixels.shape[:2])
        y, x = (int(rng.integers(n - size + 1)) for n in pixels.shape[:2])
        return turned(pixels[y : y + size, x : x + size], int(rng.integers(8)))


def turned(square: np.ndarray, which: int) -> np.ndarray:
    """One of the eight flips and turns of the first two axes."""
    square = square.swapaxes(0, 1) if which & 4 else square
    return square[:: -1 if which & 1 else 1, :: -1 if which & 2 else 1]


def enlarged(square: np.ndarray, size: int) -> np.ndarray:
    """8-bit RGB pixels at `size` pixels a side, float32: sensors have more pixels than lenses have detail."""
    picture = Image.fromarray(np.ascontiguousarray(square))
    return np.asarray(picture.resize((size, size), Image.Resampling.BICUBIC), np.float32)


def find(folders: Sequence[Path]) -> list[Path]:
    """The picture files in some folders and below, sorted."""
    for folder in folders:
        if not folder.is_dir():
            raise ValueError(f"{label(folder)}: no such folder")
    files = sorted(f for folder in folders for f in folder.rglob("*") if f.suffix.lower() in _ENDINGS and f.is_file())
    if not files:
        raise ValueError(f"no pictures in {', '.join(label(folder) for folder in folders)}")
    return files


def _read(file: Path) -> list[tuple[float, np.ndarray]]:
    """The picture at every reduction, 8 bits; a file that is none counts as empty."""
    try:
        found = images.read(file)
        levels = ((found.pixels - found.black) / found.grey).round().clip(0, 255).astype(np.uint8)
    except (OSError, ValueError):
        return []
    picture = Image.fromarray(levels).convert("RGB")
    sizes = [(scale, (round(picture.width * scale), round(picture.height * scale))) for scale in REDUCTIONS]
    return [
        (scale, np.asarray(picture if scale == 1 else picture.resize(size, Image.Resampling.LANCZOS)))
        for scale, size in sizes
        if min(size) > 0
    ]
