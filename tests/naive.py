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


# ------------------------------------------------------------------------------------------- Stein forces


def kernel_value(name, z):
    """f(z) of z = |x - y|^2 / (2h)."""
    return math.exp(-z) if name == "rbf" else 1 / math.sqrt(1 + z)


def kernel_slope(name, z):
    """f'(z); grad_y f(|x - y|^2 / (2h)) = -f'(z) (x - y) / h."""
    return -math.exp(-z) if name == "rbf" else -0.5 * (1 + z) ** -1.5


def svgd_forces(x, scores, name, bandwidth):
    """Eq. 3 for particles x (M, D): smoothed gradient and repulsive force, h = bandwidth * med^2."""
    count = len(x)
    squares = np.array([[((a - b) ** 2).sum() for b in x] for a in x])
    h = bandwidth * np.median([math.sqrt(squares[i, j]) for i in range(count) for j in range(i)]) ** 2
    gradients, repulsions = np.zeros_like(x), np.zeros_like(x)
    for i in range(count):
        for j in range(count):
            z = squares[i, j] / (2 * h)
            gradients[i] += kernel_value(name, z) * scores[j] / count
            repulsions[i] += -kernel_slope(name, z) * (x[i] - x[j]) / h / count
    return gradients, repulsions


def factors_at(prior, shape, site, single_kernel):
    """The factors that contain a site and lie in the image, each as a list of its sites."""
    row, column = site
    windows = [prior.blanket] if single_kernel else prior.factors
    found = []
    for window in windows:
        sites = [(row + r, column + c) for r, c in window]
        inside = [(r, c) for r, c in sites if 0 <= r < shape[0] and 0 <= c < shape[1]]
        if single_kernel or len(inside) == len(sites):
            found.append([site, *inside])
    return found


def mp_svgd_forces(prior, x, scores, site, name, h_of, single_kernel):
    """Eq. 9 at one site for particles x (M, height, width); h_of(factor sites) is the factor's bandwidth."""
    count = len(x)
    factors = factors_at(prior, x.shape[1:], site, single_kernel)
    gradients, repulsions = np.zeros(count), np.zeros(count)
    for sites in factors:
        h = h_of(sites)
        for i in range(count):
            for j in range(count):
                z = sum((x[(i, *s)] - x[(j, *s)]) ** 2 for s in sites) / (2 * h)
                gradients[i] += kernel_value(name, z) * scores[(j, *site)] / (count * len(factors))
                push = -kernel_slope(name, z) * (x[(i, *site)] - x[(j, *site)]) / h
                repulsions[i] += push / (count * len(factors))
    return gradients, repulsions
