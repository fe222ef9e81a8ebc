"""The desktop window. Imports denoiser; denoiser never imports it.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations


def main(file: str | None = None) -> int:
    """Open the window, with a picture if one is named, and run until it is closed."""
    from qtpy.QtWidgets import QApplication

    from .window import Window

    application = QApplication.instance() or QApplication(["denoise"])
    window = Window()
    window.show()
    if file:
        window.open(file)
    return int(application.exec_())
