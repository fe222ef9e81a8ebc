"""What rows say: averages with their standard errors, and differences on the same noisy images."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from denoiser.evaluation.rows import Row, noise_words

RESAMPLES = 10_000
FIGURES = ("psnr", "ssim", "coverage50", "coverage90", "coverage99", "std", "seconds", "memory")
_COVERS = ("50 % covers", "90 %", "99 %")
_AVERAGES = ("method", "noise", "images", "PSNR, dB", "SSIM", *_COVERS, "seconds", "memory, MB")
_DIFFERENCES = ("method", "minus", "noise", "images", "PSNR, dB (95 %)", "SSIM (95 %)")


class Group(NamedTuple):
    """Rows that are averaged: one method with its prior and number of particles, at one noise level."""

    method: str
    prior: str
    particles: int | None
    sigma: float
    noise: str = "white"

    def __str__(self) -> str:
        words = [self.method, self.prior if self.prior not in ("", "pairwise") else ""]
        return ", ".join([w for w in words if w] + ([f"M = {self.particles}"] if self.particles else []))


def group_of(row: Row) -> Group:
    """The group that a row belongs to."""
    return Group(row.method, row.prior, row.particles, row.sigma, row.noise)


def grouped(rows: Iterable[Row]) -> dict[Group, list[Row]]:
    """The rows of every group, in the order in which they come."""
    groups: dict[Group, list[Row]] = {}
    for row in rows:
        groups.setdefault(group_of(row), []).append(row)
    return groups


@dataclass(frozen=True)
class Average:
    """Means over the images (each the mean over its seeds), and their standard errors; nan where there is none."""

    group: Group
    images: int
    rows: int
    mean: dict[str, float]
    error: dict[str, float]


@dataclass(frozen=True)
class Difference:
    """A method minus another on the same noisy images: mean, and the 95 % interval of a bootstrap over the images."""

    group: Group
    other: Group
    images: int
    psnr: float
    psnr_low: float
    psnr_high: float
    ssim: float
    ssim_low: float
    ssim_high: float


@dataclass(frozen=True)
class Summary:
    """Averages of every group, and differences of every group to the first of its noise level."""

    averages: list[Average]
    differences: list[Difference]

    def markdown(self) -> str:
        """Both as tables."""
        found = [table(_AVERAGES, map(_averages_line, self.averages))]
        if self.differences:
            found.append(table(_DIFFERENCES, map(_differences_line, self.differences)))
        return "\n\n".join(found) + "\n"


def summary(rows: Iterable[Row], against: str | None = None) -> Summary:
    """Averages, and paired differences to the method `against` (by default the one that comes first).

    Seeds of one image are not independent, so they are averaged first; errors and intervals are over images. The
    bootstrap draws images with replacement 10,000 times from a fixed seed and takes the 2.5 and 97.5 percentiles.
    """
    groups = grouped(rows)
    averages = [_average(group, members) for group, members in groups.items()]
    if against is not None and not any(group.method == against for group in groups):
        raise ValueError(f"no rows of {against} to compare with")
    differences = []
    for group, members in groups.items():
        same = [g for g in groups if (g.sigma, g.noise) == (group.sigma, group.noise)]
        level = [g for g in same if against is None or g.method == against]
        if level and group != level[0]:
            difference = compare(members, groups[level[0]])
            differences += [difference] if difference else []
    return Summary(averages, differences)


def _by_image(rows: Iterable[Row], figure: str) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for row in rows:
        values.setdefault(row.image, []).append(getattr(row, figure))
    return {image: float(np.mean(v)) for image, v in values.items()}


def _average(group: Group, rows: Sequence[Row]) -> Average:
    mean, error = {}, {}
    images = 0
    for figure in FIGURES:
        values = np.array(list(_by_image(rows, figure).values()))
        images = len(values)
        mean[figure] = float(values.mean())
        error[figure] = float(values.std(ddof=1) / math.sqrt(images)) if images > 1 else math.nan
    return Average(group, images, len(rows), mean, error)


def compare(rows: Sequence[Row], others: Sequence[Row]) -> Difference | None:
    """One group minus another, over the noisy images that both have; None when there are none."""
    common = {(r.image, r.seed) for r in rows} & {(r.image, r.seed) for r in others}
    if not common:
        return None
    ours, theirs = ([r for r in side if (r.image, r.seed) in common] for side in (rows, others))
    numbers: list[float] = []
    images = 0
    for figure in ("psnr", "ssim"):
        one, other = _by_image(ours, figure), _by_image(theirs, figure)
        values = np.array([one[image] - other[image] for image in one])
        images = len(values)
        numbers += [float(values.mean()), *bootstrap(values)]
    return Difference(group_of(ours[0]), group_of(theirs[0]), images, *numbers)


def bootstrap(values: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean; nan for a single value.

    >>> bootstrap(np.array([1.0, 1.0, 1.0]))
    (1.0, 1.0)
    """
    if len(values) < 2:
        return math.nan, math.nan
    rng = np.random.default_rng(0)
    means = values[rng.integers(len(values), size=(RESAMPLES, len(values)))].mean(axis=1)
    low, high = np.quantile(means, ((1 - level) / 2, (1 + level) / 2))
    return float(low), float(high)


def number(value: float, digits: int, unit: float = 1.0) -> str:
    """For a table: empty for nan."""
    return "" if math.isnan(value) else f"{value * unit:.{digits}f}"


def with_error(average: Average, figure: str, digits: int, unit: float = 1.0) -> str:
    """A mean and its standard error."""
    mean, error = average.mean[figure], average.error[figure]
    return number(mean, digits, unit) + ("" if math.isnan(error) else f" ± {number(error, digits, unit)}")


def with_interval(value: float, low: float, high: float, digits: int) -> str:
    """A signed difference and its interval."""
    if math.isnan(value):
        return ""
    return f"{value:+.{digits}f}" + ("" if math.isnan(low) else f" ({low:.{digits}f} to {high:.{digits}f})")


def table(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A Markdown table.

    >>> print(table(["M", "error"], [[50, "0.1"]]))
    | M | error |
    |---|---|
    | 50 | 0.1 |
    """
    rows = ["| " + " | ".join(map(str, line)) + " |" for line in (head, *lines)]
    return "\n".join([rows[0], "|" + "---|" * len(head), *rows[1:]])


def covers(average: Average) -> list[str]:
    """How much the intervals of 50, 90 and 99 % hold, in per cent, for a table."""
    return [with_error(average, f"coverage{p}", 1, 100) for p in (50, 90, 99)]


def _averages_line(a: Average) -> list[object]:
    """Means ± standard errors over the images."""
    quality = with_error(a, "psnr", 2), with_error(a, "ssim", 4), *covers(a)
    speed = number(a.mean["seconds"], 2), number(a.mean["memory"], 0)
    return [a.group, noise_words(a.group), a.images, *quality, *speed]


def _differences_line(d: Difference) -> list[object]:
    """Paired differences with their 95 % intervals."""
    psnr, ssim = with_interval(d.psnr, d.psnr_low, d.psnr_high, 3), with_interval(d.ssim, d.ssim_low, d.ssim_high, 4)
    return [d.group, d.other, noise_words(d.group), d.images, psnr, ssim]
