"""Shapes on the pictures that are measured: the same in every view, to be dragged in any of them.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from qtpy.QtCore import QObject, QRectF, Signal

from denoiser import measure
from denoiser.particles import Item, line_item, mask_item

from .pencil import Ends, boxed

_LARGE = 1_000_000  # pixels of a mask that is drawn as it is; of a larger one every n-th


class Shape(QObject):
    """A rectangle, an ellipse or a line. Copies of it in all views follow the one that is dragged."""

    moved = Signal()  # and let go

    def __init__(self, name: str, kind: str, ends: Ends, boxes: list[pg.ViewBox], colour: str, parent: QObject) -> None:
        super().__init__(parent)
        self.name, self.kind = name, kind
        self._copies = [_roi(kind, pg.mkPen(colour, width=2)) for _ in boxes]
        self._labels = [pg.TextItem(name.split()[-1], colour, anchor=(1, 1)) for _ in boxes]
        for box, copy, label in zip(boxes, self._copies, self._labels, strict=True):
            copy.setZValue(7)
            label.setParentItem(copy)
            box.addItem(copy, ignoreBounds=True)
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

    def put(self, ends: Ends) -> None:
        """Somewhere else."""
        self._put(self._copies, ends)

    def item(self, shape: tuple[int, ...]) -> Item:
        """Its pixels in a picture of this shape; a ValueError where there are none."""
        x1, y1, x2, y2 = self.ends
        if self.kind == "line":
            across, down = np.clip((x1, x2), 0, shape[1]), np.clip((y1, y2), 0, shape[0])
            return line_item(self.name, shape, float(across[0]), float(down[0]), float(across[1]), float(down[1]))
        make = measure.ellipse if self.kind == "ellipse" else measure.rectangle
        return mask_item(self.name, make(shape, x1, y1, x2 - x1, y2 - y1))

    def remove(self) -> None:
        """From all views."""
        for copy in self._copies:
            copy.getViewBox().removeItem(copy)

    def _follow(self, one: pg.ROI) -> None:
        """What was done to one copy, for the others."""
        self._copies.sort(key=lambda copy: copy is not one)  # the one that was touched last says where the shape is
        self._put(self._copies[1:], self.ends)

    def _put(self, copies: list[pg.ROI], ends: Ends) -> None:
        for copy in copies:
            copy.blockSignals(True)
            if self.kind == "line":
                copy.setPos((0, 0))
                for handle, at in zip(copy.getHandles(), (ends[:2], ends[2:]), strict=True):
                    copy.movePoint(handle, at, finish=False, coords="parent")
            else:
                left, top, right, bottom = boxed(ends)
                copy.setPos((left, top))
                copy.setSize((right - left, bottom - top))
            copy.blockSignals(False)
        if self.kind == "line":
            for copy, label in zip(self._copies, self._labels, strict=True):
                label.setPos(copy.getHandles()[0].pos())


def _roi(kind: str, pen: object) -> pg.ROI:
    if kind == "line":
        return pg.LineSegmentROI([[0, 0], [1, 1]], pen=pen)
    make = pg.RectROI if kind == "rectangle" else pg.EllipseROI
    roi = make((0, 0), (1, 1), pen=pen, rotatable=False, snapSize=1.0, scaleSnap=True, translateSnap=True)
    for handle in [h for h in roi.handles if h["type"] == "r"]:  # an ellipse comes with one to turn it
        roi.removeHandle(handle["item"])
    return roi


class Mask(QObject):
    """Pixels that a file has named, as a coloured veil; it stays where it is."""

    moved = Signal()  # never

    def __init__(self, name: str, mask: np.ndarray, boxes: list[pg.ViewBox], colour: str, parent: QObject) -> None:
        super().__init__(parent)
        self.name, self._mask = name, mask
        step = max(int((mask.size / _LARGE) ** 0.5), 1)
        shown = mask[::step, ::step].astype(np.uint8)
        ink = pg.mkColor(colour)
        table = np.array([[0, 0, 0, 0], [ink.red(), ink.green(), ink.blue(), 90]], np.uint8)
        self._copies = [pg.ImageItem(shown, axisOrder="row-major", levels=(0, 1), lut=table) for _ in boxes]
        for box, copy in zip(boxes, self._copies, strict=True):
            copy.setZValue(6)
            copy.setRect(QRectF(0, 0, step * shown.shape[1], step * shown.shape[0]))
            box.addItem(copy, ignoreBounds=True)

    def item(self, shape: tuple[int, ...]) -> Item:
        """Its pixels."""
        if self._mask.shape != shape[:2]:
            raise ValueError(f"the mask must have the picture's shape {shape[:2]}, got {self._mask.shape}")
        return mask_item(self.name, self._mask)

    def remove(self) -> None:
        """From all views."""
        for copy in self._copies:
            copy.getViewBox().removeItem(copy)
