"""The noise of an experiment, as `denoise evaluate --noise` and `denoise --add-noise` name it.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QComboBox, QFormLayout, QLabel, QWidget

from .fields import Fields
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
        self.kind = QComboBox(objectName="noise-kind")
        for key, (title, tip) in _KINDS.items():
            self.kind.addItem(title, key)
            self.kind.setItemData(self.kind.count() - 1, tip, 3)  # Qt.ToolTipRole
        self._form = QFormLayout(self)
        self._form.setContentsMargins(0, 0, 0, 0)
        self._form.setVerticalSpacing(5)
        self._form.setFieldGrowthPolicy(QFormLayout.AllNonFixedFieldsGrow)
        self._form.addRow("Noise", self.kind)
        self.numbers: dict[str, list[Number]] = {}
        self._rows: dict[str, list[QWidget]] = {}
        for kind, numbers in _NUMBERS.items():
            for name, value, tip in numbers:
                field, label = Number(0.0 if name == "Read noise" else 0.01), QLabel(name)
                field.setValue(value)
                field.setToolTip(tip)
                label.setToolTip(tip)
                if name == "JPEG quality":
                    field.setRange(1, 100)
                field.valueChanged.connect(lambda _: self.changed.emit())
                fields.watch(field)
                self._form.addRow(label, field)
                self.numbers.setdefault(kind, []).append(field)
                self._rows.setdefault(kind, []).extend((field, label))
        self.kind.currentIndexChanged.connect(lambda _: self._show())
        self._show()

    @property
    def words(self) -> str:
        """Such as poisson:0.5,3; "" for white noise, whose level is set elsewhere."""
        kind = str(self.kind.currentData())
        return f"{kind}:{','.join(f'{field.value():g}' for field in self.numbers[kind])}" if kind != "white" else ""

    def set_words(self, words: str) -> None:
        """What `words` gave; anything else is left out."""
        kind, _, rest = words.partition(":")
        index = self.kind.findData(kind or "white")
        if index >= 0:
            for field, number in zip(self.numbers.get(kind, []), rest.split(","), strict=False):
                field.setValue(float(number))
            self.kind.setCurrentIndex(index)

    def _show(self) -> None:
        for kind, widgets in self._rows.items():
            for widget in widgets:
                widget.setVisible(kind == self.kind.currentData())
        self.changed.emit()
