"""`denoise reproduce`: the paper's experiments."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from denoiser import executors
from denoiser.cli.arguments import wrong
from denoiser.cli.evaluate import add_workers, compute, make_executor
from denoiser.evaluation import find_images, load_truths, plots, read_rows, table1
from denoiser.evaluation.report import write_report
from denoiser.evaluation.rows import CSV, Results

EXAMPLES = """\
examples:
  denoise reproduce table1 --images bsd10 --dir out     about 40 minutes on two cores; goes on after a kill"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which experiment, on what, and where it goes."""
    add = parser.add_argument
    add("name", choices=list(EXPERIMENTS), help="table1: denoising, Table 1 of the paper")
    add("--images", default=os.environ.get("DENOISER_BSD10"), help="folder of clean pictures (default $DENOISER_BSD10)")
    add("--rows", type=Path, metavar="FILE", help="compute nothing: write it all anew from the rows in this file")
    add("--dir", type=Path, default=Path("reproduced"), metavar="DIR", help="folder for it (default reproduced)")
    add("-q", "--quiet", action="store_true", help="only the table at the end, and errors")
    add_workers(parser)


def run(arguments: argparse.Namespace) -> int:
    """Make one of them."""
    return EXPERIMENTS[arguments.name](arguments)


def _table1(arguments: argparse.Namespace) -> int:
    plots.check()
    if arguments.rows is not None:
        rows = read_rows(arguments.rows)
    else:
        if arguments.images is None:
            wrong("--images FOLDER: the folder of clean pictures is needed, or --rows FILE")
        truths = load_truths(find_images(arguments.images))
        cases = table1.plan_table(truths)
        os.makedirs(arguments.dir / "results", exist_ok=True)
        with executors.opened(make_executor(arguments)) as executor:
            file = Results(arguments.dir / "results" / "rows.csv", CSV, {case.key for case in cases}, resume=True)
            with closing(file):
                rows = compute(cases, truths, [file], executor, arguments.quiet)
    made = write_report(rows, arguments.dir)
    print(f"{table1.markdown(table1.lines(rows))}\n{table1.WHY}\n\n{made[-1]} has it all")
    return 0


EXPERIMENTS: dict[str, Callable[[argparse.Namespace], int]] = {"table1": _table1}
