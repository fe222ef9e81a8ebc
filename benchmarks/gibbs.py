"""Seconds per Gibbs sweep: two image sizes, both priors, one and two threads. `make bench` runs it.

Exits with 1 when the cost grows faster than 5x for 4x the pixels, or a pairwise 240x160 sweep takes more than
0.06 s on two threads.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from skimage.transform import resize

from denoiser import add_noise, load_prior, set_threads
from denoiser.data import data_folder
from denoiser.images import read
from denoiser.posterior import Posterior
from denoiser.samplers.gibbs import GibbsChain
from denoiser.threads import parallel

SIGMA, SWEEPS, CHAINS, ROUNDS = 10, 6, 2, 8


def seconds_per_sweep(chains: list[GibbsChain]) -> float:
    """Wall seconds for one sweep of one chain, when all chains run side by side."""
    began = time.perf_counter()
    for _ in range(SWEEPS):
        parallel(GibbsChain.sweep, chains)
    return (time.perf_counter() - began) / SWEEPS / len(chains)


def main() -> int:
    picture = read(data_folder("sample_images") / "camera.png").pixels.astype(float)
    sizes = [(160, 240), (320, 480)]
    cases = {}
    for name in ("pairwise", "foe3x3"):
        for shape in sizes:
            noisy = add_noise(resize(picture, shape, anti_aliasing=True), SIGMA)
            posterior = Posterior(load_prior(name), noisy, SIGMA)
            chains = [GibbsChain(posterior, rng, 1e-3) for rng in np.random.default_rng(0).spawn(CHAINS)]
            cases[name, shape] = chains
            seconds_per_sweep(chains)  # compile, and leave the start behind
    best: dict[tuple, float] = {}
    for _ in range(ROUNDS):  # rounds in turn, so that a busy moment of the machine hits all cases alike
        for threads in (1, 2):
            set_threads(threads)
            for key, chains in cases.items():
                took = seconds_per_sweep(chains)
                best[(*key, threads)] = min(took, best.get((*key, threads), np.inf))
    print(f"| prior | image | 1 thread, ms | 2 threads, ms | speed-up | growth for 4x the pixels |\n|{'---|' * 6}")
    failed = False
    for name in ("pairwise", "foe3x3"):
        for shape in sizes:
            one, two = best[name, shape, 1], best[name, shape, 2]
            growth = two / best[name, sizes[0], 2]
            failed |= growth > 5
            times = f"{1e3 * one:.1f} | {1e3 * two:.1f} | {one / two:.2f} | {growth:.2f}"
            print(f"| {name} | {shape[1]}x{shape[0]} | {times} |")
    failed |= best["pairwise", sizes[0], 2] > 0.06
    print("FAILED" if failed else "ok: growth <= 5x, pairwise 240x160 <= 60 ms on two threads")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
