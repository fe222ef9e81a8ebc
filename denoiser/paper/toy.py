"""Fig. 1 and its IMQ twin: SVGD on a standard normal in D dimensions loses its spread as D grows (section 3)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from denoiser.evaluation.averages import table
from denoiser.paper.report import Report, Setting, by
from denoiser.priors import FilterBank
from denoiser.samplers import Estimate
from denoiser.samplers.diagnostics import diagnose
from denoiser.samplers.particles import KERNELS
from denoiser.samplers.svgd import SVGD
from denoiser.target import Target

if TYPE_CHECKING:
    from matplotlib.figure import Figure

START_STD = 5.0  # particles start from N(0, 25 I)


class Scale(NamedTuple):
    """The size of the experiment."""

    dimensions: tuple[int, ...]
    particles: tuple[int, ...]
    iterations: int


FULL = Scale((1, 2, 5, 10, 20, 40, 60, 80, 100, 150, 200), (50, 100, 200), 5000)
QUICK = Scale((1, 2, 5, 10, 20, 50, 100), (50, 100), 1000)


class StandardNormal(Target):
    """N(0, I) in D dimensions, as a field of one row."""

    def __init__(self, dimensions: int) -> None:
        super().__init__(FilterBank("none", ()), np.zeros((1, dimensions)), 1.0)

    def score(self, particles: np.ndarray, tables: np.ndarray | None = None) -> np.ndarray:
        """-x."""
        return -particles


def first_particles(dimensions: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draws from N(0, 25 I), shape (count, 1, dimensions)."""
    return START_STD * rng.standard_normal((count, 1, dimensions), dtype=np.float32)


def descend(first: np.ndarray, iterations: int, *, kernel: str = "rbf", bandwidth: float = 1.0) -> Iterator[Estimate]:
    """SVGD with AdaGrad on the standard normal, from the particles `first`."""
    sampler = SVGD(
        particles=len(first), iterations=iterations, kernel=kernel, bandwidth=bandwidth, optimiser="adagrad", step=2.0
    )
    return sampler.estimates(StandardNormal(first.shape[2]), np.random.default_rng(0), first)


def marginal_variance(particles: np.ndarray) -> float:
    """Variance of the particles around their mean, averaged over dimensions."""
    return float(particles.astype(np.float64).var(axis=0).mean())


def measure(kernel: str, dimensions: int, count: int, iterations: int, seed: int) -> dict[str, Any]:
    """One point of the figure: moments, PAMRF and PAKSG (infinity norm) at the beginning and the end."""
    first = first_particles(dimensions, count, np.random.default_rng([seed, dimensions, count]))
    *_, last = descend(first, iterations, kernel=kernel)
    target = StandardNormal(dimensions)
    begin, end = (diagnose(target, x, "svgd", kernel=kernel) for x in (first, last.samples))
    return {
        "kernel": kernel,
        "D": dimensions,
        "M": count,
        "variance": marginal_variance(last.samples),
        "mean": float(last.samples.mean(dtype=np.float64)),
        "PAMRF begin": begin.pamrf[0],
        "PAMRF end": end.pamrf[0],
        "PAKSG begin": begin.paksg[0],
        "PAKSG end": end.paksg[0],
    }


def run(setting: Setting) -> Report:
    """Both kernels, all dimensions, all numbers of particles."""
    scale = QUICK if setting.quick else FULL
    cases = [(k, d, m) for k in KERNELS for m in scale.particles for d in scale.dimensions]
    found = setting.parallel(
        partial(measure, iterations=scale.iterations, seed=setting.seed), cases, "{}, D = {}, M = {}", [1] * len(cases)
    )
    return Report(
        title="SVGD on a standard normal: the spread is lost as the dimension grows",
        paper="(Fig. 1, and its twin with the IMQ kernel in the appendix) SVGD finds the mean, but its marginal "
        "variance falls with the dimension D; the repulsive force (PAMRF) falls with D at the beginning, and with it "
        "at the end the smoothed gradient (PAKSG) that balances it.",
        setting=f"Target N(0, I), start N(0, 25 I), h = med^2, AdaGrad, {scale.iterations} iterations.",
        found=_found(found),
        tables=[_table(found)],
        rows=found,
        draw=lambda figure: _draw(figure, found),
        size=(14, 6.5),
    )


def _found(rows: list[dict[str, Any]]) -> list[str]:
    few = min(row["M"] for row in rows)
    lines = []
    for kernel in KERNELS:
        mine = sorted((r for r in rows if r["kernel"] == kernel and r["M"] == few), key=lambda r: r["D"])
        low, high = mine[0], mine[-1]
        hundred = next(r for r in mine if r["D"] == 100)
        lines.append(
            f"{kernel.upper()}, M = {few}: the variance is {low['variance']:.2f} at D = {low['D']} and "
            f"{hundred['variance']:.2f} at D = 100, while the mean stays within "
            f"{max(abs(r['mean']) for r in mine):.1g} of 0; PAMRF at the beginning falls from "
            f"{low['PAMRF begin']:.4f} to {high['PAMRF begin']:.4f} (D = {high['D']})."
        )
    return lines


def _table(rows: list[dict[str, Any]]) -> str:
    dimensions = sorted({row["D"] for row in rows})
    lines = []
    for (kernel, count), mine in by(rows, "kernel", "M").items():
        at = {row["D"]: row["variance"] for row in mine}
        lines.append([kernel.upper(), count, *(f"{at[d]:.2f}" for d in dimensions)])
    head = ["kernel", "M", *(f"D = {d}" for d in dimensions)]
    return "Marginal variance; the target's is 1.\n\n" + table(head, lines)


def _draw(figure: Figure, rows: list[dict[str, Any]]) -> None:
    grid = figure.subplots(len(KERNELS), 4, squeeze=False)
    panels = [("variance", "marginal variance"), ("mean", "mean"), ("PAMRF", "PAMRF"), ("PAKSG", "PAKSG")]
    for kernel, line in zip(KERNELS, grid, strict=True):
        for axes, (key, title) in zip(line, panels, strict=True):
            for number, count in enumerate(sorted({row["M"] for row in rows})):
                mine = [r for r in rows if r["kernel"] == kernel and r["M"] == count]
                x, colour = [r["D"] for r in mine], f"C{number}"
                if key in ("variance", "mean"):
                    axes.plot(x, [r[key] for r in mine], "o-", ms=4, color=colour, label=f"M = {count}")
                else:
                    axes.plot(x, [r[f"{key} begin"] for r in mine], "o:", ms=4, color=colour, label=f"{count}, begin")
                    axes.plot(x, [r[f"{key} end"] for r in mine], "o-", ms=4, color=colour, label=f"{count}, end")
                    axes.set_yscale("log")
            if key == "variance":
                axes.axhline(1, color="#999999", lw=1, ls="--", label="target")
                axes.set_ylim(0, 1.3)
            if key == "mean":
                axes.set_ylim(-0.5, 0.5)
            axes.set_title(f"{title}, {kernel.upper()} kernel", fontsize=10)
            axes.set_xlabel("dimension D")
            axes.legend(fontsize=7)
