"""The panel on the left: how to work, the noise, the method and its options.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QButtonGroup,
    QComboBox,
    QFormLayout,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from denoiser.presets import QUALITIES, choose
from denoiser.priors import available_priors, load_prior
from denoiser.samplers import METHODS, Sampler, make_sampler

from .fields import Fields, Level
from .options import OptionsForm

CUSTOM = "custom"
_QUALITY_TIPS = {
    "fast": "Fast: a good first look",
    "normal": "Normal: what most pictures deserve",
    "best": "Best: a richer image model; takes longer",
    CUSTOM: "Custom: options were changed by hand",
}
_SIGMA_TIP = (
    "Noise level (sigma): how far a pixel is typically off, in grey levels.\n"
    "Black is 0, white is 255; 5 is barely seen, 25 is strong."
)


def _heading(text: str) -> QLabel:
    return QLabel(text, objectName="heading")


class Controls(QFrame):
    """Everything that decides what a run does."""

    changed = Signal()  # noise, seed or mode: the noisy picture is another one
    mode_changed = Signal()
    method_changed = Signal()  # anything else that changes a preview
    finished = Signal()  # typing has come to an end

    def __init__(self) -> None:
        super().__init__(objectName="side")
        self.experiment_button = QPushButton("Experiment", checkable=True, checked=True, objectName="left")
        self.experiment_button.setToolTip(
            "The picture is taken as clean: noise is added to it, and the result is measured against it  (Ctrl+1)"
        )
        self.restore_button = QPushButton("Restore", checkable=True, objectName="right")
        self.restore_button.setToolTip("The picture itself is noisy: its noise is measured, and removed  (Ctrl+2)")
        self._modes = QButtonGroup(self)
        modes = QHBoxLayout(spacing=0)
        for button in (self.experiment_button, self.restore_button):
            self._modes.addButton(button)
            modes.addWidget(button)

        self.sigma = Level(0.1, 100, "sigma")
        self.sigma.setValue(20)
        self.sigma.setToolTip(_SIGMA_TIP)
        self.measure_button = QPushButton("Measure", objectName="measure")
        self.measure_button.setToolTip("Measure the noise level in the picture  (Ctrl+M)")
        self.noise_note = QLabel(objectName="faint", wordWrap=True)
        self.seed = QSpinBox(maximum=2_000_000_000, objectName="seed")
        self.seed.setToolTip("Another seed, other random numbers; the same seed, the same result to the last bit")

        self.quality = QComboBox(objectName="quality")
        for name in (*QUALITIES, CUSTOM):
            self.quality.addItem(name.capitalize(), name)
            self.quality.setItemData(self.quality.count() - 1, _QUALITY_TIPS.get(name, ""), Qt.ToolTipRole)
        self.quality.setToolTip("Sets method, model and options together")
        self.method = QComboBox(objectName="method")
        for name, sampler in METHODS.items():
            self.method.addItem(sampler.title, name)
            tip = (sampler.__doc__ or "").split("\n")[0]
            self.method.setItemData(self.method.count() - 1, tip, Qt.ToolTipRole)
        self.prior = QComboBox(objectName="prior")
        for name in available_priors():
            self.prior.addItem(name, name)
            self.prior.setItemData(self.prior.count() - 1, load_prior(name).description, Qt.ToolTipRole)
        self.prior.setToolTip("What the program knows about pictures: pairwise is fast, foe3x3 better and slower")
        self.fields = Fields(self)
        self.fields.finished.connect(self.finished)
        self.options = OptionsForm(self.fields)
        for widget in (self.sigma, self.seed):
            self.fields.watch(widget)

        self.run_button = QPushButton("Run", objectName="primary", enabled=False)
        self.cancel_button = QPushButton("Cancel", enabled=False)
        self.preview_button = QPushButton("Preview", checkable=True, enabled=False)
        self.compare_button = QPushButton("Compare all", enabled=False)
        for button in (self.run_button, self.cancel_button, self.preview_button, self.compare_button):
            button.setFocusPolicy(Qt.TabFocus)  # a click leaves the keys to the pictures

        self._lay_out(modes)
        self._was_experiment, self._level = True, 20.0  # the mode before, and the level of the last experiment
        self._modes.buttonClicked.connect(lambda _: self._mode())
        self.sigma.valueChanged.connect(lambda _: self.changed.emit())
        self.seed.valueChanged.connect(lambda _: self.changed.emit())
        self.quality.currentIndexChanged.connect(lambda _: self._preset())
        self.method.currentIndexChanged.connect(lambda _: self._method())
        self.prior.currentIndexChanged.connect(lambda _: self._touched())
        self.options.edited.connect(self._touched)
        self.quality.setCurrentIndex(self.quality.findData("normal"))
        self._mode()

    def _lay_out(self, modes: QHBoxLayout) -> None:
        level, noise, method = QFormLayout(), QFormLayout(), QFormLayout()
        level.addRow("&Noise level", self.sigma)
        level.labelForField(self.sigma).setToolTip(_SIGMA_TIP)
        under = QHBoxLayout()
        under.addWidget(self.noise_note, 1)
        under.addWidget(self.measure_button)
        noise.addRow("S&eed", self.seed)
        for text, widget in (("&Quality", self.quality), ("Me&thod", self.method), ("Image mo&del", self.prior)):
            method.addRow(text, widget)
        scroll = QScrollArea(widgetResizable=True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarAlwaysOff)
        inner = QWidget()
        inside = QVBoxLayout(inner)
        inside.setContentsMargins(12, 10, 12, 8)
        inside.setSpacing(5)
        for form in (noise, method):
            form.setVerticalSpacing(5)
        inside.addLayout(modes)
        for part in (_heading("NOISE"), level, under, noise, _heading("METHOD"), method,
                     _heading("OPTIONS"), self.options):  # fmt: skip
            if part.__class__ is QLabel and part.objectName() == "heading":
                inside.addSpacing(6)
            (inside.addWidget if isinstance(part, QWidget) else inside.addLayout)(part)
        inside.addStretch(1)
        scroll.setWidget(inner)
        buttons = QVBoxLayout()
        buttons.setContentsMargins(12, 8, 12, 12)
        buttons.addWidget(self.run_button)
        row = QHBoxLayout()
        for button in (self.cancel_button, self.preview_button, self.compare_button):
            row.addWidget(button)
        buttons.addLayout(row)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(scroll, 1)
        layout.addLayout(buttons)
        self.setFixedWidth(304)

    @property
    def experiment(self) -> bool:
        """Whether noise is added."""
        return bool(self.experiment_button.isChecked())

    def set_mode(self, experiment: bool) -> None:
        """As a click on one of the two buttons."""
        (self.experiment_button if experiment else self.restore_button).setChecked(True)
        self._mode()

    def _mode(self) -> None:
        self.measure_button.setVisible(not self.experiment)
        self.tell_noise(None)
        if self.experiment != self._was_experiment:
            self._was_experiment = self.experiment
            if self.experiment:  # the level of a restoration belongs to its picture
                self.sigma.setValue(self._level)
            else:
                self._level = self.sigma.value()
            self.mode_changed.emit()
        self.changed.emit()

    def tell_noise(self, measured: float | None) -> None:
        """What is known about the noise level."""
        if self.experiment:
            self.noise_note.setText("So much noise is added to the picture, which is taken as clean.")
        elif measured is not None:
            self.noise_note.setText(f"{measured:g} was measured in the picture.")
        else:
            self.noise_note.setText("")

    def sampler(self, method: str | None = None) -> Sampler:
        """The method as set up; a ValueError where that is not possible."""
        method = method or str(self.method.currentData())
        return make_sampler(method, self.options.values(method))

    def _preset(self) -> None:
        name = self.quality.currentData()
        if name == CUSTOM:
            return
        sampler, prior = choose(name)
        for box, value in ((self.method, sampler.name), (self.prior, prior.name)):
            box.blockSignals(True)
            box.setCurrentIndex(box.findData(value))
            box.blockSignals(False)
        plain = type(sampler)()
        self.options.preset({k: v for k, v in asdict(sampler).items() if v != getattr(plain, k)})
        self.options.show_method(str(self.method.currentData()))
        self.method_changed.emit()

    def _method(self) -> None:
        self.options.show_method(str(self.method.currentData()))
        self._touched()

    def _touched(self) -> None:
        self.quality.blockSignals(True)
        self.quality.setCurrentIndex(self.quality.findData(CUSTOM))
        self.quality.blockSignals(False)
        self.method_changed.emit()

    def state(self) -> dict[str, Any]:
        """For the next start."""
        return {
            "experiment": self.experiment, "sigma": self.sigma.value(), "seed": self.seed.value(),
            "quality": self.quality.currentData(), "method": self.method.currentData(),
            "prior": self.prior.currentData(), "preset": self.options.base, "options": self.options.typed,
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        """What `state` gave; whatever of it no longer exists is left out."""
        self.sigma.setValue(float(state.get("sigma", 20)))
        self.seed.setValue(int(state.get("seed", 0)))
        for box, key in ((self.quality, "quality"), (self.method, "method"), (self.prior, "prior")):
            index = box.findData(state.get(key))
            if index >= 0:
                box.setCurrentIndex(index)
        if state.get("quality") == CUSTOM:
            self.options.preset(state.get("preset", {}))
            self.options.type(state.get("options", {}))
        self.set_mode(bool(state.get("experiment", True)))
