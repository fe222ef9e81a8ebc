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


def clique_scale(scale, f, sites, shape):
    """What the response of a clique is multiplied by; scale: (filters, sites) by its first site, or None for 1."""
    return 1.0 if scale is None else scale[f, sites[0][0] * shape[1] + sites[0][1]]


def energy(prior, x, y, sigma, scale=None):
    """-log p(x | y) up to a constant (paper, Eq. 12 and the Gaussian likelihood); sigma: a number or one a site."""
    total = 0.5 * prior.epsilon * (x**2).sum() + ((x - y) ** 2 / (2 * sigma**2)).sum()
    for f, expert, sites in cliques(prior, x.shape):
        s = clique_scale(scale, f, sites, x.shape)
        total -= math.log(expert_density(expert, s * sum(tap * x[r, c] for r, c, tap in sites)))
    return total


def score(prior, x, y, sigma, scale=None):
    """d/dx log p(x | y)."""
    out = (y - x) / sigma**2 - prior.epsilon * x
    for f, expert, sites in cliques(prior, x.shape):
        s = clique_scale(scale, f, sites, x.shape)
        slope = s * expert_score(expert, s * sum(tap * x[r, c] for r, c, tap in sites))
        for r, c, tap in sites:
            out[r, c] += tap * slope
    return out


def precision_matrix(prior, shape, precisions, constant):
    """Q = W diag(precisions) W^T + diag(constant), dense; precisions[f, row * width + column] a clique.

    constant: one number, or one a site.
    """
    size = shape[0] * shape[1]
    matrix = np.diag(np.broadcast_to(constant, shape).ravel()).astype(float)
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
    """The factors that contain a site and lie in the image, each as a list of its sites; if none, the site alone."""
    row, column = site
    windows = [prior.blanket] if single_kernel else prior.factors
    found = []
    for window in windows:
        sites = [(row + r, column + c) for r, c in window]
        inside = [(r, c) for r, c in sites if 0 <= r < shape[0] and 0 <= c < shape[1]]
        if single_kernel or len(inside) == len(sites):
            found.append([site, *inside])
    return found or [[site]]


def mp_svgd_forces(prior, x, scores, site, name, h_of, single_kernel, batches=None, crowd=None):
    """Eq. 10 at one site for particles x (M, height, width); h_of(factor sites) is the factor's bandwidth.

    batches: lists of particles that feel each other only; a partner of b - 1 stands for (M - 1) / (b - 1) particles.
    crowd: M, if that is not how many there are.
    """
    count, crowd = len(x), crowd or len(x)
    batch_of = {i: list(batch) for batch in batches or [range(count)] for i in batch}
    factors = factors_at(prior, x.shape[1:], site, single_kernel)
    gradients, repulsions = np.zeros(count), np.zeros(count)
    for sites in factors:
        h = h_of(sites)
        for i in range(count):
            for j in batch_of[i]:
                weight = (1 if j == i else (crowd - 1) / (len(batch_of[i]) - 1)) / (crowd * len(factors))
                z = sum((x[(i, *s)] - x[(j, *s)]) ** 2 for s in sites) / (2 * h)
                gradients[i] += weight * kernel_value(name, z) * scores[(j, *site)]
                repulsions[i] += -weight * kernel_slope(name, z) * (x[(i, *site)] - x[(j, *site)]) / h
    return gradients, repulsions


def shaking(prior, x, site, name, h_of, single_kernel, numbers):
    """A random Fourier feature of one of the site's factors, less its mean over the particles x (M, height, width).

    numbers(s) is the normal of a site s of the factor; "n", "phase" and "choice" are one more and two uniforms.
    """
    factors = factors_at(prior, x.shape[1:], site, single_kernel)
    sites = factors[int(numbers("choice") * len(factors))]
    width = abs(numbers("n")) / math.sqrt(2) if name == "imq" else 1.0
    turns = [sum(numbers(s) * particle[s] for s in sites) * width / math.sqrt(h_of(sites)) for particle in x]
    out = [math.sqrt(2) * math.cos(t + 2 * math.pi * numbers("phase")) for t in turns]
    return np.array(out) - sum(out) / len(out)


def responses_at(prior, shape, site):
    """The filter responses that a site has a part in, each as [(site, tap), ...]; one of nothing if there are none."""
    found = [
        [((r, c), tap) for r, c, tap in sites]
        for _, _, sites in cliques(prior, shape)
        if any((r, c) == site and tap != 0 for r, c, tap in sites)
    ]
    return found or [[]]


