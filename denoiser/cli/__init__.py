"""The `denoise` command: argparse only; one subcommand a file, imported when it is called."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import denoiser

COMMANDS = {
    "run": "remove the noise from image files (what happens when no command is named)",
    "demo": "add noise to a bundled photograph, denoise it, and show what was won",
    "evaluate": "compare methods on pictures with known truth: PSNR, SSIM, calibration, speed",
    "noise": "measure the noise of pictures: level, how it follows brightness, grain",
    "reproduce": "the experiments of the paper",
    "train": "teach the learned field your own photographs (needs the extra `train`)",
    "measure": "mean, sum, spread, differences and profiles of regions, each with its error bar",
    "gui": "open the window",
    "models": "list the priors that come with the program",
    "completion": "print a script that teaches your shell to complete these commands",
}
_MODULES = {"run": "denoise"}  # a command whose file has another name: denoiser/run.py is the run itself
_HELP = """\
usage: denoise [run] FILE... [options]     remove the noise from image files
       denoise COMMAND [options]           something else

Bayesian image denoising: the most plausible picture behind the noise, and how far to trust every pixel of it.

examples:
  denoise photo.jpg                        writes photo-denoised.jpg
  denoise photo.jpg -o clean.png           another name, another format
  denoise --sigma 15 scan.tif              when you know the noise level (grey levels of 255)
  denoise -r pictures --dir clean          a whole folder tree
  denoise --quality fast *.png             quicker; 'best' takes longer
  denoise photo.png --std sure.png         also a map of how uncertain every pixel is
  denoise - < in.png > out.png             in a pipe

commands:
{commands}

`denoise run --help` lists all options of denoising, `denoise COMMAND --help` those of another command.
  -h, --help     show this and leave
  --version      show the version and leave
"""


class _Parser(argparse.ArgumentParser):
    """Wrong usage is one line, like every other error."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"denoise: {message} (see {self.prog} --help)\n")


def make_parser(command: str) -> argparse.ArgumentParser:
    """The parser of one command."""
    module = import_module(f"denoiser.cli.{_MODULES.get(command, command)}")
    line = COMMANDS[command]
    parser = _Parser(
        prog=f"denoise {command}",
        description=line[0].upper() + line[1:] + ".",
        epilog=getattr(module, "EXAMPLES", None),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    parser.set_defaults(run=module.run)
    return parser


def _help() -> str:
    return _HELP.format(commands="\n".join(f"  {name:12} {line}" for name, line in COMMANDS.items()))


def _call(argv: list[str]) -> int:
    if not argv:
        print(_help(), end="", file=sys.stderr)
        raise SystemExit(2)
    if argv[0] in ("-h", "--help"):
        print(_help(), end="")
        return 0
    if argv[0] == "--version":
        print(f"denoise {denoiser.__version__}")
        return 0
    if argv[0] not in COMMANDS:
        argv = ["run", *argv]
    arguments = make_parser(argv[0]).parse_args(argv[1:])
    return int(arguments.run(arguments))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    warnings.showwarning = lambda message, *_args, **_kwargs: print(f"denoise: {message}", file=sys.stderr)
    for name in ("stdout", "stderr"):  # closed by whoever started us: cron, a daemon
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    if argv is None:
        for stream in (sys.stdout, sys.stderr):  # a name that the terminal cannot show must not end the run
            with contextlib.suppress(AttributeError, ValueError):
                stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        return _call(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt:
        print("\ndenoise: interrupted", file=sys.stderr)
        if argv is None:  # a kernel may still be at work in a thread, and leaving politely would wait for it
            sys.stderr.flush()
            os._exit(130)
        return 130
    except BrokenPipeError:  # the reader has seen enough; what is left in the buffer has nowhere to go
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError, FloatingPointError, MemoryError) as error:
        text = str(error)
        if isinstance(error, OSError) and error.filename is not None and error.strerror:
            text = f"{error.filename}: {error.strerror}"
        print(f"denoise: {' '.join(text.split()) or type(error).__name__}", file=sys.stderr)
        return 1
