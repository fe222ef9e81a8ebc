"""Everything the window can do, each with its key; menus, tool bar and help page are made from this table.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple

from qtpy.QtCore import QSize, Qt
from qtpy.QtGui import QKeySequence
from qtpy.QtWidgets import QAction, QActionGroup, QMainWindow, QMenu, QToolBar


class Spec(NamedTuple):
    """An action. `call`: the name of the window's method for it, with arguments behind a colon."""

    menu: str
    text: str
    keys: str
    call: str
    tip: str = ""
    bar: str = ""  # its text in the tool bar, if it stands there
    check: str = ""  # "yes", or the name of a group of which one is checked


SPECS = [
    Spec("&File", "&Open…", "Ctrl+O", "opener.choose_file", "Open a picture; or drop one on the window", "Open"),
    Spec("&File", "&Paste", "Ctrl+V", "opener.paste", "Open the picture on the clipboard"),
    Spec("&File", "&Next picture", "PgDown", "opener.step_picture:1", "The next picture of the folder"),
    Spec("&File", "P&revious picture", "PgUp", "opener.step_picture:-1", "The picture before"),
    Spec("&File", "Next pa&ge", "Ctrl+PgDown", "opener.step_page:1", "The next page of a stack"),
    Spec("&File", "Pre&vious page", "Ctrl+PgUp", "opener.step_page:-1", "The page before"),
    Spec("&File", "-", "", ""),
    Spec("&File", "&Save result…", "Ctrl+S", "save:result", "Save result A in the format of the picture", "Save"),
    Spec("&File", "Save &uncertainty…", "Ctrl+U", "save:std", "How uncertain every pixel is, as numbers and as a map"),
    Spec("&File", "Save resi&dual…", "Ctrl+D", "save:residual", "What was taken away"),
    Spec("&File", "Save p&articles…", "Ctrl+P", "save:samples", "All candidate pictures"),
    Spec("&File", "Save &figure…", "Ctrl+E", "save:figure", "The views side by side, with captions", "Figure"),
    Spec("&File", "Save &table…", "Ctrl+T", "save:table", "The table of runs as CSV"),
    Spec("&File", "-", "", ""),
    Spec("&File", "&Quit", "Ctrl+Q", "close", "Close the window"),
    Spec("&Run", "&Run", "Ctrl+R, F5", "run", "Denoise the picture"),
    Spec("&Run", "&Cancel", "Esc", "cancel", "Stop; what has been computed stays"),
    Spec("&Run", "&Preview a region", "Ctrl+G", "show_region", "Try the method on the frame that you drag", "", "yes"),
    Spec("&Run", "Compare &all methods", "Ctrl+Shift+R", "compare", "Run every method, one after the other"),
    Spec("&Run", "&Undo the last run", "Ctrl+Z", "runner.undo", "Take the last run out of the table", "Undo"),
    Spec("&Run", "Re&do", "Ctrl+Shift+Z", "runner.redo", "Put it back"),
    Spec("&Run", "-", "", ""),
    Spec("&Run", "&Experiment", "Ctrl+1", "controls.set_mode:1", "Add noise to a clean picture and measure the result"),
    Spec("&Run", "Re&store", "Ctrl+2", "controls.set_mode:0", "Remove the noise of a noisy picture"),
    Spec("&Run", "&Measure the noise", "Ctrl+M", "measure", "Set the noise level that is found in the picture"),
    Spec(
        "&Run",
        "Measure the noise in a &flat spot",
        "N",
        "draw_spot",
        "Draw a rectangle where the picture is plain",
        "",
        "yes",
    ),
    Spec("&Run", "More noise", "Ctrl+Up", "step_noise:1", "Raise the noise level by one"),
    Spec("&Run", "Less noise", "Ctrl+Down", "step_noise:-1", "Lower the noise level by one"),
    Spec("&Run", "Next method", "Ctrl+]", "controls.method.step:1", "Choose the next method"),
    Spec("&Run", "Previous method", "Ctrl+[", "controls.method.step:-1", "Choose the method before"),
    Spec("&Run", "-", "", ""),
    Spec("&Run", "Copy the &table", "Ctrl+Shift+C", "copy_table", "The table of runs to the clipboard"),
    Spec("&Run", "Copy as a comman&d", "Ctrl+K", "copy_command", "The command that writes the same result"),
    Spec("&View", "&One view", "1", "viewer.set_views:1", "", "1", "layout"),
    Spec("&View", "&Two views", "2", "viewer.set_views:2", "", "2", "layout"),
    Spec("&View", "T&hree views", "3", "viewer.set_views:3", "", "3", "layout"),
    Spec(
        "&View", "&Split view", "S", "viewer.set_split:1", "Two pictures in one, with a line to drag", "Split", "layout"
    ),
    Spec("&View", "-", "", ""),
    Spec("&View", "Line to the left", "[", "viewer.move_line:-0.02", "Of the split view"),
    Spec("&View", "Line to the right", "]", "viewer.move_line:0.02", "Of the split view"),
    Spec("&View", "Other content", "V", "viewer.step_content:1", "In the last view"),
    Spec("&View", "Content before", "Shift+V", "viewer.step_content:-1", "In the last view"),
    Spec("&View", "Next particle", ".", "viewer.step_particle:1"),
    Spec("&View", "Previous particle", ",", "viewer.step_particle:-1"),
    Spec("&View", "E&xchange A and B", "X", "exchange", "Result A becomes B and B becomes A"),
    Spec("&View", "-", "", ""),
    Spec("&View", "&Fit", "0, Home", "viewer.fit", "The whole picture", "Fit"),
    Spec("&View", "&Actual size", "A", "viewer.actual_size", "A pixel is a pixel", "1:1"),
    Spec("&View", "Zoom &in", "+, =", "viewer.zoom:1.25", "", "In"),
    Spec("&View", "Zoom o&ut", "-", "viewer.zoom:0.8", "", "Out"),
    Spec("&View", "Auto &levels", "L", "auto_tone", "Black and white where the picture's values end", "Auto"),
    Spec("&View", "Levels of the file", "Shift+L", "plots.plain", "Black and white as the file says"),
    Spec("&View", "Region to the left", "Shift+Left", "viewer.move_region:-0.25,0"),
    Spec("&View", "Region to the right", "Shift+Right", "viewer.move_region:0.25,0"),
    Spec("&View", "Region up", "Shift+Up", "viewer.move_region:0,-0.25"),
    Spec("&View", "Region down", "Shift+Down", "viewer.move_region:0,0.25"),
    Spec("&View", "-", "", ""),
    Spec("&View", "Theme of the system", "Ctrl+Alt+0", "set_theme:system", "", "", "theme"),
    Spec("&View", "Light", "Ctrl+Alt+1", "set_theme:light", "", "", "theme"),
    Spec("&View", "Dark", "Ctrl+Alt+2", "set_theme:dark", "", "", "theme"),
    Spec("&View", "F&ull screen", "F11", "full_screen"),
    Spec(
        "&Measure",
        "&Rectangle",
        "R",
        "draw:rectangle",
        "Draw a rectangle: its mean, sum and spread",
        "Rectangle",
        "yes",
    ),
    Spec("&Measure", "&Ellipse", "E", "draw:ellipse", "Draw an ellipse: its mean, sum and spread", "", "yes"),
    Spec("&Measure", "&Line", "D", "draw:line", "Draw a line: a profile along it, with its band", "Line", "yes"),
    Spec("&Measure", "&Mask from a file…", "M", "load_mask", "Measure the pixels that are not black in a picture"),
    Spec("&Measure", "Take the last a&way", "Backspace", "measuring.undo", "The shape that was drawn last"),
    Spec("&Measure", "Take &all away", "Shift+R", "measuring.clear", "No shapes any more"),
    Spec("&Measure", "-", "", ""),
    Spec("&Measure", "&Copy the numbers", "Ctrl+Shift+M", "copy_numbers", "To the clipboard, as CSV"),
    Spec("&Measure", "&Save the numbers…", "Ctrl+Alt+M", "save:numbers", "As CSV"),
    Spec("&Help", "&Help and keys", "F1", "help", "All keys, and what the words mean", "Help"),
    Spec("&Help", "&About", "Shift+F1", "about", "Whom to cite"),
]

