"""Pictures larger than memory allows: overlapping tiles, denoised one after the other and blended.

Every tile is computed with a halo of HALO pixels, most of which is thrown away: what is left no longer feels the
edge. All tiles draw the random numbers of the whole picture (`draws.py`), and are cross-faded over RAMP pixels.
A picture that fits the budget is one run of `run.iterate`, to the byte.
"""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from denoiser.priors import Prior, load_prior
from denoiser.run import Progress, iterate
from denoiser.samplers import DEFAULT_METHOD, Sampler, make_sampler

HALO = 24  # pixels that a tile sees beyond what it is for
# Pixels over which neighbours are cross-faded; a tile's outermost HALO - RAMP / 2 are never used. Averaging two tiles
# smooths their sampling noise, going from one to the other roughens it: at 2 pixels both cancel (tests/test_tiles.py).
RAMP = 2
SMALLEST = 32  # pixels a side of a tile without its halo, at least; more than RAMP
DEFAULT_MEMORY = 384 << 20  # larger tiles gain little: of these, halos are a quarter of the work


def default_memory() -> int:
    """Bytes that a run may work in unless told otherwise: DEFAULT_MEMORY, or a quarter of what is free if less.

    A constant on any but the smallest machines, so that the same seed gives the same picture tomorrow.
    """
    return min(DEFAULT_MEMORY, free_memory() // 4)


def free_memory() -> int:
    """Bytes of memory that programs could still get; 4 GB where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) << 10
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 4 << 30


def working_memory(pixels: int, planes: int, sampler: Sampler, prior: Prior) -> int:
    """About how many bytes a run needs: particles, and the solver's scratch arrays for a handful of threads.

    Fitted to `ru_maxrss` from above. The number of threads must not matter, or else results would depend on it.
    """
    particles = getattr(sampler, "particles", getattr(sampler, "keep", 0))
    each = 40 if sampler.name == "svgd" else 5  # bytes; SVGD has forces and scores of all of them at a time
    scratch = 160 + 20 * max(getattr(sampler, "chains", 2), 2) * (len(prior.filters) + len(prior.blanket))
    return pixels * planes * (each * particles + scratch)


def grid(shape: tuple[int, int], most: int) -> tuple[int, int]:
    """Rows and columns of tiles that need the least work, of at most `most` pixels a tile, halo included."""
    height, width = shape
    best: tuple[int, int, int] | None = None
    for rows in range(1, max(height // SMALLEST, 1) + 1):
        tall = min(math.ceil(height / rows) + 2 * HALO, height)
        for columns in range(1, max(width // SMALLEST, 1) + 1):
            wide = min(math.ceil(width / columns) + 2 * HALO, width)
            if tall * wide <= most:
                work = (height + 2 * HALO * (rows - 1)) * (width + 2 * HALO * (columns - 1))
                best = min(best or (work, rows, columns), (work, rows, columns))
                break
    if best is None:
        raise ValueError("the memory allowed is too little for even the smallest tile")
    return best[1], best[2]


@dataclass(frozen=True)
class Span:
    """One tile along one axis: it computes begin .. end, and is for the pixels where `weights` is not 0."""

    begin: int
    end: int
    weights: np.ndarray = field(repr=False)


def spans(length: int, count: int) -> list[Span]:
    """`count` overlapping spans whose weights add up to 1 everywhere.

    >>> [(s.begin, s.end) for s in spans(200, 2)]
    [(0, 124), (76, 200)]
    """
    cuts = [round(length * number / count) for number in range(count + 1)]
    out = []
    for first, last in itertools.pairwise(cuts):
        begin, end = max(first - HALO, 0), min(last + HALO, length)
        at = np.arange(begin, end) + 0.5
        rise = np.clip((at - first) / RAMP + 0.5, 0, 1) if first > 0 else np.ones(len(at))
        fall = np.clip((last - at) / RAMP + 0.5, 0, 1) if last < length else np.ones(len(at))
        out.append(Span(begin, end, (rise * fall).astype(np.float32)))
    return out


class _Canvas:
    """The picture that the tiles are added to: weighted means and standard deviations, rows x columns x channels."""

    def __init__(self, image: np.ndarray) -> None:
        self.image = image
        self.mean = np.zeros(image.shape, np.float32)
        self.std = np.zeros(image.shape, np.float32)
        self.done: list[tuple[Span, Span]] = []

    def add(self, rows: Span, columns: Span, mean: np.ndarray, std: np.ndarray) -> None:
        self._add(self.mean, rows, columns, mean)
        self._add(self.std, rows, columns, std)
        self.done.append((rows, columns))

    def _add(self, total: np.ndarray, rows: Span, columns: Span, values: np.ndarray) -> None:
        weights = np.outer(rows.weights, columns.weights)
        weights = weights if self.image.ndim == 2 else weights[..., None]
        total[rows.begin : rows.end, columns.begin : columns.end] += weights * values.astype(np.float32)

    def preview(self) -> np.ndarray:
        """The mean so far, and the noisy picture where tiles are missing."""
        out = self.image.astype(np.float32)
        for rows, columns in self.done:
            self._add(out, rows, columns, -self.image[rows.begin : rows.end, columns.begin : columns.end].astype(float))
        return out + self.mean


@dataclass(frozen=True, eq=False)
class TiledProgress(Progress):
    """Progress over all tiles. `mean` is the noisy picture where no tile has been finished yet."""

    tile: int = 1
    tiles: int = 1
    _canvas: _Canvas | None = field(default=None, repr=False)
    _axis: int | None = None

    @property
    def mean(self) -> np.ndarray:
        """The denoised tiles in the noisy picture, float32."""
        assert self._canvas is not None
        return self._layout(self._canvas.mean if self.step == self.total else self._canvas.preview())

    @property
    def std(self) -> np.ndarray:
        """The standard deviation of every pixel, 0 where no tile has been finished yet."""
        assert self._canvas is not None
        return self._layout(self._canvas.std)

    @property
    def samples(self) -> np.ndarray:
        """None: particles of different tiles do not make one picture."""
        assert self._canvas is not None
        return np.empty((0, *self._layout(self._canvas.mean).shape), np.float32)

    def _layout(self, values: np.ndarray) -> np.ndarray:
        return values if self._axis is None else np.moveaxis(values, -1, self._axis)


def iterate_tiles(
    image: np.ndarray,
    sigma: float,
    *,
    memory: int | None = None,
    method: str | Sampler = DEFAULT_METHOD,
    prior: str | Path | Prior = "pairwise",
    seed: int = 0,
    channel_axis: int | None = None,
    data_range: float | None = None,
    **options: Any,
) -> Iterator[Progress]:
    """`run.iterate` for pictures of any size, within about `memory` bytes (default: `default_memory()`).

    The pictures themselves, in and out, come on top. Bad arguments raise here, before the first step.
    """
    image = np.asarray(image)
    sampler = method if isinstance(method, Sampler) else make_sampler(method, options)
    loaded = load_prior(prior)
    common: dict[str, Any] = {"method": sampler, "prior": loaded, "data_range": data_range}

    def whole(part: np.ndarray) -> Iterator[Progress]:
        return iterate(part, sigma, seed=seed, channel_axis=channel_axis, **common)

    if image.ndim != (2 if channel_axis is None else 3):
        return whole(image)  # which says what is wrong
    upright = image if channel_axis is None else np.moveaxis(image, channel_axis, -1)
    cost = working_memory(1, 1 if channel_axis is None else upright.shape[2], sampler, loaded)
    most = (default_memory() if memory is None else memory) // cost
    if upright.shape[0] * upright.shape[1] <= most:
        return whole(image)
    corner = upright[:2, :2]  # what is wrong with the arguments is said now, not at the first tile
    whole(corner if channel_axis is None else np.moveaxis(corner, -1, channel_axis))
    if data_range is None and image.dtype.kind == "f":
        raise ValueError("data_range must be given for real pictures that are cut into tiles")
    if not np.isfinite(image).all():
        raise ValueError("image must be finite, got NaN or Inf pixels")
    try:
        shape = grid((upright.shape[0], upright.shape[1]), most)
    except ValueError as error:
        least = math.ceil((2 * SMALLEST + 2 * HALO) ** 2 * cost / 2**20)
        raise ValueError(f"{error}; allow {least} MB") from None
    common["channel_axis"] = None if channel_axis is None else -1
    return _tile_steps(upright, sigma, shape, seed, channel_axis, sampler.total, common)


def _tile_steps(
    image: np.ndarray,
    sigma: float,
    shape: tuple[int, int],
    seed: int,
    axis: int | None,
    steps: int,
    common: dict[str, Any],
) -> Iterator[Progress]:
    """Run tile after tile."""
    began = time.perf_counter()
    canvas = _Canvas(image)
    pairs = [(r, c) for r in spans(image.shape[0], shape[0]) for c in spans(image.shape[1], shape[1])]
    work = [(r.end - r.begin) * (c.end - c.begin) for r, c in pairs]

    def report(number: int, step: int, progress: Progress) -> TiledProgress:
        seconds = time.perf_counter() - began
        left = sum(work) / (sum(work[:number]) + work[number] * step / steps) - 1
        total, figures, frame = len(pairs) * steps, progress.figures, progress._frame
        now = number * steps + step
        return TiledProgress(
            now, total, seconds, seconds * left, figures, (), frame, number + 1, len(pairs), canvas, axis
        )

    def one(number: int, rows: Span, columns: Span) -> Iterator[Progress]:
        part = image[rows.begin : rows.end, columns.begin : columns.end]
        tile = iterate(part, sigma, seed=seed, origin=(rows.begin, columns.begin), **common)
        last = next(tile)
        for progress in tile:  # one behind, because the last report must come after the tile is on the canvas
            yield report(number, last.step, last)
            last = progress
        canvas.add(rows, columns, last.mean, last.std)
        yield report(number, steps, last)  # all steps, even where the sampler stopped early

    for number, (rows, columns) in enumerate(pairs):
        yield from one(number, rows, columns)  # a function of its own: its particles are gone when the next one begins
