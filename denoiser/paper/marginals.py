"""Section 5.1, qualitatively: the marginal densities of three nodes by every method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from denoiser.evaluation.averages import table
from denoiser.paper.ep import GRID, STEP
from denoiser.paper.grid import GridMRF, draw_y
from denoiser.paper.methods import METHODS, Marginals, infer
from denoiser.paper.report import COLOURS, Report, Setting
from denoiser.paper.truth import CHAINS, SHAPE, TruthScale, ground_truth, scale_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARTICLES = 100
NODES = 3
SHOWN = GRID[::5]  # where densities are tabulated: on [-5, 10), every 0.05


def density(marginals: Marginals, node: int) -> np.ndarray:
    """The density of a node at `SHOWN`: of particles by a kernel estimate with RBF kernels, of beliefs from bins."""
    points = marginals.points[:, node % marginals.points.shape[1]]
    weights = marginals.weights[:, node % marginals.weights.shape[1]]
    if len(points) > 1000:  # bins, as fine as STEP: five together have less noise
        return np.interp(SHOWN, points, np.convolve(weights, np.full(5, 0.2), mode="same")) / STEP
    width = 1.06 * points.std() * len(points) ** -0.2  # Silverman's rule
    bumps = np.exp(-0.5 * ((SHOWN[:, None] - points) / width) ** 2) / (width * np.sqrt(2 * np.pi))
    return np.asarray(bumps @ np.broadcast_to(weights, points.shape))


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """Total variation of two densities at `SHOWN`."""
    return float(0.5 * np.abs(a - b).sum() * STEP * 5)


def run(setting: Setting) -> Report:
    """Every method with 100 particles on one 10x10 grid."""
    scale = scale_of(setting)
    rng = np.random.default_rng(setting.seed)
    grid = GridMRF(draw_y(SHAPE, rng))
    nodes = sorted(rng.choice(grid.size, NODES, replace=False).tolist())
    truth = ground_truth(grid, scale.samples, scale.burn_in, rng, lambda share: setting.tell("truth", 0.7 * share))

    def one(name: str) -> Marginals:
        return infer(grid, name, PARTICLES, scale.iterations, truth.draws, np.random.default_rng([setting.seed, 1]))

    found = setting.share(0.7, 1).parallel(one, [(name,) for name in METHODS], "{}", [1] * len(METHODS))
    by_name = {"truth": truth.marginals, **dict(zip(METHODS, found, strict=True))}
    curves = {(name, node): density(m, node) for name, m in by_name.items() for node in nodes}
    rows = [
        {"node": node, "x": float(x), **{name: float(curves[name, node][i]) for name in by_name}}
        for node in nodes
        for i, x in enumerate(SHOWN)
    ]
    everywhere = {
        name: np.mean([distance(density(m, d), density(truth.marginals, d)) for d in range(grid.size)])
        for name, m in by_name.items()
        if name != "truth"
    }
    return Report(
        title="Marginal densities on the synthetic grid",
        paper="(section 5.1) SVGD's marginals are sharp and peaked, EP's are crude, since they are Gaussian; the other "
        "methods are close to the truth.",
        setting=describe(scale, PARTICLES),
        found=_found(everywhere, by_name, nodes),
        tables=[table(["method", "distance"], [[k, f"{v:.3f}"] for k, v in everywhere.items()])],
        rows=rows,
        draw=lambda figure: _draw(figure, curves, nodes, grid.shape[1]),
        size=(13, 4.2),
    )


def describe(scale: TruthScale, particles: int | str) -> str:
    """What was run on a grid, in words."""
    return (
        f"A {SHAPE[0]}x{SHAPE[1]} grid with the node potential at y - x, M = {particles}. Truth: HMC, {CHAINS} chains "
        f"of {scale.samples} draws after {scale.burn_in}. Stein methods: RBF, h = med^2, AdaGrad, {scale.iterations} "
        "iterations."
    )


def _found(everywhere: dict[str, Any], by_name: dict[str, Marginals], nodes: list[int]) -> list[str]:
    def spread(name: str) -> float:
        variance = by_name[name].expect(np.square) - by_name[name].expect(lambda x: x) ** 2
        return float(variance.mean())

    ordered = sorted(everywhere, key=lambda name: float(everywhere[name]))
    return [
        f"Drawn are the nodes {', '.join(map(str, nodes))}, picked at random.",
        "Over all nodes, from the nearest to the truth to the farthest (total variation of the densities, kernel "
        f"estimates included): {', '.join(ordered)}.",
        f"SVGD keeps {spread('SVGD') / spread('truth'):.2f} of the true variance, MP-SVGD-s "
        f"{spread('MP-SVGD-s') / spread('truth'):.2f}, MP-SVGD-m {spread('MP-SVGD-m') / spread('truth'):.2f}, EP "
        f"{spread('EP') / spread('truth'):.2f}, EPBP {spread('EPBP') / spread('truth'):.2f}.",
    ]


def _draw(figure: Figure, curves: dict[tuple[str, int], np.ndarray], nodes: list[int], width: int) -> None:
    for axes, node in zip(figure.subplots(1, len(nodes)), nodes, strict=True):
        axes.fill_between(SHOWN, curves["truth", node], color="#dddddd", label="truth")
        for name in METHODS:
            axes.plot(SHOWN, curves[name, node], color=COLOURS[name], lw=1.4, label=name)
        seen = np.flatnonzero(curves["truth", node] > 1e-3)
        axes.set_xlim(SHOWN[seen[0]] - 0.5, SHOWN[seen[-1]] + 0.5)
        axes.set_ylim(0)
        axes.set_title(f"node in row {node // width}, column {node % width}", fontsize=10)
        axes.set_xlabel("x")
        axes.set_ylabel("density")
        axes.legend(fontsize=8)
