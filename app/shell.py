"""The frame of the window and its manners: layout, menus, theme, settings, drops, help.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial

from qtpy.QtCore import QRect, QSettings, QSize, Qt
from qtpy.QtWidgets import (
    QApplication,
    QHBoxLayout,
    QLabel,
    QMainWindow,
    QProgressBar,
    QSplitter,
    QStackedWidget,
    QTabWidget,
    QToolBar,
    QWidget,
)

from denoiser.particles import read_mask, to_csv
from denoiser.pieces import Region

from . import actions, collector, dialogs, icons, theme
from .background import Background
from .controls import Controls
from .measuring import LEVEL, Measuring
from .opener import Opener
from .plots import Plots
from .shapes import Ends, boxed
from .source import Source, Spot, measure_spot
from .table import RunTable, table_csv
from .viewer import Viewer
from .welcome import Welcome

_open: set[QMainWindow] = set()  # a window that nobody holds would be collected in the middle of its own painting


class Shell(QMainWindow):
    """Everything that stands still."""

    def __init__(self, settings: QSettings | None) -> None:
        super().__init__()
        collector.install()
        self.settings = settings if settings is not None else QSettings("mpsvgd", "denoise")
        self.background = Background(self)
        self.opener = Opener(self, self.background, self.settings)
        self.controls = Controls()
        self.viewer = Viewer(self.background)
        self.table = RunTable()
        self.plots = Plots(self.background)
        self.measuring = Measuring(self.background, self.viewer)
        self.source: Source | None = None  # the picture
        self._theme = "system"
        self.setWindowTitle("Denoise")
        self.setAcceptDrops(True)
        self.acts = actions.build(self)
        for menu in (self.opener.recent_menu, self.opener.samples_menu):
            self.menuBar().actions()[0].menu().insertMenu(self.acts["opener.paste"], menu)
        self._lay_out()

    def _lay_out(self) -> None:
        self.pages = QStackedWidget()
        self.welcome = Welcome()
        self.pages.addWidget(self.welcome)
        self.pages.addWidget(self.viewer)
        self.tabs = QTabWidget(documentMode=True)
        self.tabs.addTab(self.table, "Runs")
        self.tabs.addTab(self.measuring, "Measurements")
        self.tabs.tabBar().setFocusPolicy(Qt.TabFocus)
        self.tabs.tabBar().setDrawBase(False)  # a white line, in the dark too
        self.lower = QSplitter(Qt.Horizontal)
        self.lower.addWidget(self.tabs)
        self.lower.addWidget(self.plots)
        self.lower.setSizes([514, 462])
        self.lower.setChildrenCollapsible(False)
        self.upper = QSplitter(Qt.Vertical)
        self.upper.addWidget(self.pages)
        self.upper.addWidget(self.lower)
        self.upper.setStretchFactor(0, 1)
        self.upper.setSizes([500, 190])
        self.upper.setChildrenCollapsible(False)
        whole = QWidget()
        row = QHBoxLayout(whole)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.controls)
        row.addWidget(self.upper, 1)
        self.setCentralWidget(whole)
        self.readout = QLabel()
        self.message = QLabel(objectName="faint")
        self.message.setContentsMargins(12, 0, 12, 0)
        self.progress = QProgressBar(textVisible=False)  # the words stand beside it, readable on any colour
        self.progress.setFixedSize(180, 12)
        self.progress.hide()
        self.statusBar().setSizeGripEnabled(False)
        self.statusBar().setMinimumHeight(28)  # with the bar or without it
        self.statusBar().setContentsMargins(8, 0, 12, 0)
        self.statusBar().addWidget(self.readout)
        self.about_picture = QLabel(objectName="faint")  # size and depth
        self.statusBar().addPermanentWidget(self.message)
        self.statusBar().addPermanentWidget(self.progress)
        self.statusBar().addPermanentWidget(self.about_picture)
        for part in (self.controls, self.lower):  # one question at a time
            part.hide()
            self.welcome.settled.connect(part.show)
        self.fit_screen(QApplication.primaryScreen().availableGeometry())

    def fit_screen(self, room: QRect) -> None:
        """A comfortable size, but never larger than the screen that there is; with some room for the frame."""
        self.resize(QSize(1280, 800).boundedTo(room.size() - QSize(16, 64)))

    # ----------------------------------------------------------------------------------- manners

    def tell(self, text: str) -> None:
        """A line at the bottom; while the pencil is in the hand, what to do with it."""
        kind = self.measuring.pencil.kind
        what = {"spot": "a rectangle where the picture is plain", "ellipse": "an ellipse"}.get(kind, f"a {kind}")
        self.message.setText(f"Drag {what} on any of the pictures; Esc for none" if kind else text)

    def report(self, title: str, error: BaseException, trace: str) -> None:
        """An error, in plain words."""
        dialogs.warn(self, title, error, trace)
        self.tell(title)

    def draw(self, kind: str) -> None:
        """A rectangle, an ellipse or a line to measure."""
        self.tabs.setCurrentWidget(self.measuring)
        self.measuring.draw(kind)

    def measure(self) -> None:
        """Set the noise level that was found."""
        if self.source is not None:
            self.controls.take_noise(self.source)

    def draw_spot(self) -> None:
        """Measure the noise where a person says that the picture is plain."""
        source = self.source
        if source is None or self.controls.experiment:
            self.measuring.pencil.put_away()
            return

        def drawn(ends: Ends) -> None:
            left, top, right, bottom = boxed(ends)
            self.background.start(
                lambda _: measure_spot(source, Region(top, left, bottom, right)),
                done=found,
                failed=partial(self.report, "The noise cannot be measured here"),
            )

        def found(spot: Spot) -> None:
            if source is self.source:
                self.controls.take_noise(source, spot)

        self.measuring.pencil.take("spot", drawn)

    def load_mask(self) -> None:
        """Measure the pixels that a file names."""
        asked = self.measuring.ask()
        path = self.opener.choose("Open a mask: pixels that are not black are measured") if asked else ""
        if path:
            shape = asked[0].source.pixels.shape
            self.tabs.setCurrentWidget(self.measuring)
            self.background.start(
                lambda _: read_mask(path, shape),
                done=self.measuring.add_mask,
                failed=partial(self.report, "This is no mask for the picture"),
            )

    def drawing(self) -> None:
        """The pencil was taken, or put away."""
        kind = self.measuring.pencil.kind
        for name in ("rectangle", "ellipse", "line"):
            self.acts[f"draw:{name}"].setChecked(name == kind)
        for switch in (self.acts["draw_spot"], self.controls.noise.spot_button):
            switch.setChecked(kind == "spot")
        self.tell("")

    def copy_table(self) -> None:
        """To the clipboard."""
        QApplication.clipboard().setText(table_csv(self.table.runs()))
        self.tell("The table is on the clipboard")

    def copy_numbers(self) -> None:
        """The measurements to the clipboard."""
        QApplication.clipboard().setText(to_csv(self.measuring.numbers, LEVEL))
        self.tell("The measurements are on the clipboard")

    def copy_command(self) -> None:
        """The command that does the same as result A, or as the controls if there is none yet."""
        if asked := self.measuring.ask():
            QApplication.clipboard().setText(asked[0].command())
            self.tell("The command is on the clipboard")

    def step_noise(self, by: int) -> None:
        """A grey level more or less."""
        self.controls.sigma.setValue(self.controls.sigma.value() + by)

    def set_theme(self, name: object) -> None:
        """System, light or dark; anything else is the first."""
        self._theme = name if name in theme.THEMES else "system"
        colours = theme.apply(self._theme)
        self.acts[f"set_theme:{self._theme}"].setChecked(True)
        for name, action in self.acts.items():
            action.setIcon(icons.icon(name, colours.text, colours.faint, colours.on_accent))
            action.setIconVisibleInMenu(False)
        for part in (self.viewer, self.plots, self.measuring, self.controls.noise):
            part.dress(colours)

    def full_screen(self) -> None:
        """On or off."""
        self.setWindowState(self.windowState() ^ Qt.WindowFullScreen)

    def help(self) -> None:
        """All keys."""
        dialogs.help_page(self, self.acts.values(), actions.OTHER_KEYS)

    def about(self) -> None:
        """Whom to cite."""
        dialogs.about(self)

    def showEvent(self, event: object) -> None:
        """On the screen: held until it is closed."""
        _open.add(self)
        super().showEvent(event)

    def resizeEvent(self, event: object) -> None:
        """Icons without words, where there is no room for both."""
        super().resizeEvent(event)
        bar = self.findChild(QToolBar)
        if bar.toolButtonStyle() == Qt.ToolButtonTextBesideIcon:
            self._words_need = bar.sizeHint().width()
        style = Qt.ToolButtonTextBesideIcon if self.width() >= self._words_need else Qt.ToolButtonIconOnly
        if style != bar.toolButtonStyle():
            bar.setToolButtonStyle(style)

    def closeEvent(self, event: object) -> None:
        """Off the screen."""
        _open.discard(self)
        super().closeEvent(event)

    # ---------------------------------------------------------------------------------- settings

    def store(self) -> None:
        """For the next start."""
        self.settings.setValue("geometry", self.saveGeometry())
        self.settings.setValue("upper", self.upper.saveState())
        self.settings.setValue("lower", self.lower.saveState())
        contents = [view.content for view in self.viewer.views]
        controls = self.controls.state()
        if self.welcome.asking:
            del controls["experiment"]
        state = {"controls": controls, "theme": self._theme, "contents": contents}
        state |= {"views": self.viewer.count, "split": self.viewer.split}
        self.settings.setValue("state", json.dumps(state))

    def restore(self) -> None:
        """What the last window had; a file may hold anything, and what is unreadable is left out: the window starts."""
        state: dict[str, object] = {}
        with suppress(Exception):
            state = dict(json.loads(str(self.settings.value("state", "{}"))))
        with suppress(Exception):
            self.controls.restore(state["controls"])
            if "experiment" in state["controls"]:
                self.welcome.settle()
        with suppress(Exception):
            for view, content in zip(self.viewer.views, state["contents"], strict=False):
                view.choose(content)
        layout = "viewer.set_split:1" if state.get("split") else f"viewer.set_views:{state.get('views')}"
        self.acts[layout if layout in self.acts else "viewer.set_views:2"].trigger()
        self.set_theme(state.get("theme"))
        for name, put in (
            ("geometry", self.restoreGeometry), ("upper", self.upper.restoreState), ("lower", self.lower.restoreState),
        ):  # fmt: skip
            with suppress(Exception):
                put(self.settings.value(name))
