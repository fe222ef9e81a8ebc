"""Plain Stein Variational Gradient Descent (Liu and Wang 2016; paper, Eq. 3): the baseline that degenerates.

One kernel on whole images: in tens of thousands of dimensions all pairs of particles are equally far apart, the
repulsive force vanishes, and the particles gather near the mode.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from denoiser.priors import FilterBank
from denoiser.samplers.base import option, solver_bytes
from denoiser.samplers.global_forces import global_forces
from denoiser.samplers.particles import Move, Mover, ParticleSampler
from denoiser.target import Target


@dataclass(frozen=True)
class SVGD(ParticleSampler):
    """SVGD with a global kernel. Its spread is far too small in high dimensions; it is here to compare with."""

    name: ClassVar[str] = "svgd"
    title: ClassVar[str] = "SVGD"

    bandwidth: float = option(1.0, "kernel bandwidth as a multiple of the squared median distance", low=1e-3)

    def bytes_per_pixel(self, prior: FilterBank) -> int:
        return 40 * self.particles + solver_bytes(prior)  # forces and scores of all particles at a time

    def mover(self, target: Target, rng: np.random.Generator) -> Mover:
        powers = np.zeros((2, target.size), np.float32)
        split = self.optimiser != "adagrad"

        def move_all(x: np.ndarray, sweep: int, move: Move) -> None:
            if move.fresh:
                powers[:] = 0
            images = x.reshape(-1, *target.shape)
            scores = target.score(images, move.tables).reshape(x.shape)
            gradients, repulsions = global_forces(x, scores, kernel=self.kernel, bandwidth=self.bandwidth)
            x += np.float32(move.step) * _adagrad(gradients + repulsions, powers, split)

        return move_all


def _adagrad(phi: np.ndarray, powers: np.ndarray, split: bool) -> np.ndarray:
    """phi divided by the root of its gathered squares, site by site; phi = 0 stays where it is.

    split: what is common to all particles and what tells them apart have a scale each. The latter is about M times
    smaller, and would take M times as long to settle. As in the paper, that is, without it, one scale serves both.
    """
    common = phi.mean(axis=0) if split else np.zeros_like(phi[0])
    apart = phi - common
    powers += common**2, (apart**2).mean(axis=0)
    scale = 1 / np.sqrt(powers + np.float32(1e-20))
    return common * scale[0] + apart * scale[1]
