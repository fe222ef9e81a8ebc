"""What a wrong black or white costs: PSNR by the scale of a picture, and errors around pixels far beyond white.

`python benchmarks/units.py` takes about two minutes; its tables are in docs/reliability.md.
"""

from __future__ import annotations

import numpy as np

from denoiser import add_noise, denoise
from denoiser.data import data_folder
from denoiser.images import read
from denoiser.metrics import psnr

SIGMA = 15.0
NAMES = ("astronaut", "brick", "camera", "coffee", "lake", "spices")
SCALES = (1 / 131, 1 / 16, 0.25, 0.5, 0.85, 1.0, 1.2, 2.0)
QUICK = {"particles": 20, "iterations": 30}
PRIORS: dict[str, dict[str, int]] = {"learned": {}, "pairwise": QUICK}


def grey(name: str) -> np.ndarray:
    """A part of a sample picture, (112, 112), grey levels."""
    pixels = np.asarray(read(data_folder("sample_images") / f"{name}.png").pixels, float)
    pixels = pixels if pixels.ndim == 2 else pixels @ [0.299, 0.587, 0.114]
    y, x = (length // 3 for length in pixels.shape)
    return pixels[y : y + 112, x : x + 112]


def scales(prior: str) -> None:
    """One line: decibels won or lost when the models see the picture at another scale; mean and worst picture."""
    rows = []
    for name in NAMES:
        clean = grey(name)
        noisy = add_noise(clean, SIGMA)
        runs = [denoise(noisy, SIGMA, data_range=255 / s, prior=prior, **PRIORS[prior]).mean for s in SCALES]
        values = np.array([psnr(clean, mean, data_range=255) for mean in runs])
        rows.append(values - values[SCALES.index(1.0)])
    cells = [f"{mean:+.2f} ({worst:+.2f})" for mean, worst in zip(np.mean(rows, 0), np.min(rows, 0), strict=True)]
    print(f"| {prior} | {' | '.join(cells)} |")


def beyond(prior: str) -> None:
    """One line: error away from a star and a square that are so many times as bright as white."""
    clean, cells = grey("camera"), []
    rows, columns = np.mgrid[-9:10, -9:10]
    rest = np.ones(clean.shape, bool)
    rest[5:34, 5:34] = rest[75:90, 75:90] = False
    for times in (1, 4, 16, 63):
        bright = clean.copy()
        bright[10:29, 10:29] += times * 255 * np.exp(-(rows**2 + columns**2) / 4.5)
        bright[80:85, 80:85] = times * 255
        mean = denoise(add_noise(bright, SIGMA), SIGMA, data_range=255, prior=prior, **PRIORS[prior]).mean
        square = (mean - bright)[80:85, 80:85].mean()
        cells.append(f"{np.sqrt(np.mean((mean - bright)[rest] ** 2)):.2f}, {square:+.1f}")
    print(f"| {prior} | {' | '.join(cells)} |")


def main() -> None:
    """Both tables."""
    print("PSNR against scale 1, dB, mean (worst picture), sigma 15, by scale")
    print(f"| prior | {' | '.join(f'{s:.3g}' for s in SCALES)} |")
    for prior in PRIORS:
        scales(prior)
    print("\nRMS error of the rest, and mean error of a square, grey levels, by how many times white it is")
    print("| prior | 1 | 4 | 16 | 63 |")
    for prior in PRIORS:
        beyond(prior)


if __name__ == "__main__":
    main()
