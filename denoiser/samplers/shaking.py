"""The noise that keeps Stein particles apart (Gallego and Insua, Stochastic gradient MCMC with repulsive forces, 2018).

Particles that follow phi alone gather too closely, the more so the fewer they are. With noise of covariance 2 eps K / M
added to each step of size eps, K the particles' kernel matrix, the steps are a Langevin diffusion that leaves M
independent draws of the posterior as they are, whatever M is; this holds site by site for the kernels of Eq. 10.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from denoiser.jit import inlined
from denoiser.random_fields import normal_fields, uniform_fields
from denoiser.samplers.neighbourhood import LANES, Neighbourhood
from denoiser.target import Target


def shaking_numbers(target: Target, hood: Neighbourhood, rng: np.random.Generator) -> np.ndarray:
    """What `shake` needs for a sweep, (members + 3, sites): a normal for each member and one more, two uniforms."""
    normals = normal_fields(rng, (len(hood.rows) + 1, *target.shape), target.origin)
    uniforms = uniform_fields(rng, (2, *target.shape), target.origin)
    return np.concatenate([normals, uniforms]).reshape(-1, target.size)


@njit(nogil=True, inline="always")
def _cosine(turns):  # type: ignore[no-untyped-def]
    """cos(2 pi t) of float32 t, to 5e-5, in code that LLVM vectorises."""
    f = turns - np.floor(turns + np.float32(0.5))
    u = f * f
    p = np.float32(45.59554853)
    p = p * u + np.float32(-82.37803285)
    p = p * u + np.float32(64.66944106)
    p = p * u + np.float32(-19.73084196)
    return p * u + np.float32(0.99995823)


@inlined(fastmath=True)
def shake(values, hood, seen_taps, h, imq, block, numbers, out):  # type: ignore[no-untyped-def]
    """out[i, lane]: noise whose expected covariance over the particles i is the site's kernel matrix, but of mean 0.

    A random Fourier feature sqrt(2) cos(w . v_i + b) of one factor at the site, drawn anew for every site and sweep: v
    are the particle's values on the factor, b is uniform, w normal with variance 1 / h; for IMQ, a mixture of RBF
    kernels, times n^2 / 2 with n normal. What is common to all particles is taken off: the mean needs no noise.
    """
    members, count = len(values), len(out)
    weight, phase = np.zeros((members, LANES), np.float32), np.empty(LANES, np.float32)
    for lane in range(LANES):
        site, terms = block[lane], 0
        for f in range(len(hood.there)):
            terms += hood.there[f, site]
        phase[lane] = numbers[members + 1, site]
        left, chosen = min(int(numbers[members + 2, site] * terms), terms - 1), 0
        for f in range(len(hood.there)):
            if hood.there[f, site]:
                if left == 0:
                    chosen = f
                left -= 1
        spread = np.float32(0.5 / math.pi)
        if imq:
            spread *= abs(numbers[members, site]) * np.float32(math.sqrt(0.5))
        if seen_taps is None:
            scale = spread / np.sqrt(h[chosen, site])
            weight[members - 1, lane] = scale * numbers[members - 1, site]
            for m in range(hood.factor_starts[chosen], hood.factor_starts[chosen + 1]):
                member = hood.factor_members[m]
                weight[member, lane] = scale * numbers[member, site]
        if seen_taps is not None:
            weight[members - 1, lane] = spread / np.sqrt(h[len(h) - 1, site]) * numbers[members - 1, site]
            if chosen < len(hood.clique_filters):
                scale = spread / np.sqrt(h[chosen, site]) * numbers[0, site]
                for m in range(hood.clique_starts[chosen], hood.clique_starts[chosen + 1]):
                    weight[hood.clique_members[m], lane] += scale * hood.clique_taps[m]
    common = np.zeros(LANES, np.float32)
    for i in range(count):
        line = out[i]
        for lane in range(LANES):
            line[lane] = phase[lane]
        for m in range(members):
            value, w = values[m, i], weight[m]
            for lane in range(LANES):
                line[lane] += w[lane] * value[lane]
        for lane in range(LANES):
            line[lane] = np.float32(math.sqrt(2)) * _cosine(line[lane])
            common[lane] += line[lane]
    for i in range(count):
        line = out[i]
        for lane in range(LANES):
            line[lane] -= common[lane] / np.float32(count)
