"""Measuring regions and lines of a picture, and the particles of a part of it where the run itself has none."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from denoiser import images, measure
from denoiser.files import label
from denoiser.pieces import DEFAULT_MEMORY, Region
from denoiser.run import Request
from denoiser.samplers import with_particles


def draw_particles(request: Request, region: Region) -> np.ndarray:
    """Particles of a region, shape (M, height, width) and channels: for measuring where a run itself has none.

    As the run on the whole would give them there; a method that makes no particles by itself draws some besides.
    """
    sampler = request.sampler
    if not sampler.uncertain:
        raise ValueError(f"{sampler.name} gives one picture, and no idea how sure it is")
    sampler = with_particles(sampler)
    local = replace(request, sampler=sampler, region=region)
    cost = sampler.bytes_per_pixel(request.prior) * len(request.frame.gains)
    (piece,) = local.pieces()
    assert request.memory is not None
    if math.prod(piece.outer.shape) * cost > max(request.memory, DEFAULT_MEMORY):
        most = math.prod(piece.outer.shape) * cost
        raise ValueError(f"the region is too large to measure in this memory; allow {math.ceil(most / 2**20)} MB")
    samples = local.run().samples
    return samples if request.channel_axis is None else np.moveaxis(samples, request.channel_axis % 3 + 1, -1)


@dataclass(frozen=True, eq=False)
class Item:
    """Something to measure. box: the pixels that it needs. mask: of the picture, for all but lines."""

    name: str
    box: Region
    mask: np.ndarray | None = None
    ends: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Number:
    """A line of the table: one quantity of an item, of one channel; `distance` along a line, else None."""

    item: str
    channel: str
    quantity: str
    distance: float | None
    value: float
    low: float
    high: float

    def texts(self, least: int) -> tuple[str, str, str]:
        """Value, low and high in `least` digits; in more where an offset would swallow those of the interval."""
        reach, most = (self.high - self.low) / 2, max(abs(self.low), abs(self.high))
        swallowed = math.ceil(math.log10(most / reach)) if 0 < reach < most else 0
        digits = min(max(least, swallowed + least - 2), 17)
        value, low, high = (f"{v:.{digits}g}" for v in (self.value, self.low, self.high))
        return value, low, high


def line_item(name: str, shape: tuple[int, ...], x1: float, y1: float, x2: float, y2: float) -> Item:
    """A line from (x1, y1) to (x2, y2) in a picture of this shape."""
    measure.check_line(shape, (x1, y1), (x2, y2))
    tops = [(max(int(min(pair) - 1.5), 0), int(max(pair) + 2.5)) for pair in ((y1, y2), (x1, x2))]
    (top, bottom), (left, right) = ((a, min(b, side)) for (a, b), side in zip(tops, shape[:2], strict=True))
    return Item(name, Region(top, left, bottom, right), ends=(x1, y1, x2, y2))


def mask_item(name: str, mask: np.ndarray) -> Item:
    """The pixels of a mask, bool, (height, width)."""
    return Item(name, Region(*measure.bounds(mask)), mask)


def read_mask(path: str, shape: tuple[int, ...]) -> np.ndarray:
    """The pixels of a picture file that are not black: bool, the (height, width) of a picture of this shape."""
    pixels = images.read(path).pixels
    mask = np.asarray(pixels != 0 if pixels.ndim == 2 else pixels.any(axis=-1))
    if mask.shape != shape[:2]:
        sizes = f"{mask.shape[1]} x {mask.shape[0]}, the picture {shape[1]} x {shape[0]}"
        raise ValueError(f"{label(path)}: must have the size of the picture; it has {sizes}")
    if not mask.any():
        raise ValueError(f"{label(path)}: all of it is black, so that there is nothing to measure")
    return mask


def numbers(draw: Callable[[Region], np.ndarray], items: list[Item], level: float) -> Iterator[Number]:
    """All numbers: of every item, and of the differences of every two regions; `draw` gives the particles of a box."""
    means: list[tuple[str, np.ndarray]] = []
    for item in items:
        samples, box = draw(item.box), item.box
        if item.mask is None:
            x1, y1, x2, y2 = item.ends
            start, end = (x1 - box.left, y1 - box.top), (x2 - box.left, y2 - box.top)
            profile = measure.profile(samples, start, end, level)
            yield from _rows(item.name, "value", profile.values, profile.distance)
            continue
        inside = box.of(item.mask)
        for quantity, found in measure.region(samples, inside, level).items():
            yield from _rows(item.name, quantity, found)
        mine = samples[:, inside].mean(axis=1, dtype=np.float64)
        for name, theirs in means:
            yield from _rows(f"{name} - {item.name}", "mean", measure.measure(theirs - mine, np.asarray, level))
        means.append((item.name, mine))


def _rows(name: str, quantity: str, found: measure.Measurement, distance: np.ndarray | None = None) -> Iterator[Number]:
    """A Number for every channel and every step along a line."""
    count = 1 if distance is None else len(distance)
    table = [np.reshape(part, (count, -1)) for part in (found.value, found.low, found.high)]
    channels = ("",) if table[0].shape[1] == 1 else ("red", "green", "blue")
    for c, channel in enumerate(channels):
        for step in range(count):
            at = None if distance is None else float(distance[step])
            value, low, high = (float(part[step, c]) for part in table)
            yield Number(name, channel, quantity, at, value, low, high)


def to_csv(found: list[Number], level: float) -> str:
    """One line a number."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["item", "channel", "quantity", "distance", "value", "low", "high", "level"])
    for n in found:
        at = "" if n.distance is None else f"{n.distance:g}"
        writer.writerow([n.item, n.channel, n.quantity, at, *n.texts(9), f"{level:g}"])
    return out.getvalue()
