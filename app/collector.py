"""Python's cycle collector, run by a timer of the window's thread and nowhere else.

By itself Python collects wherever an object happens to be made: on a worker's thread, or in the middle of a paint
event. Qt objects in a cycle are then destroyed there, and Qt dies of it.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import gc

from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QApplication

_EVERY_MS = 500
_timer: QTimer | None = None


def collect() -> None:
    """What Python's own thresholds say is due: one collection, of the oldest generation that is."""
    due = -1
    for count, limit in zip(gc.get_count(), gc.get_threshold(), strict=True):
        if count <= limit:
            break
        due += 1
    if due >= 0:
        gc.collect(due)


def install() -> None:
    """From now on only the window's thread collects. Once a process; call it on that thread."""
    global _timer
    if _timer is None:
        gc.disable()
        _timer = QTimer(QApplication.instance(), interval=_EVERY_MS, timeout=collect)
        _timer.start()


def uninstall() -> None:
    """Collect what there is, and let Python do it again; when all windows and their threads are gone."""
    global _timer
    if _timer is not None:
        _timer.deleteLater()
        _timer = None
        gc.collect()
        gc.enable()
