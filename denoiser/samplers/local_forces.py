"""The forces of MP-SVGD: at every site, with kernels on its Markov blanket (paper, Eq. 10).

phi_d = G_d + R_d with the kernel-smoothed gradient G_d = E_y[k(x, y) d/dy_d log p(y)] and the repulsive force
R_d = E_y[d/dy_d k(x, y)], where k looks at the site and its neighbours only.

Kernels of z = |x - y|^2 / (2h): RBF exp(-z), with grad_y k (x - y) / h; IMQ 1 / sqrt(1 + z), with k^3 (x - y) / (2h).
"""

from __future__ import annotations

import numpy as np

from denoiser.exp2 import LOG2E, exp2, rough_exp2
from denoiser.gsm import table_precision
from denoiser.jit import inlined, kernel
from denoiser.samplers.neighbourhood import factor_exists, fill_block, gather, neighbourhood
from denoiser.target import Target, table_slope
from denoiser.threads import parallel

LANES = 64  # sites worked on together, one SIMD lane each: long enough loops, and their particles fit into the L2 cache
_CHUNK = 16 * LANES  # sites a task
_SHIFTS = 6  # a median is taken over the pairs (i, i + shift) of this many shifts: 300 pairs for 50 particles
_BISECTIONS = 9  # of a bracket of seven octaves: the median squared distance to 1 %
_NO_FACTOR = 1e-16  # bandwidth that makes the kernel vanish where a factor does not lie in the image


@inlined(fastmath=True)
def _site_scores(values, inside, hood, tables, y, precision, scale, potentials, out):  # type: ignore[no-untyped-def]
    """out[i, lane] = d/dx_d log p(x_d | blanket) of particle i; scale[clique, lane] of responses, empty for 1."""
    own = values[len(values) - 1]
    lanes = out.shape[1]
    response = np.empty(lanes, np.float32)
    weight = np.empty(lanes, np.float32)
    for i in range(len(out)):
        line, mine = out[i], own[i]
        for lane in range(lanes):
            line[lane] = precision[lane] * (y[lane] - mine[lane]) - potentials.epsilon * mine[lane]
    if len(potentials.table) > 0:
        for i in range(len(out)):
            line, mine = out[i], own[i]
            for lane in range(lanes):
                line[lane] += table_slope(potentials.table, y[lane] - mine[lane])
    for q in range(len(hood.clique_filters)):
        table, tap_here = tables[hood.clique_filters[q]], hood.clique_own_taps[q]
        weight[:] = -tap_here
        for m in range(hood.clique_starts[q], hood.clique_starts[q + 1]):
            for lane in range(lanes):
                weight[lane] *= inside[hood.clique_members[m], lane]
        if len(scale) > 0:
            for lane in range(lanes):
                weight[lane] *= scale[q, lane]
        for i in range(len(out)):
            response[:] = 0
            for m in range(hood.clique_starts[q], hood.clique_starts[q + 1]):
                tap, member = hood.clique_taps[m], values[hood.clique_members[m], i]
                for lane in range(lanes):
                    response[lane] += tap * member[lane]
            if len(scale) > 0:
                for lane in range(lanes):
                    response[lane] *= scale[q, lane]
            line = out[i]
            for lane in range(lanes):
                line[lane] += weight[lane] * response[lane] * table_precision(table, response[lane])


@inlined(fastmath=True)
def _pair_edges(own, others, rate, scores, gradient, repulsion):  # type: ignore[no-untyped-def]
    """Sums over pairs for RBF kernels on four edges, the pairwise prior: the innermost loop of the program.

    With rate = log2(e) / (2h), k = 2^(-rate |x - y|^2) and grad_y k = k * rate * (x - y), up to 2 / log2(e).
    Pairs are visited once: k_ij = k_ji, and the push on j is that on i turned round.
    """
    rate0, rate1, rate2, rate3 = rate[0], rate[1], rate[2], rate[3]
    for i in range(len(own)):
        a, a0, a1, a2, a3 = own[i], others[0, i], others[1, i], others[2, i], others[3, i]
        score_a, gradient_a, repulsion_a = scores[i], gradient[i], repulsion[i]
        for j in range(i):
            b, b0, b1, b2, b3 = own[j], others[0, j], others[1, j], others[2, j], others[3, j]
            score_b, gradient_b, repulsion_b = scores[j], gradient[j], repulsion[j]
            for lane in range(LANES):
                step = a[lane] - b[lane]
                square = step * step
                k0 = rough_exp2(-rate0[lane] * (square + (a0[lane] - b0[lane]) * (a0[lane] - b0[lane])))
                k1 = rough_exp2(-rate1[lane] * (square + (a1[lane] - b1[lane]) * (a1[lane] - b1[lane])))
                k2 = rough_exp2(-rate2[lane] * (square + (a2[lane] - b2[lane]) * (a2[lane] - b2[lane])))
                k3 = rough_exp2(-rate3[lane] * (square + (a3[lane] - b3[lane]) * (a3[lane] - b3[lane])))
                k = k0 + k1 + k2 + k3
                push = (k0 * rate0[lane] + k1 * rate1[lane] + k2 * rate2[lane] + k3 * rate3[lane]) * step
                gradient_a[lane] += k * score_b[lane]  # Eq. 10: smoothed gradient
                gradient_b[lane] += k * score_a[lane]
                repulsion_a[lane] += push  # Eq. 10: repulsive force
                repulsion_b[lane] -= push


