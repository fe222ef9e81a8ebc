"""The part of a job that needs no file and may run on another machine: noisy pixels in, denoised pixels out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from denoiser import tiles
from denoiser.priors import Prior
from denoiser.run import Progress
from denoiser.samplers import Sampler


@dataclass(frozen=True, eq=False)
class Request:
    """A picture to denoise: noise level and white in its own units."""

    noisy: np.ndarray
    sigma: float
    axis: int | None
    white: float
    sampler: Sampler
    prior: Prior
    seed: int
    memory: int | None
    samples: bool  # whether they are wanted, and so must not be cut into tiles


@dataclass(frozen=True, eq=False)
class Answer:
    """What became of it."""

    mean: np.ndarray
    std: np.ndarray  # only its mean, an array without axes, where that is all that is wanted
    samples: np.ndarray
    tiles: int
    figures: dict[str, float]
    seconds: float


def answer(request: Request, watch: Callable[[Iterator[Progress]], Iterator[Progress]] = iter) -> Answer:
    """Denoise. Nothing but the request decides the result; `watch` may look at every step."""
    began = time.perf_counter()
    run = tiles.iterate_tiles(
        request.noisy, request.sigma, memory=request.memory, method=request.sampler, prior=request.prior,
        seed=request.seed, channel_axis=request.axis, data_range=request.white,
    )  # fmt: skip
    last: Progress | None = None
    for last in watch(run):
        if request.samples and isinstance(last, tiles.TiledProgress):
            raise ValueError("too large for --samples in this memory; allow more with --memory")
    assert last is not None  # every sampler yields at least once
    count = last.tiles if isinstance(last, tiles.TiledProgress) else 1
    mean, std = last.mean, last.std
    samples = last.samples if request.samples else np.empty((0, *mean.shape), np.float32)
    return Answer(mean, std, samples, count, last.figures, time.perf_counter() - began)


def brief_answer(request: Request) -> Answer:
    """`answer` for a slow line: of the uncertainty only the mean, unless samples are wanted."""
    whole = answer(request)
    return Answer(whole.mean, np.asarray(whole.std.mean()), whole.samples, whole.tiles, whole.figures, whole.seconds)
