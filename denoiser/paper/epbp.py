"""Expectation particle belief propagation (Lienart, Teh and Doucet 2015): the state of the art the paper compares with.

Messages of loopy belief propagation are sums over weighted particles; a node's particles are drawn from the Gaussian
that expectation propagation fits to its belief, and so follow it.
"""

from __future__ import annotations

import numpy as np

from denoiser.paper.ep import GRID, Sites, laplace_message, normalised
from denoiser.paper.grid import LAPLACE_SCALE, GridMRF, log_node

SWEEPS = 15  # over all nodes; the estimates stop improving after about ten


def epbp(grid: GridMRF, particles: int, rng: np.random.Generator) -> np.ndarray:
    """Beliefs as probabilities of the bins of `GRID`, shape (nodes, bins), from `particles` a node."""
    sites = Sites(grid)
    y = grid.noisy.ravel()
    log_messages = {(d, t): np.zeros(len(GRID)) for d, beside in enumerate(sites.neighbours) for t in beside}
    message = np.empty(len(GRID))
    for _ in range(SWEEPS):
        for d, beside in enumerate(sites.neighbours):
            sites.update_node(d)
            precision, shift = sites.q(d)
            x = np.sort(rng.normal(shift / precision, precision**-0.5, particles))
            log_q = (shift - 0.5 * precision * x) * x
            incoming = {t: np.interp(x, GRID, log_messages[t, d]) for t in beside}
            log_belief = log_node(y[d] - x) + sum(incoming.values())
            for t in beside:
                log_weights = log_belief - incoming[t] - log_q  # importance weights of the message to t
                laplace_message(x, normalised(log_weights), GRID, LAPLACE_SCALE, message)
                log_messages[d, t] = np.log(message)
                sites.update_edge(d, t, log_messages[d, t])
    beliefs = []
    for t, beside in enumerate(sites.neighbours):
        beliefs.append(normalised(sites.log_nodes[t] + sum(log_messages[d, t] for d in beside)))
    return np.stack(beliefs)
