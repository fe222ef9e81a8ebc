"""Drawing on the pictures with the left button: press, drag, release.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pyqtgraph as pg
from qtpy.QtCore import QEvent, QObject, QPointF, QRectF, Qt, Signal
from qtpy.QtGui import QPainterPath
from qtpy.QtWidgets import QGraphicsPathItem

from .view import View

_LEAST = 3  # pixels of the screen; what is shorter was a click

Ends = tuple[float, float, float, float]  # x and y where it began, and where it ended


def boxed(ends: Ends) -> Ends:
    """The whole pixels that a stroke touches: left, top, right, bottom."""
    (left, right), (top, bottom) = sorted(ends[::2]), sorted(ends[1::2])
    return math.floor(left), math.floor(top), math.ceil(right), math.ceil(bottom)


def outline(kind: str, ends: Ends) -> QPainterPath:
    """A rectangle, an ellipse or a line, in pixels of the picture."""
    path = QPainterPath()
    if kind == "line":
        path.moveTo(*ends[:2])
        path.lineTo(*ends[2:])
        return path
    left, top, right, bottom = boxed(ends)
    (path.addEllipse if kind == "ellipse" else path.addRect)(QRectF(left, top, right - left, bottom - top))
    return path


class Pencil(QObject):
    """In the hand from `take` to the end of one stroke; until then the pictures are not moved by a drag."""

    changed = Signal()  # taken, or put away

    def __init__(self, views: list[View], parent: QObject) -> None:
        super().__init__(parent)
        self._views = {view.canvas.viewport(): view for view in views}
        self.kind = ""  # what is drawn; "" while the pencil is put away
        self._done: Callable[[Ends], object] = lambda _: None
        self._start: tuple[View, QPointF] | None = None  # of a stroke: where, in pixels of the screen
        self._lines: list[QGraphicsPathItem] = []
        for viewport, view in self._views.items():
            line = QGraphicsPathItem()
            line.setZValue(8)
            line.setVisible(False)
            view.box.addItem(line, ignoreBounds=True)
            self._lines.append(line)
            viewport.installEventFilter(self)
        self.dress("y")

    def dress(self, colour: str) -> None:
        """Another colour."""
        for line in self._lines:
            line.setPen(pg.mkPen(colour, width=2))

    def take(self, kind: str, done: Callable[[Ends], object]) -> None:
        """Draw a rectangle, an ellipse or a line next, `done` when it is drawn; a second wish for it is for none."""
        again = kind == self.kind
        self.put_away()
        if again:
            return
        self.kind, self._done = kind, done
        for viewport in self._views:
            viewport.setCursor(Qt.CrossCursor)
        self.changed.emit()

    def put_away(self) -> None:
        """Drags move the pictures again."""
        self.kind, self._start = "", None
        for viewport in self._views:
            viewport.unsetCursor()
        for line in self._lines:
            line.setVisible(False)
        self.changed.emit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The left button and what follows, before the pictures see them."""
        kind = event.type()
        if self.kind and kind in (QEvent.MouseButtonPress, QEvent.MouseButtonDblClick):
            if event.button() == Qt.LeftButton:
                self._start = self._views[watched], event.localPos()
            elif event.button() == Qt.RightButton:
                self.put_away()
            return True
        if self._start is None or kind not in (QEvent.MouseMove, QEvent.MouseButtonRelease):
            return bool(super().eventFilter(watched, event))
        view, start = self._start
        ends = (*self._at(view, start), *self._at(view, event.localPos()))
        if kind == QEvent.MouseMove:
            for line in self._lines:
                line.setPath(outline(self.kind, ends))
                line.setVisible(True)
        elif event.button() == Qt.LeftButton:
            way = event.localPos() - start
            if math.hypot(way.x(), way.y()) < _LEAST:
                self._start = None
            else:
                done = self._done
                self.put_away()
                done(ends)
        return True

    @staticmethod
    def _at(view: View, place: QPointF) -> tuple[float, float]:
        """A place on the screen in pixels of the picture, and within it."""
        at = view.box.mapSceneToView(view.canvas.mapToScene(place.toPoint()))
        height, width = view.shape[:2]
        return min(max(at.x(), 0.0), float(width)), min(max(at.y(), 0.0), float(height))
