"""Plain Stein Variational Gradient Descent (Liu and Wang 2016; paper, Eq. 3): the baseline that degenerates.

One kernel on whole images: in tens of thousands of dimensions all pairs of particles are equally far apart, the
repulsive force vanishes, and the particles gather near the mode.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from denoiser.posterior import Posterior
from denoiser.samplers.base import Estimate, Sampler, option
from denoiser.samplers.mp_svgd import estimate, schedule, start
from denoiser.samplers.stein import KERNELS, global_forces


@dataclass(frozen=True)
class SVGD(Sampler):
    """SVGD with a global kernel. Its spread is far too small in high dimensions; it is here to compare with."""

    name: ClassVar[str] = "svgd"
    title: ClassVar[str] = "SVGD"

    particles: int = option(50, "candidate images", low=2)
    iterations: int = option(60, "moves of all particles", low=1)
    step: float = option(1.0, "multiplies the step sizes", low=0)
    bandwidth: float = option(1.0, "kernel bandwidth as a multiple of the squared median distance", low=1e-3)
    kernel: str = option("rbf", "shape of the kernel", choices=KERNELS)
    start: str = option(
        "smooth", "first particles: Gaussian draws, or the picture plus noise", choices=("smooth", "noisy")
    )
    optimiser: str = option(
        "continuation", "continuation: from a softer prior to the true one; adagrad: as in the paper",
        choices=("continuation", "adagrad"),
    )  # fmt: skip
    tolerance: float = option(0.0, "stop when the mean moves less than this a move (RMS, grey levels)", low=0)

    @property
    def total(self) -> int:
        return self.iterations

    def estimates(self, posterior: Posterior, rng: np.random.Generator) -> Iterator[Estimate]:
        x = start(posterior, rng, self.particles, self.start)
        shape = (self.particles, *posterior.shape)
        powers = np.zeros((2, posterior.size), np.float32)
        mean = x.mean(axis=0, dtype=np.float64)
        for move in schedule(self.optimiser, self.iterations, posterior):
            if move.fresh:
                powers[:] = 0
            scores = posterior.score(x.reshape(shape), move.tables).reshape(x.shape)
            gradients, repulsions = global_forces(x, scores, kernel=self.kernel, bandwidth=self.bandwidth)
            x += np.float32(self.step * move.step) * _adagrad(gradients + repulsions, powers)
            latest = estimate(x, posterior, mean)
            mean = latest.mean
            yield latest
            if move.tables is None and latest.figures["change"] < self.tolerance:
                return


def _adagrad(phi: np.ndarray, powers: np.ndarray) -> np.ndarray:
    """phi divided by the root of its gathered squares, pixel by pixel; phi = 0 stays where it is.

    What is common to all particles and what tells them apart have a scale each: the latter is about M times smaller,
    and would take M times as long to settle.
    """
    common = phi.mean(axis=0)
    apart = phi - common
    powers += common**2, (apart**2).mean(axis=0)
    scale = 1 / np.sqrt(powers + np.float32(1e-20))
    return common * scale[0] + apart * scale[1]
