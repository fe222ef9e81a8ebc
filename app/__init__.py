"""The desktop window. Imports denoiser; denoiser never imports it.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations


def main(file: str | None = None) -> int:
    """Open the window, with a picture if one is named, and run until it is closed. 130: ended by Ctrl-C."""
    import gc
    import os
    import signal
    import sys

    from .screen import application

    running = application()

    from .dialogs import catch_all
    from .window import Window

    gc.freeze()  # modules live as long as the process: to look through them at every collection would block the window
    window = Window()
    catch_all(window.report)
    # Python hears of a signal when it next runs, which is at the next tick of the collector's timer.
    signal.signal(signal.SIGINT, lambda *_: window.end(130))
    window.show()
    if file:
        window.open(file)
    code = int(running.exec_())
    if not window.idle_at_close:  # a kernel is still at work in a thread, and leaving politely would wait for it
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code