@inlined(fastmath=True)
def _pair_factors(own, others, hood, rate, imq, scores, gradient, repulsion):  # type: ignore[no-untyped-def]
    """The same sums for any factors and for both kernels (IMQ: rate = 1 / (2h), grad_y k = k^3 * rate * (x - y))."""
    squares = np.empty((len(others), LANES), np.float32)
    step, distance = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    k_sum, push = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    for i in range(len(own)):
        for j in range(i):
            for b in range(len(others)):
                left, right, square = others[b, i], others[b, j], squares[b]
                for lane in range(LANES):
                    square[lane] = (left[lane] - right[lane]) * (left[lane] - right[lane])
            left, right = own[i], own[j]
            for lane in range(LANES):
                step[lane] = left[lane] - right[lane]
                k_sum[lane] = 0
                push[lane] = 0
            for f in range(len(rate)):
                rate_f = rate[f]
                for lane in range(LANES):
                    distance[lane] = step[lane] * step[lane]
                for m in range(hood.factor_starts[f], hood.factor_starts[f + 1]):
                    square = squares[hood.factor_members[m]]
                    for lane in range(LANES):
                        distance[lane] += square[lane]
                if imq:
                    for lane in range(LANES):
                        k = np.float32(1) / np.sqrt(np.float32(1) + rate_f[lane] * distance[lane])
                        k_sum[lane] += k
                        push[lane] += k * k * k * rate_f[lane]
                else:
                    for lane in range(LANES):
                        k = exp2(-rate_f[lane] * distance[lane])
                        k_sum[lane] += k
                        push[lane] += k * rate_f[lane]
            gradient_i, gradient_j, repulsion_i, repulsion_j = gradient[i], gradient[j], repulsion[i], repulsion[j]
            scores_i, scores_j = scores[i], scores[j]
            for lane in range(LANES):
                gradient_i[lane] += k_sum[lane] * scores_j[lane]
                gradient_j[lane] += k_sum[lane] * scores_i[lane]
                repulsion_i[lane] += push[lane] * step[lane]
                repulsion_j[lane] -= push[lane] * step[lane]


@inlined(fastmath=True)
def _forces(values, inside, hood, h, imq, scores, gradient, repulsion):  # type: ignore[no-untyped-def]
    """Eq. 10 on a block of sites: gradient[i, lane] and repulsion[i, lane], averaged over the factors at each site."""
    own, others = values[len(values) - 1], values[: len(values) - 1]
    count, factors = len(own), len(h)
    rate = np.empty((factors, LANES), np.float32)
    terms = np.zeros(LANES, np.float32)  # K, the factors at the site
    for f in range(factors):
        for lane in range(LANES):
            rate[f, lane] = np.float32(0.5 if imq else 0.5 * LOG2E) / h[f, lane]
            terms[lane] += factor_exists(inside, hood, f, lane)
    for i in range(count):
        for lane in range(LANES):
            gradient[i, lane] = terms[lane] * scores[i, lane]  # k(x, x) = 1 for each factor
            repulsion[i, lane] = 0
    if hood.edges and not imq:
        _pair_edges(own, others, rate, scores, gradient, repulsion)
    else:
        _pair_factors(own, others, hood, rate, imq, scores, gradient, repulsion)
    unit = np.float32(1 if imq else 2 / LOG2E)
    for i in range(count):
        for lane in range(LANES):
            share = np.float32(1) / (terms[lane] * np.float32(count))
            gradient[i, lane] *= share
            repulsion[i, lane] *= share * unit


