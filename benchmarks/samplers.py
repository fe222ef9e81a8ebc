"""MP-SVGD beside its rivals on the ten BSD images, in one run; exits with 1 when an ordering that we claim fails.

    python benchmarks/samplers.py [FOLDER] [--images N] [--quick]

FOLDER (default: $DENOISER_BSD10, else ../shared/data/bsd10) holds the images; the k-th in name order gets the noise
of seed k, unclipped. bm3d (PyPI, non-commercial licence) is timed beside us if it happens to be installed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np
from batches import coverage
from skimage.transform import resize

from denoiser import METHODS, Prior, add_noise, denoise, load_prior, psnr, ssim
from denoiser.exp2 import rough_exp2
from denoiser.gsm import GSM
from denoiser.images import read
from denoiser.jit import kernel
from denoiser.posterior import Posterior
from denoiser.samplers import local_forces
from denoiser.samplers.diagnostics import diagnose
from denoiser.samplers.local_forces import _pair_edges
from denoiser.samplers.starts import start
from denoiser.threads import get_threads

SIGMAS = (10, 20)
#: The fastest draws of the 3x3 prior whose mean is that of the long run; benchmarks/README.md has how near.
RELAXED = {"overrelaxation": 0.8, "opposite": True, "samples": 120, "burn_in": 8, "tolerance": 0.004}
TIMED: dict[str, tuple[str, str, dict, float]] = {  # title -> prior, method, options, at most so many times bm3d's time
    "MP-SVGD": ("pairwise", "mp-svgd", {}, 4),
    "MP-SVGD-b": ("pairwise", "mp-svgd-b", {}, 2),
    "3x3 Gibbs": ("foe3x3", "gibbs", {}, 8),
    "3x3 Gibbs, relaxed": ("foe3x3", "gibbs", RELAXED, 2.5),
}
FAILED: list[str] = []


def check(claim: str, holds: bool) -> None:
    print(f"- {'holds' if holds else 'FAILS'}: {claim}", flush=True)
    if not holds:
        FAILED.append(claim)


Method = tuple[str, int, str, dict]  # title, M, name, options
LONG: Method = ("Aux. Gibbs, long run", 600, "gibbs", {"samples": 600, "chains": 2})
RIVALS: list[Method] = [
    LONG,
    ("Aux. Gibbs, one chain", 50, "gibbs", {"samples": 50, "chains": 1}),
    ("MAP", 1, "map", {}),
    ("SVGD", 50, "svgd", {}),
    ("MP-SVGD", 50, "mp-svgd", {}),
    ("MP-SVGD-b", 50, "mp-svgd-b", {}),
]
MORE: list[Method] = [
    LONG,
    *(("MP-SVGD-b", count, "mp-svgd-b", {"particles": count}) for count in (50, 100, 200)),
    ("SVGD", 100, "svgd", {"particles": 100}),
]
THREE_BY_THREE: list[Method] = [
    ("Aux. Gibbs, long run, 3x3", 600, "gibbs", {"prior": "foe3x3", "samples": 600}),
    ("3x3 Gibbs, relaxed", 120, "gibbs", {"prior": "foe3x3", **RELAXED}),
]


def table(files: list[Path], methods: list[Method]) -> dict[tuple[str, int, int], np.ndarray]:
    """Every method on every image, printed; (title, M, sigma) -> PSNR, SSIM, RMS, std, processor seconds."""
    print("| method | M | sigma | PSNR | SSIM | RMS to long run | mean std | seconds |\n|" + "---|" * 8, flush=True)
    rows: dict[tuple[str, int, int], np.ndarray] = {}
    for sigma in SIGMAS:
        cleans = [read(file).pixels.astype(float) for file in files]
        noisy = [add_noise(clean, sigma, seed=k) for k, clean in enumerate(cleans)]
        references: list[np.ndarray] = []
        for title, count, method, options in methods:
            values = []
            for k, (clean, image) in enumerate(zip(cleans, noisy, strict=True)):
                began = time.process_time()
                result = denoise(image, sigma, method=method, **options)
                took = time.process_time() - began
                if len(references) == k:  # the first method is the long run
                    references.append(result.mean)
                values.append(
                    (
                        psnr(clean, result.mean, data_range=255),
                        ssim(clean, result.mean, data_range=255),
                        np.sqrt(np.mean((result.mean - references[k]) ** 2)),
                        result.std.mean(),
                        took,
                    )
                )
            row = rows[title, count, sigma] = np.mean(values, axis=0)
            print(
                f"| {title} | {count} | {sigma} | {row[0]:.3f} | {row[1]:.4f} "
                f"| {row[2]:.2f} | {row[3]:.2f} | {row[4]:.1f} |",
                flush=True,
            )
    print()
    return rows


def orderings(files: list[Path]) -> None:
    """MP-SVGD with 50 particles among its rivals."""
    rows = table(files, RIVALS)
    for sigma, above_chain, below_long in ((10, 0.15, 0.05), (20, 0.10, 0.12)):
        ours, long = rows["MP-SVGD", 50, sigma], rows["Aux. Gibbs, long run", 600, sigma]
        chain, svgd, mode = (
            rows[key, n, sigma] for key, n in (("Aux. Gibbs, one chain", 50), ("SVGD", 50), ("MAP", 1))
        )
        gain = ours[0] - chain[0]
        check(
            f"sigma {sigma}: MP-SVGD is {gain:.3f} dB above 50 samples of one chain (>= {above_chain})",
            gain >= above_chain,
        )
        gap = ours[0] - long[0]
        check(f"sigma {sigma}: MP-SVGD is {gap:+.3f} dB from the long run (>= -{below_long})", gap >= -below_long)
        gain = ours[0] - svgd[0]
        check(f"sigma {sigma}: MP-SVGD is {gain:.3f} dB above SVGD (>= 0.25)", gain >= 0.25)
        if sigma == 20:
            gain = ours[1] - svgd[1]
            check(f"sigma 20: MP-SVGD's SSIM is {gain:.4f} above SVGD's (>= 0.01)", gain >= 0.01)
        batches = rows["MP-SVGD-b", 50, sigma]
        gap, ratio = batches[0] - long[0], batches[3] / long[3]
        check(f"sigma {sigma}: MP-SVGD-b is {gap:+.3f} dB from the long run (>= -0.05)", gap >= -0.05)
        check(f"sigma {sigma}: MP-SVGD-b's std is {ratio:.3f} of Gibbs's (0.95 to 1.05)", 0.95 <= ratio <= 1.05)
        ratio = ours[3] / long[3]
        check(f"sigma {sigma}: MP-SVGD's std is {ratio:.3f} of Gibbs's (0.9 to 1.1)", 0.9 <= ratio <= 1.1)
        check(
            f"sigma {sigma}: SVGD's std is {svgd[3] / long[3]:.3f} of Gibbs's (lower than MP-SVGD's)", svgd[3] < ours[3]
        )
        share = (svgd[0] - mode[0]) / (long[0] - mode[0])
        print(f"  SVGD lies {100 * share:.0f} % of the way from MAP to the long run")
        print(f"  MP-SVGD-b took {batches[4]:.1f} s, 600 draws of Gibbs {long[4]:.1f} s")


def more_particles(files: list[Path]) -> None:
    """M = 100 and 200 beside M = 50, on few images because they take longer; and the means of blocks."""
    print(f"\nthe first {len(files)} images again, with more particles\n")
    rows = table(files, MORE)
    for sigma in SIGMAS:
        fifty, hundred, many = (rows["MP-SVGD-b", count, sigma] for count in (50, 100, 200))
        gain, closer, longer = hundred[0] - fifty[0], hundred[2] / fifty[2], many[4] / fifty[4]
        check(
            f"sigma {sigma}: M = 100 is {gain:+.3f} dB above M = 50 (>= 0) and {closer:.2f} times as far from the "
            "long run (< 1)",
            gain >= 0 and closer < 1,
        )
        check(f"sigma {sigma}: M = 200 takes {longer:.1f} times as long as M = 50 (<= 5)", longer <= 5)
        gain = hundred[0] - rows["SVGD", 100, sigma][0]
        check(f"sigma {sigma}: M = 100: MP-SVGD-b is {gain:.3f} dB above SVGD (>= 0.25)", gain >= 0.25)
    for method in ("mp-svgd", "mp-svgd-b"):
        shares = []
        for k, file in enumerate(files):
            clean = read(file).pixels.astype(float)
            shares.append(coverage(clean, denoise(add_noise(clean, 20, seed=k), 20, method=method).samples))
        covered = 100 * np.mean(shares, axis=0)
        words = ", ".join(f"{share:.1f}" for share in covered)
        check(
            f"sigma 20: 90 % intervals of {method}'s means of 2x2, 4x4, 8x8 and 16x16 blocks cover "
            f"{words} % (86 to 94)",
            bool((covered >= 86).all() and (covered <= 94).all()),
        )


def three_by_three(files: list[Path]) -> None:
    """The mean of relaxed Gibbs on the 3x3 prior: as good as 200 plain draws, in less than half their time."""
    print("\n3x3 prior\n")
    rows = table(files, THREE_BY_THREE)
    for sigma, least in ((10, 32.62), (20, 28.79)):
        decibels = rows["3x3 Gibbs, relaxed", 120, sigma][0]
        check(f"sigma {sigma}: relaxed 3x3 Gibbs reaches {decibels:.2f} dB (>= {least})", round(decibels, 2) >= least)


def degeneracy(file: Path, quick: bool) -> None:
    """SVGD on a crop, at MP-SVGD's budget and towards convergence; and its spread on a Gaussian, against theory."""
    clean = read(file).pixels.astype(float)[60:124, 40:104]
    noisy = add_noise(clean, 10)
    print("\n64x64 crop, sigma 10, M = 50\n\n| method | moves | PSNR | mean std |\n|---|---|---|---|")
    cases = [("gibbs", {"samples": 600}, 0), ("map", {}, 0), ("mp-svgd", {}, 60), ("svgd", {}, 60)]
    cases += [] if quick else [("svgd", {"iterations": n, "step": 4.0}, n) for n in (300, 1000)]
    for method, options, moves in cases:
        result = denoise(noisy, 10, method=method, **options)
        decibels = psnr(clean, result.mean, data_range=255)
        print(f"| {METHODS[method].title} | {moves or ''} | {decibels:.2f} | {result.std.mean():.2f} |", flush=True)
    expert = GSM(np.array([1.0]), np.array([1.0]), 1e-6)  # next to no coupling: every pixel has variance sigma^2
    flat = Prior("flat", (np.array([[1.0, -1.0]]), np.array([[1.0], [-1.0]])), (expert, expert))
    side, moves = 32, 400 if quick else 2000
    result = denoise(np.full((side, side), 100.0), 10, method="svgd", prior=flat, iterations=moves, step=4.0)
    got, theory = (result.std**2).mean() / 100, 0.77 * 50 / side**2
    print(
        f"\nGaussian of {side * side} dimensions: SVGD's variance is {got:.4f} of the target's; "
        f"0.77 M / D = {theory:.4f}"
    )


