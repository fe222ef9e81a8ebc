"""The icons of the tool bar, drawn: sharp at any size, in the colours of the theme.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

from qtpy.QtCore import QPointF, QRectF, Qt
from qtpy.QtGui import QColor, QIcon, QPainter, QPen, QPixmap, QPolygonF

_SIZE = 20  # the drawings' own units

#: Shapes by action: a flat list of numbers is a line through points; four in a tuple are a rectangle; three a circle.
_DRAWINGS: dict[str, list] = {
    "opener.choose_file": [[2, 16, 2, 4, 8, 4, 10, 6, 18, 6, 18, 16, 2, 16], [2, 9, 18, 9]],
    "opener.paste": [(4, 4, 12, 14), (7, 2, 6, 4), [7, 10, 13, 10], [7, 14, 13, 14]],
    "save:result": [[3, 3, 14, 3, 17, 6, 17, 17, 3, 17, 3, 3], (6, 11, 8, 6), (6, 3, 7, 4)],
    "save:figure": [(2, 4, 7, 12), (11, 4, 7, 12), [3, 14, 5, 10, 8, 14], [12, 14, 14, 9, 17, 14]],
    "runner.undo": [[4, 8, 13, 8, 16, 10, 16, 14, 13, 16, 8, 16], [8, 4, 4, 8, 8, 12]],
    "viewer.set_views:1": [(3, 4, 14, 12)],
    "viewer.set_views:2": [(2, 4, 7, 12), (11, 4, 7, 12)],
    "viewer.set_views:3": [(1, 4, 5, 12), (7.5, 4, 5, 12), (14, 4, 5, 12)],
    "viewer.set_split:1": [(3, 4, 14, 12), [10, 1, 10, 19]],
    "viewer.fit": [[3, 7, 3, 3, 7, 3], [13, 3, 17, 3, 17, 7], [17, 13, 17, 17, 13, 17], [7, 17, 3, 17, 3, 13]],
    "viewer.actual_size": [(2, 2, 16, 16), (7, 7, 6, 6)],
    "viewer.zoom:1.25": [(8, 8, 5.5), [12, 12, 17, 17], [8, 5.5, 8, 10.5], [5.5, 8, 10.5, 8]],
    "viewer.zoom:0.8": [(8, 8, 5.5), [12, 12, 17, 17], [5.5, 8, 10.5, 8]],
    "auto_tone": [[2, 17, 5, 16, 8, 6, 11, 4, 14, 12, 18, 17], [3, 2, 3, 17], [17, 2, 17, 17]],
    "draw:rectangle": [(3, 5, 14, 10)],
    "draw:ellipse": [(10, 10, 7)],
    "draw:line": [[3, 16, 17, 4]],
    "help": [(10, 10, 8), [7.5, 8, 8.5, 6, 11, 6, 12, 8, 10, 10.5, 10, 12], [10, 14.5, 10, 15]],
}


def icon(name: str, colour: str, faint: str, bright: str) -> QIcon:
    """The icon of an action, for its three states; empty where there is none. Colours: plain, disabled, checked."""
    out = QIcon()
    if name in _DRAWINGS:
        for shade, mode, state in (
            (colour, QIcon.Normal, QIcon.Off), (bright, QIcon.Normal, QIcon.On), (faint, QIcon.Disabled, QIcon.Off),
        ):  # fmt: skip
            for scale in (1, 2):
                out.addPixmap(_drawn(_DRAWINGS[name], shade, scale), mode, state)
    return out


def _drawn(shapes: list, colour: str, scale: int) -> QPixmap:
    pixels = QPixmap(_SIZE * scale, _SIZE * scale)
    pixels.fill(Qt.transparent)
    painter = QPainter(pixels)
    painter.setRenderHint(QPainter.Antialiasing)
    painter.scale(scale, scale)
    painter.setPen(QPen(QColor(colour), 1.5, Qt.SolidLine, Qt.RoundCap, Qt.RoundJoin))
    for shape in shapes:
        if isinstance(shape, list):
            painter.drawPolyline(QPolygonF([QPointF(x, y) for x, y in zip(shape[::2], shape[1::2], strict=True)]))
        elif len(shape) == 3:
            painter.drawEllipse(QPointF(*shape[:2]), shape[2], shape[2])
        else:
            painter.drawRect(QRectF(*shape))
    painter.end()
    pixels.setDevicePixelRatio(scale)
    return pixels
