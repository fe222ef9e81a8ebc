"""Whether Qt can open a window here. Qt itself would abort the process.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import ctypes
import glob
import os
import sys

from qtpy.QtCore import QCoreApplication, QLibraryInfo, Qt, QtFatalMsg, qInstallMessageHandler
from qtpy.QtWidgets import QApplication

_PACKAGES = "libxkbcommon-x11-0 libxcb-icccm4 libxcb-image0 libxcb-keysyms1 libxcb-render-util0 libxcb-xinerama0"


def missing_library() -> str:
    """What the dynamic linker says is missing for Qt's X11 plugin; "" if it can be loaded, or is not there at all."""
    for plugin in glob.glob(os.path.join(QLibraryInfo.location(QLibraryInfo.PluginsPath), "platforms", "libqxcb.so")):
        try:
            ctypes.CDLL(plugin)
        except OSError as error:
            return str(error).split(":")[0]
    return ""


def _reason(text: str) -> str:
    """One line about why Qt gave up; `text` is what it said."""
    library = missing_library() if sys.platform == "linux" else ""
    if library:
        return f"the system library {library} is missing; on Debian and Ubuntu: sudo apt-get install {_PACKAGES}"
    if "display" in text:
        return f"the screen {os.environ.get('DISPLAY', '')} does not answer (DISPLAY)"
    return " ".join(text.split())


def application() -> QApplication:
    """The application; if Qt cannot start, one line is said and the process ends with code 1."""
    there = QApplication.instance()
    if there is not None:
        return there
    for attribute in (Qt.AA_EnableHighDpiScaling, Qt.AA_UseHighDpiPixmaps):
        QCoreApplication.setAttribute(attribute)
    if hasattr(QApplication, "setHighDpiScaleFactorRoundingPolicy"):
        QApplication.setHighDpiScaleFactorRoundingPolicy(Qt.HighDpiScaleFactorRoundingPolicy.PassThrough)
    said: list[str] = []

    def listen(kind: object, _: object, text: str) -> None:
        said.append(text)
        if kind == QtFatalMsg:  # nothing can be raised through Qt, and when this returns it aborts
            print(f"denoise: the window cannot open: {_reason(' '.join(said))}", file=sys.stderr, flush=True)
            os._exit(1)

    before = qInstallMessageHandler(listen)
    made = QApplication(["denoise"])
    qInstallMessageHandler(before)
    return made
