"""The question before results are lost: when the window is closed, or another picture opened.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

from collections.abc import Callable

from qtpy.QtWidgets import QWidget

from . import dialogs
from .runner import Runner
from .runs import Run


class Leaving:
    """Knows what has not been saved. `save(then)` saves result A, and calls `then` if it is written in the end."""

    def __init__(self, window: QWidget, runner: Runner, save: Callable[[Callable[[], object]], None]) -> None:
        self._window, self._runner, self._save = window, runner, save

    @property
    def could_lose(self) -> bool:
        """Whether there is anything to ask about."""
        return self._runner.running or not all(run.saved for run in self._runner.runs)

    def ask(self, what: str, a: Run | None, then: Callable[[], object]) -> None:
        """Do `then`, after a question if results would be lost: at once, when A has been saved, or not at all."""
        if not self.could_lose:
            then()
            return
        running, unsaved = self._runner.running, [run for run in self._runner.runs if not run.saved]
        count = f"{len(unsaved)} result{'s are' if len(unsaved) > 1 else ' is'} not saved." if unsaved else ""
        text = f"{count} {'A run is under way.' if running else ''}".strip()
        save = ("Save result A",) if a is not None and not a.saved and not running else ()
        answer = dialogs.ask(self._window, f"{what}?", text, *save, "Discard", "Cancel")
        if answer == "Discard":
            then()
        elif answer != "Cancel":
            self._save(then)
