"""The synthetic Markov random field of section 5.1 (settings of Lienart, Teh and Doucet 2015, EPBP).

p(x) is proportional to prod_d psi_d(x_d) prod_edges psi_dt(x_d, x_t) on a grid, with a Laplace density on every edge
and a mixture of a Gaussian and a Gumbel density at every node.

Two things in the paper's text are taken as misprints. The Gumbel density is exp(-(z + exp(-z))), z = (u - mu) / beta;
with the printed sign it could not be normalised. And psi_d is evaluated at y_d - x_d, not x_d - y_d: so does EPBP, and
so y_d is drawn (y - 2 follows the mixture, that is, y = x + noise with x = 2).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from denoiser.gsm import tabulate
from denoiser.priors import FilterBank
from denoiser.target import SitePotentials, Target

WEIGHTS = (0.6, 0.4)  # alpha_1 of the Gaussian, alpha_2 of the Gumbel
GAUSSIAN_MEAN, GAUSSIAN_STD = -2.0, 1.0
GUMBEL_MODE, GUMBEL_SCALE = 2.0, 1.3
LAPLACE_SCALE = 2.0
TRUE_X = 2.0
ROUNDING = 2.0**-5  # the score table knows |r| as sqrt(r^2 + ROUNDING^2): a kink has no precision, and no one sees it

EDGES = FilterBank("grid", (np.array([[1.0, -1.0]]), np.array([[1.0], [-1.0]])))


def _log_parts(u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """log of the two weighted densities at u, and the derivative of each."""
    a = (u - GAUSSIAN_MEAN) / GAUSSIAN_STD
    z = (u - GUMBEL_MODE) / GUMBEL_SCALE
    decay = np.exp(np.minimum(-z, 500.0))
    gaussian = np.log(WEIGHTS[0] / (GAUSSIAN_STD * np.sqrt(2 * np.pi))) - 0.5 * a**2
    gumbel = np.log(WEIGHTS[1] / GUMBEL_SCALE) - z - decay
    return gaussian, gumbel, -a / GAUSSIAN_STD, (decay - 1) / GUMBEL_SCALE


def log_node(u: np.ndarray) -> np.ndarray:
    """log psi_d at u = y_d - x_d."""
    gaussian, gumbel, _, _ = _log_parts(np.asarray(u, dtype=np.float64))
    return np.logaddexp(gaussian, gumbel)


def node_slope(u: np.ndarray) -> np.ndarray:
    """d/dx_d log psi_d(y_d - x_d), which is -(log psi_d)'(u)."""
    gaussian, gumbel, slope_a, slope_b = _log_parts(np.asarray(u, dtype=np.float64))
    share = 1 / (1 + np.exp(np.clip(gumbel - gaussian, -500, 500)))
    return -(share * slope_a + (1 - share) * np.where(share < 1, slope_b, 0))


def log_edge(r: np.ndarray) -> np.ndarray:
    """log psi_dt at r = x_d - x_t."""
    return -np.abs(r) / LAPLACE_SCALE - np.log(2 * LAPLACE_SCALE)


def draw_y(shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Observations: y_d - 2 follows the mixture of the node potential."""
    gaussian = rng.normal(GAUSSIAN_MEAN, GAUSSIAN_STD, shape)
    gumbel = rng.gumbel(GUMBEL_MODE, GUMBEL_SCALE, shape)
    return TRUE_X + np.where(rng.random(shape) < WEIGHTS[0], gaussian, gumbel)


class GridMRF(Target):
    """The grid of the paper for observations y, as a target of the samplers; lengths are in units of 1.

    >>> grid = GridMRF(np.zeros((2, 2)))
    >>> grid.energy(np.array([[[1.0, 1.0], [1.0, 1.0]]])).round(3)
    array([13.261])
    """

    def __init__(self, y: np.ndarray) -> None:
        super().__init__(EDGES, np.asarray(y, dtype=np.float64), 1.0)

    @cached_property
    def tables(self) -> np.ndarray:
        """Both directions have the same Laplace expert, d/dr log psi = -r / (b |r|)."""
        table = tabulate(lambda r: 1 / (LAPLACE_SCALE * np.sqrt(r**2 + ROUNDING**2)))
        return np.stack([table, table])

    @cached_property
    def potentials(self) -> SitePotentials:
        """The node potentials, as a table."""
        return SitePotentials.tabulated(self.noisy, node_slope)

    def energy(self, x: np.ndarray) -> np.ndarray:
        """-log p(x) up to a constant, without rounding."""
        total = -log_node(self.noisy - x).sum(axis=(-2, -1))
        for response in self.responses(x):
            total = total - log_edge(response).sum(axis=(-2, -1))
        return total
