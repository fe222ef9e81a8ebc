"""The last net: whatever nobody caught is said in a dialog, and the window lives on.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from types import TracebackType

_TITLE = "Something went wrong"


def catch_all(report: Callable[[str, BaseException, str], None]) -> None:
    """Have exceptions of slots and events reported. PyQt5 would end the process; threads catch their own."""
    telling = False

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        nonlocal telling
        text = "".join(traceback.format_exception(kind, error, trace))
        print(text, file=sys.stderr)
        if isinstance(error, KeyboardInterrupt) or telling:  # no dialog about the dialog
            return
        telling = True
        try:
            report(_TITLE, error, text)
        except Exception:
            traceback.print_exc()
        finally:
            telling = False

    sys.excepthook = hook
