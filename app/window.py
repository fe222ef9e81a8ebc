"""The window: wires the parts together and computes nothing.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from qtpy.QtCore import QSettings, QTimer
from qtpy.QtWidgets import QApplication

from denoiser.samplers import METHODS

from . import dialogs
from .background import IDLE
from .display import Scene, levels, progress_words
from .estimate import Estimator
from .looker import Looker
from .runner import Runner
from .saver import Saver, figure_panels
from .session import Plan, Snapshot
from .shell import Shell
from .source import Source
from .table import Run
from .tone import PLAIN, Tone, auto, few
from .wiring import connect, enable

_CLOSE_SECONDS = 0.3  # how long a closing window waits for its threads


class Window(Shell):
    """What happens: pictures come in, runs are done, results are looked at and saved."""

    def __init__(self, settings: QSettings | None = None) -> None:
        super().__init__(settings)
        self.runner = Runner(self.background, self)
        self.saver = Saver(self, self.background, self.settings)
        self.scene: Scene | None = None
        self.a: Run | None = None
        self.b: Run | None = None
        self.tone = PLAIN
        self.idle_at_close = True  # whether all threads had ended when the window closed
        self._noise = IDLE
        self._may_close = False  # the user has been asked
        self._save_next: Callable[[], object] | None = None  # what follows the save that follows this run
        self._pending = ""  # a file that waits for the answer to the first question
        self.estimator = Estimator(self.background, self)
        self.looker = Looker(self.background, self.viewer, self)
        self.redo_noise = QTimer(self, singleShot=True, interval=60, timeout=self._make_noise)
        connect(self)
        self.restore()
        self.update_state()

    # ---------------------------------------------------------------------------------- pictures

    def open(self, path: str, page: int = 0) -> None:
        """A file, a page of it, or a folder; at the first start, when the user has said what for."""
        if self.welcome.asking:
            self._pending = path
            self.welcome.waiting(Path(path).name)
            return
        self.leave("Open another picture", partial(self.opener.open, path, page))

    def take(self, data: object) -> None:
        """What was dropped or pasted."""
        self.welcome.settle()  # whoever drops a picture has seen what there is
        take = self.opener.taker(data)
        if take is None:
            self.report("Nothing to paste", ValueError("there is no picture on the clipboard"), "")
        else:
            self.leave("Open another picture", take)

    def dragEnterEvent(self, event: object) -> None:
        """Pictures and folders are welcome."""
        if self.opener.welcome(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: object) -> None:
        """Open it."""
        event.acceptProposedAction()
        self.take(event.mimeData())

    def answered(self, experiment: bool) -> None:
        """What the user came for."""
        self.controls.set_mode(experiment)
        path, self._pending = self._pending, ""
        if path:
            self.open(path)
        elif not experiment:
            self.opener.choose_file()

    def opened(self, source: Source) -> None:
        """A picture is there."""
        self.runner.clear()
        self.looker.end()
        self.measuring.clear()  # the pencil, too
        self.source, self.scene, self.a, self.b = source, None, None, None
        self.setWindowTitle(f"{source.name} – Denoise")
        self.controls.chroma.setEnabled(source.axis is not None)
        self.pages.setCurrentWidget(self.viewer)
        self.viewer.take_keys()
        self.plots.clear_curves()
        self.set_tone(source.tone)
        self.readout.setText("")
        self.about_picture.setText(source.description)
        if self.controls.experiment:
            self._make_noise()
        else:
            self._show(Scene(source, False, source.pixels, tone=self.tone))
            self.plots.show_histogram(self.scene)
            self.measure()
        self.asked_anew()

    def _plan(self) -> Plan | None:
        """What the controls ask for."""
        return None if self.source is None else self.controls.plan(self.source)

    def _make_noise(self) -> None:
        plan = self._plan()
        if plan is None:
            return
        self._noise.stop()
        a, b = (self.scene.a, self.scene.b) if self.scene else (None, None)

        def done(noisy: object) -> None:
            if plan.source is self.source:
                self._show(self._scene(plan, noisy, a, b))
                self.plots.show_histogram(self.scene)
                self.update_state()
                self.preview()

        self._noise = self.background.start(
            lambda _: plan.noisy(), done=done, failed=partial(self.report, "Noise could not be added")
        )

    def asked_anew(self) -> None:
        """Another plan: how long will it take, and, of a noisy picture, what will become of it?"""
        plan = None if self.runner.running else self._plan()
        self.estimator.ask(plan)
        if plan is not None and plan.experiment:
            self.looker.end()
        elif plan is not None and self.scene is not None:
            self.looker.begin(plan)

    def looked(self) -> None:
        """The first look has begun, gone on or ended."""
        if self.scene is not None and self.scene.looking != self.looker.on:
            self._show(replace(self.scene, looking=self.looker.on))
            self.tell("")
        self.update_state()
        if self.looker.on and not self.runner.running:
            self.tell(f"First look, {100 * self.looker.share:.0f} %" if self.looker.busy else "First look")

    def _scene(self, plan: Plan, noisy: object, a: Snapshot | None, b: Snapshot | None) -> Scene:
        return Scene(plan.source, plan.experiment, noisy, a, b, self.tone, self.looker.on)

    def set_tone(self, tone: Tone) -> None:
        """Other black, white and gamma on the screen."""
        self.tone = tone
        self.plots.show_tone(tone)
        self.looker.set_tone(tone)
        if self.scene is not None:
            self._show(replace(self.scene, tone=tone))

    def auto_tone(self) -> None:
        """Show nearly all that there is between black and white."""
        if self.scene is not None:
            values = self.scene.noisy if self.scene.a is None else self.scene.a.mean
            self.set_tone(auto(levels(few(values), self.scene.source)))

    def _show(self, scene: Scene) -> None:
        self.scene = scene
        self.viewer.set_scene(scene)
        self.plots.show_curves(scene)

    # -------------------------------------------------------------------------------------- runs

    def run(self) -> None:
        """Denoise."""
        self._start(None)

    def compare(self) -> None:
        """All methods."""
        self._start(*METHODS)

    def _start(self, *methods: str | None) -> None:
        if self.source is not None:
            plans = [self.controls.plan(self.source, method) for method in methods]
            self.estimator.stop()
            self.looker.end()
            self.runner.start(plans)

    def cancel(self) -> None:
        """Put the pencil away, or stop at once."""
        if self.measuring.pencil.kind:
            self.measuring.pencil.put_away()
        elif self.runner.running:
            self._save_next = None
            self.tell("Cancelled before there was a result")
            self.runner.cancel()

    def progressed(self, snapshot: Snapshot) -> None:
        """Show how far a run is."""
        self.progress.setRange(0, snapshot.total)
        self.progress.setValue(snapshot.step)
        self.tell(progress_words(snapshot, *self.runner.batch))
        b = self.b or self.a
        self._show(self._scene(snapshot.plan, snapshot.noisy, snapshot, b.snapshot if b else None))

    def added(self, run: Run) -> None:
        """A run has ended: it is result A."""
        self.a, self.b = run, self.a if self.a is not run else self.b
        self.tell(f"{'Done' if run.snapshot.complete else 'Stopped'} after {run.snapshot.seconds:.1f} s")
        then, self._save_next = self._save_next, None
        if then is not None and run.snapshot.complete:
            QTimer.singleShot(0, partial(self.save, "result", then))

    def choose(self, run: Run, as_b: bool) -> None:
        """Show a run of the table."""
        self.looker.end()
        if as_b:
            self.b, self.a = run, self.a if self.a is not run else self.b
            if "b" not in self.viewer.contents():
                self.viewer.views[0].choose("b")
        else:
            self.a, self.b = run, self.b if self.b is not run else self.a
        self.update_state()

    def measurable(self) -> tuple | None:
        """What is measured: result A, or what the controls would make of the picture."""
        snapshot = self.a.snapshot if self.a is not None else None
        plan = snapshot.plan if snapshot else self._plan()
        return None if self.scene is None else (plan, snapshot, self.scene.noisy)

    def exchange(self) -> None:
        """A for B."""
        if self.b is not None:
            self.a, self.b = self.b, self.a
            self.update_state()

    def show_region(self) -> None:
        """The frame of the preview, on or off."""
        on = self.acts["show_region"].isChecked() and self.source is not None
        self.acts["show_region"].setChecked(on)
        self.controls.preview_button.setChecked(on)
        self.viewer.show_region(on)
        if not on:
            self.runner.stop_preview()
        self.update_state()

    def preview(self) -> None:
        """Compute the frame of the preview anew."""
        plan = self._plan() if self.acts["show_region"].isChecked() else None
        if plan is not None and self.scene is not None:
            self.runner.preview(plan, self.viewer.region)

    # ------------------------------------------------------------------------------------- state

    def update_state(self) -> None:
        """Make everything on the screen say what is so."""
        runs, running = self.runner.runs, self.runner.running
        self.a = self.a if self.a in runs else (runs[-1] if runs else None)
        self.b = self.b if self.b in runs and self.b is not self.a else None
        if self.scene is not None and not running:
            a, b = (run.snapshot if run else None for run in (self.a, self.b))
            if (self.scene.a, self.scene.b) != (a, b):
                self._show(replace(self.scene, a=a, b=b))
                self.plots.show_histogram(self.scene)
                self.measuring.refresh()
        if running and self.runner.live is not None:  # the run that goes on is what is shown as A
            self.table.show_runs(runs, None, self.b or self.a)
        else:
            self.table.show_runs(runs, self.a, self.b)
        enable(self)
        busy = running or self.runner.previewing or self.looker.busy
        if running and self.runner.live is None:
            self.tell("Compiling for this machine, only this once…" if self.runner.compiling else "Starting…")
        if self.runner.live is None:
            self.progress.setRange(0, 0)
        self.progress.setVisible(busy)

    # -------------------------------------------------------------------------- saving, and the end

    def save(self, kind: str, then: Callable[[], object] | None = None) -> None:
        """One of saver.KINDS; `then`, if it is written in the end."""
        if self.source is None:
            return
        if kind == "result" and (self.a is None or self.looker.on):  # what is seen is but a first look: the whole first
            self._save_next = then or (lambda: None)
            self.run()
            return
        others = {
            "table": self.table.runs,
            "numbers": lambda: self.measuring.numbers,
            "figure": lambda: figure_panels(self.scene, self.viewer),
        }
        what: object = others[kind]() if kind in others else self.a
        if what:
            self.saver.save(kind, what, self.source, then)

    def leave(self, what: str, then: Callable[[], object]) -> None:
        """Do `then`, after a question if results would be lost: at once, when A has been saved, or not at all."""
        lost = self.runner.unsaved
        if not lost:
            then()
            return
        save = ("Save result A",) if self.a is not None and not self.a.saved and not self.runner.running else ()
        answer = dialogs.ask(self, f"{what}?", lost, *save, "Discard", "Cancel")
        if answer == "Discard":
            then()
        elif answer != "Cancel":
            self.looker.end()  # which is not what was asked about
            self.save("result", then)

    def end(self, code: int = 0) -> None:
        """Close without a question, as Ctrl-C does."""
        self._may_close = True
        self.close()
        QApplication.exit(code)

    def _close_unasked(self) -> None:
        self._may_close = True
        QTimer.singleShot(0, self.close)  # a window that is being asked to close cannot be closed

    def closeEvent(self, event: object) -> None:
        """Ask about what is not saved; stop the threads; remember the settings."""
        if not self._may_close and self.runner.unsaved:
            event.ignore()
            self.leave("Close", self._close_unasked)
            return
        self.store()
        self.redo_noise.stop()
        self.estimator.stop()
        self.looker.stop()
        self.background.wait_for(lambda: not self.saver.writing, 60)  # a file is written to its end
        self.runner.clear()
        self.idle_at_close = self.background.stop_all(_CLOSE_SECONDS)
        super().closeEvent(event)
