"""Number fields that do not keep the keyboard: what they cannot use goes to the window's shortcuts.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

from qtpy.QtCore import QEvent, QObject, Qt, Signal
from qtpy.QtWidgets import QAbstractSlider, QAbstractSpinBox, QWidget
from superqt import QLabeledDoubleSlider

_ARROWS = {Qt.Key_Left: -1, Qt.Key_Down: -1, Qt.Key_Right: 1, Qt.Key_Up: 1, Qt.Key_PageDown: -10, Qt.Key_PageUp: 10}
_TYPED = "0123456789.,+-eE"


class Fields(QObject):
    """Watches number fields. Letters are shortcuts, Enter ends the typing."""

    finished = Signal()  # Enter was pressed: the keys belong to the pictures again

    def watch(self, widget: QWidget) -> None:
        """This field, or all within this widget."""
        fields = [widget] if isinstance(widget, QAbstractSpinBox) else widget.findChildren(QAbstractSpinBox)
        for field in fields:
            field.installEventFilter(self)
            field.lineEdit().installEventFilter(self)

    def eventFilter(self, watched: object, event: QEvent) -> bool:
        """Keys before the field sees them."""
        if event.type() == QEvent.ShortcutOverride:
            text = event.text()
            if text and text.isprintable() and text not in _TYPED and not event.modifiers() & ~Qt.ShiftModifier:
                event.ignore()  # a field would claim every letter, and then refuse it
                return True
        elif event.type() == QEvent.KeyPress and event.key() in (Qt.Key_Return, Qt.Key_Enter):
            handled = bool(super().eventFilter(watched, event))
            field = watched if isinstance(watched, QAbstractSpinBox) else watched.parent()
            field.interpretText()
            self.finished.emit()
            return handled
        return bool(super().eventFilter(watched, event))


class Level(QLabeledDoubleSlider):
    """A slider with its number beside it, which the keyboard moves: superqt's own listens to the mouse only."""

    def __init__(self, low: float, high: float, name: str, step: float = 1.0) -> None:
        super().__init__(Qt.Horizontal, objectName=name)
        self.setRange(low, high)
        self.setDecimals(2)
        self._by = step
        inner = self.findChild(QAbstractSlider)
        inner.installEventFilter(self)
        self.setFocusProxy(inner)

    def eventFilter(self, watched: object, event: QEvent) -> bool:
        """Arrow keys."""
        if event.type() == QEvent.KeyPress and event.key() in _ARROWS and not event.modifiers() & ~Qt.KeypadModifier:
            self.setValue(self.value() + self._by * _ARROWS[event.key()])
            return True
        return bool(super().eventFilter(watched, event))
