"""Measuring in the window: shapes drawn on the picture, and a table of numbers with their error bars.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pyqtgraph as pg
from qtpy.QtCore import Qt, QTimer, Signal
from qtpy.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from denoiser.particles import Item, Number, draw_particles, numbers
from denoiser.pieces import Region

from .background import IDLE, Background
from .session import Plan, Snapshot
from .shapes import Ends, Mask, Pencil, Shape
from .theme import Colours
from .viewer import Viewer

LEVEL = 0.9
_INVITATION = "Draw a rectangle (R), an ellipse (E) or a line (D): their numbers come with error bars."
_COLUMNS = ("What", "Value, ± to 90 %")


def find(plan: Plan, snapshot: Snapshot | None, noisy: np.ndarray, items: list[Item]) -> list[Number]:
    """The numbers of all items in the file's units, from the particles of a result or from others drawn for them."""

    def draw(box: Region) -> np.ndarray:
        if snapshot is not None and snapshot.particles > 1 and snapshot.complete:
            return snapshot.outcome.samples[:, box.top : box.bottom, box.left : box.right]
        return draw_particles(plan.request(noisy), box)

    return list(numbers(draw, items, LEVEL))


def _with_reach(value: float, reach: float) -> str:
    """A number and its error bar, of which two digits are told."""
    if not 1e-6 < reach < 1e6:
        return f"{value:.6g} ± {reach:.2g}"
    digits = max(1 - math.floor(math.log10(reach)), 0)
    return f"{value:.{digits}f} ± {reach:.{digits}f}"


