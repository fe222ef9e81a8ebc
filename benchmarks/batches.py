"""The other ways of MP-SVGD and Gibbs beside the usual ones, on crops of hard images; processor seconds, one thread.

    python benchmarks/batches.py [FOLDER] [--side N] [--ways METHOD:OPTION=VALUE,... ...]

FOLDER as for samplers.py. d: PSNR of the mean minus that of a long Gibbs run, dB; e: RMS distance of the two means;
std: mean standard deviation over the long run's; cover: share of block means (2x2, 4x4, 8x8, 16x16) within their 90 %
interval. The first method is 1.00 in the column `time`. Nothing is claimed, so nothing can fail.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

from denoiser import add_noise, load_prior, psnr, set_threads
from denoiser.evaluation.plan import parse_method
from denoiser.images import read
from denoiser.metrics import credible_factor
from denoiser.posterior import Posterior
from denoiser.samplers import Estimate, Sampler, make_sampler

SIGMAS = (10, 20)
IMAGES = (2, 5, 7)  # in name order: surfaces, and the two on which 50 particles are farthest from the long run
BLOCKS = (2, 4, 8, 16)
LONG = make_sampler("gibbs", {"samples": 3000, "burn_in": 40})
WAYS = (
    "mp-svgd",
    "mp-svgd-b",
    "mp-svgd-b:particles=100",
    "mp-svgd-b:particles=200",
    "mp-svgd:batch=17",
    "mp-svgd:batch=17,step=0.5,first_stage=0.7",
    "mp-svgd:batch=17,step=0.5,first_stage=0.7,iterations=45",
    "mp-svgd:particles=100,batch=25,step=0.6,first_stage=0.7",
    "mp-svgd:particles=200,batch=25,step=0.6,first_stage=0.7",
    "mp-svgd:view=responses,bandwidth=2",
    "gibbs",
    "gibbs:tolerance=0.01",
)


def run(sampler: Sampler, posterior: Posterior) -> tuple[Estimate, float]:
    """The last estimate, and the processor seconds that it took."""
    began = time.process_time()
    *_, last = sampler.estimates(posterior, np.random.default_rng(0))
    return last, time.process_time() - began


def coverage(clean: np.ndarray, particles: np.ndarray) -> list[float]:
    """For every size of block: the share of means of the clean picture within the particles' 90 % interval."""
    factor, shares = credible_factor(0.9, len(particles)), []
    for side in BLOCKS:
        rows, columns = (n // side for n in clean.shape)

        def means(fields: np.ndarray, rows: int = rows, columns: int = columns, side: int = side) -> np.ndarray:
            blocks = fields[..., : rows * side, : columns * side].reshape(*fields.shape[:-2], rows, side, columns, side)
            return blocks.mean(axis=(-3, -1), dtype=np.float64)

        drawn = means(particles)
        inside = np.abs(drawn.mean(axis=0) - means(clean)) <= factor * drawn.std(axis=0, ddof=1)
        shares.append(float(inside.mean()))
    return shares


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("DENOISER_BSD10", Path(__file__).parents[2] / "shared" / "data" / "bsd10")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(default))
    parser.add_argument("--side", type=int, default=80, help="pixels a side of a crop (default: 80)")
    parser.add_argument("--ways", nargs="+", default=WAYS, help="methods with their options")
    arguments = parser.parse_args()
    files = sorted(arguments.folder.glob("*.png"))
    if len(files) <= max(IMAGES):
        print(f"no ten images in {arguments.folder}", file=sys.stderr)
        return 2
    set_threads(1)
    cases = []
    for sigma in SIGMAS:
        for k in IMAGES:
            full = read(files[k]).pixels.astype(float)
            top, left = ((n - arguments.side) // 2 for n in full.shape)
            crop = np.s_[top : top + arguments.side, left : left + arguments.side]
            posterior = Posterior(load_prior("pairwise"), add_noise(full, sigma, seed=k)[crop], sigma)
            cases.append((sigma, full[crop], posterior, run(LONG, posterior)[0]))
    print("| method | sigma | d | e | std | cover 2, 4, 8, 16 | time |\n|" + "---|" * 7, flush=True)
    usual = 0.0
    for way in arguments.ways:
        name, _, options = parse_method(way)
        sampler = make_sampler(name, options)
        run(sampler, Posterior(load_prior("pairwise"), np.full((8, 8), 100.0), 10.0))  # compiles
        rows = []
        for sigma, clean, posterior, long in cases:
            last, seconds = run(sampler, posterior)
            mean, reference = posterior.crop(last.mean), posterior.crop(long.mean)
            d = psnr(clean, mean, data_range=255) - psnr(clean, reference, data_range=255)
            e = np.sqrt(np.mean((mean - reference) ** 2))
            ratio = posterior.crop(last.std).mean() / posterior.crop(long.std).mean()
            rows.append((sigma, d, e, ratio, *coverage(clean, posterior.crop(last.samples)), seconds))
        usual = usual or np.mean([row[-1] for row in rows])
        for sigma in SIGMAS:
            _, d, e, ratio, *shares, seconds = np.mean([row for row in rows if row[0] == sigma], axis=0)
            covered = ", ".join(f"{100 * share:.0f}" for share in shares)
            line = f"{d:+.3f} | {e:.2f} | {ratio:.3f} | {covered} | {seconds / usual:.2f}"
            print(f"| {way} | {sigma} | {line} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
