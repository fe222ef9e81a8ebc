"""The posterior p(x | y) of a clean image x given a noisy one: a prior times a white Gaussian likelihood."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from denoiser.gsm import table_precision
from denoiser.jit import kernel, parallel
from denoiser.priors import Prior
from denoiser.stencil import Stencil


@kernel(fastmath=True)
def _expert_scores(tables, responses):  # type: ignore[no-untyped-def]
    """Replace each response by the score of its expert."""
    for f in range(len(responses)):
        table, line = tables[f], responses[f]
        for i in range(len(line)):
            line[i] *= -table_precision(table, line[i])


class Posterior:
    """Prior and likelihood on the mirror-padded noisy image; samplers work on the padded field.

    noisy: grey image, 0-255 scale, shape (height, width).
    sigma: standard deviation of its noise, same scale.
    origin: row and column at which it lies in the picture that it was cut from; random numbers follow the picture.
    The padding is inferred with the image and thrown away by `crop`, as published (CVPR 2010).
    """

    def __init__(
        self,
        prior: Prior,
        noisy: np.ndarray,
        sigma: float,
        padding: int | None = None,
        origin: tuple[int, int] = (0, 0),
    ) -> None:
        self.prior, self.sigma, self.origin = prior, float(sigma), origin
        self.padding = prior.padding if padding is None else padding
        self.noisy = np.pad(np.asarray(noisy, dtype=np.float64), self.padding, mode="symmetric")
        self.shape: tuple[int, int] = (self.noisy.shape[0], self.noisy.shape[1])
        self.size = self.noisy.size

    def crop(self, fields: np.ndarray) -> np.ndarray:
        """Take the padding off the last two axes."""
        p = self.padding
        return fields[..., p : fields.shape[-2] - p, p : fields.shape[-1] - p] if p else fields

    @cached_property
    def stencil(self) -> Stencil:
        """The prior's filters on the padded image, in float32."""
        return Stencil(self.prior, self.shape)

    @cached_property
    def exact_stencil(self) -> Stencil:
        """The same in float64."""
        return Stencil(self.prior, self.shape, np.float64)

    @cached_property
    def tables(self) -> np.ndarray:
        """The experts' score tables, one row a filter."""
        return np.stack([expert.table for expert in self.prior.experts])

    def capped_tables(self, cap: float) -> np.ndarray:
        """Score tables of experts that hold no pixel with a component of precision above `cap`."""
        experts, filters = self.prior.experts, self.prior.filters
        capped = [e.capped(cap / (f**2).max()) for e, f in zip(experts, filters, strict=True)]
        return np.stack([expert.table for expert in capped])

    @cached_property
    def sharpest(self) -> float:
        """The largest precision with which a single component of an expert holds a pixel."""
        pairs = zip(self.prior.experts, self.prior.filters, strict=True)
        return max(float(e.precisions.max() * (f**2).max()) for e, f in pairs)

    @property
    def noise_precision(self) -> float:
        """1 / sigma^2."""
        return self.sigma**-2

    def energy(self, x: np.ndarray) -> np.ndarray:
        """-log p(x | y) up to a constant, exactly, for images of shape (..., height, width)."""
        x = np.asarray(x, dtype=np.float64)
        total = 0.5 * self.noise_precision * ((x - self.noisy) ** 2).sum(axis=(-2, -1))
        return total + self.prior_energy(x)

    def prior_energy(self, x: np.ndarray) -> np.ndarray:
        """-log p(x) up to a constant, exactly."""
        x = np.asarray(x, dtype=np.float64)
        total = 0.5 * self.prior.epsilon * (x**2).sum(axis=(-2, -1))
        for filter_, expert in zip(self.prior.filters, self.prior.experts, strict=True):
            rows, columns = x.shape[-2] - filter_.shape[0] + 1, x.shape[-1] - filter_.shape[1] + 1
            if rows < 1 or columns < 1:
                continue
            response = np.zeros((*x.shape[:-2], rows, columns))
            for (r, c), tap in np.ndenumerate(filter_):
                response += tap * x[..., r : r + rows, c : c + columns]
            total = total - expert.log_density(response).sum(axis=(-2, -1))
        return total

    def score(self, particles: np.ndarray, tables: np.ndarray | None = None) -> np.ndarray:
        """d/dx log p(x | y) of each particle, float32, shape (M, height, width), by table lookup.

        Its entry at a site is also the score of that site's conditional given its Markov blanket.
        `tables` replaces the experts' score tables.
        """
        tables = self.tables if tables is None else tables
        particles = np.asarray(particles, dtype=np.float32)
        out = np.empty_like(particles)

        def one(index: int) -> None:
            x = particles[index].ravel()
            values = self.stencil.responses(x)
            _expert_scores(tables, values)
            pull = (self.noisy - particles[index]) * self.noise_precision - self.prior.epsilon * particles[index]
            out[index] = self.stencil.adjoint(values, pull.astype(np.float32).ravel()).reshape(self.shape)

        parallel(one, range(len(particles)))
        return out