class Measuring(QWidget):
    """The shapes, the table and the profile. `ask` gives plan, result A and noisy picture, or None."""

    changed = Signal()  # other shapes, other numbers

    def __init__(self, background: Background, viewer: Viewer) -> None:
        super().__init__()
        self._background, self._viewer = background, viewer
        self.ask: Callable[[], tuple[Plan, Snapshot | None, np.ndarray] | None] = lambda: None
        self.pencil = Pencil(viewer.views, self)
        self.shapes: list[Shape | Mask] = []
        self.numbers: list[Number] = []
        self._task = IDLE
        self._count = 0
        self._colour = "y"
        self.table = QTableWidget(0, len(_COLUMNS), objectName="numbers")
        self.table.setHorizontalHeaderLabels(_COLUMNS)
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setDefaultSectionSize(22)
        self.table.setEditTriggers(QAbstractItemView.NoEditTriggers)
        self.table.setSelectionBehavior(QAbstractItemView.SelectRows)
        self.table.setShowGrid(False)
        self.table.horizontalHeader().setSectionResizeMode(0, QHeaderView.Stretch)
        self.table.setColumnWidth(1, 130)
        self.note = QLabel(_INVITATION, objectName="faint", wordWrap=True)
        self.copy, self.csv, self.clear_button = QPushButton("Copy"), QPushButton("CSV…"), QPushButton("Clear")
        self.clear_button.clicked.connect(self.clear)
        row = QHBoxLayout()
        row.setContentsMargins(6, 2, 6, 4)
        row.addWidget(self.note, 1)
        row.addSpacing(6)
        for button in (self.copy, self.csv, self.clear_button):
            button.setFocusPolicy(Qt.TabFocus)
            row.addWidget(button)
        self.plot = pg.PlotWidget(enableMenu=False)
        self.plot.setMouseEnabled(False, False)
        self.plot.hideButtons()
        self.plot.hide()
        body = QHBoxLayout()
        body.setContentsMargins(0, 0, 0, 0)
        body.addWidget(self.table, 3)
        body.addWidget(self.plot, 2)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(body, 1)
        layout.addLayout(row)
        self._settle = QTimer(self, singleShot=True, interval=200, timeout=self.refresh)

    def draw(self, kind: str) -> None:
        """A new shape, with the pencil."""
        if self.ask() is None:
            self.pencil.put_away()
        else:
            self.pencil.take(kind, partial(self._add, Shape, kind))

    def add_mask(self, mask: np.ndarray) -> None:
        """The pixels of a mask, bool, the shape of the picture."""
        self._add(Mask, "mask", mask)

    def _add(self, make: type[Shape | Mask], kind: str, place: Ends | np.ndarray) -> None:
        self._count += 1
        shape = make(kind, self._count, place, self._viewer.views, self._colour, self)
        self.shapes.append(shape)
        shape.moved.connect(self._settle.start)
        self.refresh()

    def clear(self) -> None:
        """Take all shapes away."""
        self.pencil.put_away()
        while self.shapes:
            self.shapes.pop().remove()
        self._count = 0
        self.refresh()

    def undo(self) -> None:
        """Take the last shape away."""
        if self.shapes:
            self.shapes.pop().remove()
            self.refresh()

    @property
    def busy(self) -> bool:
        """Whether numbers are on their way."""
        return self._task.busy

    def refresh(self) -> None:
        """Measure anew, on a thread."""
        self._task.stop()
        asked, items = self.ask() if self.shapes else None, []
        for shape in self.shapes if asked else []:
            with contextlib.suppress(ValueError):  # those outside the picture are left out
                items.append(shape.item(asked[0].source.pixels.shape))
        if not items:
            self._show([])
            return
        plan, snapshot, noisy = asked
        self.note.setText("Measuring…")
        self.changed.emit()
        self._task = self._background.start(
            lambda _: find(plan, snapshot, noisy, items), done=self._show, failed=self._sorry, heavy=True
        )

    def _sorry(self, error: BaseException, _: str) -> None:
        self._show([])
        self.note.setText(f"This cannot be measured: {error}")

    def _show(self, found: list[Number]) -> None:
        self.numbers = found
        rows = [n for n in found if n.distance is None]
        self.table.setRowCount(len(rows))
        for row, n in enumerate(rows):
            reach = (n.high - n.low) / 2
            words = f"{n.item}, {n.quantity}{' ' + n.channel if n.channel else ''}"
            for column, text in enumerate((words, _with_reach(n.value, reach))):
                cell = QTableWidgetItem(text)
                cell.setToolTip(f"{n.low:.6g} to {n.high:.6g}")
                if column:
                    cell.setTextAlignment(Qt.AlignRight | Qt.AlignVCenter)
                self.table.setItem(row, column, cell)
        told = "In the units of the file; the truth lies in nine of ten intervals." if found else ""
        self.note.setText(told if self.shapes else _INVITATION)
        self._show_profiles(found)
        self.changed.emit()

    def _show_profiles(self, found: list[Number]) -> None:
        lines = list(dict.fromkeys((n.item, n.channel) for n in found if n.distance is not None))
        self.plot.clear()
        self.plot.setVisible(bool(lines))
        inks = {"": "#4c8dff", "red": "#d8504d", "green": "#3fa35a", "blue": "#4c8dff"}
        for item, channel in lines:
            along = [n for n in found if (n.item, n.channel) == (item, channel)]
            x = [n.distance for n in along]
            low, high = (self.plot.plot(x, [getattr(n, end) for n in along], pen=None) for end in ("low", "high"))
            brush = pg.mkColor(inks[channel])
            brush.setAlpha(70)
            self.plot.addItem(pg.FillBetweenItem(low, high, brush=brush))
            self.plot.plot(x, [n.value for n in along], pen=pg.mkPen(inks[channel], width=1.5))

    def dress(self, colours: Colours) -> None:
        """The colours of the theme."""
        self._colour = colours.curves[1]
        self.pencil.dress(self._colour)
        self.plot.setBackground(colours.window)
        for side in ("left", "bottom"):
            self.plot.getAxis(side).setPen(colours.border)
            self.plot.getAxis(side).setTextPen(colours.faint)
        self.plot.setLabel("bottom", "pixels along the line", color=colours.faint)
