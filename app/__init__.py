"""The desktop window. Imports denoiser; denoiser never imports it.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations


def main(file: str | None = None) -> int:
    """Open the window, with a picture if one is named, and run until it is closed."""
    import gc
    import os
    import sys

    from qtpy.QtCore import QCoreApplication, Qt
    from qtpy.QtWidgets import QApplication

    if QApplication.instance() is None:
        for attribute in (Qt.AA_EnableHighDpiScaling, Qt.AA_UseHighDpiPixmaps):
            QCoreApplication.setAttribute(attribute)
        if hasattr(QApplication, "setHighDpiScaleFactorRoundingPolicy"):
            QApplication.setHighDpiScaleFactorRoundingPolicy(Qt.HighDpiScaleFactorRoundingPolicy.PassThrough)
    application = QApplication.instance() or QApplication(["denoise"])

    from .faults import catch_all
    from .window import Window

    gc.freeze()  # modules live as long as the process: to look through them at every collection would block the window
    window = Window()
    catch_all(window.report)
    window.show()
    if file:
        window.open(file)
    code = int(application.exec_())
    if not window.idle_at_close:  # a kernel is still at work in a thread, and leaving politely would wait for it
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code
