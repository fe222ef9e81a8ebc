"""Where the files that come with the program are: models and sample images; and how more of it is installed."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def data_folder(name: str) -> Path:
    """`models` or `sample_images`: inside the installed package, else beside it in a checkout."""
    inside = _PACKAGE / name
    return inside if inside.is_dir() else _PACKAGE.parent / name


def install(extra: str) -> str:
    """The command that installs an extra: from a checkout, since the program is in no package index.

    >>> install("plots")
    "pip install '.[plots]' in its checkout"
    """
    return f"pip install '.[{extra}]' in its checkout"
