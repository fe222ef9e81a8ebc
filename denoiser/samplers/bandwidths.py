"""Bandwidths of MP-SVGD's kernels: a multiple of the squared median distance, for every site and factor."""

from __future__ import annotations

import numpy as np

from denoiser.jit import inlined, kernel
from denoiser.samplers.neighbourhood import LANES, fill_block, gather, see

_BISECTIONS = 9  # of a bracket of seven octaves: the median squared distance to 1 %
_NO_FACTOR = 1e-16  # bandwidth that makes the kernel vanish where a factor does not lie in the image


@inlined(fastmath=True)
def _median_squares(values, seen, hood, factor, shifts, distances, out):  # type: ignore[no-untyped-def]
    """Median over pairs of particles of the squared distance on one factor, lane by lane, by bisection of log d^2."""
    own = values[len(values) - 1]
    if seen is not None and factor < len(seen):
        own = seen[factor]
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
            if seen is None:
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


@kernel(fastmath=True)
def set_bandwidths(x, order, shape, sites, hood, seen_taps, shifts, bandwidth, out):  # type: ignore[no-untyped-def]
    """out[factor, site] = h = bandwidth * med^2 of the particles on that factor."""
    block, inside = np.empty(LANES, np.int64), np.empty((len(hood.rows), LANES), np.float32)
    values = np.empty((len(hood.rows), len(x), LANES), np.float32)
    if seen_taps is not None:
        seen = np.empty((len(seen_taps), len(x), LANES), np.float32)
    median = np.empty(LANES, np.float32)
    distances = np.empty((len(shifts) * len(x), LANES), np.float32)
    for begin in range(0, len(sites), LANES):
        used = fill_block(sites, begin, block)
        gather(x, order, shape, block, hood, values, inside)
        if seen_taps is not None:
            see(values, hood, block, seen)
        for f in range(len(out)):
            if seen_taps is None:
                _median_squares(values, None, hood, f, shifts, distances, median)
            if seen_taps is not None:
                _median_squares(values, seen, hood, f, shifts, distances, median)
            for lane in range(used):
                there = f == len(hood.there) or hood.there[f, block[lane]]
                out[f, block[lane]] = bandwidth * median[lane] if there else np.float32(_NO_FACTOR)
