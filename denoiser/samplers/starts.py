"""Where particles and chains begin: at the noisy picture plus noise, or at draws of a Gaussian approximation."""

from __future__ import annotations

import numpy as np

from denoiser.posterior import Posterior
from denoiser.random_fields import normal_fields
from denoiser.samplers.gaussian import Conditional, reweighted_means
from denoiser.target import Target
from denoiser.threads import parallel


def start(target: Target, rng: np.random.Generator, count: int, kind: str) -> np.ndarray:
    """First particles, shape (M, sites): "noisy" is y plus noise, "smooth" draws from a Gaussian approximation.

    Smooth: given scales z drawn at a smooth image the posterior is Gaussian with mean mu(z); particles come in
    antithetic pairs mu(z) + d and mu(z) - d, whose errors cancel in the mean. Other targets than the posterior of an
    image have no such approximation; they start from y plus noise.
    """
    if kind == "smooth" and isinstance(target, Posterior):
        return _smooth_start(target, rng, count)
    spread = target.spread * normal_fields(rng, (count, *target.shape), target.origin)
    return (target.noisy.astype(np.float32) + spread).reshape(count, -1)


def _smooth_start(posterior: Posterior, rng: np.random.Generator, count: int) -> np.ndarray:
    x = np.empty((count, posterior.size), np.float32)
    tables = [posterior.capped_tables(2 / posterior.sigma**2)] * 4
    *_, smooth = reweighted_means(posterior.stencil, posterior, tables, 1e-2)

    def pair(item: tuple[int, np.random.Generator]) -> None:
        first, child = item
        conditional = Conditional(posterior, child, tolerance=0.003)  # at 0.03 means of blocks vary a fifth too little
        conditional.draw_scales(smooth)
        middle = conditional.solve_mean(smooth - conditional.noisy)
        deviation = conditional.solve_noise()
        x[first] = middle + deviation
        if first + 1 < count:
            x[first + 1] = middle - deviation

    firsts = range(0, count, 2)
    parallel(pair, zip(firsts, rng.spawn(len(firsts)), strict=True))
    return x
