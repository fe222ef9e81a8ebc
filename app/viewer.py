"""One to three linked views, or two in one with a line between them; drawn off the window's thread.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import math

import numpy as np
import pyqtgraph as pg
from qtpy.QtCore import QRectF, QSignalBlocker, QTimer, Signal
from qtpy.QtWidgets import QHBoxLayout, QWidget

from denoiser.pieces import Region

from .background import Background
from .display import CONTENTS, Part, Scene, caption, part_for, picture_bytes, render, scale, why_empty
from .theme import Colours
from .view import View

_SIDE = 48  # pixels of a fresh region; with its halo a run takes a second or two
_FLIP = {"a": "noisy", "particle": "noisy", "uncertainty": "a", "residual": "a", "b": "a", "noisy": "a", "clean": "a"}

Image = np.ndarray | None
Drawn = tuple[str, Image, str, float | None]  # a content, its pixels and caption, the bright end of an uncertainty map


class Viewer(QWidget):
    """The pictures, side by side or split."""

    hovered = Signal(object)
    region_moved = Signal()  # and let go
    turned = Signal(object)  # Region, that is seen now

    def __init__(self, background: Background) -> None:
        super().__init__()
        self._background = background
        self.scene: Scene | None = None
        self.views = [View(content, n) for n, content in enumerate(("noisy", "a", "uncertainty"), 1)]
        self.count, self.split = 2, False
        self._flipped = False
        self._busy = self._stale = self._fit = False
        self._preview: tuple[Region | None, Image] = None, None  # its mean, in the file's units
        self._patch: tuple[Region | None, Image] = None, None  # the same as bytes
        self._looks: dict[Region, np.ndarray] = {}  # blocks of a first look, as bytes
        layout = QHBoxLayout(self)
        layout.setContentsMargins(8, 8, 8, 4)
        for view in self.views:
            layout.addWidget(view, 1)
            view.chosen.connect(self.refresh)
            view.hovered.connect(self.hovered)
            view.flipped.connect(self._flip)
            view.double_clicked.connect(self._fit_or_pixels)
            if view is not self.views[0]:
                view.box.setXLink(self.views[0].box)
                view.box.setYLink(self.views[0].box)
        self.views[0].cut.connect(self._lay_over)
        self.views[0].box.sigRangeChanged.connect(lambda *_: self._turned.start())
        self._turned = QTimer(self, singleShot=True, interval=100, timeout=self._tell_seen)
        left, right = self.views[0].second, self.views[1].picker
        left.setCurrentIndex(right.currentIndex())
        left.currentIndexChanged.connect(right.setCurrentIndex)
        right.currentIndexChanged.connect(left.setCurrentIndex)
        self.roi = pg.RectROI((0, 0), (_SIDE, _SIDE), maxBounds=None, rotatable=False)
        self.roi.addScaleHandle((0, 0), (1, 1))
        self.roi.setZValue(6)
        self.roi.hide()
        self.views[0].box.addItem(self.roi, ignoreBounds=True)
        self._settle = QTimer(self, singleShot=True, interval=120, timeout=self._tell_region)
        self.roi.sigRegionChangeFinished.connect(lambda _: self._settle.start())
        self._arrange()

    # ------------------------------------------------------------------------------- what is shown

    def set_scene(self, scene: Scene) -> None:
        """Show this from now on; all of it at first, when the picture is another one."""
        before, self.scene = self.scene, scene
        if before is None or before.source is not scene.source:
            self._fit = True
            self.show_patch(None, None)
            self._place_region(scene.source.pixels.shape)
        elif before.tone != scene.tone:
            self.show_patch(*self._preview)
        self.refresh()

    def set_views(self, count: int) -> None:
        """How many side by side."""
        self.count, self.split = count, False
        self._arrange()

    def set_split(self, split: bool) -> None:
        """The contents of the first two views in one, with a line between them."""
        self.split = split
        self._arrange()

    def _arrange(self) -> None:
        shown = 1 if self.split else self.count
        for number, view in enumerate(self.views):
            view.setVisible(number < shown)
        if self.split and self.views[0].content == self.views[1].content:
            self.views[1].choose("a")
        self.views[0].second.setVisible(self.split)
        self.refresh()

    def _flip(self, down: bool) -> None:
        self._flipped = down
        self.refresh()

    def contents(self) -> list[str]:
        """What each visible view shows at this moment; a split view has two."""
        chosen = [view.content for view in self.views[: 2 if self.split else self.count]]
        if not self._flipped:
            return chosen
        if self.split:
            return chosen[::-1]
        results = {"a", "b", "particle", "uncertainty", "residual"}
        return [_FLIP[c] if c in results or len(chosen) == 1 else c for c in chosen]

    def refresh(self) -> None:
        """Draw everything anew, on a thread; what is asked for meanwhile is drawn afterwards."""
        if self._busy:
            self._stale = True
            return
        scene, contents = self.scene, self.contents()
        if scene is None:
            return
        self._busy, self._stale = True, False
        shape = scene.source.pixels.shape
        seen = Region(0, 0, *shape[:2]) if self._fit else self.seen
        part = part_for(shape, seen, self._step(shape))
        particles = [view.slider.value() for view in self.views]

        def work(_: object) -> list[Drawn]:
            pairs = zip(contents, particles, strict=False)
            return [(c, render(scene, c, at, part), caption(scene, c), scale(scene, c)) for c, at in pairs]

        self._background.start(work, done=lambda made: self._drawn(scene, part, made), failed=self._not_drawn)

    def _not_drawn(self, error: BaseException, _: str) -> None:
        self._busy = False
        for view in self.views:
            view.show_image(None, f"This cannot be shown:\n{error}")

    def _drawn(self, scene: Scene, part: Part, made: list[Drawn]) -> None:
        self._busy = False
        if scene.source is not (self.scene and self.scene.source):  # of a picture that is gone
            self.refresh()
            return
        for view, (content, pixels, words, top) in zip(self.views, made, strict=False):
            view.bar.show_scale(top)
            view.set_particles(scene.a.particles if scene.a is not None else 0)
            view.shape = scene.source.pixels.shape
            view.show_image(pixels, why_empty(scene, content), part)
            view.caption.setText(words)
        first = self.views[0]
        first.show_second(made[1][1] if self.split else None)
        if self.split:
            first.bar.show_scale(next((top for *_, top in made if top is not None), None))
            first.caption.setText("  |  ".join(words or CONTENTS[content][0] for content, _, words, _ in made))
        self._lay_over()
        if self._fit:
            self._fit = False
            self.fit()
        if self._stale:
            self.refresh()

    # ---------------------------------------------------------------------------- zoom and region

    def take_keys(self) -> None:
        """The keyboard belongs to the pictures again."""
        self.views[0].canvas.setFocus()

    def fit(self) -> None:
        """The whole picture."""
        if self.scene is not None:
            height, width = self.scene.source.pixels.shape[:2]
            self.views[0].box.setRange(xRange=(0, width), yRange=(0, height), padding=0.01)

    def _fit_or_pixels(self, at: object) -> None:
        """A double click: the whole picture; if that is what is seen already, its pixels around the cursor."""
        if self.scene is None:
            return
        height, width = self.scene.source.pixels.shape[:2]
        (left, right), (top, bottom) = self.views[0].box.viewRange()
        at_pixels = abs(self.views[0].box.viewPixelSize()[0] * self.devicePixelRatioF() - 1) < 1e-3
        if left <= 0 and top <= 0 and right >= width and bottom >= height and not at_pixels:
            self.actual_size(at)
        else:
            self.fit()

    def zoom(self, factor: float) -> None:
        """Around the middle."""
        self.views[0].box.scaleBy((1 / factor, 1 / factor))

    def actual_size(self, around: object = None) -> None:
        """A pixel of the picture is a pixel of the screen; around a point of the picture, or the middle."""
        box = self.views[0].box
        across, down = box.viewPixelSize()
        scale = 1 / self.devicePixelRatioF()
        box.scaleBy((scale / across, scale / down), center=around)

    def move_line(self, share: float) -> None:
        """The line of the split view, by a share of the width."""
        if self.split:
            line = self.views[0].line
            line.setValue(line.value() + share * self.views[0].shape[1])

    def step_particle(self, by: int) -> None:
        """The next particle, in every view that shows one."""
        for view in self.views:
            view.slider.setValue(view.slider.value() + by)

    def step_content(self, by: int) -> None:
        """Other content in the last visible view."""
        self.views[1 if self.split else self.count - 1].picker.step(by)

    def _place_region(self, shape: tuple[int, ...]) -> None:
        height, width = shape[:2]
        size = min(_SIDE, height), min(_SIDE, width)
        with QSignalBlocker(self.roi):
            self.roi.maxBounds = QRectF(0, 0, width, height)
            self.roi.setSize((size[1], size[0]))
            self.roi.setPos((width - size[1]) // 2, (height - size[0]) // 2)

    def show_region(self, on: bool) -> None:
        """The frame to drag."""
        self.roi.setVisible(on)
        if on:
            self._settle.start()
        else:
            self.show_patch(None, None)

    @property
    def region(self) -> Region:
        """The pixels within the frame."""
        assert self.scene is not None
        (x, y), (w, h) = self.roi.pos(), self.roi.size()
        height, width = self.scene.source.pixels.shape[:2]
        top, left = int(np.clip(round(y), 0, height - 2)), int(np.clip(round(x), 0, width - 2))
        return Region(top, left, min(top + max(round(h), 2), height), min(left + max(round(w), 2), width))

    def move_region(self, across: float, down: float) -> None:
        """By shares of its own size."""
        (w, h), (x, y) = self.roi.size(), self.roi.pos()
        self.roi.setPos((x + round(across * w), y + round(down * h)))
        self._settle.start()

    def _tell_region(self) -> None:
        if self.roi.isVisible() and self.scene is not None:
            self.region_moved.emit()

    def show_patch(self, place: Region | None, mean: Image) -> None:
        """The preview, over every view that shows result A, in the tone of the picture."""
        self._preview = self._patch = place, mean
        if mean is not None and self.scene is not None:
            self._patch = place, picture_bytes(mean, self.scene.source, self.scene.tone)
        self._lay_over()

    # ------------------------------------------------------------------------------- a first look

    @property
    def seen(self) -> Region:
        """The part of the picture that is on the screen."""
        assert self.scene is not None
        height, width = self.scene.source.pixels.shape[:2]
        (left, right), (top, bottom) = self.views[0].box.viewRange()
        rows = np.clip((math.floor(top), math.ceil(bottom)), 0, height)
        columns = np.clip((math.floor(left), math.ceil(right)), 0, width)
        return Region(int(rows[0]), int(columns[0]), int(rows[1]), int(columns[1]))

    def _step(self, shape: tuple[int, ...]) -> int:
        """Rows of the picture for one of the screen, as a whole number; what is finer is not seen."""
        across, _ = self.views[0].box.viewPixelSize()
        if self._fit:  # the whole is about to be shown
            across = max(
                shape[0] / max(self.views[0].canvas.height(), 1), shape[1] / max(self.views[0].canvas.width(), 1)
            )
        return max(math.floor(across * 1.01), 1)

    def _tell_seen(self) -> None:
        """Another part of the picture is seen: draw it, if it is not drawn already."""
        if self.scene is None:
            return
        seen, part = self.seen, self.views[0].part
        self.views[0].keep_line()
        self.turned.emit(seen)
        if (
            part is not None
            and min(seen.shape) > 0
            and not part.holds(seen, self._step(self.scene.source.pixels.shape))
        ):
            self.refresh()

    def show_looks(self, looks: dict[Region, np.ndarray]) -> None:
        """Blocks as bytes, in every view that shows result A, as long as there is none."""
        self._looks = looks
        self._lay_over()

    def _lay_over(self) -> None:
        """Preview and first look, where result A is shown."""
        contents = self.contents()
        height, width = (0, 0) if self.scene is None else self.scene.source.pixels.shape[:2]
        for number, view in enumerate(self.views):
            parts = contents if self.split and number == 0 else contents[number : number + 1]
            place = QRectF(0, 0, width, height)
            if self.split and number == 0 and parts[0] != parts[1]:
                line = float(round(view.line.value()))
                place = QRectF(0, 0, line, height) if parts[0] == "a" else QRectF(line, 0, width - line, height)
            view.glue(self._looks if "a" in parts else {}, place)
            view.show_patch(*(self._patch if "a" in parts else (None, None)))

    def dress(self, colours: Colours) -> None:
        """The colours of the theme."""
        for view in self.views:
            view.dress(colours)
        self.roi.setPen(pg.mkPen(colours.accent, width=2))
        self.roi.hoverPen = pg.mkPen(colours.accent, width=3)
