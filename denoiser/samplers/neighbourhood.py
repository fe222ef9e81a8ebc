"""What a site sees of the field: its Markov blanket, its factors and cliques, and the particles' values there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from denoiser.jit import inlined
from denoiser.priors import Offset
from denoiser.target import Target

GROUP = 4  # responses whose kernels are computed together
LANES = 64  # sites worked on together, one SIMD lane each: long enough loops, and their particles fit into the L2 cache


class Neighbourhood(NamedTuple):
    """What a site sees, as flat arrays for the kernels. Members are blanket sites; the last one is the site itself."""

    rows: np.ndarray  # (B + 1,) row offset of each member
    columns: np.ndarray  # (B + 1,)
    factor_starts: np.ndarray  # (F + 1,) into factor_members
    factor_members: np.ndarray  # blanket sites of each factor, without the site itself
    there: np.ndarray  # (F, pixels) whether the factor, or what is seen of it, lies in the image at a site
    clique_starts: np.ndarray  # (C + 1,) into clique_members: the cliques, filter by filter, that contain the site
    clique_members: np.ndarray
    clique_taps: np.ndarray
    clique_filters: np.ndarray  # (C,) which expert
    clique_own_taps: np.ndarray  # (C,) tap on the site itself
    clique_rows: np.ndarray  # (C,) how far above the site its clique begins
    clique_columns: np.ndarray  # (C,) how far left of it
    seen_taps: np.ndarray  # (Q,) tap on the site in what is seen, see `see`; empty if kernels look at sites only
    single: bool  # one kernel on the closed neighbourhood; at the border, on what there is of it
    edges: bool  # four factors, and factor f has the one member f: the pairwise prior, which has a kernel of its own


def _fits(window: tuple[Offset, ...], shape: tuple[int, int]) -> np.ndarray:
    """Whether the window lies in an image of that shape, for a site at every pixel, flat."""
    rows, columns = [0, *(r for r, _ in window)], [0, *(c for _, c in window)]
    out = np.zeros(shape, bool)
    out[-min(rows) : max(shape[0] - max(rows), 0), -min(columns) : max(shape[1] - max(columns), 0)] = True
    return out.ravel()


def neighbourhood(target: Target, single_kernel: bool, responses: bool = False) -> Neighbourhood:
    """The prior's blanket, with one factor a clique window (multi-kernel) or one for all (single kernel).

    responses: a kernel for every clique with the site looks at the filter's response and at the site itself.
    """
    prior = target.prior
    members = [*prior.blanket, (0, 0)]
    factors = (prior.blanket,) if single_kernel else prior.factors
    there = np.stack([_fits(() if single_kernel else window, target.shape) for window in factors])
    alone = ~there.any(axis=0)
    if alone.any():  # a site in no factor has a kernel on itself
        factors, there = (*factors, ()), np.vstack([there, alone])
    factor_starts = np.cumsum([0, *(len(f) for f in factors)])
    factor_members = np.array([members.index(site) for factor in factors for site in factor], np.int64)
    starts, clique_members, taps, filters, own, corners = [0], [], [], [], [], []
    for number, (values, support) in enumerate(zip(prior.filters, prior.supports, strict=True)):
        for r0, c0 in support:  # the clique in which the site is under this tap
            for r, c in support:
                clique_members.append(members.index((r - r0, c - c0)))
                taps.append(values[r, c])
            starts.append(len(taps))
            filters.append(number)
            own.append(values[r0, c0])
            corners.append((r0, c0))
    seen_taps = np.empty(0, np.float32)
    if responses:
        windows = [tuple((r - r0, c - c0) for r, c in s) for s in prior.supports for r0, c0 in s]
        there = np.stack([_fits(window, target.shape) for window in windows])
        rows = -(-(len(windows) + 1) // GROUP) * GROUP if alone.any() else -(-len(windows) // GROUP) * GROUP
        seen_taps = np.zeros(rows, np.float32)
        seen_taps[: len(windows)] = own
        there = np.vstack([there, np.zeros((rows - len(windows), target.size), bool)])
        if alone.any():
            there[len(windows)] = alone
    return Neighbourhood(
        np.array([r for r, _ in members]),
        np.array([c for _, c in members]),
        factor_starts,
        factor_members,
        there,
        np.array(starts),
        np.array(clique_members),
        np.array(taps, np.float32),
        np.array(filters),
        np.array(own, np.float32),
        np.array([r for r, _ in corners]),
        np.array([c for _, c in corners]),
        seen_taps,
        single_kernel,
        len(members) == 5 and factor_starts.tolist() == [0, 1, 2, 3, 4] and factor_members.tolist() == [0, 1, 2, 3],
    )


@inlined()
def gather(x, order, shape, sites, hood, values, inside):  # type: ignore[no-untyped-def]
    """values[member, i, lane] of particle order[i] around each site; inside[member, lane] is 0 outside the image."""
    height, width = shape
    at, there = np.empty(len(sites), np.int64), np.empty(len(sites), np.bool_)
    for b in range(len(hood.rows)):
        for lane in range(len(sites)):
            row, column = sites[lane] // width + hood.rows[b], sites[lane] % width + hood.columns[b]
            there[lane] = 0 <= row < height and 0 <= column < width
            inside[b, lane] = there[lane]
            at[lane] = row * width + column if there[lane] else sites[lane]
        for i in range(len(x)):
            particle, line = x[order[i]], values[b, i]
            # outside: no distance to add to the single kernel; far apart for a factor that does not exist
            nothing = np.float32(0 if hood.single else i)
            for lane in range(len(sites)):
                line[lane] = particle[at[lane]] if there[lane] else nothing


@inlined(fastmath=True)
def see(values, hood, block, seen):  # type: ignore[no-untyped-def]
    """seen[q, i, lane]: responses of the cliques with the site; then 0 for a site in none, and what is far apart."""
    cliques = len(hood.clique_filters)
    for q in range(len(seen)):
        for i in range(seen.shape[1]):
            line = seen[q, i]
            for lane in range(LANES):
                line[lane] = np.float32(0 if q < cliques or hood.there[q, block[lane]] else i)
            if q < cliques:
                for m in range(hood.clique_starts[q], hood.clique_starts[q + 1]):
                    tap, member = hood.clique_taps[m], values[hood.clique_members[m], i]
                    for lane in range(LANES):
                        line[lane] += tap * member[lane]


@inlined()
def fill_block(sites, begin, block):  # type: ignore[no-untyped-def]
    """Fill `block` with the sites from `begin` on, the last one repeated; returns how many are new."""
    used = min(len(block), len(sites) - begin)
    for lane in range(len(block)):
        block[lane] = sites[begin + min(lane, used - 1)]
    return used
