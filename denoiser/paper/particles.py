"""Section 5.1, quantitatively: errors of expectations against the number of particles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from denoiser.evaluation.averages import table
from denoiser.paper.grid import GridMRF, draw_y
from denoiser.paper.marginals import describe
from denoiser.paper.methods import METHODS, infer
from denoiser.paper.report import Report, Setting, by, curve
from denoiser.paper.truth import SHAPE, TruthScale, ground_truth, scale_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FULL_COUNTS = (25, 50, 100, 150, 200)
QUICK_COUNTS = (25, 50, 100)
FULL_RUNS, QUICK_RUNS = 10, 3
DRAWS = 10  # of omega and b
FUNCTIONS = ["x", "x^2", "1/(1+exp(wx+b))", "cos(wx+b)"]

Case = tuple[str, int, int]  # method, M, run
Functions = dict[str, list[Callable[[np.ndarray], np.ndarray]]]


def paper_functions(nodes: int, rng: np.random.Generator) -> Functions:
    """The paper's four test functions of a node; the last two for ten draws of omega ~ N(0, 1), b ~ U(0, 2 pi)."""
    pairs = [(rng.standard_normal(nodes), rng.uniform(0, 2 * np.pi, nodes)) for _ in range(DRAWS)]
    x, square, logistic, cosine = FUNCTIONS
    return {
        x: [lambda x: x],
        square: [np.square],
        logistic: [lambda x, w=w, b=b: 1 / (1 + np.exp(w * x + b)) for w, b in pairs],  # type: ignore[misc]
        cosine: [lambda x, w=w, b=b: np.cos(w * x + b) for w, b in pairs],  # type: ignore[misc]
    }


def averages(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row a method and M: means over runs and their standard errors (columns that end in " +-")."""
    found = []
    for (method, count), mine in by(rows, "method", "M").items():
        average: dict[str, Any] = {"method": method, "M": count, "runs": len(mine)}
        for key in FUNCTIONS:
            values = np.array([row[key] for row in mine])
            average[key] = float(values.mean())
            average[f"{key} +-"] = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
        found.append(average)
    return found


def experiment(setting: Setting, cases: Sequence[Case], scale: TruthScale) -> list[dict[str, Any]]:
    """Mean squared errors over the nodes of one grid, averaged over the runs of each method and M."""
    rng = np.random.default_rng(setting.seed)
    grid = GridMRF(draw_y(SHAPE, rng))
    first, rest = setting.share(0, 0.2), setting.share(0.2, 1)
    truth = ground_truth(grid, scale.samples, scale.burn_in, rng, lambda share: first.tell("truth", share))
    functions = paper_functions(grid.size, rng)
    true = {name: [truth.marginals.expect(f) for f in family] for name, family in functions.items()}
    work = [count**2 if name.startswith("MP") else 2000 for name, count, _ in cases]

    def one(name: str, count: int, run_: int) -> dict[str, Any]:
        own = np.random.default_rng([setting.seed, run_, count])
        marginals = infer(grid, name, count, scale.iterations, truth.draws, own)
        row: dict[str, Any] = {"method": name, "M": count, "run": run_}
        for key, family in functions.items():
            pairs = zip(family, true[key], strict=True)
            row[key] = float(np.mean([(marginals.expect(f) - value) ** 2 for f, value in pairs]))
        return row

    return averages(rest.parallel(one, cases, "{}, M = {}", work))


def run(setting: Setting) -> Report:
    """All methods, all numbers of particles, all runs."""
    counts, runs = (QUICK_COUNTS, QUICK_RUNS) if setting.quick else (FULL_COUNTS, FULL_RUNS)
    scale = scale_of(setting)
    cases = [(name, m, r) for m in counts for name in METHODS if name != "EP" for r in range(runs)]
    rows = experiment(setting, [*cases, ("EP", counts[0], 0)], scale)
    rows += [{**rows[-1], "M": count} for count in counts[1:]]  # EP has no particles: one result stands for every M
    return Report(
        title="Errors of expectations on the synthetic grid",
        paper="(section 5.1 and appendix) SVGD has the largest error of the particle methods, MP-SVGD is comparable "
        "with HMC and EPBP or better, MP-SVGD-m is better than MP-SVGD-s, and EP is the worst of all.",
        setting=describe(scale, ", ".join(map(str, counts))) + f" {runs} runs.",
        found=_found(rows, 100),
        tables=[_table(rows, 100)],
        rows=rows,
        draw=lambda figure: _draw(figure, rows),
        size=(15, 4),
    )


def _found(rows: list[dict[str, Any]], count: int) -> list[str]:
    at = {row["method"]: row for row in rows if row["M"] == count}
    lines = []
    for key in FUNCTIONS:
        order = sorted(at, key=lambda name: float(at[name][key]))
        ratios = [at["MP-SVGD-m"][key] / at[name][key] for name in ("MP-SVGD-s", "HMC", "EPBP")]
        lines.append(
            f"E[{key}], M = {count}: from the best to the worst {', '.join(order)}; MP-SVGD-m has "
            f"{ratios[0]:.2f} times the error of MP-SVGD-s, {ratios[1]:.2f} of HMC, {ratios[2]:.2f} of EPBP."
        )
    return lines


def _table(rows: list[dict[str, Any]], count: int) -> str:
    lines = [
        [row["method"], *(f"{row[key]:.2g} +- {row[f'{key} +-']:.1g}" for key in FUNCTIONS)]
        for row in rows
        if row["M"] == count
    ]
    return f"Mean squared errors at M = {count}.\n\n" + table(["method", *(f"E[{key}]" for key in FUNCTIONS)], lines)


def _draw(figure: Figure, rows: list[dict[str, Any]]) -> None:
    panels = figure.subplots(1, len(FUNCTIONS))
    for axes, key in zip(panels, FUNCTIONS, strict=True):
        for mine in by(rows, "method").values():
            curve(axes, mine, "M", key)
        axes.set_yscale("log")
        axes.set_title(f"E[{key}]", fontsize=10)
        axes.set_xlabel("particles M")
        axes.set_ylabel("mean squared error")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(METHODS), fontsize=9)
