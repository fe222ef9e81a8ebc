"""What samplers see of a density on a field of sites: filters with an expert each, and a potential at every site.

The posterior of an image is one such target, the synthetic grids of the paper are another: samplers ask for the
structure (`prior`), for score tables and for the score, and know neither by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from denoiser.gsm import table_precision
from denoiser.jit import kernel
from denoiser.priors import FilterBank
from denoiser.stencil import Stencil, filter_adjoint, filter_responses
from denoiser.threads import parallel

# A table of a site potential's slope has uniform nodes on -SITE_END <= y - x <= SITE_END, eight in a tenth: potentials
# that are smooth on the scale of 1, like those of the paper, come out with a relative error below 1e-4.
SITE_END = 32.0
SITE_NODES = 64 * 2 * int(SITE_END) + 1
_PER_UNIT = np.float32((SITE_NODES - 1) / (2 * SITE_END))
_BATCH = 1 << 14  # sites that are worth a task of their own


@njit(nogil=True, inline="always")
def table_slope(table, u):  # type: ignore[no-untyped-def]
    """The table at float32 u = y - x by linear interpolation; the last two nodes go on as a straight line."""
    at = (u + np.float32(SITE_END)) * _PER_UNIT
    near = min(max(at, np.float32(0)), np.float32(SITE_NODES - 2))  # a cast of what no int32 holds is undefined
    node = min(max(np.int32(near), np.int32(0)), np.int32(SITE_NODES - 2))  # NaN may have come through
    return table[node] + (at - np.float32(node)) * (table[node + 1] - table[node])


class SitePotentials(NamedTuple):
    """log psi_d(x_d), by its derivative precision * (y - x) - epsilon * x + table(y - x): what the kernels know."""

    y: np.ndarray  # what was observed, flat, float32
    precision: np.ndarray  # of a Gaussian around y, one value a site, flat, float32
    epsilon: np.float32  # of a Gaussian around 0
    table: np.ndarray  # float32, SITE_NODES long; empty if there is no more to it than that
    scale: np.ndarray  # of the cliques' responses, float32, shape (filters, sites); empty if they count as they are

    @staticmethod
    def gaussian(y: np.ndarray, precision: float | np.ndarray, epsilon: float) -> SitePotentials:
        """A Gaussian likelihood with one precision, or one a site (the shape of y), and a weak Gaussian around 0."""
        flat = y.astype(np.float32).ravel()
        precisions = np.broadcast_to(np.asarray(precision, np.float32), y.shape).ravel()
        nothing = np.empty((0, 0), np.float32)
        return SitePotentials(flat, precisions, np.float32(epsilon), np.empty(0, np.float32), nothing)

    @staticmethod
    def tabulated(y: np.ndarray, slope: Callable[[np.ndarray], np.ndarray]) -> SitePotentials:
        """Any potential psi(y - x); slope(u) is d/dx log psi(y - x) = -(log psi)'(u) at u = y - x."""
        table = slope(np.linspace(-SITE_END, SITE_END, SITE_NODES)).astype(np.float32)
        return SitePotentials.gaussian(y, 0, 0)._replace(table=table)


@kernel(fastmath=True)
def _scores(x, bank, tables, potentials, out):  # type: ignore[no-untyped-def]
    """out[i] = d/dx log p of the flat particle x[i]."""
    width, starts, offsets, taps, extents = bank
    values = np.empty((len(tables), x.shape[1]), np.float32)
    for i in range(len(x)):
        particle, score = x[i], out[i]
        filter_responses(particle, width, starts, offsets, taps, extents, values)
        for f in range(len(values)):
            table, line = tables[f], values[f]
            if len(potentials.scale) > 0:
                scale = potentials.scale[f]
                for d in range(len(line)):
                    line[d] *= scale[d]
                    line[d] *= -scale[d] * table_precision(table, line[d])
            else:
                for d in range(len(line)):
                    line[d] *= -table_precision(table, line[d])
        for d in range(len(score)):
            score[d] = potentials.precision[d] * (potentials.y[d] - particle[d]) - potentials.epsilon * particle[d]
        if len(potentials.table) > 0:
            for d in range(len(score)):
                score[d] += table_slope(potentials.table, potentials.y[d] - particle[d])
        filter_adjoint(values, width, starts, offsets, taps, extents, score)


