"""The plots of an evaluation, as PNG bytes. They need matplotlib, which is an extra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from denoiser.evaluation.averages import Group, grouped, summary
from denoiser.evaluation.rows import Row
from denoiser.evaluation.work import EDGES
from denoiser.panels import file_of, new_figure
from denoiser.paper.table1 import LONG, ONE_CHAIN, title

_FEW = 200  # pixels in a bin, below which its error says little
_STYLES = {  # colour and marker
    "mp-svgd": ("C3", "o"), "mp-svgd-b": ("C6", "o"), "svgd": ("C1", "v"),
    LONG: ("C0", "s"), ONE_CHAIN: ("C9", "^"), "gibbs": ("C2", "D"),
    "map": ("C4", "p"), "tv": ("0.5", "*"), "nlm": ("0.5", "P"), "wavelet": ("0.5", "X"), "bm3d": ("k", "*"),
    "direct": ("C5", "h"), "direct@learned-fast": ("C5", "<"), "direct@learned-best": ("C5", ">"),
    "mp-svgd@learned": ("C3", "x"), "gibbs@learned": ("C2", "x"), "svgd@learned": ("C1", "x"),
}  # fmt: skip


def _figure(panels: int) -> tuple[Any, Sequence[Any]]:
    figure = new_figure((5.6 * panels, 4.8))
    return figure, figure.subplots(1, panels, squeeze=False)[0]


def _png(figure: Any) -> bytes:
    return file_of(figure, format="png", dpi=110, metadata={"Software": None})


def name(group: Group) -> str:
    """A method with its number of particles."""
    return title(group) + (f", M = {group.particles}" if group.particles else "")


def pooled_bins(rows: Sequence[Row]) -> tuple[np.ndarray, np.ndarray]:
    """Pixels in each bin of predicted standard deviation over all rows, and their RMS error in units of sigma."""
    counts = np.array([row.bin_counts for row in rows])
    squares = counts * np.array([row.bin_errors for row in rows]) ** 2
    total = counts.sum(axis=0)
    return total, np.sqrt(squares.sum(axis=0) / np.maximum(total, 1)) / rows[0].sigma


def calibration(rows: Sequence[Row]) -> bytes:
    """RMS error against predicted standard deviation, a panel for each noise level: honest methods are on the line."""
    sigmas = sorted({row.sigma for row in rows})
    figure, panels = _figure(len(sigmas))
    centres = (EDGES[:-1] + EDGES[1:]) / 2
    for sigma, axes in zip(sigmas, panels, strict=True):
        axes.plot([0, 1.2], [0, 1.2], "k--", linewidth=1, label="as large as predicted")
        for group, members in grouped(row for row in rows if row.sigma == sigma).items():
            if not members[0].bin_counts:  # a point estimate
                continue
            counts, errors = pooled_bins(members)
            enough = counts >= _FEW
            colour, marker = _STYLES.get(group.method, ("C7", "x"))
            dashed = "--" if group.particles == 100 else "-"
            axes.plot(centres[enough], errors[enough], dashed, marker=marker, color=colour, ms=4, label=name(group))
        axes.set(xlim=(0, 1.2), ylim=(0, 1.4), title=f"sigma {sigma:g}", xlabel="predicted standard deviation / sigma")
        axes.set_ylabel("RMS error / sigma")
        axes.grid(alpha=0.3)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center", fontsize=9)
    return _png(figure)


def speed_quality(rows: Sequence[Row]) -> bytes:
    """Mean PSNR against mean seconds an image, a panel for each noise level; hollow marks: 100 particles."""
    sigmas = sorted({row.sigma for row in rows})
    figure, panels = _figure(len(sigmas))
    averages = summary(rows).averages
    handles: dict[str, Any] = {}
    for sigma, axes in zip(sigmas, panels, strict=True):
        for average in averages:
            group = average.group
            if group.sigma == sigma:
                colour, marker = _STYLES.get(group.method, ("0.3", "x"))
                (handles[name(group)],) = axes.plot(
                    [average.mean["seconds"]], [average.mean["psnr"]], marker, color=colour, ms=8,
                    mfc="white" if group.particles == 100 else colour, mew=1.5,
                )  # fmt: skip
        axes.set(xscale="log", title=f"sigma {sigma:g}", xlabel="seconds an image", ylabel="PSNR, dB")
        axes.grid(alpha=0.3)
    figure.legend(handles.values(), handles.keys(), loc="outside right center", fontsize=9)
    return _png(figure)
