"""Maximum a posteriori by iteratively reweighted least squares: the mode, a point estimate.

Replacing every clique's precision by its expectation given the current image makes the posterior Gaussian; its
mean is the next image. This is EM over the auxiliary scales, so the energy never rises.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from denoiser.posterior import Posterior
from denoiser.samplers.base import Estimate, Sampler, option
from denoiser.samplers.gaussian import reweighted_means


@dataclass(frozen=True)
class Map(Sampler):
    """The most probable image. Sharper and flatter than the mean, and with no uncertainty."""

    name: ClassVar[str] = "map"
    title: ClassVar[str] = "MAP"
    uncertain: ClassVar[bool] = False

    iterations: int = option(400, "reweighted solves at most", low=1)
    tolerance: float = option(0.005, "stop when the image moves less than this (RMS, grey levels)", low=0)

    @property
    def total(self) -> int:
        return self.iterations

    def estimates(self, posterior: Posterior, rng: np.random.Generator) -> Iterator[Estimate]:
        shape = posterior.shape
        nothing, still = np.empty((0, *shape), np.float32), np.zeros(shape)
        tolerance = 1e-4  # far from the mode a rough solve does
        before = posterior.noisy.ravel()
        for _ in range(self.iterations):
            (image,) = reweighted_means(posterior.exact_stencil, posterior, [posterior.tables], tolerance, before)
            change = float(np.sqrt(np.mean((image - before) ** 2)))
            before = image
            yield Estimate(image.reshape(shape), still, nothing, {"change": change})
            if tolerance < 1e-4 and change <= self.tolerance:
                return
            if change <= 2 * self.tolerance:
                tolerance = 1e-6
