"""`denoise gui`: open the window."""

from __future__ import annotations

import argparse
import importlib
import os
import sys

from denoiser.data import install


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """An optional picture."""
    parser.add_argument("file", nargs="?", help="picture to open")


def run(arguments: argparse.Namespace) -> int:
    """Start the window; the library itself never imports Qt, so the app is looked up here, late."""
    screenless = not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    if sys.platform == "linux" and screenless and os.environ.get("QT_QPA_PLATFORM", "xcb") in ("xcb", "wayland"):
        raise OSError("there is no screen to open a window on (neither DISPLAY nor WAYLAND_DISPLAY is set)")
    for package in ("denoiser_app", "app"):  # installed, or a plain checkout
        try:
            return int(importlib.import_module(package).main(arguments.file))
        except ModuleNotFoundError as error:
            if error.name != package:
                raise OSError(f"the window needs Qt: {install('gui')} ({error.name} is missing)") from None
        except ImportError as error:
            raise OSError(f"the window cannot start: {error}; see README on Qt's system libraries") from None
    raise OSError(f"the window is not installed: {install('gui')}")
