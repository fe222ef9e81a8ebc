"""The Gaussian-scale-mixture expert phi(r) = sum_j alpha_j N(r; 0, 1 / (precision * s_j)).

Everything a sampler needs follows from the responsibilities w_j(r) of the components: the score is
-r * precision(r) with precision(r) = sum_j w_j(r) * precision * s_j, the expected clique precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit

from denoiser.exp2 import bits_from_float

# The score table has 2^TABLE_BITS nodes in every octave of u = r^2 + TABLE_START, up to |r| = 1024:
# node positions are then plain float32 bit patterns, and they are densest where the sharpest component
# acts. Eight bits keep the relative error of the score below 3e-5 (tested for the published experts).
TABLE_BITS = 8
TABLE_START = 2.0**-7
TABLE_END = 2.0**20
_SHIFT = np.int32(23 - TABLE_BITS)
_MASK = np.int32((1 << _SHIFT) - 1)
_FRACTION = np.float32(2.0 ** -float(_SHIFT))
_LOWEST, _HIGHEST = np.float32(TABLE_START).view(np.int32), np.float32(TABLE_END).view(np.int32)
_FIRST = _LOWEST >> _SHIFT
_NODES = int((_HIGHEST >> _SHIFT) - _FIRST) + 2  # one to interpolate towards


@njit(nogil=True, inline="always")
def table_precision(table, r):  # type: ignore[no-untyped-def]
    """Expected precision at float32 r by linear interpolation; constant beyond |r| = 1024, something finite for NaN.

    Positive floats are ordered as their bits are, so the clamp is one of whole numbers, which NaN cannot slip through.
    """
    bits = min(max(bits_from_float(r * r + np.float32(TABLE_START)), _LOWEST), _HIGHEST)
    node = (bits >> _SHIFT) - _FIRST
    fraction = np.float32(bits & _MASK) * _FRACTION
    return table[node] + fraction * (table[node + 1] - table[node])


def tabulate(expected_precision: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """A score table, float32: `expected_precision` of responses |r|, which is -score / r, at the nodes."""
    nodes = ((np.arange(_NODES, dtype=np.int32) + _FIRST) << _SHIFT).view(np.float32)
    return expected_precision(np.sqrt(nodes.astype(float) - TABLE_START)).astype(np.float32)


@dataclass(frozen=True, eq=False)
class GSM:
    """A zero-mean Gaussian scale mixture.

    weights: alpha_j >= 0, shape (J,).
    scales: s_j > 0, shape (J,).
    precision: base precision, in grey levels^-2 (grey levels are 0-255).

    >>> expert = GSM(np.array([1.0]), np.array([2.0]), 0.5)
    >>> expert.score(np.array([3.0]))
    array([-3.])
    """

    weights: np.ndarray
    scales: np.ndarray
    precision: float

    @property
    def precisions(self) -> np.ndarray:
        """Component precisions precision * s_j, shape (J,)."""
        return self.precision * self.scales

    def _log_components(self, r: np.ndarray) -> np.ndarray:
        """log alpha_j N(r; 0, 1 / precisions_j), shape r.shape + (J,)."""
        r = np.asarray(r, dtype=np.float64)[..., None]
        with np.errstate(divide="ignore"):  # a weight of 0 is -inf here, and 0 again in the sum
            constant = np.log(self.weights) + 0.5 * np.log(self.precisions / (2 * np.pi))
        return constant - 0.5 * self.precisions * r**2

    def log_density(self, r: np.ndarray) -> np.ndarray:
        """log phi(r), the shape of r."""
        terms = self._log_components(r)
        largest = terms.max(axis=-1)
        return largest + np.log(np.exp(terms - largest[..., None]).sum(axis=-1))

    def responsibilities(self, r: np.ndarray) -> np.ndarray:
        """Posterior probability of each component given r, shape r.shape + (J,)."""
        terms = self._log_components(r)
        terms = np.exp(terms - terms.max(axis=-1, keepdims=True))
        return terms / terms.sum(axis=-1, keepdims=True)

    def expected_precision(self, r: np.ndarray) -> np.ndarray:
        """E[precision * s_z | r], the shape of r."""
        return self.responsibilities(r) @ self.precisions

    def score(self, r: np.ndarray) -> np.ndarray:
        """d/dr log phi(r), the shape of r."""
        return -np.asarray(r) * self.expected_precision(r)

    def capped(self, cap: float) -> GSM:
        """The same mixture with no component sharper than `cap`, a precision."""
        return GSM(self.weights, np.minimum(self.scales, cap / self.precision), self.precision)

    @cached_property
    def table(self) -> np.ndarray:
        """`expected_precision` at the nodes of the score table, float32."""
        return tabulate(self.expected_precision)
