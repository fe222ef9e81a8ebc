"""Slow twins of the kernels, written from the equations, one loop per symbol. No numba, no tricks."""

from __future__ import annotations

import math

import numpy as np


def normal(r, precision):
    return math.sqrt(precision / (2 * math.pi)) * math.exp(-0.5 * precision * r * r)


def expert_density(expert, r):
    """phi(r) = sum_j alpha_j N(r; 0, 1 / (precision s_j))."""
    return sum(a * normal(r, expert.precision * s) for a, s in zip(expert.weights, expert.scales, strict=True))


def expert_responsibilities(expert, r):
    terms = [a * normal(r, expert.precision * s) for a, s in zip(expert.weights, expert.scales, strict=True)]
    return [t / sum(terms) for t in terms]


def expert_score(expert, r):
    """d/dr log phi(r)."""
    return -sum(
        w * expert.precision * s * r for w, s in zip(expert_responsibilities(expert, r), expert.scales, strict=True)
    )


def cliques(prior, shape):
    """Yield (filter index, expert, [(row, column, tap), ...]) for every clique inside the image."""
    for f, (taps, expert) in enumerate(zip(prior.filters, prior.experts, strict=True)):
        for row in range(shape[0] - taps.shape[0] + 1):
            for column in range(shape[1] - taps.shape[1] + 1):
                yield f, expert, [(row + r, column + c, taps[r, c]) for r, c in np.ndindex(*taps.shape)]


def energy(prior, x, y, sigma):
    """-log p(x | y) up to a constant (paper, Eq. 11 and the Gaussian likelihood)."""
    total = 0.5 * prior.epsilon * (x**2).sum() + ((x - y) ** 2).sum() / (2 * sigma**2)
    for _, expert, sites in cliques(prior, x.shape):
        total -= math.log(expert_density(expert, sum(tap * x[r, c] for r, c, tap in sites)))
    return total


def score(prior, x, y, sigma):
    """d/dx log p(x | y)."""
    out = (y - x) / sigma**2 - prior.epsilon * x
    for _, expert, sites in cliques(prior, x.shape):
        slope = expert_score(expert, sum(tap * x[r, c] for r, c, tap in sites))
        for r, c, tap in sites:
            out[r, c] += tap * slope
    return out


def precision_matrix(prior, shape, precisions, constant):
    """Q = W diag(precisions) W^T + constant I, dense; precisions[f, row * width + column] a clique."""
    size = shape[0] * shape[1]
    matrix = constant * np.eye(size)
    for f, _, sites in cliques(prior, shape):
        row = np.zeros(size)
        for r, c, tap in sites:
            row[r * shape[1] + c] += tap
        first = sites[0][0] * shape[1] + sites[0][1]
        matrix += precisions[f, first] * np.outer(row, row)
    return matrix
