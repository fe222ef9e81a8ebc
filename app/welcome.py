"""What stands where the pictures will be: the question of the first start, and later a word of welcome.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QLabel, QPushButton, QStackedLayout, QVBoxLayout, QWidget

_WELCOME = "Drop a picture here, or press Ctrl+O\n\nFile > Samples has some to try"
_CHOICES = (
    (False, "Clean up a picture", "A photograph, a scan or a micrograph that is noisy: remove the noise and save it"),
    (True, "Experiment", "Add noise to a clean picture, compare methods, count decibels"),
)


class Welcome(QWidget):
    """Asks what the user came for, once."""

    answered = Signal(bool)  # experiment
    settled = Signal()  # the question needs no answer any more

    def __init__(self) -> None:
        super().__init__()
        question = QWidget()
        column = QVBoxLayout(question)
        column.setSpacing(6)
        column.addStretch(2)
        column.addWidget(QLabel("What would you like to do?", objectName="welcome", alignment=Qt.AlignCenter))
        self.note = QLabel(objectName="faint", alignment=Qt.AlignCenter)
        column.addWidget(self.note)
        self.buttons: dict[bool, QPushButton] = {}
        for experiment, title, words in _CHOICES:
            button = QPushButton(title, objectName="choice")
            button.clicked.connect(lambda _, e=experiment: self._answer(e))
            column.addSpacing(10)
            column.addWidget(button, 0, Qt.AlignCenter)
            column.addWidget(QLabel(words, objectName="faint", alignment=Qt.AlignCenter))
            self.buttons[experiment] = button
        column.addSpacing(10)
        column.addWidget(
            QLabel("Both are there at any time: Ctrl+2 and Ctrl+1.", objectName="faint", alignment=Qt.AlignCenter)
        )
        column.addStretch(3)
        self._pages = QStackedLayout(self)
        self._pages.addWidget(question)
        self._words = QLabel(_WELCOME, objectName="welcome", alignment=Qt.AlignCenter)
        self._pages.addWidget(self._words)

    @property
    def asking(self) -> bool:
        """Whether the question has not been answered yet."""
        return self._pages.currentIndex() == 0

    def settle(self) -> None:
        """The question needs no answer any more."""
        self._pages.setCurrentIndex(1)
        self.settled.emit()

    def reading(self, name: str) -> None:
        """A picture is on its way; "" for none."""
        self._words.setText(f"Reading {name}…" if name else _WELCOME)

    def waiting(self, name: str) -> None:
        """A picture waits for the answer."""
        self.note.setText(f"{name} opens then.")

    def _answer(self, experiment: bool) -> None:
        self.settle()
        self.answered.emit(experiment)
