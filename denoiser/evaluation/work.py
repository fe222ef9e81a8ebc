"""The work on one row, wherever it runs."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from denoiser import metrics, threads
from denoiser.evaluation.plan import Case
from denoiser.evaluation.rows import Row
from denoiser.noise import Noise, estimate_noise, parse_noise
from denoiser.run import Request
from denoiser.samplers import METHODS

#: Bounds of the bins of predicted standard deviation, in units of sigma.
EDGES = np.arange(25) / 20
LEVELS = (0.5, 0.9, 0.99)  # of the credible intervals
_QUICK = {"particles": 2, "iterations": 2, "samples": 2, "burn_in": 0}
_warm: set[tuple[str, str]] = set()  # methods and priors that this process has run


def run_case(case: Case, pixels: np.ndarray) -> Row:
    """Add the noise, denoise, compare. The result depends on nothing but the arguments."""
    truth = np.asarray(pixels, dtype=np.float64)
    axis = -1 if truth.ndim == 3 else None
    model = parse_noise(case.sigma if case.noise == "white" else case.noise)
    # with seed 0 that of the noise equals the image's number, the convention of the published figures
    noisy = model.add(truth, [case.number, case.seed])
    noise: float | Noise = case.sigma
    if case.noise != "white":
        noise = model.noise or estimate_noise(noisy, axis, 255)
    level = noise.level if isinstance(noise, Noise) else noise
    _warm_up(case)
    forgotten = _forget_peak()
    began = time.perf_counter()
    request = Request(noisy, noise, case.sampler, case.prior, case.seed, axis, 255, 0)
    result = request.run()
    seconds = time.perf_counter() - began
    memory = _peak() if forgotten else math.nan
    mean, std = result.mean, result.std
    certain = not case.sampler.uncertain
    levels = [math.nan if certain else metrics.coverage(truth, mean, std, p, count=case.particles) for p in LEVELS]
    counts, errors = (np.zeros(0, int), np.zeros(0))
    if not certain:
        counts, errors = metrics.errors_by_std(truth, mean, std, EDGES * level)
    psnr, ssim = metrics.compare(truth, mean, axis)
    return Row(
        image=case.image,
        number=case.number,
        method=case.method,
        prior=case.prior_name,
        particles=case.particles,
        sigma=case.sigma,
        noise=case.noise,
        seed=case.seed,
        psnr=psnr,
        ssim=math.nan if ssim is None else ssim,
        coverage50=levels[0],
        coverage90=levels[1],
        coverage99=levels[2],
        std=math.nan if certain else float(np.sqrt(np.mean(std**2))),
        seconds=seconds,
        memory=memory,
        threads=threads.get_threads(),
        bin_counts=tuple(counts.tolist()),
        bin_errors=tuple(errors.tolist()),
        key=case.key,
    )


def _warm_up(case: Case) -> None:
    """Compile and import what the method needs, so that seconds are of the method alone."""
    name = case.sampler.name
    if (name, case.prior.name) not in _warm:
        options: dict[str, Any] = {k: v for k, v in _QUICK.items() if k in METHODS[name].options()}
        Request(np.full((16, 16), 100.0), 10, METHODS[name](**options), case.prior).run()
        _warm.add((name, case.prior.name))


def _forget_peak() -> bool:
    """Make the system forget the most memory that this process ever held; whether it did (Linux)."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:
        return False
    return True


def _peak() -> float:
    """The most memory that this process held since `_forget_peak`, MB."""
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024
