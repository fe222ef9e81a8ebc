"""Marginals of the nodes of a grid, by any method: weighted points, and what functions of a node are expected to be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from denoiser.paper.ep import GRID, ep
from denoiser.paper.epbp import epbp
from denoiser.paper.grid import GridMRF
from denoiser.samplers.mp_svgd import MPSVGD, MPSVGDSingle
from denoiser.samplers.particles import ParticleSampler
from denoiser.samplers.svgd import SVGD

#: Stein methods as the paper names them.
STEIN: dict[str, type[ParticleSampler]] = {"SVGD": SVGD, "MP-SVGD-s": MPSVGDSingle, "MP-SVGD-m": MPSVGD}
METHODS = [*STEIN, "HMC", "EPBP", "EP"]


class Marginals(NamedTuple):
    """Weighted points at every node."""

    points: np.ndarray  # (K, nodes), or (K, 1) when all nodes have the same
    weights: np.ndarray  # (K, nodes) or (K, 1); they sum to 1 over K

    def expect(self, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """E[f(x_d)] at every node, shape (nodes,); f takes points of shape (K, nodes or 1)."""
        return (self.weights * function(self.points)).sum(axis=0)


def of_particles(particles: np.ndarray) -> Marginals:
    """The marginals of equally weighted particles, shape (M, ...)."""
    flat = particles.reshape(len(particles), -1).astype(np.float64)
    return Marginals(flat, np.full((len(flat), 1), 1 / len(flat)))


def stein_particles(grid: GridMRF, name: str, particles: int, iterations: int, rng: np.random.Generator) -> np.ndarray:
    """Converged particles (M, height, width) of SVGD, MP-SVGD-s or MP-SVGD-m with the paper's choices.

    RBF kernel, bandwidth by the median heuristic in every iteration, AdaGrad, from y plus standard normal noise.
    """
    options: dict[str, Any] = {"particles": particles, "iterations": iterations, "bandwidth": 1.0}
    if name != "SVGD":
        options["refresh"] = 1
    *_, last = STEIN[name](**options, optimiser="adagrad", step=2.0, start="noisy").estimates(grid, rng)
    return last.samples


def infer(
    grid: GridMRF, name: str, particles: int, iterations: int, draws: np.ndarray, rng: np.random.Generator
) -> Marginals:
    """The marginals of a grid by one of `METHODS`; "HMC" picks from `draws` of the ground truth at random."""
    if name in STEIN:
        return of_particles(stein_particles(grid, name, particles, iterations, rng))
    if name == "HMC":
        return of_particles(draws[rng.choice(len(draws), particles, replace=False)])
    beliefs = ep(grid) if name == "EP" else epbp(grid, particles, rng)
    return Marginals(GRID[:, None], beliefs.T)