#: Keys that are no actions.
OTHER_KEYS = [
    ("Before instead of after, as long as it is held (click a view first)", "Space"),
    ("The noise level, seed, quality, method, image model", "Alt+N, Alt+E, Alt+Q, Alt+T, Alt+D"),
    ("From field to field", "Tab, Shift+Tab"),
    ("Another run as result A, in the table", "Up, Down"),
]


def _number(text: str) -> int | float | str:
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text


def _caller(window: QMainWindow, call: str) -> Callable[..., None]:
    """The method that a spec names, with its arguments; looked up when it is called, because it may be made later."""
    path, _, rest = call.partition(":")
    arguments = [_number(part) for part in rest.split(",")] if rest else []
    return lambda *_: attrgetter(path)(window)(*arguments)


def build(window: QMainWindow) -> dict[str, QAction]:
    """Menus and tool bar. Actions by what they call."""
    actions: dict[str, QAction] = {}
    menus: dict[str, QMenu] = {}
    groups: dict[str, QActionGroup] = {}
    bar = QToolBar("Tools", movable=False, objectName="tools")
    bar.setToolButtonStyle(Qt.ToolButtonTextBesideIcon)
    bar.setIconSize(QSize(16, 16))
    bar.setContextMenuPolicy(Qt.PreventContextMenu)
    window.addToolBar(bar)
    before = ""
    for spec in SPECS:
        menu = menus.get(spec.menu) or menus.setdefault(spec.menu, window.menuBar().addMenu(spec.menu))
        if spec.text == "-":
            menu.addSeparator()
            continue
        action = QAction(spec.text, window)
        action.setShortcuts([QKeySequence(k) for k in spec.keys.split(", ")])
        what = spec.tip or spec.text.replace("&", "")
        action.setToolTip(f"{what}  ({spec.keys})")
        action.setStatusTip(what)
        action.triggered.connect(_caller(window, spec.call))
        if spec.check:
            action.setCheckable(True)
            if spec.check != "yes":
                group = groups.get(spec.check) or groups.setdefault(spec.check, QActionGroup(window))
                group.addAction(action)
        menu.addAction(action)
        window.addAction(action)
        actions[spec.call] = action
        if spec.bar:
            if before and before != spec.menu:
                bar.addSeparator()
            before = spec.menu
            action.setIconText(spec.bar)
            bar.addAction(action)
            bar.widgetForAction(action).setFocusPolicy(Qt.NoFocus)
    return actions
