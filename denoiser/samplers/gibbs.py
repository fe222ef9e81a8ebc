"""Auxiliary-variable Gibbs sampling (Schmidt, Gao, Roth, CVPR 2010): the exact reference.

Each clique gets an auxiliary scale z_c. A sweep draws all of x jointly given z, which is Gaussian (`gaussian.py`: a
perturbed linear system), then all z given x.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from denoiser.posterior import Posterior
from denoiser.priors import FilterBank
from denoiser.samplers.base import Estimate, Sampler, option, solver_bytes
from denoiser.samplers.chain_averages import ChainAverages, rhat
from denoiser.samplers.gaussian import Conditional
from denoiser.threads import parallel

_MEMORY = 20  # sweeps over which a chain averages its images to know about where the next one will lie


class GibbsChain:
    """One Markov chain on a posterior.

    x: its current image, flat float32 on the padded field. mean: x, or E[x | z] where that was asked for.
    energy: -log p(x | y) of the current image up to a constant, in nats.
    """

    def __init__(
        self, posterior: Posterior, rng: np.random.Generator, tolerance: float, opposite: bool = False
    ) -> None:
        self._posterior = posterior
        self._conditional = Conditional(posterior, rng, tolerance, opposite)
        self._shift = np.zeros(posterior.size, np.float32)  # x - y, where the solver goes on from
        self._mean_shift = np.zeros_like(self._shift)
        self.x = self.mean = self._centre = self._conditional.noisy
        self._swept = 0
        self._draw_scales()

    def sweep(self, rao_blackwell: bool = False, overrelaxation: float = 0) -> None:
        """Draw x given z, then z given x; with rao_blackwell, `mean` becomes E[x | z].

        overrelaxation: how far the draw is thrown to the other side of E[x | z], see `Conditional.draw_image`.
        """
        if overrelaxation:  # where the draw is to be expected
            self._shift += np.float32(1 + overrelaxation) * (self._centre - self.x)
        self.x = self.mean = self._conditional.draw_image(self._shift, overrelaxation, self.x)
        self._swept += 1
        self._centre = self._centre + (self.x - self._centre) / np.float32(min(self._swept, _MEMORY))
        if rao_blackwell:
            self.mean = self._conditional.solve_mean(self._mean_shift)
        self._draw_scales()

    def _draw_scales(self) -> None:
        posterior, x = self._posterior, self.x.reshape(self._posterior.shape).astype(np.float64)
        sites = posterior.noise_precision * (x - posterior.noisy) ** 2 + posterior.prior.epsilon * x**2
        self.energy = self._conditional.draw_scales(self.x) + 0.5 * float(sites.sum())


@dataclass(frozen=True)
class Gibbs(Sampler):
    """Auxiliary-variable Gibbs sampling with several chains."""

    name: ClassVar[str] = "gibbs"
    title: ClassVar[str] = "Aux. Gibbs"
    draws_option: ClassVar[str] = "samples"

    samples: int = option(200, "draws to average, over all chains together", low=2)
    burn_in: int = option(20, "sweeps of each chain to forget; it mixes in about five", low=0)
    chains: int = option(2, "independent chains; they run in parallel and make R-hat possible", low=1)
    rao_blackwell: bool = option(False, "average E[x | z] instead of x: less noise in the mean, twice the time")
    overrelaxation: float = option(
        0.0, "throws a draw to the other side of its mean: 0.7 halves the draws for a mean as good; 0: as published",
        low=0, high=0.99,
    )  # fmt: skip
    opposite: bool = option(False, "chains in pairs with opposite random numbers, whose errors partly cancel")
    keep: int = option(50, "draws to keep as particles, evenly spaced", low=1)
    tolerance: float = option(1e-3, "residual of the linear solver, relative to the noise of a draw", low=1e-6, high=1)

    @property
    def kept(self) -> int:
        return min(self.keep, self.samples)

    def bytes_per_pixel(self, prior: FilterBank) -> int:
        return 5 * self.kept + solver_bytes(prior, self.chains)

    @property
    def total(self) -> int:
        return self.burn_in + math.ceil(self.samples / self.chains)

    def estimates(self, posterior: Posterior, rng: np.random.Generator) -> Iterator[Estimate]:
        spawned = rng.spawn(self.chains)
        turned = [self.opposite and k % 2 == 1 for k in range(self.chains)]
        rngs = [deepcopy(spawned[k - back]) for k, back in enumerate(turned)]  # a turned one follows that before it
        chains = [GibbsChain(posterior, child, self.tolerance, back) for child, back in zip(rngs, turned, strict=True)]
        draws = ChainAverages(posterior.shape, self.samples, self.chains, self.keep)
        for sweep in range(self.total):
            if sweep in (0, self.burn_in):  # what is averaged during burn-in is for the eye only
                draws.forget()
                energies: list[list[float]] = [[] for _ in chains]
            left = self.samples - draws.count if sweep >= self.burn_in else self.chains
            running = chains[: min(left, self.chains)]
            # throwing back and forth keeps a bad start alive, so not before burn-in is over
            relaxation = self.overrelaxation if sweep >= self.burn_in else 0
            parallel(partial(GibbsChain.sweep, rao_blackwell=self.rao_blackwell, overrelaxation=relaxation), running)
            for number, chain in enumerate(running):
                draws.add(chain.x, chain.mean, store=sweep >= self.burn_in)
                energies[number].append(chain.energy)
            started = [trace for trace in energies if trace]  # fewer than all if there are more chains than samples
            yield draws.estimate({"energy": float(np.mean([t[-1] for t in started])), "rhat": rhat(started)})
