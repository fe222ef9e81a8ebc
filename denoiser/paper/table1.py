"""Table 1 of the paper (Zhuo et al., ICML 2018): ten BSD images, beside what we measure, and beside the peers."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

from denoiser.evaluation.averages import (
    FIGURES,
    Average,
    Difference,
    Group,
    compare,
    grouped,
    number,
    summary,
    with_interval,
)  # fmt: skip
from denoiser.evaluation.averages import table as grid
from denoiser.evaluation.plan import Case, Truth, make_plan
from denoiser.evaluation.rows import Row
from denoiser.samplers import METHODS

SIGMAS = (10.0, 20.0)
LONG = "gibbs:samples=600,chains=2"
ONE_CHAIN = "gibbs:chains=1"
OURS = ("mp-svgd", "mp-svgd-b")
PEERS = ("tv", "nlm", "wavelet", "bm3d")
LEARNED = ("direct@learned-fast", "direct", "direct@learned-best", "mp-svgd@learned", "gibbs@learned", "svgd@learned")
WHY = (
    "Which ten images the paper used was never published, nor its noise. Ours are other BSD images, reduced to 240x160 "
    "in another way, so absolute values differ by some tenths of a dB: compare the differences between methods, which "
    "are on the same noisy images here. Peers have no row in the paper."
)

#: (method, M) -> published PSNR and SSIM at sigma 10 and 20. MAP and the long run are cited there from Schmidt et al.
PUBLISHED: dict[tuple[str, int | None], tuple[float, float, float, float]] = {
    ("map", None): (30.27, 0.855, 26.48, 0.720),
    (LONG, 600): (32.09, 0.904, 28.32, 0.808),
    (ONE_CHAIN, 50): (31.87, 0.898, 28.05, 0.795),
    (ONE_CHAIN, 100): (31.98, 0.901, 28.17, 0.801),
    ("svgd", 50): (31.58, 0.894, 27.86, 0.766),
    ("svgd", 100): (31.65, 0.896, 27.90, 0.767),
    ("mp-svgd", 50): (32.09, 0.905, 28.21, 0.808),
    ("mp-svgd", 100): (32.12, 0.906, 28.27, 0.809),
}
_TITLES = {LONG: "Aux. Gibbs, long run", ONE_CHAIN: "Aux. Gibbs, one chain", "bm3d": "BM3D"}  # bm3d may not be there
_PASSES = {"learned-fast": "one pass", "learned": "four passes", "learned-best": "eight passes"}


def title(group: Group) -> str:
    """The name of a method for readers.

    >>> title(Group("direct", "learned", None, 10.0)), title(Group("bm3d", "", None, 10.0))
    ('Learned field, four passes', 'BM3D')
    """
    word = group.method.partition(":")[0].partition("@")[0]
    if word == "direct" and group.prior in _PASSES:
        return f"Learned field, {_PASSES[group.prior]}"
    name = _TITLES.get(group.method) or (METHODS[word].title if word in METHODS else word)
    return name if group.prior in ("", "pairwise") else f"{name}, {group.prior}"


def plan_table(truths: Sequence[Truth], particles: Sequence[int] = (50, 100)) -> list[Case]:
    """The cases of the table, image by image: the paper's, the 3x3 prior, the learned field, the peers there are."""
    peers = [name for name in PEERS if name in METHODS]
    pairwise = make_plan(truths, ["map", LONG, ONE_CHAIN, "svgd", *OURS, *peers], SIGMAS, particles, 1, "pairwise")
    better = make_plan(truths, ["gibbs"], SIGMAS, None, 1, "foe3x3")
    learned = make_plan(truths, LEARNED, SIGMAS, [50], 1, "learned")
    return sorted([*pairwise, *better, *learned], key=lambda case: case.number)


@dataclass(frozen=True)
class Line:
    """One method at both noise levels: averages, published numbers, and differences to the long run."""

    title: str
    particles: int | None
    ours: dict[float, Average]
    published: dict[float, tuple[float, float]]
    differences: dict[float, Difference | None]


def lines(rows: Iterable[Row]) -> list[Line]:
    """The table's lines in the paper's order, then the better prior, the learned field and the peers."""
    rows = list(rows)
    groups = grouped(rows)
    averages = {average.group: average for average in summary(rows).averages}
    out = []
    for group in sorted(averages, key=_order):
        if group.sigma != min(g.sigma for g in averages if g[:3] == group[:3]):
            continue
        ours, differences = {}, {}
        for sigma in SIGMAS:
            here = group._replace(sigma=sigma)
            long = next((g for g in groups if g.method == LONG and g.sigma == sigma), None)
            if here in averages:
                ours[sigma] = averages[here]
                differences[sigma] = compare(groups[here], groups[long]) if long not in (None, here) else None
        values = PUBLISHED.get((group.method, group.particles))
        published = {} if values is None else {SIGMAS[0]: values[:2], SIGMAS[1]: values[2:]}
        out.append(Line(title(group), group.particles, ours, published, differences))
    return out


def _order(group: Group) -> tuple[int, str, int]:
    methods = ["map", LONG, ONE_CHAIN, "svgd", *OURS, "gibbs", *LEARNED, *PEERS]
    place = methods.index(group.method) if group.method in methods else len(methods)
    return place, group.method, group.particles or 0


def markdown(table: Iterable[Line]) -> str:
    """PSNR in dB (SSIM), published and ours; and the paired difference to the long run with its 95 % interval."""
    heads = [f"sigma {s:g}: {what}" for s in SIGMAS for what in ("paper", "ours", "ours minus long run")]
    out = []
    for line in table:
        cells = [line.title, str(line.particles or "")]
        for sigma in SIGMAS:
            published, ours, d = line.published.get(sigma), line.ours.get(sigma), line.differences.get(sigma)
            cells.append(f"{published[0]:.2f} ({published[1]:.3f})" if published else "")
            cells.append(f"{ours.mean['psnr']:.2f} ({number(ours.mean['ssim'], 3)})" if ours else "")
            cells.append(with_interval(d.psnr, d.psnr_low, d.psnr_high, 2) if d else "")
        out.append(cells)
    return grid(["method", "M", *heads], out) + "\n"


def to_csv(table: Iterable[Line]) -> str:
    """The same numbers and more, a line for each method and noise level."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [name for figure in FIGURES for name in (figure, f"{figure}_error")]
    against = [f"{figure}{what}" for figure in ("psnr", "ssim") for what in ("_minus_long_run", "_low", "_high")]
    published = "published_psnr", "published_ssim"
    writer.writerow(["method", "particles", "sigma", *published, "images", *names, *against])
    for line in table:
        for sigma, ours in line.ours.items():
            values = [number(v, 5) for figure in FIGURES for v in (ours.mean[figure], ours.error[figure])]
            d = line.differences[sigma]
            paired = [number(v, 5) for v in astuple(d)[3:]] if d else [""] * len(against)
            paper = line.published.get(sigma, ("", ""))
            writer.writerow([line.title, line.particles or "", f"{sigma:g}", *paper, ours.images, *values, *paired])
    return out.getvalue()
