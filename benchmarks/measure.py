"""How often the 90 % interval of a measurement holds the truth: means of random rectangles, and differences of two.

python benchmarks/measure.py FOLDER [--sigma 20] [--rectangles 200] prints the table of docs/measure.md.
"""

import argparse
from pathlib import Path

import numpy as np

from denoiser import add_noise, images, make_request, measure
from denoiser.metrics import credible_factor

METHODS = {
    "mp-svgd": {"method": "mp-svgd", "prior": "pairwise"},
    "gibbs": {"method": "gibbs", "prior": "pairwise"},
    "gibbs, foe3x3": {"method": "gibbs", "prior": "foe3x3"},
    "one pass, learned": {"method": "direct", "prior": "learned", "particles": 50},
}
SIDES = 3, 40  # pixels


def rectangles(shape, count, rng):
    """Masks of random rectangles, (count, height, width)."""
    out = []
    for _ in range(count):
        height, width = rng.integers(SIDES[0], SIDES[1] + 1, 2)
        y, x = rng.integers(0, shape[0] - height + 1), rng.integers(0, shape[1] - width + 1)
        out.append(measure.rectangle(shape, x, y, width, height))
    return np.array(out)


def covered(values, truth):
    """Which true numbers (n,) lie in the intervals of those of M particles, (M, n)."""
    reach = credible_factor(0.9, len(values)) * values.std(axis=0, ddof=1)
    return np.abs(values.mean(axis=0) - truth) <= reach


def means(pictures, masks):
    """(M, height, width) and (n, height, width) -> (M, n)."""
    weights = masks.reshape(len(masks), -1) / masks.sum(axis=(1, 2))[:, None]
    return pictures.reshape(len(pictures), -1).astype(np.float64) @ weights.T


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sigma", type=float, default=20)
    parser.add_argument("--rectangles", type=int, default=200)
    parser.add_argument("--method", nargs="*", choices=list(METHODS), default=list(METHODS))
    arguments = parser.parse_args()
    files = sorted(arguments.folder.glob("*.png"))
    print(f"{len(files)} images, sigma {arguments.sigma:g}, {arguments.rectangles} rectangles an image\n")
    print("| method | pixels | means | differences | means: error / predicted | by side, 3-8, 9-20, 21-40 |")
    print("|---|---|---|---|---|---|")
    for method in arguments.method:
        hits = {"pixels": [], "means": [], "differences": []}
        errors, spreads, small = [], [], [[], [], []]
        for number, file in enumerate(files):
            clean = images.read(file).pixels.astype(float)
            noisy = add_noise(clean, arguments.sigma, [number, 7])
            result = make_request(noisy, arguments.sigma, data_range=255, seed=number, **METHODS[method]).run()
            rng = np.random.default_rng(number)
            masks = rectangles(clean.shape, arguments.rectangles, rng)
            values, truth = means(result.samples, masks), means(clean[None], masks)[0]
            hits["pixels"].append(covered(result.samples.reshape(len(result.samples), -1), clean.ravel()))
            hit = covered(values, truth)
            hits["means"].append(hit)
            half = len(masks) // 2
            apart = values[:, :half] - values[:, half : 2 * half], truth[:half] - truth[half : 2 * half]
            hits["differences"].append(covered(*apart))
            errors.append(values.mean(axis=0) - truth)
            spreads.append(values.std(axis=0, ddof=1))
            side = np.sqrt(masks.sum(axis=(1, 2)))
            for group, (low, high) in enumerate(((0, 8.5), (8.5, 20.5), (20.5, 99))):
                small[group].append(hit[(low < side) & (side <= high)])
        share = {name: 100 * np.concatenate(parts).mean() for name, parts in hits.items()}
        ratio = np.sqrt(np.mean(np.concatenate(errors) ** 2) / np.mean(np.concatenate(spreads) ** 2))
        groups = ", ".join(f"{100 * np.concatenate(group).mean():.0f}" for group in small)
        line = " | ".join(f"{share[name]:.1f} %" for name in hits)
        print(f"| {method} | {line} | {ratio:.2f} | {groups} % |", flush=True)


if __name__ == "__main__":
    main()
