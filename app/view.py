"""One picture on the screen: zoom and pan, a patch on top (the preview), and a second picture up to a movable line.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from qtpy.QtCore import QEvent, QRect, QRectF, QSignalBlocker, Qt, Signal
from qtpy.QtGui import QImage, QPainter
from qtpy.QtWidgets import QComboBox, QHBoxLayout, QLabel, QVBoxLayout, QWidget
from superqt import QElidingLabel, QLabeledSlider

from denoiser import panels
from denoiser.pieces import Region

from .display import CONTENTS, Part
from .fields import Choice
from .theme import Colours

_STRIP = 12  # pixels


class Bar(QWidget):
    """Colours from 0 at the bottom to `top` grey levels."""

    def __init__(self) -> None:
        super().__init__()
        self.top = 0.0
        self.setFixedWidth(58)
        self.setToolTip("Standard deviation of a pixel, in grey levels of 255")
        column = panels.heat(np.linspace(1, 0, 256)[:, None], 1.0)
        self._colours = QImage(np.ascontiguousarray(column).tobytes(), 1, 256, 3, QImage.Format_RGB888).copy()

    def show_scale(self, top: float | None) -> None:
        """Another scale; None for a map that is not there."""
        self.top = top or 0.0
        self.setVisible(top is not None)
        self.update()

    def paintEvent(self, event: object) -> None:
        """The strip, three numbers and the unit."""
        painter = QPainter(self)
        line = painter.fontMetrics().height()
        strip = QRect(4, line // 2, _STRIP, self.height() - 2 * line - line // 2)
        painter.drawImage(strip, self._colours)
        for share in (0.0, 0.5, 1.0):
            middle = strip.bottom() - share * strip.height()
            place = QRect(strip.right() + 4, round(middle - line / 2), self.width(), line)
            painter.drawText(place, Qt.AlignLeft | Qt.AlignVCenter, f"{share * self.top:.3g}")
        painter.drawText(QRect(0, self.height() - line, self.width(), line), Qt.AlignCenter, "grey lev.")


class View(QWidget):
    """A picture with a choice of what it shows."""

    chosen = Signal()  # other content, or another particle
    hovered = Signal(object)  # (row, column), or None
    flipped = Signal(bool)  # the flip key is down
    cut = Signal()  # the line of the split view has moved
    double_clicked = Signal(object)  # QPointF, in pixels of the picture

    def __init__(self, content: str, number: int) -> None:
        super().__init__()
        self.picker = Choice(f"content-{number}", CONTENTS)
        self.picker.choose(content)
        self.picker.setToolTip("What this view shows")
        self.second = QComboBox(objectName=f"second-{number}")  # right of the line of a split view
        self.second.setModel(self.picker.model())
        self.second.setToolTip("What is shown right of the line")
        self.second.hide()
        self.caption = QElidingLabel(objectName="caption")
        self.slider = QLabeledSlider(Qt.Horizontal, objectName=f"particle-{number}")
        self.slider.setToolTip("Which of the candidate pictures is shown  (, and .)")
        self.slider.setVisible(content == "particle")

        self.box = pg.ViewBox(lockAspect=True, invertY=True, enableMenu=False)
        self.canvas = pg.GraphicsView()
        self.canvas.setCentralItem(self.box)
        self.canvas.setAcceptDrops(False)  # the window takes what is dropped
        self.canvas.viewport().setAcceptDrops(False)
        self.canvas.setFocusPolicy(Qt.StrongFocus)
        self.canvas.installEventFilter(self)
        self.image, self.over, self.patch = (pg.ImageItem(axisOrder="row-major") for _ in range(3))
        for layer, item in enumerate((self.image, self.over, self.patch)):
            item.setZValue(layer)
            self.box.addItem(item)
        self.line = pg.InfiniteLine(0, angle=90, movable=True)
        self.line.setZValue(5)
        self.line.sigPositionChanged.connect(self._cut)
        self.line.hide()
        self.box.addItem(self.line)
        self.frame = pg.QtWidgets.QGraphicsRectItem()
        self.frame.setZValue(4)
        self.box.addItem(self.frame, ignoreBounds=True)
        self.frame.hide()
        self.sheet = pg.QtWidgets.QGraphicsRectItem()  # what the blocks of a first look are glued to
        self.sheet.setFlag(self.sheet.ItemClipsChildrenToShape)
        self.sheet.setPen(pg.mkPen(None))
        self.sheet.setZValue(3)
        self.box.addItem(self.sheet, ignoreBounds=True)
        self._blocks: dict[Region, pg.ImageItem] = {}
        self.empty = QLabel(self.canvas, objectName="faint", alignment=Qt.AlignCenter)  # words where no picture is
        self.empty.setAttribute(Qt.WA_TransparentForMouseEvents)
        self._second: np.ndarray | None = None
        self.part: Part | None = None  # what of the picture is drawn
        self.shape: tuple[int, ...] = (0, 0)  # of the whole

        head = QHBoxLayout()
        head.setContentsMargins(0, 0, 0, 0)
        head.addWidget(self.picker)
        head.addWidget(self.slider, 1)
        head.addWidget(self.caption, 1)
        head.addWidget(self.second)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(head)
        self.bar = Bar()
        self.bar.hide()
        body = QHBoxLayout()
        body.addWidget(self.canvas, 1)
        body.addWidget(self.bar)
        layout.addLayout(body, 1)

        self.picker.currentIndexChanged.connect(self._choose)
        self.slider.valueChanged.connect(lambda _: self.chosen.emit())
        self.canvas.scene().sigMouseMoved.connect(self._hover)
        self.canvas.scene().sigMouseClicked.connect(self._click)

    @property
    def content(self) -> str:
        """What is chosen."""
        return self.picker.value

    def choose(self, content: str) -> None:
        """Show something else."""
        self.picker.choose(content)

    def set_particles(self, count: int) -> None:
        """How far the slider goes."""
        with QSignalBlocker(self.slider):
            self.slider.setRange(0, max(count - 1, 0))
        self.slider.setEnabled(count > 1)

    def show_image(self, pixels: np.ndarray | None, words: str, part: Part | None = None) -> None:
        """Bytes of a part of the picture, or words where there are none."""
        self.part = part
        if pixels is None:
            self.image.clear()
        else:
            _put(self.image, pixels, _place(part, pixels))
        self.empty.setText(words if pixels is None else "")
        self.empty.setVisible(bool(self.empty.text()))
        self.empty.resize(self.canvas.size())

    def show_second(self, pixels: np.ndarray | None) -> None:
        """The other picture of a split view, right of the line; None ends the split."""
        self._second = pixels
        self.line.setVisible(pixels is not None)
        if pixels is not None:
            self.line.setBounds((0, self.shape[1]))
            self.keep_line()
        self._cut()

    def keep_line(self) -> None:
        """Bring the line of a split view back to what is seen: nobody would find it elsewhere."""
        left, right = (min(max(end, 0), self.shape[1]) for end in self.box.viewRange()[0])
        if self._second is not None and not left < self.line.value() < right:
            self.line.setValue((left + right) / 2)

    def _cut(self) -> None:
        if self._second is None or self.part is None:
            self.over.clear()
            return
        region, step = self.part
        begin = min(max(round((self.line.value() - region.left) / step), 0), self._second.shape[1] - 1)
        place = _place(self.part, self._second)
        place.setLeft(region.left + begin * step)
        _put(self.over, np.ascontiguousarray(self._second[:, begin:]), place)
        self.cut.emit()

    def show_patch(self, place: Region | None, pixels: np.ndarray | None) -> None:
        """The preview of a region; None takes it away."""
        self.frame.setVisible(place is not None)
        self.empty.setVisible(place is None and bool(self.empty.text()))
        if place is None or pixels is None:
            self.patch.clear()
            return
        rect = QRectF(place.left, place.top, *place.shape[::-1])
        _put(self.patch, pixels, rect)
        self.frame.setRect(rect)

    def glue(self, blocks: dict[Region, np.ndarray], place: QRectF) -> None:
        """Blocks of a picture as bytes, over what is shown in a place; blocks that are not named go."""
        self.sheet.setRect(place)
        for block in [b for b in self._blocks if b not in blocks]:
            item = self._blocks.pop(block)
            item.setParentItem(None)
            self.canvas.scene().removeItem(item)
        for block, pixels in blocks.items():
            if block not in self._blocks:
                self._blocks[block] = pg.ImageItem(axisOrder="row-major")
                self._blocks[block].setParentItem(self.sheet)
            item = self._blocks[block]
            if item.image is not pixels:
                _put(item, pixels, QRectF(block.left, block.top, *block.shape[::-1]))

    def dress(self, colours: Colours) -> None:
        """The colours of the theme."""
        self.canvas.setBackground(colours.canvas)
        self.line.setPen(pg.mkPen(colours.accent, width=2))
        self.line.setHoverPen(pg.mkPen(colours.accent, width=4))
        self.frame.setPen(pg.mkPen(colours.accent, width=1))

    def _choose(self) -> None:
        self.slider.setVisible(self.content == "particle")
        self.chosen.emit()

    def _hover(self, position: object) -> None:
        at = self.box.mapSceneToView(position)
        row, column = int(np.floor(at.y())), int(np.floor(at.x()))
        shape = (0, 0) if self.image.image is None else self.shape
        inside = 0 <= row < shape[0] and 0 <= column < shape[1]
        self.hovered.emit((row, column) if inside else None)

    def _click(self, event: object) -> None:
        if event.double() and event.button() == Qt.LeftButton:
            self.double_clicked.emit(self.box.mapSceneToView(event.scenePos()))

    def eventFilter(self, watched: object, event: QEvent) -> bool:
        """The flip key, and leaving the picture."""
        if event.type() in (QEvent.KeyPress, QEvent.KeyRelease) and event.key() == Qt.Key_Space:
            if not event.isAutoRepeat():
                self.flipped.emit(event.type() == QEvent.KeyPress)
            return True
        if event.type() == QEvent.Leave:
            self.hovered.emit(None)
        elif event.type() == QEvent.Resize:
            self.empty.resize(event.size())
        return bool(super().eventFilter(watched, event))


def _put(item: pg.ImageItem, pixels: np.ndarray, place: QRectF) -> None:
    """Bytes into a rectangle of the picture."""
    item.setImage(pixels, levels=(0, 255), autoLevels=False)
    item.setRect(place)


def _place(part: Part, pixels: np.ndarray) -> QRectF:
    """Where the bytes of a part belong in the picture."""
    return QRectF(part.region.left, part.region.top, part.step * pixels.shape[1], part.step * pixels.shape[0])
