"""Parts of a picture: tiles of one that is larger than memory allows, and a region that is wanted before the rest.

A piece is computed with HALO pixels around it, most of which are thrown away: what is left no longer feels the edge.
It begins where the colouring of the sites begins anew and draws the random numbers of the whole (`random_fields.py`),
so that it becomes what it becomes in the whole, up to the influence of what lies beyond the halo and to what a method
does to the picture as a whole: SVGD's one kernel, the last digits of a solver.
"""

from __future__ import annotations

import itertools
import math
import os
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

HALO = 24  # pixels that a piece of a Markov field sees beyond what it is for
# Pixels over which neighbours are cross-faded; a tile's outermost HALO - RAMP / 2 are never used. Averaging two tiles
# smooths their sampling noise, going from one to the other roughens it: at 2 pixels both cancel (tests/test_pieces.py).
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


class Region(NamedTuple):
    """Rows top .. bottom and columns left .. right of a picture, the ends not included."""

    top: int
    left: int
    bottom: int
    right: int

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.bottom - self.top, self.right - self.left

    def of(self, image: np.ndarray) -> np.ndarray:
        """These pixels of an image (height, width) or (height, width, channels)."""
        return image[self.top : self.bottom, self.left : self.right]

    def within(self, other: Region) -> Region:
        """The same pixels, counted from the corner of `other`."""
        return Region(self.top - other.top, self.left - other.left, self.bottom - other.top, self.right - other.left)


