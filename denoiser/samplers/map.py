"""Maximum a posteriori by iteratively reweighted least squares: the mode, a point estimate.

Replacing every clique's precision by its expectation given the current image makes the posterior Gaussian; its
mean is the next image. This is EM over the auxiliary scales, so the energy never rises.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from denoiser.gsm import table_precision
from denoiser.jit import kernel
from denoiser.posterior import Posterior
from denoiser.samplers.base import Estimate, Sampler, option
from denoiser.stencil import Stencil


@kernel()
def _expected_precisions(tables, responses, width, extents, out):  # type: ignore[no-untyped-def]
    """out[f, clique] = E[precision * s_z | response]; 0 where there is no clique."""
    out[:] = 0
    for f in range(len(extents)):
        for row in range(extents[f, 0]):
            for i in range(row * width, row * width + extents[f, 1]):
                out[f, i] = table_precision(tables[f], np.float32(responses[f, i]))


@dataclass(frozen=True)
class Map(Sampler):
    """The most probable image. Sharper and flatter than the mean, and with no uncertainty."""

    name: ClassVar[str] = "map"
    title: ClassVar[str] = "MAP"

    iterations: int = option(300, "reweighted solves at most", low=1)
    tolerance: float = option(0.02, "stop when the image moves less than this (RMS, grey levels)", low=0)

    @property
    def total(self) -> int:
        return self.iterations

    def estimates(self, posterior: Posterior, rng: np.random.Generator) -> Iterator[Estimate]:
        prior, shape = posterior.prior, posterior.shape
        stencil = Stencil(prior, shape, np.float64)
        noisy = posterior.noisy.ravel()
        noisy_responses = stencil.responses(noisy)
        constant = posterior.noise_precision + prior.epsilon
        precisions = np.empty(stencil.cliques)
        shift = np.zeros(stencil.size)  # x - y, the unknown
        scratch = stencil.workspace()
        nothing = np.empty((0, *shape), np.float32)
        settling = False  # far from the mode a rough solve does
        for _ in range(self.iterations):
            before = shift.copy()
            responses = stencil.responses(noisy + shift)
            _expected_precisions(posterior.tables, responses, shape[1], stencil.extents, precisions)
            b = stencil.adjoint(-precisions * noisy_responses, -prior.epsilon * noisy)
            stencil.solve(precisions, constant, b, shift, 1e-6 if settling else 1e-4, scratch)
            change = float(np.sqrt(np.mean((shift - before) ** 2)))
            image = (noisy + shift).reshape(shape)
            yield Estimate(image, np.zeros(shape), nothing, {"change": change})
            if settling and change <= self.tolerance:
                return
            settling = settling or change <= 2 * self.tolerance
