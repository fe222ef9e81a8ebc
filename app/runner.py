"""Runs one after the other, the preview beside them, and the list of what came of them.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

from functools import partial

from qtpy.QtCore import QObject, QTimer, Signal

from denoiser import jit
from denoiser.pieces import Region

from . import session
from .background import IDLE, Background
from .session import Plan, Snapshot
from .table import Run, save_memory


class Runner(QObject):
    """What is running, and what has been run on this picture."""

    state_changed = Signal()  # began, ended, or the list changed
    progressed = Signal(object)  # Snapshot
    added = Signal(object)  # Run
    previewed = Signal(object, object)  # Region, its mean
    failed = Signal(str, object, str)  # title, error, traceback
    compiling = False

    def __init__(self, background: Background, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._background = background
        self.runs: list[Run] = []
        self.undone: list[Run] = []
        self.queue: list[Plan] = []
        self.queued = 0  # plans of this batch
        self.live: Snapshot | None = None
        self._task = self._preview = IDLE
        self._numbers = 0
        self._look = QTimer(self, interval=500, timeout=self._still_starting)

    @property
    def running(self) -> bool:
        """Whether a run is under way."""
        return self._task.busy

    @property
    def batch(self) -> tuple[int, int]:
        """Which run of how many."""
        return self.queued - len(self.queue), self.queued

    @property
    def unsaved(self) -> str:
        """What would be lost with this picture, in words; "" for nothing."""
        count = sum(not run.saved for run in self.runs)
        words = [f"{count} result{'s are' if count > 1 else ' is'} not saved."] if count else []
        return " ".join([*words, "A run is under way."] if self.running else words)

    # ---------------------------------------------------------------------------------------- runs

    def start(self, plans: list[Plan]) -> None:
        """Do these, one after the other."""
        if self.running or not plans:
            return
        self.stop_preview()
        self.queue, self.queued = list(plans), len(plans)
        self._next()

    def _next(self) -> None:
        self.live = None
        if self.queue:
            plan = self.queue.pop(0)
            self._task = self._background.start(
                lambda task: session.execute(plan, task),
                step=self._step,
                done=lambda _: self._end(),
                failed=lambda error, trace: self._fail(plan, error, trace),
                heavy=True,
            )
            self._look.start()
        self.state_changed.emit()

    def _still_starting(self) -> None:
        """Say so, when kernels are being compiled."""
        if self.running and self.live is None:
            self.state_changed.emit()
        else:
            self._look.stop()

    def _step(self, snapshot: Snapshot) -> None:
        Runner.compiling = False
        first, self.live = self.live is None, snapshot
        if first:  # from now on it is this run that is shown
            self.state_changed.emit()
        self.progressed.emit(snapshot)

    def _end(self) -> None:
        self._keep()
        self._next()

    def _fail(self, plan: Plan, error: BaseException, trace: str) -> None:
        self._keep()  # what there was before it failed
        self.failed.emit(f"{plan.sampler.title} failed", error, trace)
        self._next()  # the others of "compare all" may do better

    def cancel(self) -> None:
        """Over at once, for all that are queued; what has been computed stays."""
        if not self.running:
            return
        self.queue.clear()
        self.live = self._task.stop() or self.live
        self._end()

    def _keep(self) -> None:
        """Add the run that was under way to the list; of a picture in tiles there may be nothing yet."""
        snapshot = self.live
        if snapshot is None or snapshot.finished == 0:
            return
        self._numbers += 1
        run = Run(self._numbers, snapshot)
        self.runs.append(run)
        self.undone.clear()
        self.added.emit(run)

        def scored(full: Snapshot) -> None:
            run.snapshot = full
            save_memory(self.runs)
            self.state_changed.emit()

        self._background.start(
            lambda _: session.finish(snapshot),
            done=scored,
            failed=partial(self.failed.emit, "The result could not be measured"),
        )

    def undo(self) -> None:
        """Take the last run back."""
        if self.runs:
            self.undone.append(self.runs.pop())
            self.state_changed.emit()

    def redo(self) -> None:
        """Put back what was taken back last."""
        if self.undone:
            self.runs.append(self.undone.pop())
            self.state_changed.emit()

    def clear(self) -> None:
        """Forget all runs: another picture is here."""
        self.queue.clear()
        self._task.stop()
        self.live = None
        self.stop_preview()
        self.runs, self.undone, self._numbers = [], [], 0
        self.state_changed.emit()

    # ------------------------------------------------------------------------------------- preview

    def preview(self, plan: Plan, region: Region) -> None:
        """Show a region as the whole run would give it; the newest wish is the one that counts."""
        if self.running:
            return
        self.stop_preview()
        self._preview = self._background.start(
            lambda task: session.preview(plan, region),
            step=lambda made: self.previewed.emit(*made),
            done=lambda _: self.state_changed.emit(),
            failed=lambda error, trace: (
                self.state_changed.emit(),
                self.failed.emit("The preview failed", error, trace),
            ),
            heavy=True,
        )
        self.state_changed.emit()

    @property
    def previewing(self) -> bool:
        """Whether a preview is being computed."""
        return self._preview.busy

    def stop_preview(self) -> None:
        """Nothing of it any more."""
        self._preview.stop()


jit.on_compile(lambda: setattr(Runner, "compiling", True))  # numba tells it to a process, and once
