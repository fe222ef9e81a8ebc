"""The panel on the left: how to work, the noise, the method and its options.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from typing import Any

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QButtonGroup,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from denoiser import pieces
from denoiser.fields import LEARNED, field_names, load_field
from denoiser.presets import QUALITIES
from denoiser.samplers import METHODS, Sampler, make_sampler

from .display import duration
from .fields import Choice, Fields, Fold, Level, column, form, heading
from .noise_panel import AddedNoise, NoisePanel
from .options import OptionsForm
from .session import Plan, preset
from .source import Source, Spot, shown_level

CUSTOM = "custom"
_QUALITY_TIPS = {
    "fast": "Fast: a good first look",
    "normal": "Normal: what most pictures deserve",
    "best": "Best: looks at the picture in eight ways; takes longer",
    CUSTOM: "Custom: options were changed by hand",
}
_SIGMA_TIP = (
    "Noise level (sigma): how far a pixel is typically off, in grey levels.\n"
    "Black is 0, white is 255; 5 is barely seen, 25 is strong."
)


class Controls(QFrame):
    """Everything that decides what a run does."""

    changed = Signal()  # noise, seed or mode: the noisy picture is another one
    mode_changed = Signal()
    method_changed = Signal()  # anything else that changes a preview

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
        self.noise = NoisePanel()
        self._times = 1.0  # of the noise that was measured, by a flat spot
        self.strength = Level(5, 200, "strength", 5)
        self.strength.setToolTip("How much of the noise is removed. Less keeps more grain, more smooths more.")
        self.chroma = Level(5, 300, "chroma", 5)
        self.chroma.setToolTip("How much of the colour noise is removed: dark photographs have more of it.")
        for level in (self.strength, self.chroma):
            level.setDecimals(0)
            level.setValue(100)
        self.seed = QSpinBox(maximum=2_000_000_000, objectName="seed")
        self.seed.setToolTip("Another seed, other random numbers; the same seed, the same result to the last bit")

        qualities = {name: (name.capitalize(), _QUALITY_TIPS.get(name, "")) for name in (*QUALITIES, CUSTOM)}
        self.quality = Choice("quality", qualities)
        self.quality.setToolTip("Sets method, model and options together")
        methods = {name: (sampler.title, (sampler.__doc__ or "").split("\n")[0]) for name, sampler in METHODS.items()}
        self.method = Choice("method", methods)
        priors = {name: (name, "" if name in LEARNED else load_field(name).description) for name in field_names()}
        self.prior = Choice("prior", priors)
        self.prior.setToolTip(
            "What the program knows about pictures: learned is a network's;\n"
            "pairwise and foe3x3 are Markov random fields, the second better and slower"
        )
        self.fields = Fields(self)
        self.options = OptionsForm(self.fields)
        self.added = AddedNoise()
        self._memory = pieces.default_memory() >> 20
        self.memory = QSpinBox(minimum=16, maximum=1 << 20, singleStep=128, suffix=" MB", objectName="memory")
        self.memory.setValue(self._memory)
        self.memory.setToolTip("Larger pictures are cut into tiles, and have no particles. Allow more to have them.")
        self.time_note = QLabel(objectName="faint", alignment=Qt.AlignCenter)
        self.time_note.setToolTip("Measured on this machine just now, on a piece of the picture")
        self._numbers = {
            "sigma": self.sigma, "seed": self.seed, "strength": self.strength, "chroma": self.chroma,
            "memory": self.memory,
        }  # fmt: skip
        self._boxes = {"quality": self.quality, "method": self.method, "prior": self.prior}

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
        self.added.changed.connect(self._mode)
        for widget in (self.strength, self.chroma, self.memory):
            widget.valueChanged.connect(lambda _: self.method_changed.emit())
        self.quality.currentIndexChanged.connect(lambda _: self._preset())
        self.method.currentIndexChanged.connect(lambda _: self._method())
        self.prior.currentIndexChanged.connect(lambda _: self._prior())
        self.options.edited.connect(self._touched)
        self.quality.choose("normal")
        self._mode()

    def _lay_out(self, modes: QHBoxLayout) -> None:
        """Restore: strength, quality, colour; the rest is folded away. Experiment: everything but those two sliders."""
        scroll = QScrollArea(widgetResizable=True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarAlwaysOff)
        inner = QWidget()
        inside = QVBoxLayout(inner)
        inside.setContentsMargins(12, 10, 12, 8)
        inside.setSpacing(6)
        self._strength = form(("&Strength, %", self.strength))
        self._chroma = form(("&Colour, %", self.chroma))
        self._sigma = form(("&Noise level", self.sigma))
        self._sigma.layout().labelForField(self.sigma).setToolTip(_SIGMA_TIP)
        details = column(
            heading("NOISE"), self.added, self._sigma, form(("S&eed", self.seed)), heading("METHOD"),
            form(("Me&thod", self.method), ("Image mo&del", self.prior), ("Memory", self.memory)), self.options,
        )  # fmt: skip
        self.advanced = Fold("Advanced", details, "advanced")
        self._folds = {"advanced": self.advanced, "researcher": self.options.fold}
        inside.addLayout(modes)
        inside.addSpacing(4)
        for part in (self._strength, form(("&Quality", self.quality)), self._chroma, self.noise, self.advanced):
            inside.addWidget(part)
        inside.addStretch(1)
        scroll.setWidget(inner)
        self.fields.watch(inner)
        buttons = QVBoxLayout()
        buttons.setContentsMargins(12, 8, 12, 12)
        buttons.addWidget(self.time_note)
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
        for part in (self._strength, self._chroma, self.noise):
            part.setVisible(not self.experiment)
        self.added.setVisible(self.experiment)
        self._sigma.setVisible(not self.experiment or not self.added.words)
        self.compare_button.setVisible(self.experiment)
        self.advanced.force(self.experiment)
        if self.experiment != self._was_experiment:
            self._was_experiment = self.experiment
            if self.experiment:  # the level of a restoration belongs to its picture
                self.sigma.setValue(self._level)
            else:
                self._level = self.sigma.value()
            self.mode_changed.emit()
        self.changed.emit()

    def plan(self, source: Source, method: str | None = None) -> Plan:
        """What is to be done with a picture; a ValueError where that is not possible."""
        restore = not self.experiment
        return Plan(
            source, self.experiment, round(self.sigma.value(), 2), self.sampler(method),
            self._prior_for(method) if method else self.prior.value, self.seed.value(),
            strength=self.strength.value() / 100 if restore else 1.0,
            chroma=self.chroma.value() / 100 if restore and source.axis is not None else 1.0,
            memory=None if self.memory.value() == self._memory else self.memory.value() << 20,
            times=self._times if restore else 1.0, added="" if restore else self.added.words,
        )  # fmt: skip

    def tell_time(self, mine: float | None, fast: float | None = None) -> None:
        """How long a run will take, in seconds; None while nobody knows."""
        words = "" if mine is None else f"Takes about {duration(mine)}"
        if mine is not None and fast is not None and mine > 20 and fast < mine / 2:
            words += f"; Fast about {duration(fast)}"
        self.time_note.setText(words)

    def take_noise(self, source: Source, spot: Spot | None = None) -> None:
        """The noise that was measured in a noisy picture, or in a flat spot of it."""
        if not self.experiment:
            self._times = 1.0 if spot is None else spot.times
            plain = source.noise is None and spot is not None
            self.sigma.setValue(shown_level(spot.level if plain else source.measured * self._times))
            self.noise.show_noise(source, spot)

    def sampler(self, method: str | None = None) -> Sampler:
        """The method as set up; a ValueError where that is not possible."""
        method = method or self.method.value
        return make_sampler(method, self.options.values(method))

    def _preset(self) -> None:
        if self.quality.value == CUSTOM:
            return
        sampler, prior = preset(self.quality.value)
        self.method.match(sampler.name)
        self.prior.match(prior.name)
        plain = type(sampler)()
        self.options.preset({k: v for k, v in asdict(sampler).items() if v != getattr(plain, k)})
        self.options.show_method(self.method.value)
        self.method_changed.emit()

    def _method(self) -> None:
        self.options.show_method(self.method.value)
        self.prior.match(self._prior_for(self.method.value))
        self._touched()

    def _prior(self) -> None:
        """Another image model: a method that cannot work on it gives way."""
        if METHODS[self.method.value].needs_moments and self.prior.value not in LEARNED:
            self.method.match("mp-svgd")
            self.options.show_method("mp-svgd")
        self._touched()

    def _prior_for(self, method: str) -> str:
        """The chosen image model if the method can work on it, else the usual one; samplers are the paper's."""
        chosen = self.prior.value
        if METHODS[method].needs_moments:
            return chosen if chosen in LEARNED else "learned"
        was_direct = chosen in LEARNED and self.quality.value != CUSTOM
        return "pairwise" if was_direct else chosen

    def _touched(self) -> None:
        self.quality.match(CUSTOM)
        self.method_changed.emit()

    def state(self) -> dict[str, Any]:
        """For the next start."""
        return {
            **{name: field.value() for name, field in self._numbers.items()},
            **{name: box.value for name, box in self._boxes.items()},
            **{name: fold.is_open for name, fold in self._folds.items()},
            "experiment": self.experiment, "preset": self.options.base, "options": self.options.typed,
            "added": self.added.words,
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        """What `state` gave; whatever of it cannot be is left out."""
        for name, field in self._numbers.items():
            with suppress(Exception):
                field.setValue(type(field.value())(state[name]))
        with suppress(Exception):
            self.added.set_words(str(state["added"]))
        for name, fold in self._folds.items():
            fold.set_open(bool(state.get(name)))
        for name, box in self._boxes.items():
            box.choose(state.get(name))
        if state.get("quality") == CUSTOM:
            try:
                self.options.preset(state.get("preset", {}))
                self.options.type(state.get("options", {}))
                for method in METHODS:
                    self.sampler(method)
            except Exception:  # of any kind, also half-way through a form
                self.options.preset({})
                self.options.show_method(self.method.value)
        self.set_mode(bool(state.get("experiment", True)))
