"""The table of runs: its rows, as CSV too, and what memory their particles may take.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from qtpy.QtCore import QSignalBlocker, Qt, Signal
from qtpy.QtWidgets import QAbstractItemView, QApplication, QHeaderView, QTableWidget, QTableWidgetItem

from denoiser.outcome import Result

from .session import Snapshot

_MEMORY = 1 << 30  # bytes of particles to keep over all runs; the oldest go first
COLUMNS = {
    "": ("", "A: the run that is shown. B: the one it is compared with (Shift+click)"),
    "run": ("#", "In the order they were run"),
    "method": ("Method", "How the picture was denoised"),
    "M": ("M", "Particles: how many candidate pictures are behind the mean"),
    "sigma": ("σ", "Noise level, in grey levels of 255"),
    "PSNR": ("PSNR", "Peak signal-to-noise ratio in decibels: higher is closer to the clean picture"),
    "SSIM": ("SSIM", "Structural similarity: 1 is the clean picture itself"),
    "seconds": ("Seconds", "How long it took"),
    "iterations": ("Iterations", "How many there were; a run that was cancelled says where it stopped"),
}
_WIDTHS = 24, 38, 100, 36, 48, 52, 58, 64, 74
_FORMS = {"PSNR": "{:.2f}", "SSIM": "{:.4f}", "seconds": "{:.1f}", "sigma": "{:.4g}"}


@dataclass(eq=False)
class Run:
    """A row of the table."""

    number: int
    snapshot: Snapshot
    saved: bool = False

    def row(self) -> dict[str, Any]:
        """What the table and the CSV say."""
        s, p = self.snapshot, self.snapshot.plan
        options = ", ".join(f"{k}={v}" for k, v in asdict(p.sampler).items())
        tiles = s.outcome.tiles
        return {
            "run": self.number, "method": p.sampler.title, "M": s.outcome.draws or None, "sigma": s.level,
            "PSNR": s.psnr, "SSIM": s.ssim, "seconds": s.seconds,
            "iterations": s.step if tiles == 1 else p.sampler.total if s.complete else s.step % p.sampler.total,
            "tiles": tiles, "finished": s.finished, "whole": s.complete,
            "mode": "experiment" if p.experiment else "restore", "prior": p.prior, "seed": p.seed,
            "noise": p.added or ("measured" if p.automatic else "white"), "strength": p.strength,
            "colour strength": p.chroma, "mean std": s.uncertainty if s.sure else None, "options": options,
            "picture": p.source.name,
        }  # fmt: skip


def table_csv(runs: list[Run]) -> str:
    """The table for other programs."""
    out = io.StringIO()
    names = list(runs[0].row()) if runs else ["run"]
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    for run in runs:
        row = run.row()
        writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else "" if v is None else v for k, v in row.items()})
    return out.getvalue()


def save_memory(runs: list[Run]) -> None:
    """Let the particles of the oldest runs go when there are too many to keep."""
    held = 0
    for run in reversed(runs):
        outcome = run.snapshot.outcome
        if isinstance(outcome, Result):
            held += outcome.samples.nbytes
            if held > _MEMORY and outcome.particles and run is not runs[-1]:
                bare = replace(outcome, samples=np.empty((0, *outcome.mean.shape), np.float32))
                run.snapshot = replace(run.snapshot, outcome=bare)


class Cell(QTableWidgetItem):
    """Sorts by its value and not by its text."""

    def __init__(self, text: str, value: Any) -> None:
        super().__init__(text)
        self.value = value
        self.setFlags(Qt.ItemIsSelectable | Qt.ItemIsEnabled)
        if not isinstance(value, str):
            self.setTextAlignment(Qt.AlignRight | Qt.AlignVCenter)

    def __lt__(self, other: QTableWidgetItem) -> bool:
        if self.value is None or other.value is None:  # what is not known comes first
            return self.value is None and other.value is not None
        return bool(self.value < other.value)


class RunTable(QTableWidget):
    """All runs of this picture. Click: result A. Shift+click: result B."""

    chosen = Signal(object, bool)  # Run, as B

    def __init__(self) -> None:
        super().__init__(0, len(COLUMNS), objectName="runs")
        self.setHorizontalHeaderLabels([title for title, _ in COLUMNS.values()])
        for column, (_, tip) in enumerate(COLUMNS.values()):
            self.horizontalHeaderItem(column).setToolTip(tip)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(24)
        self.setShowGrid(False)
        self.setSelectionBehavior(QAbstractItemView.SelectRows)
        self.setSelectionMode(QAbstractItemView.SingleSelection)
        self.setEditTriggers(QAbstractItemView.NoEditTriggers)
        header = self.horizontalHeader()
        header.setMinimumSectionSize(20)
        for column, width in enumerate(_WIDTHS):
            self.setColumnWidth(column, width)
        header.setSectionResizeMode(2, QHeaderView.Stretch)
        header.setHighlightSections(False)
        self.setSortingEnabled(True)
        self.sortByColumn(1, Qt.AscendingOrder)
        self.setToolTip("Click a run to see it as result A, Shift+click for result B; click a heading to sort")
        self.cellClicked.connect(self._click)
        self.itemSelectionChanged.connect(self._select)

    def show_runs(self, runs: list[Run], a: Run | None, b: Run | None) -> None:
        """Fill in all rows anew."""
        silent = QSignalBlocker(self)  # nobody has chosen anything
        for name in ("PSNR", "SSIM"):  # nobody knows them of a picture that came noisy
            self.setColumnHidden(list(COLUMNS).index(name), bool(runs) and all(r.snapshot.psnr is None for r in runs))
        self.setColumnWidth(8, _WIDTHS[8] if all(r.snapshot.complete for r in runs) else 100)  # stopped at 20
        self.setSortingEnabled(False)
        self.setRowCount(len(runs))
        for row, run in enumerate(runs):
            values = run.row()
            values[""] = "A" if run is a else "B" if run is b else ""
            tip = "\n".join(f"{k}: {v:.4g}" if isinstance(v, float) else f"{k}: {v}" for k, v in values.items() if k)
            for column, name in enumerate(COLUMNS):
                value = values[name]
                text = "–" if value is None else _FORMS.get(name, "{}").format(value)
                if name == "iterations" and not values["whole"]:
                    part = values["finished"] < 1
                    text = f"{100 * values['finished']:.0f} % finished" if part else f"stopped at {text}"
                cell = Cell(text, value)
                cell.setData(Qt.UserRole, run)
                cell.setToolTip(tip)
                self.setItem(row, column, cell)
        self.setSortingEnabled(True)
        for row in range(self.rowCount()):
            if self.run_at(row) is a:
                self.selectRow(row)
        silent.unblock()

    def run_at(self, row: int) -> Run:
        """The run of a row, as sorted."""
        return self.item(row, 0).data(Qt.UserRole)

    def runs(self) -> list[Run]:
        """All, as sorted."""
        return [self.run_at(row) for row in range(self.rowCount())]

    def _click(self, row: int, _: int) -> None:
        self.chosen.emit(self.run_at(row), bool(QApplication.keyboardModifiers() & Qt.ShiftModifier))

    def _select(self) -> None:
        """By the arrow keys."""
        rows = self.selectionModel().selectedRows()
        if rows and self.hasFocus() and not QApplication.mouseButtons():
            self.chosen.emit(self.run_at(rows[0].row()), False)
