"""A part of a picture as the run of the whole gives it, in a fraction of the time.

The part is computed with tiles.HALO pixels around it, and with the random numbers that the run of the whole draws there
(`draws.py`). What is left when the halo is cut off is the result of the whole run, up to the influence of what lies
beyond the halo and to what a method does to the picture as a whole: SVGD's one kernel, the last digits of a solver.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from denoiser.priors import Prior, load_prior
from denoiser.run import Progress, iterate
from denoiser.samplers import DEFAULT_METHOD, Sampler
from denoiser.tiles import HALO


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
    """A region after an iteration."""

    region: Region
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


def with_halo(region: Region, shape: tuple[int, int], prior: Prior) -> Region:
    """The region and its halo, beginning where the colouring of the sites begins anew."""
    period = prior.colours
    top, left = (max(begin - HALO, 0) // period * period for begin in region[:2])
    bottom, right = (min(end + HALO, side) for end, side in zip(region[2:], shape, strict=True))
    return Region(top, left, bottom, right)


def iterate_region(
    image: np.ndarray,
    sigma: float,
    region: Region,
    *,
    method: str | Sampler = DEFAULT_METHOD,
    prior: str | Path | Prior = "pairwise",
    seed: int = 0,
    channel_axis: int | None = None,
    data_range: float | None = None,
    **options: Any,
) -> Iterator[Part]:
    """`run.iterate` for a region of the picture; channels, if any, are the last axis.

    >>> picture = np.full((100, 120), 50.0)
    >>> part = list(iterate_region(picture, 10, Region(40, 40, 60, 70), method="map"))[-1]
    >>> part.mean.shape
    (20, 30)
    """
    loaded = load_prior(prior)
    piece = with_halo(region, (image.shape[0], image.shape[1]), loaded)
    steps = iterate(
        piece.of(image), sigma, method=method, prior=loaded, seed=seed, channel_axis=channel_axis,
        data_range=data_range, origin=(piece.top, piece.left), **options,
    )  # fmt: skip
    return (Part(region, region.within(piece), progress) for progress in steps)
