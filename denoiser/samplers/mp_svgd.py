"""Message Passing Stein Variational Gradient Descent (Zhuo et al., ICML 2018, Algorithm 1).

Every site moves its particles along phi_d (Eq. 10) with kernels on its Markov blanket; sites of one colour move at
once. The forces are in `local_forces.py`; how to get to phi = 0 fast is in `particles.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from denoiser.samplers.base import another_default, option
from denoiser.samplers.local_forces import LocalForces
from denoiser.samplers.particles import WEAK, Move, Mover, ParticleSampler
from denoiser.target import Target


@dataclass(frozen=True)
class MPSVGD(ParticleSampler):
    """MP-SVGD-m: one kernel for each factor (for the pairwise prior: each edge), averaged over those at a pixel."""

    name: ClassVar[str] = "mp-svgd"
    title: ClassVar[str] = "MP-SVGD"
    single_kernel: ClassVar[bool] = False

    optimiser: str = option(
        "continuation", "continuation: from a softer prior to the true one; gentle: it, kept from jumping; "
        "adagrad: as in the paper", choices=("continuation", "gentle", "adagrad"),
    )  # fmt: skip
    bandwidth: float = option(0.25, "kernel bandwidth as a multiple of the squared median distance", low=1e-3)
    refresh: int = option(8, "sweeps between two updates of the bandwidths", low=1)
    view: str = option(
        "sites", "what kernels look at: a factor's sites, as in the paper; or response and site, each on its scale",
        choices=("sites", "responses"),
    )  # fmt: skip
    batch: int = option(0, "particles that feel each other in a sweep, drawn anew in each; 0: all of them", low=0)
    crowd: int = option(0, "a particle moves as one of at most this many, however many there are; 0: of all", low=0)
    shaking: float = option(0.0, "noise in the last stage, which keeps particles apart: 1; as in the paper: 0", low=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.view == "responses" and (self.single_kernel or self.kernel != "rbf"):
            raise ValueError(f"view must be sites for {self.name} with the kernel {self.kernel}, got 'responses'")
        if self.crowd == 1:
            raise ValueError("crowd must be 0 (all particles) or >= 2, got 1")

    @property
    def batches(self) -> int:
        """Parts into which the particles are cut, of `batch` or more each."""
        return max(self.particles // max(self.batch, 2), 1) if self.batch else 1

    def mover(self, target: Target, rng: np.random.Generator) -> Mover:
        forces = LocalForces(
            target,
            single_kernel=self.single_kernel,
            kernel=self.kernel,
            bandwidth=self.bandwidth,
            responses=self.view == "responses",
        )
        power = np.zeros(target.size, np.float32)
        batches = self.batches
        crowd = min(self.crowd or self.particles, self.particles)
        least = 0.0 if target.prior.pairwise else 0.3  # strong noise keeps particles apart by itself
        shaking = self.shaking * min(max(2 - target.sigma / WEAK, least), 1)
        if self.particles < 4:  # forces of so few all but vanish: nothing would hold them against the noise
            shaking = 0.0

        def move_all(x: np.ndarray, sweep: int, move: Move) -> None:
            if sweep % self.refresh == 0:
                forces.refresh_bandwidths(x)
            if move.fresh:
                power[:] = 0
            order = rng.permutation(len(x)) if batches > 1 else None
            noise, source = shaking * move.shaken, rng if shaking else None
            forces.sweep(x, move.step, power, move.tables, batches, order, noise, source, move.inertia, crowd)

        return move_all


@dataclass(frozen=True)
class MPSVGDSingle(MPSVGD):
    """MP-SVGD-s: a single kernel on each pixel and its whole neighbourhood."""

    name: ClassVar[str] = "mp-svgd-s"
    title: ClassVar[str] = "MP-SVGD-s"
    single_kernel: ClassVar[bool] = True


@dataclass(frozen=True)
class MPSVGDBatches(MPSVGD):
    """MP-SVGD-m at less than half the price: random batches, and noise that gives back the spread which they take.

    benchmarks/README.md has how its defaults were found, and what they reach.
    """

    name: ClassVar[str] = "mp-svgd-b"
    title: ClassVar[str] = "MP-SVGD-b"

    iterations: int = another_default(MPSVGD, "iterations", 70)
    optimiser: str = another_default(MPSVGD, "optimiser", "gentle")
    first_stage: float = another_default(MPSVGD, "first_stage", 0.85)
    bandwidth: float = another_default(MPSVGD, "bandwidth", 0.12)
    refresh: int = another_default(MPSVGD, "refresh", 16)
    batch: int = another_default(MPSVGD, "batch", 16)
    crowd: int = another_default(MPSVGD, "crowd", 60)
    shaking: float = another_default(MPSVGD, "shaking", 1.4)

    @property
    def batches(self) -> int:
        """At least two, down to four particles: so much noise is for the spread that batches take."""
        return max(super().batches, min(self.particles // 2, 2)) if self.batch else 1
