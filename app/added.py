"""The noise of an experiment, as `denoise evaluate --noise` and `denoise --add-noise` name it.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QVBoxLayout, QWidget

from .fields import Choice, Fields, column, form
from .options import Number

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


class AddedNoise(QWidget):
    """Its kind, and the numbers of all but the white one, whose level has a slider of its own."""

    changed = Signal()

    def __init__(self, fields: Fields) -> None:
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
                fields.watch(field)
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