@inlined(fastmath=True)
def _median_squares(values, hood, factor, shifts, distances, out):  # type: ignore[no-untyped-def]
    """Median over pairs of particles of the squared distance on one factor, lane by lane, by bisection of log d^2."""
    own = values[len(values) - 1]
    count, pairs = len(own), len(distances)
    low, high = np.empty(LANES, np.float32), np.zeros(LANES, np.float32)
    below = np.empty(LANES, np.float32)
    pair = 0
    for shift in shifts:
        for i in range(count):
            j = (i + shift) % count
            left, right, distance = own[i], own[j], distances[pair]
            for lane in range(LANES):
                distance[lane] = (left[lane] - right[lane]) * (left[lane] - right[lane])
            for m in range(hood.factor_starts[factor], hood.factor_starts[factor + 1]):
                left, right = values[hood.factor_members[m], i], values[hood.factor_members[m], j]
                for lane in range(LANES):
                    distance[lane] += (left[lane] - right[lane]) * (left[lane] - right[lane])
            for lane in range(LANES):
                high[lane] += distance[lane]
            pair += 1
    for lane in range(LANES):  # a median is at most twice the mean (Markov), and hardly ever a 64th of it
        high[lane] = high[lane] * np.float32(2 / pairs) + np.float32(1e-12)
        low[lane] = high[lane] / np.float32(128)
    for bisection in range(_BISECTIONS + 1):
        for lane in range(LANES):
            out[lane] = np.sqrt(low[lane] * high[lane])
            below[lane] = 0
        if bisection == _BISECTIONS:
            return
        for pair in range(pairs):
            distance = distances[pair]
            for lane in range(LANES):
                below[lane] += np.float32(1) if distance[lane] < out[lane] else np.float32(0)
        for lane in range(LANES):
            if below[lane] < np.float32(0.5 * pairs):
                low[lane] = out[lane]
            else:
                high[lane] = out[lane]


@inlined()
def _scratch(members, count):  # type: ignore[no-untyped-def]
    """Values around the sites, inside flags, scores, gradient and repulsion of one block."""
    return (
        np.empty((members, count, LANES), np.float32),
        np.empty((members, LANES), np.float32),
        np.empty((count, LANES), np.float32),
        np.empty((count, LANES), np.float32),
        np.empty((count, LANES), np.float32),
    )


@inlined(fastmath=True)
def _block_forces(x, shape, block, hood, h, imq, tables, potentials, scratch):  # type: ignore[no-untyped-def]
    """Gradient and repulsion of a block of sites, into the scratch arrays."""
    values, inside, scores, gradient, repulsion = scratch
    lanes = len(block)
    gather(x, shape, block, hood, values, inside)
    local_y, local_precision = np.empty(lanes, np.float32), np.empty(lanes, np.float32)
    local_h = np.empty((len(h), lanes), np.float32)
    for lane in range(lanes):
        local_y[lane] = potentials.y[block[lane]]
        local_precision[lane] = potentials.precision[block[lane]]
        for f in range(len(h)):
            local_h[f, lane] = h[f, block[lane]]
    local_scale = np.empty((len(hood.clique_filters) if len(potentials.scale) > 0 else 0, lanes), np.float32)
    for q in range(len(local_scale)):
        for lane in range(lanes):
            corner = block[lane] - hood.clique_rows[q] * shape[1] - hood.clique_columns[q]  # negative: not in the image
            local_scale[q, lane] = potentials.scale[hood.clique_filters[q], max(corner, 0)]
    _site_scores(values, inside, hood, tables, local_y, local_precision, local_scale, potentials, scores)
    _forces(values, inside, hood, local_h, imq, scores, gradient, repulsion)


@kernel(fastmath=True)
def _move(x, shape, sites, hood, h, imq, tables, potentials, step, power):  # type: ignore[no-untyped-def]
    """x_d += step * phi_d / sqrt(power_d) at the sites; power_d gathers the mean square of phi_d over particles.

    AdaGrad with one scale for all particles of a pixel: a scale for each would upset the balance of their forces.
    """
    block = np.empty(LANES, np.int64)
    scratch = _scratch(len(hood.rows), len(x))
    gradient, repulsion = scratch[3], scratch[4]
    for begin in range(0, len(sites), LANES):
        used = fill_block(sites, begin, block)
        _block_forces(x, shape, block, hood, h, imq, tables, potentials, scratch)
        for lane in range(used):
            square = np.float32(0)
            for i in range(len(x)):
                phi = gradient[i, lane] + repulsion[i, lane]
                square += phi * phi
            site = block[lane]
            power[site] += square / np.float32(len(x))
            factor = step / np.sqrt(power[site] + np.float32(1e-20))
            for i in range(len(x)):
                x[i, site] += factor * (gradient[i, lane] + repulsion[i, lane])


