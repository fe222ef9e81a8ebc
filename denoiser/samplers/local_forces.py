"""The forces of MP-SVGD: at every site, with kernels on its Markov blanket (paper, Eq. 10).

phi_d = G_d + R_d with the kernel-smoothed gradient G_d = E_y[k(x, y) d/dy_d log p(y)] and the repulsive force
R_d = E_y[d/dy_d k(x, y)], where k looks at the site and its neighbours only.

Kernels of z = |x - y|^2 / (2h): RBF exp(-z), with grad_y k (x - y) / h; IMQ 1 / sqrt(1 + z), with k^3 (x - y) / (2h).

Sites of one colour are worked on in blocks of LANES, each lane of a processor's vector unit one site: arrays of a block
have the shape (..., LANES).
"""

from __future__ import annotations

import numpy as np

from denoiser.exp2 import LOG2E, exp2, rough_exp2
from denoiser.jit import inlined, kernel
from denoiser.samplers.bandwidths import set_bandwidths
from denoiser.samplers.neighbourhood import GROUP, LANES, fill_block, gather, neighbourhood, see
from denoiser.samplers.shaking import shake, shaking_numbers
from denoiser.samplers.site_scores import site_scores
from denoiser.target import Target
from denoiser.threads import parallel

_CHUNK = 16 * LANES  # sites a task
_NONE = np.empty((0, 0), np.float32)
_SHIFTS = 6  # a median is taken over the pairs (i, i + shift) of this many shifts: 300 pairs for 50 particles


@inlined(fastmath=True)
def _pair_edges(first, last, own, others, rate, scores, gradient, repulsion):  # type: ignore[no-untyped-def]
    """Sums over the pairs of particles first .. last - 1 for RBF kernels on four edges, the pairwise prior.

    This is the innermost loop of the program.

    With rate = log2(e) / (2h), k = 2^(-rate |x - y|^2) and grad_y k = k * rate * (x - y), up to 2 / log2(e).
    Pairs are visited once: k_ij = k_ji, and the push on j is that on i turned round.
    """
    rate0, rate1, rate2, rate3 = rate[0], rate[1], rate[2], rate[3]
    for i in range(first, last):
        a, a0, a1, a2, a3 = own[i], others[0, i], others[1, i], others[2, i], others[3, i]
        score_a, gradient_a, repulsion_a = scores[i], gradient[i], repulsion[i]
        for j in range(first, i):
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
def _pair_responses(first, last, own, seen, taps, rate, scores, gradient, repulsion):  # type: ignore[no-untyped-def]
    """The same sums for RBF kernels on a response r and the site, each with its rate; that of the site comes last."""
    level = rate[len(seen)]
    for q in range(0, len(seen), GROUP):
        rate0, rate1, rate2, rate3 = rate[q], rate[q + 1], rate[q + 2], rate[q + 3]
        tap0, tap1, tap2, tap3 = taps[q], taps[q + 1], taps[q + 2], taps[q + 3]
        for i in range(first, last):
            a, a0, a1, a2, a3 = own[i], seen[q, i], seen[q + 1, i], seen[q + 2, i], seen[q + 3, i]
            score_a, gradient_a, repulsion_a = scores[i], gradient[i], repulsion[i]
            for j in range(first, i):
                b, b0, b1, b2, b3 = own[j], seen[q, j], seen[q + 1, j], seen[q + 2, j], seen[q + 3, j]
                score_b, gradient_b, repulsion_b = scores[j], gradient[j], repulsion[j]
                for lane in range(LANES):
                    d0, d1, d2, d3 = a0[lane] - b0[lane], a1[lane] - b1[lane], a2[lane] - b2[lane], a3[lane] - b3[lane]
                    e0, e1, e2, e3 = rate0[lane] * d0, rate1[lane] * d1, rate2[lane] * d2, rate3[lane] * d3
                    step = a[lane] - b[lane]
                    pull = level[lane] * step
                    k0, k1 = rough_exp2(-e0 * d0 - pull * step), rough_exp2(-e1 * d1 - pull * step)
                    k2, k3 = rough_exp2(-e2 * d2 - pull * step), rough_exp2(-e3 * d3 - pull * step)
                    k = k0 + k1 + k2 + k3
                    push = k0 * e0 * tap0 + k1 * e1 * tap1 + k2 * e2 * tap2 + k3 * e3 * tap3 + k * pull
                    gradient_a[lane] += k * score_b[lane]
                    gradient_b[lane] += k * score_a[lane]
                    repulsion_a[lane] += push
                    repulsion_b[lane] -= push


@inlined(fastmath=True)
def _pair_factors(first, last, own, others, hood, rate, imq, scores, gradient, repulsion):  # type: ignore[no-untyped-def]
    """The same sums for any factors and for both kernels (IMQ: rate = 1 / (2h), grad_y k = k^3 * rate * (x - y))."""
    squares = np.empty((len(others), LANES), np.float32)
    step, distance = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    k_sum, push = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    for i in range(first, last):
        for j in range(first, i):
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


