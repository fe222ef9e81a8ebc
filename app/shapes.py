"""Shapes on the pictures: drawn with the left button, the same in every view, to be dragged in any of them.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pyqtgraph as pg
from qtpy.QtCore import QEvent, QObject, QPointF, QRectF, QSignalBlocker, Qt, Signal
from qtpy.QtGui import QPainterPath
from qtpy.QtWidgets import QGraphicsPathItem

from denoiser import measure
from denoiser.particles import Item, line_item, mask_item

from .view import View

_LEAST = 3  # pixels of the screen; what is shorter was a click
_LARGE = 1_000_000  # pixels of a mask that is drawn as it is; of a larger one every n-th

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


class Mark(QObject):
    """What is measured, with a copy in every view."""

    moved = Signal()  # and let go

    def __init__(self, kind: str, number: int, copies: list, views: list[View], level: int, parent: QObject) -> None:
        super().__init__(parent)
        self.kind, self.name, self._copies = kind, f"{kind} {number}", copies
        for view, copy in zip(views, copies, strict=True):
            copy.setZValue(level)
            view.box.addItem(copy, ignoreBounds=True)

    def remove(self) -> None:
        """From all views."""
        for copy in self._copies:
            copy.getViewBox().removeItem(copy)
        self.deleteLater()


class Shape(Mark):
    """A rectangle, an ellipse or a line. Copies of it in all views follow the one that is dragged."""

    def __init__(self, kind: str, number: int, ends: Ends, views: list[View], colour: str, parent: QObject) -> None:
        super().__init__(kind, number, [_roi(kind, pg.mkPen(colour, width=2)) for _ in views], views, 7, parent)
        self._labels = [pg.TextItem(str(number), colour, anchor=(1, 1)) for _ in views]
        for copy, label in zip(self._copies, self._labels, strict=True):
            label.setParentItem(copy)
            copy.sigRegionChanged.connect(self._follow)
            copy.sigRegionChangeFinished.connect(lambda _: self.moved.emit())
        self.put(ends)

    @property
    def ends(self) -> Ends:
        """x and y where it begins and where it ends, in pixels of the picture."""
        first = self._copies[0]
        if self.kind == "line":
            points = [first.mapToParent(handle.pos()) for handle in first.getHandles()]
            return points[0].x(), points[0].y(), points[1].x(), points[1].y()
        (x, y), (w, h) = first.pos(), first.size()
        return x, y, x + w, y + h

    def item(self, shape: tuple[int, ...]) -> Item:
        """Its pixels in a picture of this shape; a ValueError where there are none."""
        x1, y1, x2, y2 = self.ends
        if self.kind == "line":
            across, down = np.clip((x1, x2), 0, shape[1]), np.clip((y1, y2), 0, shape[0])
            return line_item(self.name, shape, float(across[0]), float(down[0]), float(across[1]), float(down[1]))
        make = measure.ellipse if self.kind == "ellipse" else measure.rectangle
        return mask_item(self.name, make(shape, x1, y1, x2 - x1, y2 - y1))

    def _follow(self, one: pg.ROI) -> None:
        """What was done to one copy, for the others."""
        self._copies.sort(key=lambda copy: copy is not one)  # the one that was touched last says where the shape is
        self.put(self.ends, self._copies[1:])

    def put(self, ends: Ends, copies: list[pg.ROI] | None = None) -> None:
        """Somewhere else; some of the copies, or all."""
        for copy in self._copies if copies is None else copies:
            with QSignalBlocker(copy):
                if self.kind == "line":
                    copy.setPos((0, 0))
                    for handle, at in zip(copy.getHandles(), (ends[:2], ends[2:]), strict=True):
                        copy.movePoint(handle, at, finish=False, coords="parent")
                else:
                    left, top, right, bottom = boxed(ends)
                    copy.setPos((left, top))
                    copy.setSize((right - left, bottom - top))
        if self.kind == "line":
            for label in self._labels:
                label.setPos(label.parentItem().getHandles()[0].pos())


def _roi(kind: str, pen: object) -> pg.ROI:
    if kind == "line":
        return pg.LineSegmentROI([[0, 0], [1, 1]], pen=pen)
    make = pg.RectROI if kind == "rectangle" else pg.EllipseROI
    roi = make((0, 0), (1, 1), pen=pen, rotatable=False, snapSize=1.0, scaleSnap=True, translateSnap=True)
    for handle in [h for h in roi.handles if h["type"] == "r"]:  # an ellipse comes with one to turn it
        roi.removeHandle(handle["item"])
    return roi


class Mask(Mark):
    """Pixels that a file has named, as a coloured veil; it stays where it is."""

    def __init__(
        self, kind: str, number: int, mask: np.ndarray, views: list[View], colour: str, parent: QObject
    ) -> None:
        self._mask = mask
        step = max(int((mask.size / _LARGE) ** 0.5), 1)
        shown = mask[::step, ::step].astype(np.uint8)
        ink = pg.mkColor(colour)
        table = np.array([[0, 0, 0, 0], [ink.red(), ink.green(), ink.blue(), 90]], np.uint8)
        copies = [pg.ImageItem(shown, axisOrder="row-major", levels=(0, 1), lut=table) for _ in views]
        super().__init__(kind, number, copies, views, 6, parent)
        for copy in copies:
            copy.setRect(QRectF(0, 0, step * shown.shape[1], step * shown.shape[0]))

    def item(self, shape: tuple[int, ...]) -> Item:
        """Its pixels."""
        if self._mask.shape != shape[:2]:
            raise ValueError(f"the mask must have the picture's shape {shape[:2]}, got {self._mask.shape}")
        return mask_item(self.name, self._mask)
