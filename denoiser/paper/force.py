"""Section 5.1: the magnitude of the repulsive force on grids of growing size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from denoiser.evaluation.averages import table
from denoiser.paper.grid import GridMRF, draw_y
from denoiser.paper.methods import STEIN, stein_particles
from denoiser.paper.report import Report, Setting, by, curve, slope
from denoiser.samplers.diagnostics import diagnose

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Scale(NamedTuple):
    """The size of the experiment."""

    sides: tuple[int, ...]
    particles: tuple[int, ...]
    iterations: int
    runs: int


FULL = Scale((2, 3, 4, 5, 6, 7, 8, 9, 10), (50, 100), 2000, 10)
QUICK = Scale((2, 4, 6, 8, 10), (50,), 400, 3)


def measure(name: str, side: int, count: int, iterations: int, seed: list[int]) -> tuple[float, float]:
    """PAMRF of converged particles on a grid of side x side, as infinity norm and 2-norm."""
    rng = np.random.default_rng(seed)
    grid = GridMRF(draw_y((side, side), rng))
    particles = stein_particles(grid, name, count, iterations, rng)
    return diagnose(grid, particles, STEIN[name].name).pamrf


def run(setting: Setting) -> Report:
    """All sizes, methods and numbers of particles; every run has its own observations."""
    scale = QUICK if setting.quick else FULL
    cases = [(n, side, m, r) for n in STEIN for m in scale.particles for side in scale.sides for r in range(scale.runs)]
    work = [m**2 if name != "SVGD" else m for name, _, m, _ in cases]  # a block of sites costs the same, full or not

    def one(name: str, side: int, count: int, run_: int) -> tuple[float, float]:
        return measure(name, side, count, scale.iterations, [setting.seed, run_, side])

    found = np.array(setting.parallel(one, cases, "{0}, {1}x{1}, M = {2}", work)).reshape(-1, scale.runs, 2)
    rows = [
        {
            "method": name, "side": side, "D": side**2, "M": count,
            "PAMRF inf": float(values[:, 0].mean()), "PAMRF 2": float(values[:, 1].mean()),
            "PAMRF inf +-": float(values[:, 0].std(ddof=1) / np.sqrt(scale.runs)),
            "PAMRF 2 +-": float(values[:, 1].std(ddof=1) / np.sqrt(scale.runs)),
        }
        for (name, side, count, _), values in zip(cases[:: scale.runs], found, strict=True)
    ]  # fmt: skip
    return Report(
        title="The repulsive force on the synthetic grid",
        paper="(section 5.1) At the end of the iterations SVGD's repulsive force (PAMRF) falls with the number of "
        "nodes D, as a power of D; MP-SVGD's does not, and that of MP-SVGD-m is above that of MP-SVGD-s.",
        setting=f"Node potential at y - x; RBF, h = med^2, AdaGrad, {scale.iterations} iterations, {scale.runs} runs, "
        "each with its own observations.",
        found=_found(rows),
        tables=[_table(rows, scale)],
        rows=rows,
        draw=lambda figure: draw(figure, rows, "D", "nodes D"),
        size=(11, 4.4),
    )


def _found(rows: list[dict[str, Any]]) -> list[str]:
    lines = []
    for (name, count), mine in by(rows, "method", "M").items():
        exponents = [slope([r["D"] for r in mine], [r[f"PAMRF {norm}"] for r in mine]) for norm in ("inf", "2")]
        lines.append(
            f"{name}, M = {count}: PAMRF goes as D^{exponents[0]:+.2f} (infinity norm), D^{exponents[1]:+.2f} (2-norm)."
        )
    return lines


def _table(rows: list[dict[str, Any]], scale: Scale) -> str:
    lines = [[*key, *(f"{r['PAMRF inf']:.2g}" for r in mine)] for key, mine in by(rows, "method", "M").items()]
    return "PAMRF, infinity norm.\n\n" + table(["method", "M", *(f"{s}x{s}" for s in scale.sides)], lines)


def draw(figure: Figure, rows: list[dict[str, Any]], x: str, label: str) -> None:
    """PAMRF against size, both norms; numbers of particles differ by the style of the line."""
    panels = figure.subplots(1, 2)
    counts, ticks = sorted({row["M"] for row in rows}), sorted({row[x] for row in rows})
    for axes, (key, norm) in zip(panels, [("inf", "infinity norm"), ("2", "2-norm")], strict=True):
        for (name, count), mine in by(rows, "method", "M").items():
            style = ["-", "--", ":"][counts.index(count) % 3]
            curve(axes, mine, x, f"PAMRF {key}", label=f"{name} ({count})", ls=style)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(ticks, labels=[str(tick) for tick in ticks], fontsize=8)
        axes.set_xticks([], minor=True)
        axes.set_title(f"PAMRF, {norm}", fontsize=10)
        axes.set_xlabel(label)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", fontsize=9)