@kernel(fastmath=True)
def _sweep(  # type: ignore[no-untyped-def]
    x,
    order,
    batches,
    crowd,
    shape,
    sites,
    hood,
    seen_taps,
    general,
    h,
    imq,
    target,
    step,
    inertia,
    power,
    numbers,
    heat,
    forces,
):
    """Eq. 10 at the sites, averaged over the factors at each; then x_d += step * phi_d / sqrt(power_d).

    The particles, in the given order, feel those of their own batch only: as many as there are, cut into `batches`. A
    particle's own term keeps its weight 1 / M, M = crowd, those of its b - 1 partners get (M - 1) / (M (b - 1)):
    without bias whatever b is.
    power_d gathers the mean square of phi_d over particles, counted `inertia` times: AdaGrad with one scale for all
    particles of a pixel, since a scale for each would upset the balance of their forces.
    numbers: what `shaking.py` makes noise of, of variance heat times the particles' step; None or empty: no noise.
    seen_taps: `hood.seen_taps`, or None if kernels look at sites only; general: None for RBF kernels on four edges.
    What would need something that is None is not compiled: numba decides such an `if` beforehand, if it is alone in it.
    If `forces` is not empty, (2, M, pixels), it gets the gradient and the repulsion, and nothing moves.
    """
    count, factors, members = len(x), len(h), len(hood.rows)
    block, inside = np.empty(LANES, np.int64), np.empty((members, LANES), np.float32)
    values = np.empty((members, count, LANES), np.float32)
    own, others = values[members - 1], values[: members - 1]
    scores, gradient = np.empty((count, LANES), np.float32), np.empty((count, LANES), np.float32)
    repulsion = np.empty((count, LANES), np.float32)
    if seen_taps is not None:
        seen = np.empty((len(seen_taps), count, LANES), np.float32)
    rate, terms = np.empty((factors, LANES), np.float32), np.empty(LANES, np.float32)
    square, factor, push = np.empty(LANES, np.float32), np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    unit = np.float32(1 if imq else 2 / LOG2E)
    for begin in range(0, len(sites), LANES):
        used = fill_block(sites, begin, block)
        gather(x, order, shape, block, hood, values, inside)
        site_scores(values, inside, hood, shape, block, target[0], target[1], scores)
        for lane in range(LANES):
            terms[lane] = 0  # K, the factors at the site
            for f in range(factors):
                rate[f, lane] = np.float32(0.5 if imq else 0.5 * LOG2E) / h[f, block[lane]]
                if f < len(hood.there):
                    terms[lane] += hood.there[f, block[lane]]
        if seen_taps is not None:
            see(values, hood, block, seen)
        for number in range(batches):
            begun, ended = number * count // batches, (number + 1) * count // batches
            more = (crowd - 1) / np.float32(ended - begun - 1) if ended - begun > 1 else np.float32(1)
            first, last = np.uint64(begun), np.uint64(ended)  # so no index counts from the end: 1.7 times as fast
            for i in range(first, last):
                for lane in range(LANES):
                    gradient[i, lane] = terms[lane] / more * scores[i, lane]  # k(x, x) = 1 for each factor
                    repulsion[i, lane] = 0
            if seen_taps is not None:
                _pair_responses(first, last, own, seen, seen_taps, rate, scores, gradient, repulsion)
            if general is None:
                _pair_edges(first, last, own, others, rate, scores, gradient, repulsion)
            if general is not None and seen_taps is None:
                _pair_factors(first, last, own, others, hood, rate, imq, scores, gradient, repulsion)
            for i in range(first, last):
                for lane in range(LANES):
                    share = more / (terms[lane] * crowd)
                    gradient[i, lane] *= share
                    repulsion[i, lane] *= share * unit
        if numbers is not None:  # noqa: SIM102
            if len(numbers) > 0:
                shake(values, hood, seen_taps, h, imq, block, numbers, scores)  # which are not needed any more
        if len(forces) > 0:
            for i in range(count):
                for lane in range(used):
                    forces[0, order[i], block[lane]] = gradient[i, lane]
                    forces[1, order[i], block[lane]] = repulsion[i, lane]
            continue
        for lane in range(LANES):
            square[lane] = 0
        for i in range(count):
            for lane in range(LANES):
                gradient[i, lane] += repulsion[i, lane]  # phi, from here on
                square[lane] += gradient[i, lane] * gradient[i, lane]
        for lane in range(used):
            site = block[lane]
            power[site] += inertia * square[lane] / np.float32(count)
            factor[lane] = step / np.sqrt(power[site] + np.float32(1e-20))
            push[lane] = np.sqrt(heat * factor[lane])
        for i in range(count):
            particle = x[order[i]]
            for lane in range(used):
                particle[block[lane]] += factor[lane] * gradient[i, lane]
            if numbers is not None:  # noqa: SIM102
                if len(numbers) > 0:
                    for lane in range(used):
                        particle[block[lane]] += push[lane] * scores[i, lane]


