"""What a panel is made of: headings, columns, forms, and parts that can be folded away.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QFormLayout, QLabel, QToolButton, QVBoxLayout, QWidget


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
    lines.setContentsMargins(0, 0, 0, 0)
    lines.setVerticalSpacing(5)
    lines.setFieldGrowthPolicy(QFormLayout.AllNonFixedFieldsGrow)
    for text, widget in rows:
        lines.addRow(text, widget)
    return whole


class Fold(QWidget):
    """A heading with an arrow; a click shows or hides `body`, which is hidden at first."""

    toggled = Signal(bool)

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
        self.toggled.emit(on)
