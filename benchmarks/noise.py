"""Measuring noise and denoising under it: the tables of docs/noise.md.

    python benchmarks/noise.py --clean FOLDER... --pairs FOLDER... [--crop N] [--samples N] [--only NAME ...]

--clean: folders of clean pictures, beside the samples that come with the program. --pairs: folders of pictures
NAME_noisy.png and NAME_clean.png. Noise is always measured in the whole picture; what is denoised is its middle, N x N
pixels. Exits with 1 when a figure misses what issue 12 asks for.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from denoiser import add_noise, images
from denoiser.api import make_request
from denoiser.colour import to_planes
from denoiser.data import data_folder
from denoiser.metrics import coverage, psnr
from denoiser.noise import Noise, estimate_noise

PARTS = ("white", "poisson", "camera", "harm", "pairs", "factor", "coverage")
TEXTURE = ("01_101085", "23_156065", "spices")  # nothing but texture from edge to edge
missed: list[str] = []


def check(name: str, reached: bool) -> str:
    if not reached:
        missed.append(name)
    return "" if reached else "  MISSED"


def read(path: Path) -> np.ndarray:
    return images.read(path).pixels.astype(float)


def grey(picture: np.ndarray) -> np.ndarray:
    return picture if picture.ndim == 2 else picture.mean(axis=2)


def axis(picture: np.ndarray) -> int | None:
    return -1 if picture.ndim == 3 else None


def middle(picture: np.ndarray, side: int) -> np.ndarray:
    top, left = (max((length - side) // 2, 0) for length in picture.shape[:2])
    return picture[top : top + side, left : left + side]


def level(noise: Noise, picture: np.ndarray) -> float:
    """What was measured, RMS over the pixels of a picture."""
    return float(np.sqrt(np.mean(noise.map(picture, axis(picture)) ** 2)))


def near(plane: np.ndarray) -> float:
    """The correlation of horizontal and vertical neighbours."""
    plane = plane - plane.mean()
    products = (plane[:, 1:] * plane[:, :-1]).mean(), (plane[1:] * plane[:-1]).mean()
    return float(np.mean(products) / plane.var())


def white(clean: dict[str, np.ndarray]) -> None:
    print("\n| white noise, sigma | mean error | largest error | where |\n|---|---|---|---|")
    for sigma in (5, 10, 20, 40):
        errors = {
            name: abs(level(estimate_noise(add_noise(grey(p), sigma, k)), grey(p)) / sigma - 1)
            for k, (name, p) in enumerate(clean.items())
        }
        others = {name: e for name, e in errors.items() if name not in TEXTURE}
        worst = max(others, key=lambda name: others[name])
        mean = float(np.mean(list(others.values())))
        verdict = check(f"white {sigma}", mean <= 0.08 and others[worst] <= 0.2)
        pure = ", ".join(f"{name} {e:.0%}" for name, e in errors.items() if name in TEXTURE)
        print(f"| {sigma} | {mean:.1%} | {others[worst]:.0%} | {worst}; pure texture: {pure} |{verdict}", flush=True)


def poisson(clean: dict[str, np.ndarray]) -> None:
    print("\n| Poisson-Gaussian noise, gain, read | mean error of sigma(x) | largest of a picture |\n|---|---|---|")
    for gain, noise in ((0.5, 3.0), (2.0, 5.0), (6.0, 2.0)):
        errors = []
        for k, (name, p) in enumerate(clean.items()):
            if name not in TEXTURE:
                found = estimate_noise(add_noise(grey(p), f"poisson:{gain},{noise}", k), white=255.0).map(grey(p))
                errors.append(float(np.mean(np.abs(found / np.sqrt(gain * grey(p) + noise**2) - 1))))
        verdict = check(f"poisson {gain}", float(np.mean(errors)) <= 0.15)
        print(f"| {gain:g}, {noise:g} | {np.mean(errors):.1%} | {max(errors):.0%} |{verdict}", flush=True)


def camera(clean: dict[str, np.ndarray]) -> None:
    print("\n| camera noise, ISO, JPEG | true level | measured / true | error | correlation true | measured | error |")
    print("|---|---|---|---|---|---|---|")
    chosen = {n: p for n, p in clean.items() if p.ndim == 3 and n not in TEXTURE}
    for iso in (6400, 12800, 25600):
        for quality in (95, 85):
            rows = []
            for k, p in enumerate(chosen.values()):
                noisy = add_noise(p, f"camera:{iso},{quality}", k)
                noise = estimate_noise(noisy, -1)
                rho = noise.planes[0].correlation if noise.planes else ((1.0,),)
                found = (rho[0][1] + rho[1][0]) / 2 if len(rho) > 1 else 0.0
                rows.append((float((noisy - p).std()), level(noise, noisy), near(to_planes(noisy - p)[0]), found))
            true, measured, there, found = np.array(rows).T
            errors = np.mean(np.abs(measured / true - 1)), np.mean(np.abs(there - found))
            verdict = check(f"camera {iso} {quality}", errors[0] <= 0.2 and errors[1] <= 0.1)
            print(
                f"| {iso}, {quality} | {true.mean():.1f} | {np.mean(measured / true):.2f} | {errors[0]:.0%} "
                f"| {there.mean():.2f} | {found.mean():.2f} | {errors[1]:.2f} |{verdict}", flush=True,
            )  # fmt: skip


def answer(noisy: np.ndarray, clean: np.ndarray, noise: Noise | float, method: str, prior: str, samples: int):
    """PSNR and coverage of the 90 % interval of a run on a picture in grey levels."""
    options = {"samples": samples} if method == "gibbs" else {}
    request = make_request(
        noisy, noise, method=method, prior=prior, channel_axis=axis(noisy), data_range=255, **options
    )  # fmt: skip
    result = request.run()
    covers = coverage(clean, result.mean, result.std, count=result.draws or None) if result.std.any() else np.nan
    return psnr(clean, result.mean, data_range=255), covers


METHODS = (("direct", "learned"), ("gibbs", "pairwise"), ("gibbs", "foe3x3"), ("mp-svgd", "pairwise"))


def pairs(folder: Path, side: int, samples: int) -> None:
    files = sorted(folder.glob("*_noisy.png"))
    print(f"\n{folder.name}: {len(files)} pairs, gain over the noisy picture in dB")
    print("\n| picture | true sigma | measured | NL-means, true sigma | " + " | ".join(f"{m}, {p}" for m, p in METHODS))
    print("|---" * (4 + len(METHODS)) + "|")
    levels, gains, covered = [], [], []
    for file in files:
        noisy, clean = read(file), read(file.with_name(file.name.replace("_noisy", "_clean")))
        noise = estimate_noise(noisy, axis(noisy))
        true, found = float(np.sqrt(np.mean((noisy - clean) ** 2))), level(noise, noisy)
        a, b = middle(noisy, side), middle(clean, side)
        base = psnr(b, a, data_range=255)
        runs = [answer(a, b, true, "nlm", "pairwise", samples)]
        runs += [answer(a, b, noise, method, prior, samples) for method, prior in METHODS]
        levels.append(found / true)
        gains.append([r[0] - base for r in runs])
        covered.append([r[1] for r in runs])
        row = " | ".join(f"{g:+.2f}" for g in gains[-1])
        print(f"| {file.stem[:-6][:28]} | {true:.2f} | {found:.2f} | {row} |", flush=True)
    error = float(np.mean(np.abs(np.array(levels) - 1)))
    mean, worst, cover = np.mean(gains, axis=0), np.min(gains, axis=0), np.mean(covered, axis=0)
    print(f"| mean | | error {error:.0%} | " + " | ".join(f"{g:+.2f}" for g in mean) + " |")
    print("| worst | | | " + " | ".join(f"{g:+.2f}" for g in worst) + " |")
    print("| 90 % covers | | | | " + " | ".join(f"{c:.1%}" for c in cover[1:]) + " |")
    colour = read(files[0]).ndim == 3
    if colour:
        check(f"{folder.name}: level", error <= 0.25)
        check(f"{folder.name}: gain", mean[2:].max() >= 2 and bool((worst > 0).all()))
        check(f"{folder.name}: coverage", bool((np.abs(cover[1:] - 0.9) <= 0.04).any()))
    else:
        check(f"{folder.name}: at least NL-means", mean[1:].max() >= mean[0])


def factor(folder: Path, side: int, samples: int) -> None:
    """The measured noise as it is, against factors that the truth would pick."""
    print(f"\n{folder.name}: Gibbs, pairwise, true level of every plane times a factor; then measured, nothing picked")
    print("\n| factor | mean gain, dB | 90 % covers |\n|---|---|---|")
    rows: dict[str, list[tuple[float, float]]] = {}
    for file in sorted(folder.glob("*_noisy.png"))[::2]:
        noisy, clean = read(file), read(file.with_name(file.name.replace("_noisy", "_clean")))
        a, b = middle(noisy, side), middle(clean, side)
        base = psnr(b, a, data_range=255)
        true = [Noise.flat(float(s)).channels[0] for s in to_planes(noisy - clean).std(axis=(1, 2))]
        exact = Noise((true[0],) * 3, tuple(true))
        cases = {f"{f:g}": exact.scaled(f) for f in (1, 1.3, 1.6, 2, 2.5)} | {"measured": estimate_noise(noisy, -1)}
        for name, noise in cases.items():
            decibels, covers = answer(a, b, noise, "gibbs", "pairwise", samples)
            rows.setdefault(name, []).append((decibels - base, covers))
    means = {name: np.mean(values, axis=0) for name, values in rows.items()}
    for name, (gain, covers) in means.items():
        print(f"| {name} | {gain:+.2f} | {covers:.1%} |", flush=True)
    best = max(gain for name, (gain, _) in means.items() if name != "measured")
    check(f"{folder.name}: within 0.3 dB of the best factor", means["measured"][0] >= best - 0.3)


def covers(clean: dict[str, np.ndarray], side: int, samples: int) -> None:
    methods = METHODS[:2]
    heads = " | ".join(f"{method}, {prior}: mean gain, dB | 90 % covers" for method, prior in methods)
    print(f"\n| noise, measured | {heads} |\n" + "|---" * (1 + 2 * len(methods)) + "|")
    chosen = [p for n, p in clean.items() if n not in TEXTURE][:10]
    for words in ("white:15", "poisson:0.5,3", "poisson:2,5", "camera:6400", "camera:25600"):
        rows = []
        for k, p in enumerate(chosen):
            truth = p if words.startswith("camera") else grey(p)
            noisy = add_noise(truth, words, k)
            noise = estimate_noise(noisy, axis(noisy), 255.0)
            a, b = middle(noisy, side), middle(truth, side)
            base = psnr(b, a, data_range=255)
            found = [answer(a, b, noise, method, prior, samples) for method, prior in methods]
            rows.append([(decibels - base, share) for decibels, share in found])
        means = np.mean(rows, axis=0)
        verdict = check(f"coverage {words}", bool((np.abs(means[:, 1] - 0.9) <= 0.04).all()))
        row = " | ".join(f"{gain:+.2f} | {share:.1%}" for gain, share in means)
        print(f"| {words} | {row} |{verdict}", flush=True)


def harm(clean: dict[str, np.ndarray], side: int) -> None:
    """What the default does to pictures with hardly any noise, or none: it must not wipe out texture."""
    print("\n| little noise, default | true level | measured | mean gain, dB | worst |\n|---|---|---|---|---|")
    chosen = [p for p in clean.values() if p.ndim == 3]
    for words in ("none", "jpeg:95", "jpeg:85", "camera:800", "camera:1600", "camera:6400"):
        rows = []
        for k, p in enumerate(chosen):
            kind, _, number = words.partition(":")
            noisy = p if kind == "none" else jpeg(p, int(number)) if kind == "jpeg" else add_noise(p, words, k)
            noise = estimate_noise(noisy, -1)
            a, b = middle(noisy, side), middle(p, side)
            before = 0.0 if kind == "none" else psnr(b, a, data_range=255)  # what is left of infinitely many decibels
            after, _ = answer(a, b, noise, "direct", "learned", 0)
            rows.append((float(np.sqrt(np.mean((noisy - p) ** 2))), level(noise, noisy), min(after, 99.0) - before))
        true, found, gain = np.array(rows).T
        print(
            f"| {words} | {true.mean():.2f} | {found.mean():.2f} | {gain.mean():+.2f} | {gain.min():+.2f} |", flush=True
        )


def jpeg(picture: np.ndarray, quality: int) -> np.ndarray:
    """The picture after a JPEG."""
    file = io.BytesIO()
    Image.fromarray(picture.astype(np.uint8)).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file), float)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clean", type=Path, nargs="*", default=[])
    parser.add_argument("--pairs", type=Path, nargs="*", default=[])
    parser.add_argument("--crop", type=int, default=128)
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS)
    arguments = parser.parse_args()
    folders = [data_folder("sample_images"), *arguments.clean]
    clean = {path.stem: read(path) for folder in folders for path in sorted(folder.glob("*.png"))}
    if "white" in arguments.only:
        white(clean)
    if "poisson" in arguments.only:
        poisson(clean)
    if "camera" in arguments.only:
        camera(clean)
    if "harm" in arguments.only:
        harm(clean, arguments.crop)
    for folder in arguments.pairs:
        if "pairs" in arguments.only:
            pairs(folder, arguments.crop, arguments.samples)
        if "factor" in arguments.only and read(sorted(folder.glob("*_noisy.png"))[0]).ndim == 3:
            factor(folder, arguments.crop, arguments.samples)
    if "coverage" in arguments.only:
        covers(clean, arguments.crop, arguments.samples)
    print(f"\nmissed: {', '.join(missed)}" if missed else "\nall reached")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
