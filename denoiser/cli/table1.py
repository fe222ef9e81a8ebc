"""`denoise reproduce table1`: the paper's table of denoised images, beside ours and the peers'."""

from __future__ import annotations

import argparse
import os
from contextlib import closing

from denoiser import executors
from denoiser.cli.arguments import wrong
from denoiser.cli.evaluate import compute, make_executor
from denoiser.evaluation import load_truths, read_rows
from denoiser.evaluation.rows import CSV, Results
from denoiser.paper import table1
from denoiser.paper.report import check_drawing
from denoiser.paper.results_page import check_page, write_report


def run(arguments: argparse.Namespace) -> int:
    """Compute the rows that are missing, and write the page that shows them."""
    check_drawing()
    check_page(arguments.dir)
    if arguments.rows is not None:
        if arguments.images != arguments.defaults["images"]:
            wrong("--rows and --images do not go together")
        rows = read_rows(arguments.rows)
    else:
        if arguments.images is None:
            wrong("--images FOLDER: the folder of clean pictures is needed, or --rows FILE")
        truths = load_truths(arguments.images)[: 2 if arguments.quick else None]
        cases = table1.plan_table(truths, (50,) if arguments.quick else (50, 100))
        os.makedirs(arguments.dir / "results", exist_ok=True)
        with executors.opened(make_executor(arguments)) as executor:
            file = Results(arguments.dir / "results" / "rows.csv", CSV, {case.key for case in cases}, resume=True)
            with closing(file):
                rows = compute(cases, truths, [file], executor, arguments.quiet)
    made = write_report(rows, arguments.dir)
    print(f"{table1.markdown(table1.lines(rows))}\n{table1.WHY}\n\n{made[-1]} has it all")
    return 0
