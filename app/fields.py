"""What a panel is made of: headings, columns, forms, parts that can be folded away, boxes, and number fields that do
not keep the keyboard: what they cannot use goes to the window's shortcuts. The wheel scrolls, and changes nothing.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

from collections.abc import Mapping

from qtpy.QtCore import QEvent, QObject, QSignalBlocker, Qt, Signal
from qtpy.QtWidgets import (
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QFormLayout,
    QLabel,
    QLineEdit,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from superqt import QLabeledDoubleSlider

_ARROWS = {Qt.Key_Left: -1, Qt.Key_Down: -1, Qt.Key_Right: 1, Qt.Key_Up: 1, Qt.Key_PageDown: -10, Qt.Key_PageUp: 10}
_TYPED = "0123456789.,+-eE"


def heading(text: str) -> QLabel:
    """A word above a part of the panel."""
    return QLabel(text, objectName="heading")


def column(*parts: QWidget) -> QWidget:
    """One below the other; a heading keeps its distance."""
    whole = QWidget()
    rows = QVBoxLayout(whole)
    rows.setContentsMargins(0, 0, 0, 0)
    rows.setSpacing(5)
    for part in parts:
        if part.objectName() == "heading":
            rows.addSpacing(6)
        rows.addWidget(part)
    return whole


def form(*rows: tuple[str, QWidget]) -> QWidget:
    """Labels with their fields."""
    whole = QWidget()
    lines = QFormLayout(whole)
    lines.setContentsMargins(0, 0, 0, 1)  # on a screen scaled by 1.25 the last line would lose its lower edge
    lines.setVerticalSpacing(5)
    lines.setFieldGrowthPolicy(QFormLayout.AllNonFixedFieldsGrow)
    for text, widget in rows:
        lines.addRow(text, widget)
    return whole


class Fold(QWidget):
    """A heading with an arrow; a click shows or hides `body`, which is hidden at first."""

    def __init__(self, title: str, body: QWidget, name: str) -> None:
        super().__init__()
        self.body = body
        self.button = QToolButton(text=title, checkable=True, objectName=name, autoRaise=True)
        self.button.setToolButtonStyle(Qt.ToolButtonTextBesideIcon)
        self.button.setProperty("fold", True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addWidget(self.button)
        layout.addWidget(body)
        self.button.toggled.connect(self._show)
        self._show(False)

    @property
    def is_open(self) -> bool:
        """Whether the body is shown."""
        return bool(self.button.isChecked())

    def set_open(self, on: bool) -> None:
        """As a click."""
        self.button.setChecked(on)

    def force(self, always: bool) -> None:
        """Show the body without a heading, or as the heading says."""
        self.button.setVisible(not always)
        self.body.setVisible(always or self.is_open)

    def _show(self, on: bool) -> None:
        self.button.setArrowType(Qt.DownArrow if on else Qt.RightArrow)
        self.body.setVisible(on)


class Choice(QComboBox):
    """A list of words from which one is chosen, each with a title to show and a tip."""

    def __init__(self, name: str, words: Mapping[str, tuple[str, str]]) -> None:
        super().__init__(objectName=name)
        for word, (title, tip) in words.items():
            self.addItem(title, word)
            self.setItemData(self.count() - 1, tip, Qt.ToolTipRole)

    @property
    def value(self) -> str:
        """The word that is chosen."""
        return str(self.currentData())

    def choose(self, word: object) -> None:
        """Another; one that is not in the list leaves all as it is."""
        index = self.findData(word)
        if index >= 0:
            self.setCurrentIndex(index)

    def step(self, by: int) -> None:
        """So many further down the list, and from its end to its beginning."""
        self.setCurrentIndex((self.currentIndex() + by) % self.count())

    def match(self, word: str) -> None:
        """The same without a signal: something else was chosen, and this goes with it."""
        with QSignalBlocker(self):
            self.choose(word)


class Fields(QObject):
    """Watches fields. The wheel is the panel's; in a number, letters are shortcuts, and Enter ends the typing."""

    finished = Signal()  # Enter was pressed: the keys belong to the pictures again

    def watch(self, widget: QWidget) -> None:
        """This field, or all within this widget."""
        for field in (widget, *widget.findChildren((QAbstractSpinBox, QAbstractSlider, QComboBox, QLineEdit))):
            field.installEventFilter(self)
            if field.focusPolicy() == Qt.WheelFocus:
                field.setFocusPolicy(Qt.StrongFocus)

    def eventFilter(self, watched: object, event: QEvent) -> bool:
        """Before the field sees it."""
        if event.type() == QEvent.Wheel:
            event.ignore()
            return True
        field = watched if isinstance(watched, QAbstractSpinBox) else watched.parent()
        if not isinstance(field, QAbstractSpinBox):
            return False
        if event.type() == QEvent.ShortcutOverride:
            text = event.text()
            if text and text.isprintable() and text not in _TYPED and not event.modifiers() & ~Qt.ShiftModifier:
                event.ignore()  # a field would claim every letter, and then refuse it
                return True
        elif event.type() == QEvent.KeyPress and event.key() in (Qt.Key_Return, Qt.Key_Enter):
            field.interpretText()
            self.finished.emit()
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
