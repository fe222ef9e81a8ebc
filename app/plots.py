"""Curves of the run, and the histogram.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import math

import numpy as np
import pyqtgraph as pg
from qtpy.QtCore import QSignalBlocker, Qt, Signal

from .background import IDLE, Background
from .display import Scene, histograms
from .theme import LIGHT, Colours
from .tone import PLAIN, Tone

_QUALITY, _SPREAD, _HISTOGRAM = range(3)
_ROOM = 420  # pixels that three plots need


class Plots(pg.GraphicsLayoutWidget):
    """PSNR (or the change of an iteration), uncertainty, and how often grey levels occur, with handles for the tone."""

    tone_changed = Signal(object)  # Tone
    plots: list = []  # noqa: RUF012

    def __init__(self, background: Background) -> None:
        super().__init__()
        self._threads, self._task = background, IDLE
        self._colours = LIGHT
        self._last: Scene | None = None
        self._counts: dict[str, np.ndarray] = {}
        self._curved = True
        self.plots = []
        for column in range(3):
            plot = self.addPlot(row=0, col=column, enableMenu=False)
            plot.setMouseEnabled(False, False)
            plot.hideButtons()
            plot.setDefaultPadding(0.05)
            self.ci.layout.setColumnStretchFactor(column, 1)
            self.ci.layout.setColumnPreferredWidth(column, 100)  # three of equal width, whatever their titles
            self.plots.append(plot)
        self._curves = {
            n: [self.plots[n].plot(symbolSize=6, symbolPen=None) for _ in "ab"] for n in (_QUALITY, _SPREAD)
        }
        self._lines = {content: self.plots[_HISTOGRAM].plot(connect="finite") for content in ("clean", "noisy", "a")}
        self.plots[_HISTOGRAM].setXRange(-4, 259, padding=0)
        self.plots[_HISTOGRAM].getAxis("left").setStyle(showValues=False)
        self.plots[_QUALITY].setToolTip("How the result improves; of result B the dashed line")
        self.plots[_SPREAD].setToolTip(
            "Mean standard deviation of a pixel, in grey levels; of result B the dashed line"
        )
        self.plots[_HISTOGRAM].setToolTip("How often each grey level occurs, from black (0) to white (255)")
        self.ci.layout.setContentsMargins(4, 4, 8, 2)
        self.handles = {name: pg.InfiniteLine(angle=90, movable=True) for name in ("black", "gamma", "white")}
        for name, handle in self.handles.items():
            handle.setToolTip(f"Drag: what is shown {'half bright' if name == 'gamma' else name}. L: automatically")
            handle.setZValue(5)
            handle.sigPositionChanged.connect(self._dragged)
            self.plots[_HISTOGRAM].addItem(handle, ignoreBounds=True)
        self._tone = PLAIN
        self.show_tone(PLAIN)

    def resizeEvent(self, event: object) -> None:
        """Two plots where there is no room for three."""
        super().resizeEvent(event)
        if self.plots:  # Qt sizes it before it is made
            self._arrange()

    def _arrange(self) -> None:
        """Curves only where there are any to come: a photograph that was denoised in one pass has none."""
        room = self.width() >= _ROOM
        layout = self.ci.layout
        for plot, on in ((_QUALITY, self._curved), (_SPREAD, self._curved and room)):
            if on and not self.plots[plot].isVisible():
                layout.addItem(self.plots[plot], 0, plot)
            elif not on and self.plots[plot].isVisible():
                layout.removeItem(self.plots[plot])  # one that is only hidden keeps its place
            self.plots[plot].setVisible(on)
            layout.setColumnStretchFactor(plot, int(on))
            layout.setColumnPreferredWidth(plot, 100 if on else 0)

    def dress(self, colours: Colours) -> None:
        """The colours of the theme."""
        self._colours = colours
        self.setBackground(colours.window)
        for plot in self.plots:
            for side in ("left", "bottom"):
                plot.getAxis(side).setPen(colours.border)
                plot.getAxis(side).setTextPen(colours.faint)
        for curves in self._curves.values():
            for curve, shade, style in zip(curves, colours.curves, (Qt.SolidLine, Qt.DashLine), strict=False):
                curve.setPen(pg.mkPen(shade, width=2 if style == Qt.SolidLine else 1, style=style))
                curve.setSymbolBrush(shade)
                curve.setZValue(style == Qt.SolidLine)
        for name, handle in self.handles.items():
            shade = {"black": colours.text, "gamma": colours.faint, "white": colours.accent}[name]
            handle.setPen(pg.mkPen(shade, width=2, style=Qt.DashLine if name == "gamma" else Qt.SolidLine))
            handle.setHoverPen(pg.mkPen(colours.accent, width=4))
        for content, shade in zip(("a", "clean", "noisy"), colours.curves, strict=True):
            self._lines[content].setPen(pg.mkPen(shade, width=1))
        self.show_curves(self._last)
        self._draw_histogram()

    def show_tone(self, tone: Tone) -> None:
        """Put the handles where they belong."""
        self._tone = tone
        half = tone.black + (tone.white - tone.black) * 0.5**tone.gamma
        for name, at in (("black", tone.black), ("gamma", half), ("white", tone.white)):
            with QSignalBlocker(self.handles[name]):
                self.handles[name].setValue(at)

    def plain(self) -> None:
        """As the file says."""
        self.show_tone(PLAIN)
        self.tone_changed.emit(PLAIN)

    def _dragged(self, handle: pg.InfiniteLine) -> None:
        """A handle was moved by hand; the others keep what they mean."""
        black, half, white = (self.handles[name].value() for name in ("black", "gamma", "white"))
        gamma = self._tone.gamma
        if handle is self.handles["gamma"]:
            share = min(max((half - black) / max(white - black, 1e-6), 0.02), 0.98)
            gamma = math.log(share) / math.log(0.5)
        elif handle is self.handles["black"]:
            black = min(black, white - 1)
        else:
            white = max(white, black + 1)
        tone = Tone(black, white, gamma)
        self.show_tone(tone)
        self.tone_changed.emit(tone)

    def _title(self, plot: int, text: str) -> None:
        self.plots[plot].setTitle(text, color=self._colours.faint, size="9pt")

    def clear_curves(self) -> None:
        """Another picture: nothing of the last one, nor its axes."""
        self.show_curves(None)
        self._task.stop()
        self._counted({})
        for plot in (_QUALITY, _SPREAD):
            self.plots[plot].setRange(xRange=(0, 1), yRange=(0, 1), disableAutoRange=False)
            self.plots[plot].enableAutoRange()

    def show_curves(self, scene: Scene | None) -> None:
        """Of result A, and thinner of result B; decibels only where the truth is known."""
        self._last = scene
        a, b = (scene.a, scene.b) if scene is not None else (None, None)
        experiment = scene is None or (scene.experiment if a is None else a.plan.experiment)
        known = [steps for s in (a, b) if s is not None for steps, _ in s.curves.values()]
        self._curved = experiment or any(len(steps) > 1 for steps in known)
        self._arrange()
        self._title(_QUALITY, "PSNR, dB" if experiment else "Change, log10")
        self._title(_SPREAD, "Uncertainty")
        for plot, name in ((_QUALITY, "psnr" if experiment else "change"), (_SPREAD, "std")):
            for curve, snapshot in zip(self._curves[plot], (a, b), strict=True):
                steps, values = snapshot.curves[name] if snapshot is not None else ([], [])
                heights = np.log10(np.maximum(values, 1e-3)) if name == "change" else np.array(values)
                curve.setData(np.array(steps), heights)
                curve.setSymbol("o" if len(steps) == 1 else None)

    def show_histogram(self, scene: Scene) -> None:
        """Counted on a thread; only the newest scene that was asked for."""
        self._task.stop()
        self._task = self._threads.start(
            lambda _: histograms(scene), done=self._counted, failed=lambda *_: self._counted({})
        )

    def _counted(self, counts: dict[str, np.ndarray]) -> None:
        self._counts = counts
        self._draw_histogram()

    def _draw_histogram(self) -> None:
        a, b, noisy = self._colours.curves
        shades = {"noisy": noisy, "clean": b, "a": a}
        words = {"noisy": "noisy", "clean": "clean", "a": "result"}
        named = [f"<span style='color: {shades[c]}'>{words[c]}</span>" for c in self._counts]
        self._title(_HISTOGRAM, ", ".join(named) or "Histogram")
        for content, line in self._lines.items():
            line.setData(np.arange(256), self._counts.get(content, np.full(256, np.nan)))
        if self._counts:  # clipped black and white would hide the rest
            top = max(float(counts[1:255].max()) for counts in self._counts.values())
            self.plots[_HISTOGRAM].setYRange(0, max(top, 1e-3), padding=0.03)
