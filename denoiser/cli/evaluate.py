"""`denoise evaluate`: methods side by side on images with known truth; rows are saved as they finish."""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import Executor
from contextlib import ExitStack, closing
from pathlib import Path

from denoiser import executors, jit
from denoiser.cli.arguments import connect, noise_words, whole, wrong
from denoiser.cli.live import Live
from denoiser.evaluation import Row, Step, load_truths, make_plan, parse_method, run_cases, summary
from denoiser.evaluation.plan import Case, Truth
from denoiser.evaluation.rows import CSV, JSON, Results
from denoiser.priors import available_priors
from denoiser.samplers import METHODS

EXAMPLES = """\
examples:
  denoise evaluate pictures --sigma 10 20 --method mp-svgd gibbs tv nlm --csv rows.csv
  denoise evaluate pictures --noise white:20 poisson:0.5 camera:3200 --method direct nlm
  denoise evaluate pictures --method mp-svgd svgd --particles 50 100 --seeds 3 --csv rows.csv --resume
  denoise evaluate pictures --method mp-svgd gibbs:samples=600,chains=2 --workers 4 --json rows.json
  denoise evaluate pictures --scheduler tcp://HOST:8786 --csv rows.csv      on a Dask cluster
exit codes: 0 all done, 1 something failed (rows so far are safe), 2 wrong usage, 130 interrupted"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to compare on what, where the rows go, and who computes them."""
    add = parser.add_argument
    add("folder", metavar="FOLDER", help="folder with pictures without noise")
    add(
        "--noise", "--sigma", dest="noise", type=noise_words, nargs="+", default=["10", "20"], metavar="WORDS",
        help="noise to add: 20 or white:20, poisson:GAIN[,READ], camera:ISO[,QUALITY] (default 10 20)",
    )  # fmt: skip
    usual = ["direct", "mp-svgd", "gibbs", "map", "tv", "nlm"]
    names = f"{', '.join(METHODS)}; a prior of its own and options: gibbs@foe3x3:samples=600,chains=2"
    add("--method", nargs="+", default=usual, metavar="NAME", help=f"{names} (default {' '.join(usual)})")
    add("--particles", type=whole(2), nargs="+", metavar="M", help="numbers of particles, or draws of gibbs, to try")
    add("--seeds", type=whole(1), default=1, metavar="N", help="noisy versions of every picture (default 1)")
    add("--prior", default="pairwise", help=f"{', '.join(available_priors())} or a model file (default pairwise)")
    add("--against", metavar="NAME", help="the method to compare the others with (default the first)")
    add("--csv", type=Path, metavar="FILE", help="append every row to this table as it finishes")
    add("--json", type=Path, metavar="FILE", help="the same as JSON, an object a line")
    add("--resume", action="store_true", help="go on with these files: compute only the rows that they lack")
    add("-q", "--quiet", action="store_true", help="only the tables at the end, and errors")
    add_workers(parser)


def add_workers(parser: argparse._ActionsContainer) -> None:
    """Who computes."""
    add = parser.add_mutually_exclusive_group().add_argument
    add("--workers", type=whole(1), default=1, metavar="N", help="processes; the cores are shared out (default 1)")
    add("--scheduler", metavar="tcp://HOST:PORT", help="compute on the workers of this Dask cluster")


def make_executor(arguments: argparse.Namespace) -> Executor:
    """What `add_workers` asked for."""
    if arguments.scheduler is not None:
        return connect(arguments.scheduler)
    # after Ctrl-C we leave at once, and Python's own helper process would complain of semaphores
    os.environ.setdefault("PYTHONWARNINGS", "ignore::UserWarning:multiprocessing.resource_tracker")
    return executors.local_processes(arguments.workers)


def run(arguments: argparse.Namespace) -> int:
    """Compute what is missing, save it row by row, and print the tables."""
    if arguments.resume and not (arguments.csv or arguments.json):
        wrong("--resume needs the file to go on with: --csv FILE or --json FILE")
    if arguments.csv and arguments.json and os.path.realpath(arguments.csv) == os.path.realpath(arguments.json):
        wrong("--csv and --json must be two files")
    for method in arguments.method:
        try:
            parse_method(method)
        except ValueError as error:
            wrong(str(error))
    if arguments.against is not None and arguments.against not in arguments.method:
        wrong(f"--against {arguments.against}: is not among the methods {' '.join(arguments.method)}")
    truths = load_truths(arguments.folder)
    cases = make_plan(
        truths, arguments.method, arguments.noise, arguments.particles, arguments.seeds, arguments.prior
    )  # fmt: skip
    forms = {path: form for path, form in ((arguments.csv, CSV), (arguments.json, JSON)) if path is not None}
    with executors.opened(make_executor(arguments)) as executor, ExitStack() as stack:
        files = [
            stack.enter_context(closing(Results(path, form, {case.key for case in cases}, arguments.resume)))
            for path, form in forms.items()
        ]
        rows = compute(cases, truths, files, executor, arguments.quiet)
    print(summary(rows, arguments.against).markdown(), end="")
    return 0


def compute(cases: list[Case], truths: list[Truth], files: list[Results], executor: Executor, quiet: bool) -> list[Row]:
    """The rows of all cases, those that the files lack computed and appended; says on stderr how far it is."""
    before = {row.key: row for file in files for row in file.rows}
    for file in files:
        if file.repaired:
            print(f"denoise: {file.repaired}", file=sys.stderr)
        have = {row.key for row in file.rows}
        for key, row in before.items():  # a kill may have come between the two files
            if key not in have:
                file.append(row)
    if before and not quiet:
        print(f"denoise: {len(before)} of {len(cases)} rows were there already", file=sys.stderr)
    if not quiet:
        jit.on_compile(lambda: print("denoise: compiling for this machine; only this once", file=sys.stderr))
    with closing(Live(list(before.values()), quiet)) as live:

        def save(step: Step) -> None:
            for file in files:
                file.append(step.row)
            live.show(step)

        return run_cases(cases, truths, before=before.values(), executor=executor, progress=save)
