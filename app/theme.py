"""Light and dark: one palette each for Qt, and the same colours for the plots.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

from dataclasses import dataclass

from qtpy.QtGui import QColor, QPalette
from qtpy.QtWidgets import QApplication

THEMES = ("system", "light", "dark")


@dataclass(frozen=True)
class Colours:
    """Named by what they are for."""

    window: str
    panel: str  # lists, fields
    border: str
    text: str
    faint: str  # less important words
    accent: str
    on_accent: str
    canvas: str  # behind pictures
    curves: tuple[str, str, str]  # result A, result B, noisy


LIGHT = Colours(
    window="#f4f5f7", panel="#ffffff", border="#d3d7de", text="#1d2430", faint="#667085", accent="#2563c9",
    on_accent="#ffffff", canvas="#e4e7ec", curves=("#2563c9", "#d9622b", "#8a94a6"),
)  # fmt: skip
DARK = Colours(
    window="#1f2329", panel="#282d35", border="#3c434e", text="#e6e9ef", faint="#98a2b3", accent="#4c8dff",
    on_accent="#ffffff", canvas="#14171b", curves=("#6aa5ff", "#ff9a5c", "#8a94a6"),
)  # fmt: skip

_STYLE = """
* {{ outline: none; }}
QToolTip {{ background: {panel}; color: {text}; border: 1px solid {border}; padding: 4px; }}
QMenuBar {{ background: {window}; }}
QToolBar {{ background: {window}; border: none; border-bottom: 1px solid {border}; padding: 4px 6px; spacing: 2px; }}
QToolBar::separator {{ width: 1px; margin: 4px 5px; background: {border}; }}
QToolButton {{ padding: 4px 6px; border: 1px solid transparent; border-radius: 5px; }}
QToolButton:hover {{ background: {panel}; border-color: {border}; }}
QToolButton:checked {{ background: {accent}; color: {on_accent}; }}
QToolButton:disabled {{ color: {faint}; }}
QStatusBar {{ border-top: 1px solid {border}; }}
QStatusBar::item {{ border: none; }}
QLabel#heading {{ color: {faint}; font-weight: bold; }}
QLabel#faint, QLabel#caption {{ color: {faint}; }}
QLabel#welcome {{ color: {faint}; font-size: 15pt; }}
QFrame#side {{ border: none; border-right: 1px solid {border}; }}
QScrollArea {{ border: none; background: transparent; }}
QPushButton {{ padding: 5px 12px; border: 1px solid {border}; border-radius: 5px; background: {panel}; }}
QPushButton:hover {{ border-color: {accent}; }}
QPushButton:disabled {{ color: {faint}; background: {window}; }}
QPushButton:checked {{ background: {accent}; color: {on_accent}; border-color: {accent}; }}
QPushButton:focus {{ border-color: {accent}; }}
QPushButton#primary {{ background: {accent}; color: {on_accent}; border-color: {accent}; font-weight: bold; }}
QPushButton#primary {{ padding: 8px; }}
QPushButton#primary:disabled {{ background: {window}; color: {faint}; border-color: {border}; }}
QPushButton#left {{ border-top-right-radius: 0; border-bottom-right-radius: 0; }}
QPushButton#right {{ border-top-left-radius: 0; border-bottom-left-radius: 0; border-left: none; }}
QProgressBar {{ border: 1px solid {border}; border-radius: 5px; background: {panel}; }}
QPushButton#choice {{ padding: 12px 28px; min-width: 220px; font-size: 12pt; border-color: {accent}; }}
QToolButton[fold="true"], QToolButton[fold="true"]:checked {{ padding: 3px 2px; color: {faint}; font-weight: bold; }}
QToolButton[fold="true"]:checked {{ background: transparent; }}
QSlider::groove:horizontal {{ height: 4px; border-radius: 2px; background: {border}; }}
QSlider::sub-page:horizontal {{ height: 4px; border-radius: 2px; background: {accent}; }}
QSlider::handle:horizontal {{ width: 14px; margin: -5px 0; border-radius: 7px; background: {accent}; }}
QSlider::handle:horizontal:disabled, QSlider::sub-page:horizontal:disabled {{ background: {faint}; }}
QProgressBar::chunk {{ background: {accent}; border-radius: 4px; }}
QCheckBox::indicator {{ width: 11px; height: 11px; border: 1px solid {faint}; border-radius: 3px; }}
QCheckBox::indicator:checked {{ background: {accent}; border-color: {accent}; }}
QTableWidget {{ border: none; background: {panel}; gridline-color: {border}; }}
QHeaderView::section {{ background: {window}; color: {faint}; border: none; padding: 4px; }}
QHeaderView::section {{ border-bottom: 1px solid {border}; }}
QSplitter::handle {{ background: {border}; }}
QSplitter::handle:horizontal {{ width: 1px; }}
QSplitter::handle:vertical {{ height: 1px; }}
"""


def apply(theme: str) -> Colours:
    """Dress the whole application; whether the system's own is dark is asked of the palette that Qt came up with."""
    if theme == "system":
        theme = "dark" if QApplication.style().standardPalette().color(QPalette.Window).lightness() < 128 else "light"
    c = DARK if theme == "dark" else LIGHT
    application = QApplication.instance()
    if application.property("dressed") == c.window:  # a style sheet takes a tenth of a second
        return c
    application.setProperty("dressed", c.window)
    application.setStyle("Fusion")
    palette = QPalette()
    roles = {
        QPalette.Window: c.window, QPalette.Base: c.panel, QPalette.AlternateBase: c.window, QPalette.Button: c.window,
        QPalette.WindowText: c.text, QPalette.Text: c.text, QPalette.ButtonText: c.text, QPalette.ToolTipBase: c.panel,
        QPalette.ToolTipText: c.text, QPalette.Highlight: c.accent, QPalette.HighlightedText: c.on_accent,
        QPalette.Link: c.accent, QPalette.PlaceholderText: c.faint, QPalette.Mid: c.border,
    }  # fmt: skip
    for role, colour in roles.items():
        palette.setColor(role, QColor(colour))
    for role in (QPalette.WindowText, QPalette.Text, QPalette.ButtonText, QPalette.HighlightedText):
        palette.setColor(QPalette.Disabled, role, QColor(c.faint))
    application.setPalette(palette)
    application.setStyleSheet(_STYLE.format(**{k: v for k, v in vars(c).items() if isinstance(v, str)}))
    return c
