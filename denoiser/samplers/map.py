"""Maximum a posteriori by iteratively reweighted least squares: the mode, a point estimate.

Replacing every clique's precision by its expectation given the current image makes the posterior Gaussian; its
mean is the next image. This is EM over the auxiliary scales, so the energy never rises.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from denoiser.gsm import table_precision
from denoiser.jit import kernel
from denoiser.posterior import Posterior
from denoiser.samplers.base import Estimate, Sampler, option


@kernel()
def _expected_precisions(tables, responses, width, extents, out):  # type: ignore[no-untyped-def]
    """out[f, clique] = E[precision * s_z | response]; 0 where there is no clique."""
    for f in range(len(extents)):
        for i in range(responses.shape[1]):
            there = i < extents[f, 0] * width and i % width < extents[f, 1]
            out[f, i] = table_precision(tables[f], np.float32(responses[f, i])) if there else 0


def reweighted_means(
    posterior: Posterior, tables: Iterable[np.ndarray], tolerance: float, x: np.ndarray | None = None
) -> Iterator[np.ndarray]:
    """From the flat image x (default: the noisy one), yield the next image of IRLS for each set of score tables."""
    prior, shape = posterior.prior, posterior.shape
    stencil = posterior.exact_stencil
    noisy = posterior.noisy.ravel()
    shift = np.zeros(stencil.size) if x is None else x - noisy  # the unknown
    noisy_responses = stencil.responses(noisy)
    precisions = np.empty(stencil.cliques)
    constant = posterior.noise_precision.ravel() + prior.epsilon
    scratch = stencil.workspace()
    for table in tables:
        responses = stencil.responses(noisy + shift)
        _expected_precisions(table, responses, shape[1], stencil.extents, precisions)
        b = stencil.adjoint(-precisions * noisy_responses, -prior.epsilon * noisy)
        stencil.solve(precisions, constant, b, shift, tolerance, scratch)
        yield noisy + shift


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
            (image,) = reweighted_means(posterior, [posterior.tables], tolerance, before)
            change = float(np.sqrt(np.mean((image - before) ** 2)))
            before = image
            yield Estimate(image.reshape(shape), still, nothing, {"change": change})
            if tolerance < 1e-4 and change <= self.tolerance:
                return
            if change <= 2 * self.tolerance:
                tolerance = 1e-6
