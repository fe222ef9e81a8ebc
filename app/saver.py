"""Files out of the window: the same as those of the command line, by the same code.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from qtpy.QtCore import QObject, QSettings, Signal
from qtpy.QtWidgets import QFileDialog, QWidget

from denoiser import images, outputs, panels
from denoiser.files import label, write_bytes
from denoiser.particles import to_csv

from . import dialogs
from .background import Background
from .display import CONTENTS, Scene, caption, render
from .measuring import LEVEL
from .source import Source
from .table import Run, table_csv
from .viewer import Viewer

_NUMBERS = "Numbers (*.png *.tif *.tiff)"


class Kind(NamedTuple):
    """One thing that can be saved."""

    title: str
    ending: str  # of the suggested name
    filter: str
    write: Callable


def _result(target: str, run: Run) -> None:
    s = run.snapshot
    images.write(target, s.mean, images.remarked(s.plan.source.picture, f"{s.noise} removed"))


def _sure(run: Run) -> None:
    sampler = run.snapshot.plan.sampler
    if not sampler.uncertain:
        raise ValueError(f"{sampler.title} gives one picture, and no idea how sure it is")


def _std(target: str, run: Run) -> None:
    _sure(run)
    if run.snapshot.done is not None and target.lower().endswith(".png"):
        raise ValueError("this run was stopped, and a PNG cannot say that numbers are missing: save it as TIFF")
    outputs.write_std(target, run.snapshot.std, run.snapshot.plan.source.grey)


def _residual(target: str, run: Run) -> None:
    s = run.snapshot
    outputs.write_residual(target, s.noisy - s.mean, s.plan.source.grey)


def _samples(target: str, run: Run) -> None:
    _sure(run)
    s = run.snapshot
    if not s.particles:
        raise ValueError(f"there are no particles: {s.outcome.without}")
    outputs.write_samples(target, s.mean, s.std, s.outcome.samples)


def _figure(target: str, pictures: list[tuple[str, np.ndarray]]) -> None:
    images.write_png(target, panels.side_by_side(pictures))


def _csv(text: Callable[[list], str]) -> Callable[[str, list], None]:
    return lambda target, what: write_bytes(target, text(what).encode())


KINDS = {
    "result": Kind("Save the result", "-denoised", "", _result),
    "std": Kind("Save the uncertainty, and a readable map beside it", "-uncertainty.png", _NUMBERS, _std),
    "residual": Kind("Save the residual", "-residual.png", _NUMBERS, _residual),
    "samples": Kind("Save the particles", "-particles.npz", "numpy archive (*.npz)", _samples),
    "figure": Kind("Save the views side by side", "-figure.png", "PNG (*.png)", _figure),
    "numbers": Kind("Save the measurements", "-measured.csv", "CSV (*.csv)", _csv(lambda found: to_csv(found, LEVEL))),
    "table": Kind("Save the table", "-runs.csv", "CSV (*.csv)", _csv(table_csv)),
}


def figure_panels(scene: Scene | None, viewer: Viewer) -> list:
    """What the views show, with captions; a first look is nothing to show to others."""
    if scene is None:
        return []
    scene = replace(scene, looking=False)
    particle = max(view.slider.value() for view in viewer.views)
    drawn = [(f"{CONTENTS[c][0]}  {caption(scene, c)}".strip(), render(scene, c, particle)) for c in viewer.contents()]
    return [(words, pixels) for words, pixels in drawn if pixels is not None]


class Saver(QObject):
    """Asks for names, and writes on a thread."""

    saved = Signal(str)  # a message
    failed = Signal(str, object, str)

    def __init__(self, parent: QWidget, background: Background, settings: QSettings) -> None:
        super().__init__(parent)
        self._window, self._background, self._settings = parent, background, settings
        self.writing = 0

    def save(self, kind: str, what: object, source: Source, then: Callable[[], object] | None = None) -> None:
        """Ask where, ask before anything is replaced, write; `then`, if this is written in the end."""
        title, ending, filter_, write = KINDS[kind]
        home = source.path or str(Path(str(self._settings.value("folder", "") or "")) / "pasted")
        page = f"-page{source.page + 1}" if source.pages > 1 else ""
        name = str(Path(home).with_name(Path(home).stem + page + ending))
        name += source.picture.suffix if not Path(ending).suffix else ""
        filter_ = filter_ or f"Pictures ({' '.join('*' + s for s in images.SUFFIXES)})"
        target, _ = QFileDialog.getSaveFileName(
            self._window, title, name, filter_, options=QFileDialog.DontConfirmOverwrite
        )
        if not target:
            return
        if not Path(target).suffix:
            target += Path(name).suffix
        try:
            self._check(kind, target, source)
        except ValueError as error:
            self.failed.emit("Cannot save", error, "")
            return
        if isinstance(what, Run) and what.snapshot.done is not None:
            choices = "Save all the same", "Cancel"
            share = f"{100 * what.snapshot.finished:.0f} %"
            text = f"Only {share} of the picture is finished; the rest is as noisy as it was. Save it all the same?"
            if dialogs.ask(self._window, "This run was stopped", text, *choices) != choices[0]:
                return
        targets = [target, *([outputs.map_name(target)] if kind == "std" else [])]
        there = [Path(t).name for t in targets if os.path.lexists(t)]
        if there:
            text = f"{' and '.join(there)} {'is' if len(there) == 1 else 'are'} there already. Replace what is there?"
            if dialogs.ask(self._window, "Replace?", text, "Replace", "Cancel") != "Replace":
                return
        lost = images.lost(target, source.picture) if kind == "result" else []
        note = f" (not kept: {'; '.join(lost)})" if lost else ""
        self.writing += 1
        self._background.start(
            lambda _: write(target, what),
            done=lambda _: self._done(kind, what, f"Saved {label(Path(target).name)}{note}", then),
            failed=self._fail,
        )

    @staticmethod
    def _check(kind: str, target: str, source: Source) -> None:
        if source.path and images.same_file(source.path, target):
            raise ValueError(f"{label(target)}: is the picture itself; it is never replaced by its result")
        if kind == "result":
            images.check_target(target, source.picture)
        known = {"std": (".png", ".tif", ".tiff"), "samples": (".npz",), "figure": (".png",)}
        known["residual"] = known["std"]
        if kind in known and not target.lower().endswith(known[kind]):
            raise ValueError(f"{label(Path(target).name)}: must end in {' or '.join(known[kind])}")

    def _done(self, kind: str, what: object, message: str, then: Callable[[], object] | None) -> None:
        self.writing -= 1
        if kind == "result":
            what.saved = True
        self.saved.emit(message)
        if then is not None:
            then()

    def _fail(self, error: BaseException, trace: str) -> None:
        self.writing -= 1
        self.failed.emit("Cannot save", error, trace)
