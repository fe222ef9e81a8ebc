"""Expectation propagation on a grid (Minka 2001): a Gaussian for every node, fitted message by message.

Each factor of p is replaced by Gaussian sites: one for a node potential, one for each direction of an edge. Moments
are taken by numerical integration on `GRID`; an update that would leave a site improper is skipped.
"""

from __future__ import annotations

import numpy as np

from denoiser.jit import kernel
from denoiser.paper.grid import LAPLACE_SCALE, GridMRF, log_node

STEP = 0.01
GRID = np.arange(-5, 10, STEP)  # where densities of a node are tabulated: the paper's [-5, 10) with bins of 0.01
SWEEPS = 20  # over all messages; they change by less than a thousandth after about ten


@kernel()
def laplace_message(points, weights, grid, scale, out):  # type: ignore[no-untyped-def]
    """out[g] = sum_i weights[i] exp(-|grid[g] - points[i]| / scale), for sorted points, in one pass each way."""
    decay = np.exp(-(grid[1] - grid[0]) / scale)
    total, i = 0.0, 0
    for g in range(len(grid)):  # from the points to the left
        total *= decay
        while i < len(points) and points[i] <= grid[g]:
            total += weights[i] * np.exp((points[i] - grid[g]) / scale)
            i += 1
        out[g] = total
    total, i = 0.0, len(points) - 1
    for g in range(len(grid) - 1, -1, -1):  # and to the right
        total *= decay
        while i >= 0 and points[i] > grid[g]:
            total += weights[i] * np.exp((grid[g] - points[i]) / scale)
            i -= 1
        out[g] += total


def neighbours(shape: tuple[int, int]) -> list[list[int]]:
    """The nodes beside each node of a grid; nodes are numbered row by row."""
    height, width = shape
    found = []
    for row, column in np.ndindex(height, width):
        beside = [(row - 1, column), (row, column - 1), (row, column + 1), (row + 1, column)]
        found.append([r * width + c for r, c in beside if 0 <= r < height and 0 <= c < width])
    return found


def normalised(log_density: np.ndarray) -> np.ndarray:
    """Probabilities of the bins of `GRID` from a log density up to a constant."""
    density = np.exp(log_density - log_density.max())
    return density / density.sum()


class Sites:
    """Gaussian sites of a grid, as natural parameters: their product at a node is its Gaussian q."""

    def __init__(self, grid: GridMRF) -> None:
        self.neighbours = neighbours(grid.shape)
        self.log_nodes = log_node(grid.noisy.reshape(-1, 1) - GRID)  # log psi_d on GRID
        self._node = np.array([self._moments(normalised(line)) for line in self.log_nodes])
        self._edge = {(d, t): np.zeros(2) for d, beside in enumerate(self.neighbours) for t in beside}

    @staticmethod
    def _moments(bins: np.ndarray) -> np.ndarray:
        """(precision, precision * mean) of the probabilities of the bins."""
        mean = bins @ GRID
        variance = max(bins @ (GRID - mean) ** 2, STEP**2)
        return np.array([1, mean]) / variance

    def q(self, t: int, without: int | None = None) -> np.ndarray:
        """(precision, precision * mean) of node t; `without` leaves out the message of that neighbour."""
        total = self._node[t].copy()
        for d in self.neighbours[t]:
            if d != without:
                total += self._edge[d, t]
        return total

    def log_q(self, t: int, without: int | None = None) -> np.ndarray:
        """The same as a log density on GRID, up to a constant."""
        precision, shift = self.q(t, without)
        return (shift - 0.5 * precision * GRID) * GRID

    def update_edge(self, d: int, t: int, log_message: np.ndarray) -> None:
        """Fit the site of the message from d to t: KL projection of message times cavity, divided by the cavity."""
        fitted = self._moments(normalised(log_message + self.log_q(t, without=d))) - self.q(t, without=d)
        if fitted[0] > 0:
            self._edge[d, t] = fitted

    def update_node(self, t: int) -> None:
        """Fit the site of the node potential in the same way."""
        cavity = self.q(t) - self._node[t]
        if cavity[0] <= 0:
            return
        log_cavity = (cavity[1] - 0.5 * cavity[0] * GRID) * GRID
        fitted = self._moments(normalised(self.log_nodes[t] + log_cavity)) - cavity
        if fitted[0] > 0:
            self._node[t] = fitted


def ep(grid: GridMRF) -> np.ndarray:
    """Probabilities of the bins of `GRID`, shape (nodes, bins), of the Gaussians that EP ends with."""
    sites = Sites(grid)
    message = np.empty(len(GRID))
    for _ in range(SWEEPS):
        for d, beside in enumerate(sites.neighbours):
            sites.update_node(d)
            for t in beside:
                cavity = normalised(sites.log_q(d, without=t))
                laplace_message(GRID, cavity, GRID, LAPLACE_SCALE, message)
                sites.update_edge(d, t, np.log(message))
    return np.stack([normalised(sites.log_q(t)) for t in range(grid.size)])
