"""Python's cycle collector, run by a timer of the window's thread and nowhere else.

By itself Python collects wherever an object happens to be made: on a worker's thread, or in the middle of a paint
event. Qt objects in a cycle are then destroyed there, and Qt dies of it.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import gc

from qtpy.QtCore import QObject, QTimer
from qtpy.QtWidgets import QApplication

_EVERY_MS = 500


class Collector(QObject):
    """Collects what Python's own thresholds say is due; its thread is the one it was made on."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        gc.disable()
        QTimer(self, interval=_EVERY_MS, timeout=self.collect).start()

    @staticmethod
    def collect() -> None:
        """One collection, of the oldest generation that is due."""
        due = -1
        for count, limit in zip(gc.get_count(), gc.get_threshold(), strict=True):
            if count <= limit:
                break
            due += 1
        if due >= 0:
            gc.collect(due)


_collector: Collector | None = None


def install() -> None:
    """From now on only the window's thread collects. Once a process; call it on that thread."""
    global _collector
    if _collector is None:
        _collector = Collector(QApplication.instance())


def uninstall() -> None:
    """Collect what there is, and let Python do it again; when all windows and their threads are gone."""
    global _collector
    if _collector is not None:
        _collector.deleteLater()
        _collector = None
        gc.collect()
        gc.enable()
