"""The noise in the panel: what is known about that of a noisy picture, and what is added in an experiment.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from .fields import Choice, column, form
from .options import Number
from .source import Source, Spot
from .theme import LIGHT, Colours

_INKS = ("#d8504d", "#3fa35a", "#4c8dff")  # of red, green and blue
_KINDS = {
    "white": ("White", "The same everywhere, every pixel for itself"),
    "poisson": ("Photons (Poisson)", "Grows with the square root of the brightness, as few photons make it"),
    "camera": ("Camera", "Mosaic, shot and read noise, demosaicing, tone curve and JPEG: coarse and coloured"),
}
#: Kind -> its numbers: name, the value to begin with, what it means.
_NUMBERS = {
    "poisson": (
        ("Gain", 1.0, "Grey levels that one photon adds: more is noisier"),
        ("Read noise", 2.0, "Standard deviation in the dark, in grey levels"),
    ),
    "camera": (("ISO", 3200.0, "As on a camera: more is noisier"), ("JPEG quality", 95.0, "From 1 to 100")),
}


class NoisePanel(QWidget):
    """Standard deviation against brightness, the grain in words, and the buttons that measure."""

    def __init__(self) -> None:
        super().__init__()
        self._colours = LIGHT
        self._last: tuple[Source | None, Spot | None] = None, None
        self.plot = pg.PlotWidget(enableMenu=False)
        self.plot.setMouseEnabled(False, False)
        self.plot.hideButtons()
        self.plot.setFixedHeight(120)
        self.plot.setToolTip("How far a pixel is typically off, by how bright it is: both in grey levels of 255")
        self.words = QLabel(objectName="faint", wordWrap=True)
        self.spot_button = QPushButton("Measure a spot", checkable=True, objectName="spot")
        self.spot_button.setToolTip(
            "Draw a rectangle where the picture is plain, such as a wall or the sky: the noise is measured there  (N)"
        )
        self.measure_button = QPushButton("Measure all", objectName="measure")
        self.measure_button.setToolTip("The noise as it was measured in the whole picture  (Ctrl+M)")
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        for button in (self.spot_button, self.measure_button):
            button.setFocusPolicy(Qt.TabFocus)
            row.addWidget(button, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self.plot)
        layout.addWidget(self.words)
        layout.addLayout(row)

    def show_noise(self, source: Source | None, spot: Spot | None = None) -> None:
        """The noise that was measured in a picture, and in a rectangle of it."""
        self._last = source, spot
        self.plot.clear()
        self.plot.setVisible(source is not None and source.noise is not None)
        self.words.setText(say(source, spot) if source is not None else "")
        if source is None or source.noise is None:
            return
        times = 1.0 if spot is None else spot.times
        ends = [b for channel in source.noise.channels for b in channel.brightness]
        flat = max(ends) == min(ends)  # the same from black to white
        brightness = (
            source.black + np.array([0.0, 255.0]) * source.grey if flat else np.linspace(min(ends), max(ends), 65)
        )
        x = (brightness - source.black) / source.grey
        curves = times * source.noise.curve(brightness) / source.grey
        inks = _INKS if len(curves) == 3 else (self._colours.curves[0],)
        for curve, ink in zip(curves, inks, strict=False):
            self.plot.plot(x, curve, pen=pg.mkPen(ink, width=2))
        if spot is not None:
            self.plot.plot([spot.brightness], [spot.level], pen=None, symbol="o", symbolSize=8, symbolPen=None,
                           symbolBrush=self._colours.curves[1])  # fmt: skip
        top = max(float(curves.max()), spot.level if spot is not None else 0.0)
        self.plot.setRange(xRange=(0, 255), yRange=(0, max(1.15 * top, 0.1)), padding=0.02)

    def dress(self, colours: Colours) -> None:
        """The colours of the theme."""
        self._colours = colours
        self.plot.setBackground(colours.window)
        for side, words in (("left", "noise"), ("bottom", "brightness")):
            axis = self.plot.getAxis(side)
            axis.setPen(colours.border)
            axis.setTextPen(colours.faint)
            axis.setLabel(words, color=colours.faint)
        self.show_noise(*self._last)


def say(source: Source, spot: Spot | None) -> str:
    """The noise in a line for people."""
    if spot is not None:
        than = f", {spot.times:.2g} times what was measured in the whole" if source.noise is not None else ""
        return f"Noise {spot.level:.1f} grey levels in your rectangle{than}."
    if source.noise is None:
        return "No noise was found. Draw a flat spot, or set the level under Advanced."
    words = str(source.noise)
    return f"{words[0].upper()}{words[1:]}."


class AddedNoise(QWidget):
    """The noise of an experiment, as `denoise evaluate --noise` and `denoise --add-noise` name it.

    Its kind, and the numbers of all but the white one, whose level has a slider of its own.
    """

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.kind = Choice("noise-kind", _KINDS)
        self.numbers: dict[str, list[Number]] = {}
        self._forms: dict[str, QWidget] = {}
        for kind, numbers in _NUMBERS.items():
            self.numbers[kind] = [_field(*number) for number in numbers]
            names = [name for name, *_ in numbers]
            self._forms[kind] = form(*zip(names, self.numbers[kind], strict=True))
            for field in self.numbers[kind]:
                field.valueChanged.connect(lambda _: self.changed.emit())
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(column(form(("Noise", self.kind)), *self._forms.values()))
        self.kind.currentIndexChanged.connect(lambda _: self._show())
        self._show()

    @property
    def words(self) -> str:
        """Such as poisson:0.5,3; "" for white noise, whose level is set elsewhere."""
        kind = self.kind.value
        return f"{kind}:{','.join(f'{field.value():g}' for field in self.numbers[kind])}" if kind != "white" else ""

    def set_words(self, words: str) -> None:
        """What `words` gave; anything else is left out."""
        kind, _, rest = words.partition(":")
        for field, number in zip(self.numbers.get(kind, []), rest.split(","), strict=False):
            field.setValue(float(number))
        self.kind.choose(kind or "white")

    def _show(self) -> None:
        for kind, numbers in self._forms.items():
            numbers.setVisible(kind == self.kind.value)
        self.changed.emit()


def _field(name: str, value: float, tip: str) -> Number:
    field = Number(0.0 if name == "Read noise" else 0.01)
    if name == "JPEG quality":
        field.setRange(1, 100)
    field.setValue(value)
    field.setToolTip(tip)
    return field
