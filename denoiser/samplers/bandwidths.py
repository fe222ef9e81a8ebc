"""Bandwidths of MP-SVGD's kernels: a multiple of the squared median distance, for every site and factor."""

from __future__ import annotations

import numpy as np

from denoiser.jit import inlined, kernel
from denoiser.samplers.neighbourhood import LANES, fill_block, gather, see

_BISECTIONS = 9  # of a bracket of seven octaves: the median squared distance to 1 %
_NO_FACTOR = 1e-16  # bandwidth that makes the kernel vanish where a factor does not lie in the image


@inlined(fastmath=True)
def _bisect(distances, low, high):  # type: ignore[no-untyped-def]
    """Bring low and high around the median of the distances together, lane by lane, on a logarithmic scale."""
    middle, below = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    for _ in range(_BISECTIONS):
        for lane in range(LANES):
            middle[lane] = np.sqrt(low[lane] * high[lane])
            below[lane] = 0
        for pair in range(len(distances)):
            distance = distances[pair]
            for lane in range(LANES):
                below[lane] += np.float32(1) if distance[lane] < middle[lane] else np.float32(0)
        for lane in range(LANES):
            if below[lane] < np.float32(0.5 * len(distances)):
                low[lane] = middle[lane]
            else:
                high[lane] = middle[lane]


@kernel(fastmath=True)
def set_bandwidths(x, order, shape, sites, hood, seen_taps, shifts, bandwidth, out):  # type: ignore[no-untyped-def]
    """out[factor, site] = h = bandwidth * med^2 of the particles on that factor.

    The median is that of squared distances over pairs of particles, whose numbers differ by one of the shifts.
    """
    count, pairs = len(x), len(shifts) * len(x)
    block, inside = np.empty(LANES, np.int64), np.empty((len(hood.rows), LANES), np.float32)
    values = np.empty((len(hood.rows), count, LANES), np.float32)
    if seen_taps is not None:
        seen = np.empty((len(seen_taps), count, LANES), np.float32)
    distances = np.empty((pairs, LANES), np.float32)
    low, high = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    for begin in range(0, len(sites), LANES):
        used = fill_block(sites, begin, block)
        gather(x, order, shape, block, hood, values, inside)
        if seen_taps is not None:
            see(values, hood, block, seen)
        for f in range(len(out)):
            own = values[len(values) - 1]
            if seen_taps is not None:
                own = seen[f] if f < len(seen) else own
            high[:] = 0
            pair = 0
            for shift in shifts:
                for i in range(count):
                    j = i + shift if i + shift < count else i + shift - count
                    left, right, distance = own[i], own[j], distances[pair]
                    for lane in range(LANES):
                        distance[lane] = (left[lane] - right[lane]) * (left[lane] - right[lane])
                    if seen_taps is None:
                        for m in range(hood.factor_starts[f], hood.factor_starts[f + 1]):
                            left, right = values[hood.factor_members[m], i], values[hood.factor_members[m], j]
                            for lane in range(LANES):
                                distance[lane] += (left[lane] - right[lane]) * (left[lane] - right[lane])
                    for lane in range(LANES):
                        high[lane] += distance[lane]
                    pair += 1
            for lane in range(LANES):  # a median is at most twice the mean (Markov), and hardly ever a 64th of it
                high[lane] = high[lane] * np.float32(2) / np.float32(pairs) + np.float32(1e-12)
                low[lane] = high[lane] / np.float32(128)
            _bisect(distances, low, high)
            for lane in range(used):
                there = f == len(hood.there) or hood.there[f, block[lane]]
                out[f, block[lane]] = bandwidth * np.sqrt(low[lane] * high[lane]) if there else np.float32(_NO_FACTOR)
