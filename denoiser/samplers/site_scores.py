"""The score of every particle at a block of sites: d/dx_d log p(x_d | blanket), from the experts' tables."""

from __future__ import annotations

import numpy as np

from denoiser.gsm import table_precision
from denoiser.jit import inlined
from denoiser.samplers.neighbourhood import LANES
from denoiser.target import table_slope


@inlined(fastmath=True)
def site_scores(values, inside, hood, shape, block, tables, potentials, out):  # type: ignore[no-untyped-def]
    """out[i, lane] = d/dx_d log p(x_d | blanket) of particle i at site d = block[lane]."""
    own = values[len(values) - 1]
    y, response, weight = np.empty(LANES, np.float32), np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    scale = np.empty(LANES, np.float32)
    scaled = len(potentials.scale) > 0
    for lane in range(LANES):
        y[lane] = potentials.y[block[lane]]
        weight[lane] = potentials.precision[block[lane]]
    for i in range(len(out)):
        line, mine = out[i], own[i]
        for lane in range(LANES):
            line[lane] = weight[lane] * (y[lane] - mine[lane]) - potentials.epsilon * mine[lane]
    if len(potentials.table) > 0:
        for i in range(len(out)):
            line, mine = out[i], own[i]
            for lane in range(LANES):
                line[lane] += table_slope(potentials.table, y[lane] - mine[lane])
    for q in range(len(hood.clique_filters)):
        table = tables[hood.clique_filters[q]]
        for lane in range(LANES):
            weight[lane] = -hood.clique_own_taps[q]
            if scaled:
                corner = block[lane] - hood.clique_rows[q] * shape[1] - hood.clique_columns[q]  # negative: not inside
                scale[lane] = potentials.scale[hood.clique_filters[q], max(corner, 0)]
                weight[lane] *= scale[lane]
        for m in range(hood.clique_starts[q], hood.clique_starts[q + 1]):
            for lane in range(LANES):
                weight[lane] *= inside[hood.clique_members[m], lane]
        for i in range(len(out)):
            for lane in range(LANES):
                response[lane] = 0
            for m in range(hood.clique_starts[q], hood.clique_starts[q + 1]):
                tap, member = hood.clique_taps[m], values[hood.clique_members[m], i]
                for lane in range(LANES):
                    response[lane] += tap * member[lane]
            if scaled:
                for lane in range(LANES):
                    response[lane] *= scale[lane]
            line = out[i]
            for lane in range(LANES):
                line[lane] += weight[lane] * response[lane] * table_precision(table, response[lane])