@kernel(fastmath=True)
def _measure(x, shape, sites, hood, h, imq, tables, potentials, gradients, repulsions):  # type: ignore[no-untyped-def]
    """gradients[i, site] and repulsions[i, site]; nothing moves."""
    block = np.empty(LANES, np.int64)
    scratch = _scratch(len(hood.rows), len(x))
    gradient, repulsion = scratch[3], scratch[4]
    for begin in range(0, len(sites), LANES):
        used = fill_block(sites, begin, block)
        _block_forces(x, shape, block, hood, h, imq, tables, potentials, scratch)
        for i in range(len(x)):
            for lane in range(used):
                gradients[i, block[lane]] = gradient[i, lane]
                repulsions[i, block[lane]] = repulsion[i, lane]


@kernel(fastmath=True)
def _bandwidths(x, shape, sites, hood, shifts, bandwidth, out):  # type: ignore[no-untyped-def]
    """out[factor, site] = h = bandwidth * med^2 of the particles on that factor."""
    block = np.empty(LANES, np.int64)
    values, inside, _, _, _ = _scratch(len(hood.rows), len(x))
    median = np.empty(LANES, np.float32)
    distances = np.empty((len(shifts) * len(x), LANES), np.float32)
    for begin in range(0, len(sites), LANES):
        used = fill_block(sites, begin, block)
        gather(x, shape, block, hood, values, inside)
        for f in range(len(out)):
            _median_squares(values, hood, f, shifts, distances, median)
            for lane in range(used):
                there = factor_exists(inside, hood, f, lane) > 0
                out[f, block[lane]] = bandwidth * median[lane] if there else np.float32(_NO_FACTOR)


class LocalForces:
    """Forces of MP-SVGD on the particles of a target; the colours of the prior are updated in turn.

    single_kernel: one kernel on the closed neighbourhood (MP-SVGD-s) instead of one a factor (MP-SVGD-m).
    bandwidth: h = bandwidth * med^2 for each factor.
    Particles are flat images: float32, shape (M, pixels).
    """

    def __init__(self, target: Target, *, single_kernel: bool, kernel: str, bandwidth: float) -> None:
        self._hood = neighbourhood(target, single_kernel)
        self._factors = len(self._hood.factor_starts) - 1
        self._shape, self._imq, self._bandwidth = target.shape, kernel == "imq", np.float32(bandwidth)
        colouring = target.prior.colouring(target.shape).ravel()
        by_colour = [np.flatnonzero(colouring == colour) for colour in range(target.prior.colours)]
        self._chunks = [[s[i : i + _CHUNK] for i in range(0, len(s), _CHUNK)] for s in by_colour]
        self._tables, self._potentials = target.tables, target.potentials
        self._h = np.ones((self._factors, target.size), np.float32)

    def refresh_bandwidths(self, x: np.ndarray) -> np.ndarray:
        """Set h of every factor from the median heuristic; returns h, shape (factors, pixels)."""
        count = len(x)
        shifts = np.unique(np.linspace(1, max(count // 2, 1), _SHIFTS).astype(np.int64))

        def task(sites: np.ndarray) -> None:
            _bandwidths(x, self._shape, sites, self._hood, shifts, self._bandwidth, self._h)

        for chunks in self._chunks:
            parallel(task, chunks)
        return self._h

    def sweep(self, x: np.ndarray, step: float, power: np.ndarray, tables: np.ndarray | None = None) -> None:
        """Move every site once, colour by colour (Algorithm 1); `tables` replaces the experts' score tables."""
        target = (self._tables if tables is None else tables, self._potentials)

        def task(sites: np.ndarray) -> None:
            _move(x, self._shape, sites, self._hood, self._h, self._imq, *target, np.float32(step), power)

        for chunks in self._chunks:
            parallel(task, chunks)

    def measure(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(G, R) of every particle at every site, shape (M, pixels) each."""
        target = (self._tables, self._potentials)
        gradients, repulsions = np.empty_like(x), np.empty_like(x)

        def task(sites: np.ndarray) -> None:
            _measure(x, self._shape, sites, self._hood, self._h, self._imq, *target, gradients, repulsions)

        for chunks in self._chunks:
            parallel(task, chunks)
        return gradients, repulsions