class Target:
    """A density on the sites of a rectangle. Subclasses fill in `tables`, `potentials` and `energy`.

    prior: the filters, and with them blankets, factors and a colouring.
    noisy: what was observed at every site, shape (height, width).
    sigma: the length in which samplers measure their steps; for an image, the standard deviation of the noise.
    """

    origin: tuple[int, int] = (0, 0)  # row and column of a larger field that this one was cut from
    #: What each clique's response is multiplied by, shape (filters, sites), a clique being named by the site under its
    #: filter's first tap; None: by 1. So cliques of one filter can differ in strength.
    clique_scale: np.ndarray | None = None
    sharpest: float = 0.0  # the largest precision with which a component of an expert holds a site, if that can be said

    def __init__(self, prior: FilterBank, noisy: np.ndarray, sigma: float) -> None:
        self.prior, self.noisy, self.sigma = prior, noisy, float(sigma)
        self.shape: tuple[int, int] = (noisy.shape[0], noisy.shape[1])
        self.size = noisy.size

    @cached_property
    def tables(self) -> np.ndarray:
        """The experts' score tables, one row a filter."""
        raise NotImplementedError

    @cached_property
    def potentials(self) -> SitePotentials:
        """The potentials of the single sites."""
        raise NotImplementedError

    def energy(self, x: np.ndarray) -> np.ndarray:
        """-log p(x) up to a constant, exactly, for fields of shape (..., height, width)."""
        raise NotImplementedError

    def capped_tables(self, cap: float) -> np.ndarray:
        """Score tables of experts that hold no site with a precision above `cap`, where there is such a thing."""
        return self.tables

    @property
    def spread(self) -> float | np.ndarray:
        """How far first particles lie from what was observed: sigma, or one value a site, shape (height, width)."""
        return self.sigma

    @cached_property
    def stencil(self) -> Stencil:
        """The prior's filters on this field, in float32."""
        return Stencil(self.prior, self.shape, scale=self.clique_scale)

    def responses(self, x: np.ndarray) -> Iterator[np.ndarray]:
        """What one filter after the other answers to fields of shape (..., height, width); nothing where none fits."""
        for number, filter_ in enumerate(self.prior.filters):
            rows, columns = (max(n - m + 1, 0) for n, m in zip(x.shape[-2:], filter_.shape, strict=True))
            response = np.zeros((*x.shape[:-2], rows, columns))
            for (r, c), tap in np.ndenumerate(filter_):
                response += tap * x[..., r : r + rows, c : c + columns]
            if self.clique_scale is not None:
                response *= self.clique_scale[number].reshape(self.shape)[:rows, :columns]
            yield response

    def energies(self, particles: np.ndarray) -> np.ndarray:
        """`energy` of each particle, shape (M,); large ones one at a time, for the memory."""
        return np.concatenate(self._in_batches(lambda chosen: self.energy(particles[chosen]), len(particles)))

    def score(self, particles: np.ndarray, tables: np.ndarray | None = None) -> np.ndarray:
        """d/dx log p of each particle, float32, shape (M, height, width), by table lookup.

        Its entry at a site is also the score of that site's conditional given its Markov blanket.
        `tables` replaces the experts' score tables.
        """
        tables = self.tables if tables is None else tables
        x = np.ascontiguousarray(particles, dtype=np.float32).reshape(len(particles), -1)
        out = np.empty_like(x)
        self._in_batches(
            lambda chosen: _scores(x[chosen], self.stencil.bank, tables, self.potentials, out[chosen]), len(x)
        )
        return out.reshape(-1, *self.shape)

    def _in_batches(self, task: Callable[[slice], Any], count: int) -> list[Any]:
        """`task` for slices of the particles that are worth a thread, in parallel."""
        batch = max(_BATCH // self.size, 1)
        return parallel(task, [slice(first, first + batch) for first in range(0, count, batch)])
