"""How often the 90 % interval of every preset holds the true pixel: python benchmarks/intervals.py FOLDER [options]

FOLDER holds clean pictures, taken as grey. Prints docs/results/intervals.md, and exits with 1 where a preset is more
than three points off. --fit prints instead what the widening of `presets._WIDEN` must be multiplied by to be right on
FOLDER, which must then be another one than the table's.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from denoiser import add_noise, images
from denoiser.presets import QUALITIES, choose
from denoiser.run import Request

PRIORS = ("learned", "pairwise", "foe3x3")


def pictures(folder: Path, count: int, side: int) -> list[np.ndarray]:
    """The middle, at most `side` pixels wide and high, of so many grey pictures of a folder, spread over it."""
    files = sorted(path for path in folder.iterdir() if path.suffix in (".png", ".jpg"))
    out = []
    for path in files[:: max(len(files) // count, 1)][:count]:
        pixels = images.read(path).pixels.astype(np.float64)
        grey = pixels if pixels.ndim == 2 else pixels.mean(axis=-1)
        top, left = (max(n - side, 0) // 2 for n in grey.shape)
        out.append(grey[top : top + side, left : left + side])
    return out


def misses(clean: np.ndarray, sigma: float, quality: str, prior: str, seed: int) -> np.ndarray:
    """|error| of every pixel over half the width of its 90 % interval."""
    sampler, loaded = choose(quality, prior=prior)
    result = Request(add_noise(clean, sigma, [seed, 11]), sigma, sampler, loaded, seed, white=255, black=0).run()
    low, high = result.interval(0.9)
    return np.abs(result.mean - clean) / (0.5 * (high - low))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=10)
    parser.add_argument("--side", type=int, default=100_000, help="pixels from the middle of each picture")
    parser.add_argument("--sigma", type=float, nargs="+", default=[5, 10, 20, 35, 50])
    parser.add_argument("--only", nargs="+", default=[f"{p}/{q}" for p in PRIORS for q in QUALITIES])
    parser.add_argument("--fit", action="store_true")
    arguments = parser.parse_args()
    clean = pictures(arguments.folder, arguments.images, arguments.side)
    right = True
    print("| prior, quality | pictures | " + " | ".join(f"sigma {s:g}" for s in arguments.sigma) + " |")
    print("|---|---|" + "---|" * len(arguments.sigma), flush=True)
    for prior, quality in (words.split("/") for words in arguments.only):
        cells = []
        for sigma in arguments.sigma:
            found = [misses(c, sigma, quality, prior, k) for k, c in enumerate(clean)]
            if arguments.fit:
                cells.append(f"{np.quantile(np.concatenate([f.ravel() for f in found]), 0.9):.3f}")
                continue
            shares = [100 * float(np.mean(f <= 1)) for f in found]
            right &= bool(abs(np.mean(shares) - 90) <= 3)
            cells.append(f"{np.mean(shares):.1f} ({min(shares):.0f} to {max(shares):.0f})")
        print(f"| {prior}, {quality} | {len(clean)} | " + " | ".join(cells) + " |", flush=True)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
