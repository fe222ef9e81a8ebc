"""The `denoise` command: argparse only; one subcommand a file."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence

import denoiser
from denoiser.cli import demo, gui, models

COMMANDS = (demo, gui, models)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="denoise",
        description="Bayesian image denoising: the posterior mean, and how far to trust every pixel of it.",
    )
    parser.add_argument("--version", action="version", version=f"denoise {denoiser.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        name, line = command.__name__.rsplit(".", 1)[-1], (command.__doc__ or "").splitlines()[0]
        sub = commands.add_parser(name, help=line, description=line)
        command.add_arguments(sub)
        sub.set_defaults(run=command.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    arguments = _parser().parse_args(argv)
    warnings.showwarning = lambda message, *_args, **_kwargs: print(f"denoise: {message}", file=sys.stderr)
    try:
        return int(arguments.run(arguments))
    except KeyboardInterrupt:
        print("denoise: interrupted", file=sys.stderr)
        return 130
    except (ValueError, OSError, FloatingPointError, MemoryError) as error:
        print(f"denoise: {error}", file=sys.stderr)
        return 1
