"""The learned field against BM3D: PSNR, coverage, joint coverage of particles, time: the table of docs/learned.md.

    python benchmarks/learned.py FOLDER [--images N] [--only NAME ...] [--cache FILE]

FOLDER has bsd10, bsd68-dev, cbsd-dev and real-camera in it. Needs the package bm3d, whose figures can be kept in a
file: they are the same every time. Noise of `default_rng(k)` for the k-th picture of a folder. Exits with 1 when a
figure misses what it must reach.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from denoiser import denoise
from denoiser.colour import std_to_channels, to_channels, to_planes
from denoiser.learned import LearnedPosterior, Prediction, predict
from denoiser.metrics import coverage, joint_coverage, psnr
from denoiser.noise import estimate_noise
from denoiser.samplers import make_sampler

failures: list[str] = []


def pictures(folder: Path, count: int | None = None) -> list[np.ndarray]:
    return [np.asarray(Image.open(f)).astype(np.float64) for f in sorted(folder.glob("*.png"))[:count]]


def noisy(clean: np.ndarray, sigma: float, k: int) -> np.ndarray:
    return clean + sigma * np.random.default_rng(k).standard_normal(clean.shape)


def one_pass(y: np.ndarray, sigma: float, quality: str = "normal") -> tuple[np.ndarray, Prediction]:
    """The mean as a picture, and what the network says of the planes."""
    if y.ndim == 2:
        found = predict(y[None], sigma, quality)
        return found.mean[0], found
    found = predict(to_planes(y), sigma, quality)
    return to_channels(found.mean), found


def bm3d(y: np.ndarray, sigma: float) -> np.ndarray:
    import bm3d as peer

    return peer.bm3d(y, sigma) if y.ndim == 2 else peer.bm3d_rgb(y, sigma)


class Peers:
    """PSNR of BM3D, computed once for each picture and level."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self.known: dict[str, float] = json.loads(file.read_text()) if file is not None and file.exists() else {}

    def psnr(self, folder: str, sigma: float, k: int, x: np.ndarray, y: np.ndarray) -> float:
        key = f"{folder} {sigma:g} {k}"
        if key not in self.known:
            self.known[key] = psnr(x, bm3d(y, sigma), data_range=255)
            if self.file is not None:
                self.file.write_text(json.dumps(self.known, indent=1) + "\n")
        return self.known[key]


peers = Peers()


def row(what: str, figure: str, must: str, good: bool) -> None:
    print(f"| {what} | {figure} | {must} | {'yes' if good else '**no**'} |", flush=True)
    if not good:
        failures.append(what)


def compared(data: Path, folder: str, sigma: float, count: int | None) -> np.ndarray:
    """PSNR of one pass, of four (what people get), of eight and of BM3D, a row a picture."""
    rows = []
    for k, x in enumerate(pictures(data / folder, count)):
        y = noisy(x, sigma, k)
        ours = [psnr(x, one_pass(y, sigma, quality)[0], data_range=255) for quality in ("fast", "normal", "best")]
        rows.append([*ours, peers.psnr(folder, sigma, k, x, y)])
    return np.array(rows)


def bsd10(data: Path, count: int | None) -> None:
    for sigma, must in ((10, 33.00), (20, 29.25)):
        fast, normal, best, peer = compared(data, "bsd10", sigma, count).mean(axis=0)
        figure = f"{normal:.2f} (fast {fast:.2f}, best {best:.2f}, BM3D {peer:.2f})"
        row(f"bsd10, sigma {sigma}, dB", figure, f"{must:.2f}", normal >= must)


def against(data: Path, folder: str, sigma: float, must: float, count: int | None) -> None:
    rows = compared(data, folder, sigma, count)
    fast, normal, best, peer = rows.mean(axis=0)
    figure = f"{normal - peer:+.2f} (fast {fast - peer:+.2f}, best {best - peer:+.2f}; {len(rows)} pictures)"
    row(f"{folder}, sigma {sigma:g}, minus BM3D, dB", figure, f"{must:+.2f}", normal - peer >= must)


def white(data: Path, count: int | None) -> None:
    few = min(count or 8, 8)
    against(data, "bsd68-dev", 25, 0.10, count)
    against(data, "cbsd-dev", 25, 0.20, count)
    for sigma in (5, 15, 35, 50):
        against(data, "bsd68-dev", sigma, -0.10, few)


def camera(data: Path, count: int | None) -> None:
    gains = []
    for file in sorted((data / "real-camera").glob("*_clean.png"))[:count]:
        x, y = (np.asarray(Image.open(f)) for f in (file, file.with_name(file.name.replace("_clean", "_noisy"))))
        mean = denoise(y, estimate_noise(y, channel_axis=-1), channel_axis=-1).mean
        gains.append(psnr(x, mean, data_range=255) - psnr(x, y, data_range=255))
    figure = f"{np.mean(gains):+.2f} (worst {min(gains):+.2f}; {len(gains)} pictures)"
    row("real-camera, automatic, gain, dB", figure, "+3.00", np.mean(gains) >= 3)