class Margins(NamedTuple):
    """What the pieces of a model need. halo: pixels seen beyond a piece. period: rows and columns at which the pattern
    of its sites begins anew. padding: pixels that the model adds around whatever it is given.
    """

    halo: int
    period: int
    padding: int

    def around(self, region: Region, shape: tuple[int, int]) -> Region:
        """A region of a picture of this shape with its halo, beginning at a multiple of the period.

        >>> Margins(24, 2, 5).around(Region(31, 40, 60, 70), (100, 120))
        Region(top=6, left=16, bottom=84, right=94)
        """
        top, left = (max(begin - self.halo, 0) // self.period * self.period for begin in region[:2])
        bottom, right = (min(end + self.halo, side) for end, side in zip(region[2:], shape, strict=True))
        return Region(top, left, bottom, right)

    def sites(self, height: int, width: int) -> int:
        """Pixels that are worked on for a piece of this size, halo included."""
        return (height + 2 * self.padding) * (width + 2 * self.padding)


@dataclass(frozen=True)
class Piece:
    """`outer` is computed, `inner` is what it is for; `weights` (rows, columns) say how much it counts where."""

    outer: Region
    inner: Region
    weights: tuple[np.ndarray, np.ndarray] | None = field(default=None, repr=False)


def only(region: Region, shape: tuple[int, int], margins: Margins) -> list[Piece]:
    """A single piece: the whole picture, or a region of it with its halo."""
    return [Piece(margins.around(region, shape), region)]


def cut(shape: tuple[int, int], most: int, margins: Margins) -> list[Piece]:
    """Overlapping pieces that cover a picture of this shape, of at most `most` sites each; their weights sum to 1.

    >>> [(p.outer.top, p.outer.bottom) for p in cut((200, 20), 4800, Margins(24, 2, 5))]
    [(0, 124), (76, 200)]
    """
    rows, columns = (
        itertools.pairwise([round(side * number / count) for number in range(count + 1)])
        for side, count in zip(shape, _grid(shape, most, margins), strict=True)
    )
    out = []
    for (top, bottom), (left, right) in itertools.product(rows, columns):
        inner = Region(top, left, bottom, right)
        outer = margins.around(inner, shape)
        down = _weights(outer.top, outer.bottom, top, bottom, shape[0])
        out.append(Piece(outer, inner, (down, _weights(outer.left, outer.right, left, right, shape[1]))))
    return out


def _weights(begin: int, end: int, first: int, last: int, length: int) -> np.ndarray:
    """How much a tile that computes begin .. end for the pixels first .. last of `length` counts, along one axis."""
    at = np.arange(begin, end) + 0.5
    rise = np.clip((at - first) / RAMP + 0.5, 0, 1) if first > 0 else np.ones(len(at))
    fall = np.clip((last - at) / RAMP + 0.5, 0, 1) if last < length else np.ones(len(at))
    return (rise * fall).astype(np.float32)


def least(shape: tuple[int, int], margins: Margins) -> int:
    """Sites of the smallest tiles that a picture of this shape can be cut into."""
    return margins.sites(*(_outer(side, max(side // SMALLEST, 1), margins) for side in shape))


def _outer(side: int, parts: int, margins: Margins) -> int:
    """Pixels of the largest of so many parts of a side, halo included."""
    return min(math.ceil(side / parts) + 2 * margins.halo + margins.period - 1, side)


def _grid(shape: tuple[int, int], most: int, margins: Margins) -> tuple[int, int]:
    """Rows and columns of tiles that need the least work."""
    height, width = shape
    extra = 2 * margins.halo + margins.period - 1
    best: tuple[int, int, int] | None = None
    for rows in range(1, max(height // SMALLEST, 1) + 1):
        tall = _outer(height, rows, margins)
        for columns in range(1, max(width // SMALLEST, 1) + 1):
            if margins.sites(tall, _outer(width, columns, margins)) <= most:
                work = (height + extra * (rows - 1)) * (width + extra * (columns - 1))
                best = min(best or (work, rows, columns), (work, rows, columns))
                break
    if best is None:
        raise ValueError("the memory allowed is too little for even the smallest tile")
    return best[1], best[2]


class Canvas:
    """The picture that pieces are added to, (height, width, channels): weighted means and standard deviations.

    dtype: of both. brief: of the standard deviations only their mean over what is finished, which spares memory.
    """

    def __init__(self, picture: np.ndarray, dtype: type[np.floating] = np.float32, brief: bool = False) -> None:
        self._picture = picture
        self._mean = np.zeros(picture.shape, dtype)
        self._std = None if brief else np.zeros(picture.shape, dtype)
        self._spread = self._seen = 0.0
        self._weight = np.zeros(picture.shape[:2], np.float32)
        self.complete = False

    def add(self, piece: Piece, mean: np.ndarray, std: np.ndarray) -> None:
        """Take in what came out for the outer region of a piece, channels last."""
        assert piece.weights is not None
        weight = np.outer(*piece.weights)
        piece.outer.of(self._weight)[:] += weight
        piece.outer.of(self._mean)[:] += weight[..., None] * mean
        if self._std is not None:
            piece.outer.of(self._std)[:] += weight[..., None] * std
        self._spread += float((weight[..., None] * std).sum(dtype=np.float64))
        self._seen += float(weight.sum()) * std.shape[-1]

    @property
    def done(self) -> np.ndarray:
        """Where the pieces so far have the last word, bool, (height, width)."""
        weight = self._weight  # before the question whether it still counts: a window asks from another thread
        return np.broadcast_to(np.True_, self._mean.shape[:2]) if self.complete else weight > 0.999

    def finish(self) -> None:
        """All pieces are in; what was needed to put them together goes."""
        self.complete = True
        self._weight = np.empty((0, 0), np.float32)

    def mean(self) -> np.ndarray:
        """The mean so far, and the noisy picture where pieces are missing."""
        weight = self._weight
        if self.complete:
            return self._mean
        out = self._picture.astype(self._mean.dtype)  # in place: of a large photograph every array counts
        out *= (1 - weight)[..., None]
        out += self._mean
        return out

    def std(self) -> np.ndarray:
        """The standard deviations so far, nan where pieces are missing."""
        if self._std is None:
            return np.broadcast_to(self._mean.dtype.type(self._spread / max(self._seen, 1e-9)), self._mean.shape)
        done = self.done
        return self._std if self.complete else np.where(done[..., None], self._std, self._std.dtype.type(np.nan))
