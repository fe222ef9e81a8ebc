"""A part of a picture as the run of the whole would give it, in a fraction of the time.

The part is computed with tiles.HALO pixels around it, and with the very random numbers that the run of the whole draws
at these pixels. So what is left when the halo is cut off is the result of the whole run, up to the influence of what
lies beyond the halo, and of what a method does to the picture as a whole (SVGD's one kernel, a solver's last digits).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from denoiser import tiles
from denoiser.priors import Prior, load_prior
from denoiser.run import Progress, iterate
from denoiser.samplers import DEFAULT_METHOD, Sampler, make_sampler


class Region(NamedTuple):
    """Rows top .. bottom and columns left .. right of a picture, the ends not included."""

    top: int
    left: int
    bottom: int
    right: int

    def of(self, image: np.ndarray) -> np.ndarray:
        """These pixels of an image (height, width) or (height, width, channels)."""
        return image[self.top : self.bottom, self.left : self.right]

    def within(self, other: Region) -> Region:
        """The same pixels, counted from the corner of `other`."""
        return Region(self.top - other.top, self.left - other.left, self.bottom - other.top, self.right - other.left)


@dataclass(frozen=True)
class Part:
    """A region after an iteration. `place`: where it is in the picture (a seam between tiles may cut it short)."""

    place: Region
    _inside: Region
    progress: Progress  # of the region and its halo

    @property
    def mean(self) -> np.ndarray:
        """The MMSE image in the region."""
        return self._inside.of(self.progress.mean)

    @property
    def std(self) -> np.ndarray:
        """The standard deviations in the region."""
        return self._inside.of(self.progress.std)


class _Window(np.random.Generator):
    """The random numbers that another generator gives for a whole field, but only those at some of its pixels."""

    def __init__(self, whole: np.random.Generator, field: tuple[int, int], part: Region) -> None:
        super().__init__(whole.bit_generator)
        self._whole, self._field, self._part = whole, field, part

    def spawn(self, n_children: int) -> list[np.random.Generator]:
        return [_Window(child, self._field, self._part) for child in self._whole.spawn(n_children)]

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        return self._draw(self._whole.random, size, dtype)

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        return self._draw(self._whole.standard_normal, size, dtype)

    def _draw(self, draw: Any, size: Any, dtype: Any) -> Any:
        shape = () if size is None else tuple(np.atleast_1d(size))
        height, width = self._part.bottom - self._part.top, self._part.right - self._part.left
        if shape[-2:] == (height, width):
            return np.ascontiguousarray(self._cut(draw((*shape[:-2], *self._field), dtype=dtype)))
        if shape[-1:] == (height * width,):
            field = draw((*shape[:-1], self._field[0] * self._field[1]), dtype=dtype)
            return self._cut(field.reshape(*shape[:-1], *self._field)).reshape(shape)
        return draw(size, dtype=dtype)  # nothing that belongs to pixels

    def _cut(self, fields: np.ndarray) -> np.ndarray:
        return fields[..., self._part.top : self._part.bottom, self._part.left : self._part.right]


def with_halo(region: Region, shape: tuple[int, int], prior: Prior) -> Region:
    """The region and its halo, beginning where the colouring of the sites begins anew."""
    period = prior.colours
    top, left = (max(begin - tiles.HALO, 0) // period * period for begin in region[:2])
    bottom, right = (min(end + tiles.HALO, side) for end, side in zip(region[2:], shape, strict=True))
    return Region(top, left, bottom, right)


def _home(region: Region, image: np.ndarray, most: int) -> tuple[Region, int | None]:
    """What the run of the whole would compute in one piece around the region: all, or a tile and its number."""
    height, width = image.shape[:2]
    if height * width <= most:
        return Region(0, 0, height, width), None
    rows, columns = tiles.grid((height, width), most)
    middle = (region.top + region.bottom) // 2, (region.left + region.right) // 2
    row, column = (at * n // side for at, n, side in zip(middle, (rows, columns), (height, width), strict=True))
    down, across = tiles.spans(height, rows)[row], tiles.spans(width, columns)[column]
    return Region(down.begin, across.begin, down.end, across.end), row * columns + column


def iterate_region(
    image: np.ndarray,
    sigma: float,
    region: Region,
    *,
    memory: int | None = None,
    method: str | Sampler = DEFAULT_METHOD,
    prior: str | Path | Prior = "pairwise",
    seed: int = 0,
    channel_axis: int | None = None,
    data_range: float | None = None,
    **options: Any,
) -> Iterator[Part]:
    """`tiles.iterate_tiles` for a part of the picture; channels, if any, are the last axis.

    >>> picture = np.full((100, 120), 50.0)
    >>> part = list(iterate_region(picture, 10, Region(40, 40, 60, 70), method="map"))[-1]
    >>> part.mean.shape
    (20, 30)
    """
    sampler = method if isinstance(method, Sampler) else make_sampler(method, options)
    loaded = load_prior(prior)
    planes = 1 if channel_axis is None else image.shape[-1]
    most = (tiles.default_memory() if memory is None else memory) // tiles.working_memory(1, planes, sampler, loaded)
    home, number = _home(region, image, most)
    place = Region(*np.maximum(region[:2], home[:2]).tolist(), *np.minimum(region[2:], home[2:]).tolist())
    inner = place.within(home)
    piece = home.of(image)
    part = with_halo(inner, (piece.shape[0], piece.shape[1]), loaded)
    pad = 2 * loaded.padding  # the field is mirror-padded, by as much on the part as on the whole
    whole = np.random.default_rng(seed if number is None else [seed, number])
    numbers = _Window(
        whole,
        (piece.shape[0] + pad, piece.shape[1] + pad),
        Region(part.top, part.left, part.bottom + pad, part.right + pad),
    )
    steps = iterate(
        part.of(piece), sigma, method=sampler, prior=loaded, seed=numbers, channel_axis=channel_axis,
        data_range=data_range,
    )  # fmt: skip
    return (Part(place, inner.within(part), progress) for progress in steps)
