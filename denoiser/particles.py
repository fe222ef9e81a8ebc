"""Particles of a part of a picture, for measuring where the run itself has none: of photographs in tiles."""

from __future__ import annotations

import math
from dataclasses import asdict, replace

import numpy as np

from denoiser.pieces import DEFAULT_MEMORY, Region
from denoiser.run import Request
from denoiser.samplers import make_sampler

DRAWN = 50  # of methods that need none for their mean


def draw_particles(request: Request, region: Region) -> np.ndarray:
    """Particles of a region, shape (M, height, width) and channels: for measuring where a run itself has none.

    As the run on the whole would give them there; a method that makes no particles by itself draws DRAWN of them.
    """
    sampler = request.sampler
    if not sampler.uncertain:
        raise ValueError(f"{sampler.name} gives one picture, and no idea how sure it is")
    if not sampler.kept:
        sampler = make_sampler(sampler.name, {**asdict(sampler), "particles": DRAWN})
    local = replace(request, sampler=sampler, region=region)
    cost = sampler.bytes_per_pixel(request.prior) * len(request.frame.gains)
    (piece,) = local.pieces()
    assert request.memory is not None
    if math.prod(piece.outer.shape) * cost > max(request.memory, DEFAULT_MEMORY):
        most = math.prod(piece.outer.shape) * cost
        raise ValueError(f"the region is too large to measure in this memory; allow {math.ceil(most / 2**20)} MB")
    samples = local.run().samples
    return samples if request.channel_axis is None else np.moveaxis(samples, request.channel_axis % 3 + 1, -1)