def slope(sizes: list[int], values: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def repulsion(quick: bool) -> None:
    """PAMRF (infinity norm) of converged particles against image size, for SVGD and MP-SVGD."""
    picture = read(Path(__file__).parent.parent / "sample_images" / "camera.png").pixels.astype(float)
    sides = [8, 16, 32, 64] if quick else [8, 16, 32, 64, 128]
    prior = load_prior("pairwise")
    found: dict[str, list[float]] = {"svgd": [], "mp-svgd": [], "mp-svgd-s": []}
    print(
        "\n| PAMRF, infinity norm | "
        + " | ".join(f"{s}x{s}" for s in sides)
        + " | slope |\n|"
        + "---|" * (len(sides) + 2)
    )
    for side in sides:
        noisy = add_noise(resize(picture, (side, side), anti_aliasing=True), 10)
        posterior = Posterior(prior, noisy, 10, padding=0)
        for method, values in found.items():
            *_, last = METHODS[method]().estimates(posterior, np.random.default_rng(0))
            values.append(diagnose(posterior, last.samples, method).pamrf[0])
    for method, values in found.items():
        numbers = " | ".join(f"{v:.4f}" for v in values)
        print(f"| {METHODS[method].title} | {numbers} | {slope(sides, values):+.2f} |", flush=True)
    falls, stays = slope(sides, found["svgd"]), slope(sides, found["mp-svgd"])
    check(f"PAMRF of SVGD falls with image size: slope {falls:+.2f} a side (< -0.2)", falls < -0.2)
    check(f"PAMRF of MP-SVGD does not: slope {stays:+.2f} (> -0.05)", stays > -0.05)


@kernel(fastmath=True)
def _bare_loop(a, b, rate, s, rounds):  # type: ignore[no-untyped-def]
    """The arithmetic of one kernel value and nothing else: distance, 2^x, two sums; all in registers and L1."""
    smooth, push = np.zeros(local_forces.LANES, np.float32), np.zeros(local_forces.LANES, np.float32)
    for _ in range(rounds):
        for lane in range(local_forces.LANES):
            step = a[lane] - b[lane]
            k = rough_exp2(-rate[lane] * (step * step + s[lane] * s[lane]))
            smooth[lane] += k * s[lane]
            push[lane] += k * rate[lane] * step
    return smooth.sum() + push.sum()


@kernel(fastmath=True)
def _pairs(block, rate, scores, gradient, repulsion):  # type: ignore[no-untyped-def]
    """The sums over all pairs of particles of one block of sites."""
    _pair_edges(0, len(scores), block[4], block[:4], rate, scores, gradient, repulsion)


def speed() -> None:
    """Kernel values a second as a share of the bare loop; growth with pixels and particles."""
    rng = np.random.default_rng(0)
    lanes = [rng.normal(0, 5, local_forces.LANES).astype(np.float32) for _ in range(2)]
    rate, s = np.full(local_forces.LANES, 0.01, np.float32), rng.normal(0, 1, local_forces.LANES).astype(np.float32)
    rounds = 2_000_000 // local_forces.LANES * 10
    _bare_loop(*lanes, rate, s, 10)
    prior = load_prior("pairwise")

    def forces_seconds(posterior: Posterior, count: int) -> float:
        """One sweep on one thread's worth of blocks, seconds of both threads together."""
        x = start(posterior, np.random.default_rng(0), count, "noisy")
        forces = local_forces.LocalForces(posterior, single_kernel=False, kernel="rbf", bandwidth=0.25)
        forces.refresh_bandwidths(x)
        power = np.zeros(posterior.size, np.float32)
        took = []
        for _ in range(4):
            began = time.perf_counter()
            forces.sweep(x, 0.1, power)
            took.append(time.perf_counter() - began)
        return min(took)

    count = 50
    values = local_forces.LANES * 4 * count * (count - 1) / 2
    block = rng.normal(0, 5, (5, count, local_forces.LANES)).astype(np.float32)
    arrays = [rng.normal(0, 1, (count, local_forces.LANES)).astype(np.float32) for _ in range(3)]
    rates = np.full((4, local_forces.LANES), 0.01, np.float32)
    best_ours = best_bare = np.inf
    for _ in range(15):  # in turn, so that a busy moment hits both
        began = time.perf_counter()
        for _ in range(20):
            _pairs(block, rates, *arrays)
        best_ours = min(best_ours, (time.perf_counter() - began) / 20 / values)
        began = time.perf_counter()
        _bare_loop(*lanes, rate, s, rounds // 50)
        best_bare = min(best_bare, (time.perf_counter() - began) / (rounds // 50 * local_forces.LANES))
    print(f"\nkernel values a second and core: {1e-9 / best_ours:.2f} G, bare loop {1e-9 / best_bare:.2f} G")
    check(
        f"the force kernel reaches {100 * best_bare / best_ours:.0f} % of the bare loop (>= 60 %)",
        best_bare / best_ours >= 0.6,
    )

    sides = [64, 128, 256]
    by_pixels = [forces_seconds(Posterior(prior, np.full((n, n), 100.0), 10, padding=0), 50) for n in sides]
    counts = [25, 50, 100]
    by_particles = [forces_seconds(Posterior(prior, np.full((64, 64), 100.0), 10, padding=0), n) for n in counts]
    pixels, particles = slope([n * n for n in sides], by_pixels), slope(counts, by_particles)
    check(f"a sweep grows with pixels to the power {pixels:.2f} (<= 1.1)", pixels <= 1.1)
    check(f"a sweep grows with particles to the power {particles:.2f} (<= 2.1)", particles <= 2.1)


def beside_bm3d(file: Path) -> None:
    """Processor seconds of samplers and of bm3d, one after the other in one run."""
    try:
        import bm3d
    except ImportError:
        print("bm3d is not installed (pip install bm3d); its comparison is left out")
        return
    clean = read(file).pixels.astype(float)
    print("\nprocessor seconds at 240x160, the least of three runs\n")
    print("| method | sigma | seconds | over bm3d's |\n|---|---|---|---|")
    slow: dict[str, float] = {}
    for sigma in SIGMAS:
        noisy = add_noise(clean, sigma)
        took: dict[str, list[float]] = {}
        for _ in range(3):
            began = time.process_time()
            bm3d.bm3d(noisy, sigma)
            took.setdefault("bm3d", []).append(time.process_time() - began)
            for title, (prior, method, options, _) in TIMED.items():
                began = time.process_time()
                denoise(noisy, sigma, method=method, prior=prior, **options)
                took.setdefault(title, []).append(time.process_time() - began)
        for title, seconds in took.items():
            ratio = min(seconds) / min(took["bm3d"])
            print(f"| {title} | {sigma} | {min(seconds):.2f} | {ratio:.2f} |", flush=True)
            slow[title] = max(ratio, slow.get(title, 0))
    for title, (*_, most) in TIMED.items():
        check(f"{title} takes {slow[title]:.2f} times bm3d's time, or less (<= {most})", slow[title] <= most)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("DENOISER_BSD10", Path(__file__).parents[2] / "shared" / "data" / "bsd10")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(default))
    parser.add_argument("--images", type=int, default=10, help="how many images (default: 10)")
    parser.add_argument("--quick", action="store_true", help="no M = 100, shorter convergence runs")
    arguments = parser.parse_args()
    files = sorted(arguments.folder.glob("*.png"))[: arguments.images]
    if not files:
        print(f"no images in {arguments.folder}", file=sys.stderr)
        return 2
    print(f"{len(files)} images, {get_threads()} threads\n")
    speed()
    beside_bm3d(files[0])
    orderings(files)
    degeneracy(files[0], arguments.quick)
    repulsion(arguments.quick)
    if not arguments.quick:
        more_particles(files[:3])
        three_by_three(files)
    print("\n" + (f"{len(FAILED)} claims FAILED" if FAILED else "all claims hold"))
    return int(bool(FAILED))


if __name__ == "__main__":
    sys.exit(main())
