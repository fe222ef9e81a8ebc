"""The scale beside an uncertainty map.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import numpy as np
from qtpy.QtCore import QRect, Qt
from qtpy.QtGui import QImage, QPainter
from qtpy.QtWidgets import QWidget

from denoiser import panels

_STRIP = 12  # pixels


class Bar(QWidget):
    """Colours from 0 at the bottom to `top` grey levels."""

    def __init__(self) -> None:
        super().__init__()
        self.top = 0.0
        self.setFixedWidth(58)
        self.setToolTip("Standard deviation of a pixel, in grey levels of 255")
        column = panels.heat(np.linspace(1, 0, 256)[:, None], 1.0)
        self._colours = QImage(np.ascontiguousarray(column).tobytes(), 1, 256, 3, QImage.Format_RGB888).copy()

    def show_scale(self, top: float | None) -> None:
        """Another scale; None for a map that is not there."""
        self.top = top or 0.0
        self.setVisible(top is not None)
        self.update()

    def paintEvent(self, event: object) -> None:
        """The strip, three numbers and the unit."""
        painter = QPainter(self)
        line = painter.fontMetrics().height()
        strip = QRect(4, line // 2, _STRIP, self.height() - 2 * line - line // 2)
        painter.drawImage(strip, self._colours)
        for share in (0.0, 0.5, 1.0):
            middle = strip.bottom() - share * strip.height()
            place = QRect(strip.right() + 4, round(middle - line / 2), self.width(), line)
            painter.drawText(place, Qt.AlignLeft | Qt.AlignVCenter, f"{share * self.top:.3g}")
        painter.drawText(QRect(0, self.height() - line, self.width(), line), Qt.AlignCenter, "grey lev.")
