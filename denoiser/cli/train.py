"""`denoise train`: teach the learned field your own photographs."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from denoiser.cli.arguments import positive, whole, wrong
from denoiser.cli.progress import duration
from denoiser.data import install

EXAMPLES = """\
examples:
  denoise train --photos pictures --minutes 60 --out mine.onnx
  denoise train --photos cells --minutes 30 --from learned --out cells.onnx    go on from ours
Stopped or killed, the same command goes on where it was (mine.pt). Then: denoise --prior mine.onnx photo.jpg
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Folders, time, and where to begin."""
    parser.add_argument("--photos", type=Path, nargs="+", required=True, metavar="FOLDER", help="clean photographs")
    parser.add_argument("--minutes", type=positive, required=True, help="how long to learn, over all resumptions")
    parser.add_argument("--out", type=Path, required=True, metavar="MODEL", help="the model to write, NAME.onnx")
    parser.add_argument("--from", dest="start", metavar="MODEL", help="begin with this model; 'learned' is ours")
    parser.add_argument("--validate", type=Path, metavar="FOLDER", help="other photographs, to measure on")
    parser.add_argument("--rate", type=positive, help="learning rate (default: 2e-3, with --from 5e-4)")
    parser.add_argument("--colours", choices=("grey", "colour", "both"), default="both", help="default: both")
    parser.add_argument("--noise", choices=("white", "camera", "all"), default="all", help="to remove; default: all")
    parser.add_argument("--batch", type=whole(2), default=14, help="crops a step (default: 14)")
    parser.add_argument("--seed", type=whole(0), default=0, help="default: 0")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress lines")


def run(arguments: argparse.Namespace) -> int:
    """Learn, and say how it goes."""
    if not arguments.minutes > 0:
        wrong("--minutes must be > 0")
    if arguments.rate == 0:
        wrong("--rate must be > 0")
    if not arguments.out.parent.is_dir():
        wrong(f"--out: there is no folder {arguments.out.parent}")
    try:
        from denoiser.training.loop import Recipe
        from denoiser.training.session import learn
    except ModuleNotFoundError as error:
        wrong(f"`denoise train` needs {error.name}: {install('train')}")
    rate = arguments.rate or (5e-4 if arguments.start else 2e-3)
    recipe = Recipe(
        arguments.minutes, arguments.colours, arguments.noise, arguments.batch, rate=rate, seed=arguments.seed
    )
    lines = _Lines(60 * arguments.minutes, arguments.quiet)
    card = learn(
        arguments.photos, arguments.out, recipe, start=arguments.start, validate=arguments.validate, report=lines
    )
    steps = card["recipe"]["steps"]
    print(f"{arguments.out}: {steps} steps on {card['photographs']} photographs; card, curve and checkpoint beside it")
    return 0


class _Lines:
    """What is told on stderr: a line every half minute, and one a validation."""

    def __init__(self, total: float, quiet: bool) -> None:
        self.total, self.quiet, self.told = total, quiet, 0.0

    def __call__(self, figures: dict[str, Any]) -> None:
        if self.quiet:
            return
        if "peers" in figures:
            names = "  ".join(f"{name}: {value:.2f}" for name, value in figures["peers"].items())
            begun = f", resumed after {figures['resumed']:.0f} min" if figures["resumed"] else ""
            self._say(f"{figures['photographs']} photographs{begun}; NL-means there, dB: {names}")
            return
        left = duration(max(self.total - 60 * figures["minutes"], 0))
        measured = {k: v for k, v in figures.items() if k not in ("minutes", "step", "losses")}
        if measured:
            names = "  ".join(f"{name}: {value:.2f}" for name, value in measured.items())
            self._say(f"step {figures['step']}, {left} to go, dB: {names}")
        elif time.monotonic() - self.told > 30:
            self._say(f"step {figures['step']}, {left} to go, loss {figures['losses'][0]:.3f}")

    def _say(self, line: str) -> None:
        print(f"train: {line}", file=sys.stderr, flush=True)
        self.told = time.monotonic()