class LocalForces:
    """Forces of MP-SVGD on the particles of a target; the colours of the prior are updated in turn.

    single_kernel: one kernel on the closed neighbourhood (MP-SVGD-s) instead of one a factor (MP-SVGD-m).
    bandwidth: h = bandwidth * med^2 for each factor.
    responses: a kernel for every clique that looks at its filter response and at the site, each on its own scale,
    instead of one for every factor that looks at its sites.
    Particles are flat images: float32, shape (M, pixels).
    """

    def __init__(
        self, target: Target, *, single_kernel: bool, kernel: str, bandwidth: float, responses: bool = False
    ) -> None:
        if responses and (single_kernel or kernel != "rbf"):
            raise ValueError("kernels on responses are of the kind rbf, one for each")
        self._target, self._hood = target, neighbourhood(target, single_kernel, responses)
        self._seen_taps = self._hood.seen_taps if responses else None
        self._general = None if self._hood.edges and kernel == "rbf" and not responses else True
        self._shape, self._imq, self._bandwidth = target.shape, kernel == "imq", np.float32(bandwidth)
        colouring = target.prior.colouring(target.shape).ravel()
        by_colour = [np.flatnonzero(colouring == colour) for colour in range(target.prior.colours)]
        self._chunks = [[s[i : i + _CHUNK] for i in range(0, len(s), _CHUNK)] for s in by_colour]
        self._tables, self._potentials = target.tables, target.potentials
        self._h = np.ones((len(self._hood.there) + responses, target.size), np.float32)  # and one for the site

    def refresh_bandwidths(self, x: np.ndarray) -> np.ndarray:
        """Set h of every factor from the median heuristic; returns h, shape (factors, pixels).

        With kernels on responses: h of every response, and that of the site itself in the last row.
        """
        count = len(x)
        shifts = np.unique(np.linspace(1, max(count // 2, 1), _SHIFTS).astype(np.int64))
        order = np.arange(count)

        def task(sites: np.ndarray) -> None:
            set_bandwidths(x, order, self._shape, sites, self._hood, self._seen_taps, shifts, self._bandwidth, self._h)

        for chunks in self._chunks:
            parallel(task, chunks)
        return self._h

    def sweep(
        self,
        x: np.ndarray,
        step: float,
        power: np.ndarray,
        tables: np.ndarray | None = None,
        batches: int = 1,
        order: np.ndarray | None = None,
        noise: float = 0,
        rng: np.random.Generator | None = None,
        inertia: float = 1,
        crowd: int = 0,
    ) -> None:
        """Move every site once, colour by colour (Algorithm 1).

        power: (pixels,), what AdaGrad has gathered; inertia: how often it counts this sweep.
        tables: replaces the experts' score tables.
        batches: into how many parts the particles, taken in the given `order` (a permutation), are cut.
        noise: the variance of what `rng` adds (`shaking.py`); 1 is that of M independent draws. No rng: no noise.
        crowd: the particles move as if there were that many; 0: as many as there are.
        """
        numbers = None if rng is None else shaking_numbers(self._target, self._hood, rng) if noise else _NONE
        crowd = crowd or len(x)
        heat = np.float32(2 * noise / crowd)
        then = np.float32(step), np.float32(inertia), power, numbers, heat, np.empty((0, 0, 0), np.float32)
        self._run(x, then, tables, batches, order, crowd)

    def measure(
        self, x: np.ndarray, batches: int = 1, order: np.ndarray | None = None, crowd: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        """(G, R) of every particle at every site, shape (M, pixels) each; nothing moves."""
        forces = np.empty((2, *x.shape), np.float32)
        then = np.float32(0), np.float32(1), np.empty(0, np.float32), None, np.float32(0), forces
        self._run(x, then, None, batches, order, crowd or len(x))
        return forces[0], forces[1]

    def _run(
        self, x: np.ndarray, then: tuple, tables: np.ndarray | None, batches: int, order: np.ndarray | None, crowd: int
    ) -> None:
        target = (self._tables if tables is None else tables, self._potentials)
        order = np.arange(len(x)) if order is None else order

        def task(sites: np.ndarray) -> None:
            _sweep(
                x,
                order,
                batches,
                np.float32(crowd),
                self._shape,
                sites,
                self._hood,
                self._seen_taps,
                self._general,
                self._h,
                self._imq,
                target,
                *then,
            )

        for chunks in self._chunks:
            parallel(task, chunks)
