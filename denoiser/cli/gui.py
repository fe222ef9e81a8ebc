"""`denoise gui`: open the window."""

from __future__ import annotations

import argparse
import importlib


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """An optional picture."""
    parser.add_argument("file", nargs="?", help="picture to open")


def run(arguments: argparse.Namespace) -> int:
    """Start the window; the library itself never imports Qt, so the app is looked up here, late."""
    for package in ("denoiser_app", "app"):  # installed, or a plain checkout
        try:
            return int(importlib.import_module(package).main(arguments.file))
        except ModuleNotFoundError as error:
            if error.name != package:
                raise OSError(f"the window needs Qt: pip install 'mpsvgd[gui]' ({error.name} is missing)") from None
        except ImportError as error:
            raise OSError(f"the window cannot start: {error}; see README on Qt's system libraries") from None
    raise OSError("the window is not installed: pip install 'mpsvgd[gui]'")
