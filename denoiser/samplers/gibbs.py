"""Auxiliary-variable Gibbs sampling (Schmidt, Gao, Roth, CVPR 2010): the exact reference.

Each clique gets an auxiliary scale z_c. A sweep draws all z given x, then all of x jointly given z, which is
Gaussian: x ~ N(mu, Q^-1) with Q = W diag(precision * s_z) W^T + diag(epsilon + 1/sigma^2), by perturb-and-solve.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from denoiser.exp2 import LOG2E, exp2
from denoiser.jit import kernel
from denoiser.posterior import Posterior
from denoiser.priors import FilterBank
from denoiser.random_fields import normal_fields, uniform_fields
from denoiser.samplers.base import Estimate, Sampler, option, solver_bytes
from denoiser.samplers.chains import Draws, rhat
from denoiser.threads import parallel

_BLOCK = 128  # cliques whose cumulative weights are held at a time


@kernel(fastmath=True)
def _draw_precisions(responses, width, extents, weights, precisions, uniforms, out):  # type: ignore[no-untyped-def]
    """out[f, clique] = precision * s_z with z drawn from its conditional; returns -sum log phi(r).

    P(z = j | r) is proportional to alpha_j sqrt(s_j) exp(-precision s_j r^2 / 2); the sum of these weights is
    phi(r) itself, so the prior energy comes for free. `weights` holds alpha_j N(0; 0, 1/(precision s_j)).
    """
    energy = 0.0
    count = weights.shape[1]
    cumulative = np.empty((count, _BLOCK), np.float32)
    total = np.empty(_BLOCK, np.float32)
    out[:] = 0
    for f in range(len(extents)):
        for row in range(extents[f, 0]):
            for begin in range(0, extents[f, 1], _BLOCK):
                size = min(_BLOCK, extents[f, 1] - begin)
                start = row * width + begin
                r = responses[f, start : start + size]
                u = uniforms[f, start : start + size]
                chosen = out[f, start : start + size]
                total[:] = 0
                for j in range(count):
                    exponent = np.float32(-0.5 * LOG2E) * precisions[f, j]
                    weight = weights[f, j]
                    line = cumulative[j]
                    for i in range(size):
                        total[i] += weight * exp2(exponent * r[i] * r[i])
                        line[i] = total[i]
                for i in range(size):
                    energy -= np.log(total[i])
                    chosen[i] = precisions[f, 0]
                for j in range(1, count):
                    below = cumulative[j - 1]
                    precision = precisions[f, j]
                    for i in range(size):
                        chosen[i] = precision if below[i] <= u[i] * total[i] else chosen[i]
    return energy


class Chain:
    """One Gibbs chain on a posterior: the current image and the scratch space of its sweeps."""

    def __init__(self, posterior: Posterior, rng: np.random.Generator, tolerance: float) -> None:
        self.posterior, self.rng, self.tolerance = posterior, rng, tolerance
        prior, stencil = posterior.prior, posterior.stencil
        experts = prior.experts
        peaks = [e.weights * np.sqrt(e.precisions / (2 * np.pi)) for e in experts]
        self._weights = np.array(peaks, np.float32)
        self._precisions = np.array([e.precisions for e in experts], np.float32)
        self._noisy = posterior.noisy.astype(np.float32).ravel()
        self._noisy_responses = stencil.responses(self._noisy)
        self._constant = (posterior.noise_precision + prior.epsilon).astype(np.float32).ravel()  # one value a pixel
        self._drawn = np.empty(stencil.cliques, np.float32)  # the clique precisions that z stands for
        self._scratch = stencil.workspace()
        self._shift = np.zeros(stencil.size, np.float32)  # x - y, the unknown of the solver
        self._rao_blackwell_shift = np.zeros_like(self._shift)
        self.x = self._noisy.copy()
        self.mean = self.x
        self.energy = float("nan")

    def condition(self, x: np.ndarray) -> None:
        """Draw z given the image x; x given z is then Gaussian, and `solve_mean` and `solve_noise` know it."""
        posterior, stencil = self.posterior, self.posterior.stencil
        uniforms = uniform_fields(self.rng, (len(self._drawn), *posterior.shape), posterior.origin)
        self.energy = _draw_precisions(
            stencil.responses(x),
            posterior.shape[1],
            stencil.extents,
            self._weights,
            self._precisions,
            uniforms.reshape(self._drawn.shape),
            self._drawn,
        )

    def solve_mean(self, with_noise: bool, shift: np.ndarray) -> np.ndarray:
        """y + shift = E[x | z], or with noise a draw of x given z; `shift` is the solver's start.

        Q (x - y) = W (sqrt(lambda) e - lambda W^T y) + sqrt(1/sigma^2 + epsilon) e' - epsilon y.
        """
        b = np.float32(-self.posterior.prior.epsilon) * self._noisy
        pull = -self._drawn * self._noisy_responses
        if with_noise:
            pull += self._clique_noise()
            b += self._pixel_noise()
        self._solve(self.posterior.stencil.adjoint(pull, b), shift)
        return self._noisy + shift

    def solve_noise(self) -> np.ndarray:
        """x - E[x | z] for a draw of x given z."""
        deviation = np.zeros(self.posterior.size, np.float32)
        self._solve(self.posterior.stencil.adjoint(self._clique_noise(), self._pixel_noise()), deviation)
        return deviation

    def sweep(self, rao_blackwell: bool = False) -> None:
        """Draw z given x, then x given z; with rao_blackwell, `mean` becomes E[x | z]."""
        self.condition(self.x)
        self.x = self.mean = self.solve_mean(True, self._shift)
        if rao_blackwell:
            self.mean = self.solve_mean(False, self._rao_blackwell_shift)

    def _clique_noise(self) -> np.ndarray:
        return np.sqrt(self._drawn) * self._normals(len(self._drawn)).reshape(self._drawn.shape)

    def _pixel_noise(self) -> np.ndarray:
        return np.sqrt(self._constant) * self._normals(1).ravel()

    def _normals(self, count: int) -> np.ndarray:
        return normal_fields(self.rng, (count, *self.posterior.shape), self.posterior.origin)

    def _solve(self, b: np.ndarray, x: np.ndarray) -> None:
        self.posterior.stencil.solve(self._drawn, self._constant, b, x, self.tolerance, self._scratch)


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
    keep: int = option(50, "draws to keep as particles, evenly spaced", low=1)
    tolerance: float = option(1e-3, "residual of the linear solver, relative to the noise of a draw", low=1e-6)

    @property
    def kept(self) -> int:
        return min(self.keep, self.samples)

    def bytes_per_pixel(self, prior: FilterBank) -> int:
        return 5 * self.kept + solver_bytes(prior, self.chains)

    @property
    def total(self) -> int:
        return self.burn_in + math.ceil(self.samples / self.chains)

    def estimates(self, posterior: Posterior, rng: np.random.Generator) -> Iterator[Estimate]:
        chains = [Chain(posterior, child, self.tolerance) for child in rng.spawn(self.chains)]
        draws = Draws(posterior.shape, self.samples, self.chains, self.keep)
        for sweep in range(self.total):
            if sweep in (0, self.burn_in):  # what is averaged during burn-in is for the eye only
                draws.forget()
                energies: list[list[float]] = [[] for _ in chains]
            left = self.samples - draws.count if sweep >= self.burn_in else self.chains
            running = chains[: min(left, self.chains)]
            parallel(lambda chain: chain.sweep(self.rao_blackwell), running)
            for number, chain in enumerate(running):
                draws.add(chain.x, chain.mean, store=sweep >= self.burn_in)
                energies[number].append(chain.energy)
            started = [trace for trace in energies if trace]  # fewer than all if there are more chains than samples
            yield draws.estimate({"energy": float(np.mean([t[-1] for t in started])), "rhat": rhat(started)})
