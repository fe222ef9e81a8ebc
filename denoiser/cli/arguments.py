"""Numbers and addresses on the command line, and the one line that wrong usage gets."""

from __future__ import annotations

import argparse
import contextlib
import logging
import math
import sys
from collections.abc import Callable
from typing import NoReturn

from denoiser.executors import Cluster
from denoiser.noise import parse_noise

_MOST = 1e6


def number(text: str) -> float:
    """Any finite number, such as the value of black or white."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}") from None
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"must be finite, got {text}")
    return value


def positive(text: str) -> float:
    """A number >= 0, and not beyond all reason."""
    value = number(text)
    if not 0 <= value <= _MOST:
        raise argparse.ArgumentTypeError(f"must be {'>= 0' if value < 0 else f'<= {_MOST:g}'}, got {text}")
    return value


def noise_words(text: str) -> str:
    """Words for noise to be added (`noise.parse_noise`), with numbers that make sense."""
    try:
        model = parse_noise(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if max(model.numbers) > _MOST:
        raise argparse.ArgumentTypeError(f"must be <= {_MOST:g}, got {text}")
    return str(model)


def whole(low: int) -> Callable[[str], int]:
    """A whole number >= low."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}") from None
        if value < low:
            raise argparse.ArgumentTypeError(f"must be >= {low}, got {value}")
        return value

    return parse


def connect(address: str) -> Cluster:
    """`--scheduler`: a Dask cluster without the log lines of Dask: what goes wrong is said once, in our own words."""
    with contextlib.suppress(ImportError):
        import distributed  # noqa: F401, it makes its loggers when it is imported

        for name in list(logging.root.manager.loggerDict):
            if name.split(".")[0] == "distributed":
                logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    return Cluster(address)


def wrong(message: str) -> NoReturn:
    """Say why, and end with exit code 2."""
    print(f"denoise: {message}", file=sys.stderr)
    raise SystemExit(2)