def speed(data: Path, count: int | None) -> None:
    y = noisy(pictures(data / "bsd10", 1)[0], 20, 0)
    times = []
    for answer in (lambda: one_pass(y, 20, "fast"), lambda: bm3d(y, 20)):
        answer()
        took = []
        for _ in range(5):
            began = time.perf_counter()
            answer()
            took.append(time.perf_counter() - began)
        times.append(min(took))
    figure = f"{times[0] / times[1]:.3f} ({1e3 * times[0]:.0f} ms of {1e3 * times[1]:.0f})"
    row("240x160, one pass, time over BM3D's", figure, "0.25", times[0] <= 0.25 * times[1])


def intervals(data: Path, count: int | None) -> None:
    few = min(count or 8, 8)
    for folder in ("bsd68-dev", "cbsd-dev"):
        shares = []
        for sigma in (5, 10, 20, 35, 50):
            found = []
            for k, x in enumerate(pictures(data / folder, few)):
                y = noisy(x, sigma, k)
                mean, said = one_pass(y, sigma)
                found.append(coverage(x, mean, said.std[0] if x.ndim == 2 else std_to_channels(said.std)))
            shares.append(100 * float(np.mean(found)))
        figure = " / ".join(f"{s:.1f}" for s in shares)
        good = all(88 <= s <= 92 for s in shares)
        row(f"{folder}, 90 % interval, sigma 5 / 10 / 20 / 35 / 50, %", figure, "88 to 92", good)


def joint(data: Path, count: int | None) -> None:
    samplers: dict[str, dict] = {"direct": {"particles": 50}, "mp-svgd": {}, "gibbs": {"burn_in": 0}, "svgd": {}}
    for name, options in samplers.items():
        shares = []
        for k, x in enumerate(pictures(data / "bsd10", min(count or 3, 3))):
            said = one_pass(noisy(x, 20, k), 20)[1]
            field = LearnedPosterior(*(part[0] for part in said))
            *_, last = make_sampler(name, options).estimates(field, np.random.default_rng(k))
            samples = field.pictures(last.mean, last.std, last.samples)[2]
            shares.append(list(joint_coverage(x, samples).values()))
        means = 100 * np.mean(shares, axis=0)
        good = name == "svgd" or bool(((means >= 86) & (means <= 94)).all())
        figure = " / ".join(f"{m:.1f}" for m in means)
        must = "collapses" if name == "svgd" else "86 to 94"
        row(f"sigma 20, {name}: pixels / differences / 2x2 / 4x4 / 8x8 / 16x16, %", figure, must, good)


def colour(data: Path, count: int | None) -> None:
    """Every sampler on the learned field in colour, beside BM3D's colour version: docs/results/colour.md."""
    side = (160, 240)
    methods: dict[str, dict] = {
        "one pass": {"prior": "learned-fast"},
        "four": {"prior": "learned"},
        "eight": {"prior": "learned-best"},
        "MP-SVGD": {"method": "mp-svgd", "prior": "learned"},
        "Gibbs": {"method": "gibbs", "prior": "learned"},
        "SVGD": {"method": "svgd", "prior": "learned"},
    }
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in [*methods, "BM3D"]}
    for k, x in enumerate(pictures(data / "cbsd-dev", min(count or 5, 5))):
        top, left = ((n - m) // 2 for n, m in zip(x.shape, side, strict=False))
        x = x[top : top + side[0], left : left + side[1]]
        y = noisy(x, 25, k)
        for name, options in methods.items():
            began = time.perf_counter()
            result = denoise(y, 25, channel_axis=-1, data_range=(0, 255), **options)
            took = time.perf_counter() - began
            share = 100 * coverage(x, result.mean, result.std, count=result.draws or None)
            found[name].append((psnr(x, result.mean, data_range=255), share, took))
        began = time.perf_counter()
        found["BM3D"].append((psnr(x, bm3d(y, 25), data_range=255), np.nan, time.perf_counter() - began))
    print("\n| in colour, sigma 25 | PSNR, dB | 90 % covers | time over BM3D's |\n|---|---|---|---|")
    means = {name: np.mean(rows, axis=0) for name, rows in found.items()}
    for name, (quality, share, took) in means.items():
        covers = "" if np.isnan(share) else f"{share:.1f}"
        title = "BM3D, bm3d_rgb" if name == "BM3D" else f"learned, {name}"
        print(f"| {title} | {quality:.2f} | {covers} | {took / means['BM3D'][2]:.2f} |", flush=True)
    print()


def large(data: Path, count: int | None) -> None:
    """One pass over 24 megapixels of colour, without files; `denoise` on a JPEG is measured by its own command."""
    tile = to_planes(pictures(data / "cbsd-dev", 1)[0]).astype(np.float32)
    planes = np.tile(tile, (1, 13, 13))[:, :4000, :6000]
    began = time.perf_counter()
    predict(planes, 15, edges=False)
    took = time.perf_counter() - began
    row("24 megapixels, three planes, one pass, s", f"{took:.0f}", "100", took <= 100)


PARTS: dict[str, Callable[[Path, int | None], None]] = {
    f.__name__: f for f in (bsd10, white, camera, speed, intervals, joint, large, colour)
}


def main() -> int:
    parser = argparse.ArgumentParser(description="The table of docs/learned.md.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, help="of each folder at most")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--cache", type=Path, help="a file for the figures of BM3D")
    arguments = parser.parse_args()
    global peers
    peers = Peers(arguments.cache)
    print("| what | measured | must | reached |\n|---|---|---|---|")
    for name in arguments.only:
        PARTS[name](arguments.folder, arguments.images)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