def response_forces(prior, x, scores, site, bandwidth_of):
    """Eq. 10 at one site d with an RBF kernel of (r_x - r_y)^2 / h + (x_d - y_d)^2 / h_d for each response r."""
    count = len(x)
    forms = responses_at(prior, x.shape[1:], site)
    gradients, repulsions = np.zeros(count), np.zeros(count)
    x_d = [x[(i, *site)] for i in range(count)]
    h_d = bandwidth_of(x_d)
    for form in forms:
        r = [sum(tap * x[(i, *s)] for s, tap in form) for i in range(count)]
        own = sum(tap for s, tap in form if s == site)
        h = bandwidth_of(r) if form else 1.0
        for i in range(count):
            for j in range(count):
                k = kernel_value("rbf", (r[i] - r[j]) ** 2 / (2 * h) + (x_d[i] - x_d[j]) ** 2 / (2 * h_d))
                gradients[i] += k * scores[(j, *site)] / (count * len(forms))
                push = k * ((r[i] - r[j]) * own / h + (x_d[i] - x_d[j]) / h_d)
                repulsions[i] += push / (count * len(forms))
    return gradients, repulsions


# ------------------------------------------------------------------------------------------- the synthetic grid


def grid_node(u):
    """psi_d at u = y_d - x_d: 0.6 N(u | -2, 1) + 0.4 Gumbel(u | 2, 1.3) (paper, section 5.1)."""
    z = (u - 2) / 1.3
    return 0.6 * normal(u + 2, 1.0) + 0.4 * math.exp(-(z + math.exp(-z))) / 1.3


def grid_edge(r):
    """psi_dt at r = x_d - x_t: a Laplace density of scale 2."""
    return math.exp(-abs(r) / 2) / 4


def grid_edges(shape):
    """Pairs of neighbouring nodes."""
    for r, c in np.ndindex(*shape):
        if r + 1 < shape[0]:
            yield (r, c), (r + 1, c)
        if c + 1 < shape[1]:
            yield (r, c), (r, c + 1)


def grid_energy(x, y):
    """-log p(x) up to a constant."""
    total = -sum(math.log(grid_node(y[d] - x[d])) for d in np.ndindex(*y.shape))
    return total - sum(math.log(grid_edge(x[d] - x[t])) for d, t in grid_edges(y.shape))


def grid_score(x, y, step=1e-6):
    """d/dx log p(x), by central differences for the nodes."""
    out = np.zeros(y.shape)
    for d in np.ndindex(*y.shape):
        u = y[d] - x[d]
        out[d] = (math.log(grid_node(u - step)) - math.log(grid_node(u + step))) / (2 * step)
    for d, t in grid_edges(y.shape):
        out[d] -= np.sign(x[d] - x[t]) / 2
        out[t] += np.sign(x[d] - x[t]) / 2
    return out


def laplace_message(points, weights, grid, scale):
    """sum_i w_i exp(-|g - x_i| / scale) at every g."""
    return np.array(
        [sum(w * math.exp(-abs(g - x) / scale) for x, w in zip(points, weights, strict=True)) for g in grid]
    )


def grid_2x2_marginals(y, grid):
    """Exact summation over a square of four nodes a - b, a - c, b - d, c - d; probabilities of the bins, (4, bins)."""
    node = np.array([[grid_node(v - x) for x in grid] for v in y.ravel()])
    edge = np.array([[grid_edge(g - h) for h in grid] for g in grid])
    through = [edge @ (n[:, None] * edge) for n in node]  # sum over the node between two corners
    ad = node[0][:, None] * node[3] * through[1] * through[2]
    bc = node[1][:, None] * node[2] * through[0] * through[3]
    found = np.array([ad.sum(axis=1), bc.sum(axis=1), bc.sum(axis=0), ad.sum(axis=0)])
    return found / found.sum(axis=1, keepdims=True)


def grid_chain_marginals(y, grid):
    """Exact summation over a row of nodes, from both ends; probabilities of the bins, (nodes, bins)."""
    node = np.array([[grid_node(v - x) for x in grid] for v in y.ravel()])
    edge = np.array([[grid_edge(g - h) for h in grid] for g in grid])
    left, right = [np.ones(len(grid))], [np.ones(len(grid))]
    for n in node[:-1]:
        left.append(edge @ (n * left[-1]))
    for n in node[:0:-1]:
        right.append(edge @ (n * right[-1]))
    found = node * np.array(left) * np.array(right[::-1])
    return found / found.sum(axis=1, keepdims=True)
