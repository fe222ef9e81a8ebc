"""No sampling at all: mean and standard deviation of a field that knows its own, such as the learned one.

Particles, where they are wanted, are exact and independent draws of the field, which is Gaussian: a linear system each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from denoiser.posterior import Posterior
from denoiser.priors import FilterBank
from denoiser.samplers.base import Estimate, Sampler, option, solver_bytes
from denoiser.samplers.gaussian import Conditional
from denoiser.threads import parallel

_BYTES = 72  # a pixel and plane: the picture, its noise, what the network says of it


@dataclass(frozen=True)
class Direct(Sampler):
    """The field's own mean and standard deviation."""

    name: ClassVar[str] = "direct"
    title: ClassVar[str] = "Direct"
    needs_moments: ClassVar[bool] = True

    particles: int = option(0, "candidate images to draw besides; mean and uncertainty do not need them", low=0)
    tolerance: float = option(1e-3, "residual of the linear solver, relative to the noise of a draw", low=1e-6)

    @property
    def kept(self) -> int:
        return self.particles

    @property
    def total(self) -> int:
        return 1

    def bytes_per_pixel(self, prior: FilterBank) -> int:
        return _BYTES + (5 * self.particles + solver_bytes(prior) if self.particles else 0)

    def estimates(self, posterior: Posterior, rng: np.random.Generator) -> Iterator[Estimate]:
        samples = np.empty((self.particles, *posterior.shape), np.float32)

        def draw(item: tuple[int, np.random.Generator]) -> None:
            index, child = item
            conditional = Conditional(posterior, child, self.tolerance)
            conditional.draw_scales(conditional.noisy)
            samples[index] = (conditional.noisy + conditional.solve_noise()).reshape(posterior.shape)

        parallel(draw, enumerate(rng.spawn(self.particles)))
        yield Estimate(*posterior.moments(), samples, {})
