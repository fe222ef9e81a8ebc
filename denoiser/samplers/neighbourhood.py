"""What a site sees of the field: its Markov blanket, its factors and cliques, and the particles' values there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from denoiser.jit import inlined
from denoiser.target import Target


class Neighbourhood(NamedTuple):
    """What a site sees, as flat arrays for the kernels. Members are blanket sites; the last one is the site itself."""

    rows: np.ndarray  # (B + 1,) row offset of each member
    columns: np.ndarray  # (B + 1,)
    factor_starts: np.ndarray  # (F + 1,) into factor_members
    factor_members: np.ndarray  # blanket sites of each factor, without the site itself
    clique_starts: np.ndarray  # (C + 1,) into clique_members: the cliques, filter by filter, that contain the site
    clique_members: np.ndarray
    clique_taps: np.ndarray
    clique_filters: np.ndarray  # (C,) which expert
    clique_own_taps: np.ndarray  # (C,) tap on the site itself
    clique_rows: np.ndarray  # (C,) how far above the site its clique begins
    clique_columns: np.ndarray  # (C,) how far left of it
    single: bool  # one kernel on the closed neighbourhood; at the border, on what there is of it
    edges: bool  # four factors, and factor f has the one member f: the pairwise prior, which has a kernel of its own


def neighbourhood(target: Target, single_kernel: bool) -> Neighbourhood:
    """The prior's blanket, with one factor a clique window (multi-kernel) or one for all (single kernel)."""
    prior = target.prior
    members = [*prior.blanket, (0, 0)]
    factors = (prior.blanket,) if single_kernel else prior.factors
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
    return Neighbourhood(
        np.array([r for r, _ in members]),
        np.array([c for _, c in members]),
        factor_starts,
        factor_members,
        np.array(starts),
        np.array(clique_members),
        np.array(taps, np.float32),
        np.array(filters),
        np.array(own, np.float32),
        np.array([r for r, _ in corners]),
        np.array([c for _, c in corners]),
        single_kernel,
        len(members) == 5 and factor_starts.tolist() == [0, 1, 2, 3, 4] and factor_members.tolist() == [0, 1, 2, 3],
    )


@inlined()
def _complete(inside, hood, factor, lane):  # type: ignore[no-untyped-def]
    """1 if all members of the factor lie in the image, else 0."""
    there = np.float32(1)
    for m in range(hood.factor_starts[factor], hood.factor_starts[factor + 1]):
        there *= inside[hood.factor_members[m], lane]
    return there


@inlined()
def _complete_factors(inside, hood, lane):  # type: ignore[no-untyped-def]
    """How many factors of the site lie in the image."""
    found = np.float32(0)
    for factor in range(len(hood.factor_starts) - 1):
        found += _complete(inside, hood, factor, lane)
    return found


@inlined()
def factor_exists(inside, hood, factor, lane):  # type: ignore[no-untyped-def]
    """1 if the site has a kernel on this factor, else 0. A site in no factor has one kernel, on itself: factor 0."""
    if hood.single or _complete(inside, hood, factor, lane) > 0:
        return np.float32(1)
    return np.float32(1 if factor == 0 and _complete_factors(inside, hood, lane) == 0 else 0)


@inlined()
def _isolate(values, hood, lane):  # type: ignore[no-untyped-def]
    """Make factor 0 add nothing to the distances between the particles of a site, and all other factors far apart."""
    for b in range(len(values) - 1):
        for i in range(values.shape[1]):
            values[b, i, lane] = i
    for m in range(hood.factor_starts[0], hood.factor_starts[1]):
        for i in range(values.shape[1]):
            values[hood.factor_members[m], i, lane] = 0


@inlined()
def gather(x, shape, sites, hood, values, inside):  # type: ignore[no-untyped-def]
    """values[member, i, lane] of the particles around each site; inside[member, lane] is 0 outside the image."""
    height, width = shape
    for b in range(len(hood.rows)):
        for lane in range(len(sites)):
            row, column = sites[lane] // width + hood.rows[b], sites[lane] % width + hood.columns[b]
            there = 0 <= row < height and 0 <= column < width
            inside[b, lane] = there
            at = row * width + column if there else sites[lane]
            for i in range(len(x)):
                # outside: no distance to add to the single kernel; far apart for a factor that does not exist
                values[b, i, lane] = x[i, at] if there else np.float32(0 if hood.single else i)
    for lane in range(len(sites)):
        if not hood.single and _complete_factors(inside, hood, lane) == 0:
            _isolate(values, hood, lane)


@inlined()
def fill_block(sites, begin, block):  # type: ignore[no-untyped-def]
    """Fill `block` with the sites from `begin` on, the last one repeated; returns how many are new."""
    used = min(len(block), len(sites) - begin)
    for lane in range(len(block)):
        block[lane] = sites[begin + min(lane, used - 1)]
    return used
