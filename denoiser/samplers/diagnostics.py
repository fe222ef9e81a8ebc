"""What the paper measures on particles: the magnitude of the repulsive force and of the smoothed gradient."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from denoiser.samplers.global_forces import global_forces
from denoiser.samplers.local_forces import LocalForces
from denoiser.samplers.particles import KERNELS
from denoiser.target import Target


def magnitudes(forces: np.ndarray) -> tuple[float, float]:
    """Particle-averaged infinity-norm and 2-norm of forces of shape (M, ...): PAMRF of R, PAKSG of G."""
    flat = np.abs(forces.reshape(len(forces), -1).astype(np.float64))
    return float(flat.max(axis=1).mean()), float(np.sqrt((flat**2).sum(axis=1)).mean())


class Diagnostics(NamedTuple):
    """What the paper measures on a set of particles, as infinity-norm and 2-norm."""

    pamrf: tuple[float, float]  # particle-averaged magnitude of the repulsive force
    paksg: tuple[float, float]  # particle-averaged magnitude of the kernel-smoothed gradient


def diagnose(
    target: Target, particles: np.ndarray, method: str, *, kernel: str = "rbf", bandwidth: float = 1.0
) -> Diagnostics:
    """PAMRF and PAKSG of particles (M, height, width) under "svgd", "mp-svgd" or "mp-svgd-s"."""
    x = np.ascontiguousarray(particles, dtype=np.float32).reshape(len(particles), -1)
    if x.shape[1] != target.size:
        raise ValueError(f"particles must cover the padded field {target.shape}, got shape {particles.shape}")
    if kernel not in KERNELS:
        raise ValueError(f"kernel must be one of {', '.join(KERNELS)}, got {kernel!r}")
    if method == "svgd":
        scores = target.score(x.reshape(-1, *target.shape)).reshape(x.shape)
        gradients, repulsions = global_forces(x, scores, kernel=kernel, bandwidth=bandwidth)
    elif method in ("mp-svgd", "mp-svgd-s"):
        forces = LocalForces(target, single_kernel=method == "mp-svgd-s", kernel=kernel, bandwidth=bandwidth)
        forces.refresh_bandwidths(x)
        gradients, repulsions = forces.measure(x)
    else:
        raise ValueError(f"method must be svgd, mp-svgd or mp-svgd-s, got {method!r}")
    return Diagnostics(magnitudes(repulsions), magnitudes(gradients))
