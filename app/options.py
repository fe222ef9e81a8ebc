"""A form for the options of a method, made from the sampler's dataclass fields.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QCheckBox, QComboBox, QDoubleSpinBox, QFormLayout, QLabel, QSpinBox, QVBoxLayout, QWidget

from denoiser.samplers import METHODS

from .fields import Fields, Fold

#: Plain words for those that everybody may turn; the others are for people who know the method.
_PLAIN = {
    "particles": "Particles: how many candidate pictures are drawn. More are steadier, and slower.",
    "iterations": "Iterations: how often every pixel is gone over. More are closer to the end result.",
    "samples": "How many candidate pictures are drawn and averaged. More are steadier, and slower.",
    "weight": "How strongly the picture is smoothed, as a multiple of the noise level.",
}


class Number(QDoubleSpinBox):
    """A spin box for small and large numbers: shows 0.001 as such and 1e-06 as such."""

    def __init__(self, low: float | None) -> None:
        super().__init__(decimals=9, maximum=1e9)
        self.setMinimum(-1e9 if low is None else low)

    def textFromValue(self, value: float) -> str:
        """Without the zeros at the end."""
        return f"{value:g}"

    def stepBy(self, steps: int) -> None:
        """By a tenth of what there is, rounded to one digit."""
        size = 10 ** int(f"{abs(self.value()) or 0.1:.0e}".split("e")[1])
        self.setSingleStep(size if steps > 0 or abs(self.value()) > size else size / 10)
        super().stepBy(steps)


def editor(kind: type, spec: Any) -> QWidget:
    """The widget for a field."""
    low, choices = spec.metadata["low"], spec.metadata["choices"]
    if choices:
        box = QComboBox()
        box.addItems(choices)
        return box
    if kind is bool:
        return QCheckBox()
    if kind is int:
        return QSpinBox(minimum=int(low or 0), maximum=1_000_000)
    return Number(low)


class OptionsForm(QWidget):
    """The options of one method; what was typed for another is kept. Those for researchers are folded away."""

    edited = Signal()

    def __init__(self, fields: Fields) -> None:
        super().__init__()
        self._fields = fields
        self.method = ""
        self.editors: dict[str, QWidget] = {}
        self.base: dict[str, Any] = {}
        self._typed: dict[str, dict[str, Any]] = {}
        self._form, more = QFormLayout(), QWidget()
        self._more = QFormLayout(more)
        for form in (self._form, self._more):
            form.setContentsMargins(0, 0, 0, 0)
            form.setVerticalSpacing(4)
            form.setFieldGrowthPolicy(QFormLayout.AllNonFixedFieldsGrow)
        self.fold = Fold("For researchers", more, "more-options")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addLayout(self._form)
        layout.addWidget(self.fold)

    def preset(self, values: dict[str, Any]) -> None:
        """Forget what was typed; these values go before the methods' defaults, in the next form that is made."""
        self.base, self._typed = dict(values), {}

    def values(self, method: str) -> dict[str, Any]:
        """The options of a method as they stand."""
        known = METHODS[method].options()
        defaults = {name: spec.default for name, (_, spec) in known.items()}
        preset = {name: value for name, value in self.base.items() if name in known}
        return {**defaults, **preset, **self._typed.get(method, {})}

    @property
    def typed(self) -> dict[str, dict[str, Any]]:
        """Method -> what was changed by hand."""
        return {method: dict(values) for method, values in self._typed.items() if values}

    def type(self, typed: dict[str, dict[str, Any]]) -> None:
        """As if these had been typed; what no method has is left out."""
        for method, values in typed.items():
            known = METHODS[method].options() if method in METHODS else {}
            self._typed[method] = {n: v for n, v in values.items() if n in known and isinstance(v, known[n][0])}
        self.show_method(self.method)

    def show_method(self, method: str) -> None:
        """Make the form of a method."""
        for form in (self._form, self._more):
            while form.rowCount():
                form.removeRow(0)
        self.method, self.editors = method, {}
        now = self.values(method)
        for name, (kind, spec) in METHODS[method].options().items():
            widget = editor(kind, spec)
            holds = widget.metaObject().userProperty()  # its value, whatever kind of widget it is
            holds.write(widget, now[name])
            meaning = spec.metadata["meaning"]
            tip = _PLAIN.get(name, meaning[0].upper() + meaning[1:] + ".")
            label = QLabel(name.replace("_", " ").capitalize())
            for part in (widget, label):
                part.setToolTip(f"{tip}\nDefault: {spec.default}")
            widget.setObjectName(f"option-{name}")
            changed = getattr(widget, bytes(holds.notifySignal().name()).decode())
            changed.connect(lambda value, name=name: self._edit(name, value))
            self._fields.watch(widget)
            (self._form if name in _PLAIN else self._more).addRow(label, widget)
            self.editors[name] = widget
        self.fold.setVisible(self._more.rowCount() > 0)
        if not self.editors:
            self._form.addRow(QLabel("This method has no options."))

    def _edit(self, name: str, value: Any) -> None:
        self._typed.setdefault(self.method, {})[name] = value
        self.edited.emit()
