"""`denoise reproduce`: make the paper's figures and its table anew."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from contextlib import closing
from importlib import import_module
from pathlib import Path

from denoiser import executors
from denoiser.cli.arguments import whole, wrong
from denoiser.cli.evaluate import add_workers, compute, make_executor
from denoiser.cli.paths import prepare_folder
from denoiser.cli.progress import duration, patiently
from denoiser.evaluation import load_truths, read_rows
from denoiser.evaluation.rows import CSV, Results

#: The experiments that write a figure: name -> (the module whose `run(setting)` returns a Report, a line for the user).
EXPERIMENTS: dict[str, tuple[str, str]] = {
    "toy": ("denoiser.paper.toy", "SVGD on a Gaussian of growing dimension (Fig. 1 and the appendix)"),
    "bandwidth": ("denoiser.paper.bandwidth", "the same for several bandwidths (appendix)"),
    "marginals": ("denoiser.paper.marginals", "marginal densities on the synthetic grid (section 5.1)"),
    "particles": ("denoiser.paper.particles", "errors against the number of particles (section 5.1)"),
    "force": ("denoiser.paper.force", "the repulsive force on grids of growing size (section 5.1)"),
    "image-force": ("denoiser.paper.image_force", "the same on a photograph (section 5.2)"),
    "denoising": ("denoiser.paper.denoising", "a photograph denoised by every method (section 5.2)"),
}
TABLE = "table1"
_WITH_IMAGE = ("image-force", "denoising")
_ONLY_TABLE = ("images", "rows", "workers", "scheduler", "quiet")  # options; the others have the rest to themselves
_ONLY_FIGURES = ("overwrite", "no_figure", "image", "seed")
_EVERY = 5.0  # seconds between two lines of progress

EXAMPLES = """\
experiments:
{}
examples:
  denoise reproduce toy --quick            less than two minutes; writes reproduced/toy.csv, toy.png and toy.md
  denoise reproduce particles --dir out    the paper's setting; takes long
  denoise reproduce denoising --image a.jpg
  denoise reproduce table1 --images bsd10  about 40 minutes on two cores; goes on after a kill""".format(
    "".join(f"  {name:12} {line}\n" for name, (_, line) in EXPERIMENTS.items())
    + f"  {TABLE:12} PSNR and SSIM of every method on ten images, with peers and calibration (section 5.2)\n"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which experiment, how long, where to."""
    add = parser.add_argument
    names = [*EXPERIMENTS, TABLE]
    add("name", choices=names, metavar="NAME", help=f"one of {', '.join(names)}")
    add("--quick", action="store_true", help="a smaller setting that takes less than two minutes")
    add(
        "--dir",
        type=Path,
        default=Path("reproduced"),
        metavar="DIR",
        help="folder for the results (default reproduced)",
    )
    add("--overwrite", action="store_true", help="replace results that exist already")
    add("--no-figure", action="store_true", help="only the numbers and the text: no matplotlib needed")
    add("--image", type=Path, metavar="FILE", help=f"for {' and '.join(_WITH_IMAGE)}: a picture of your own")
    add("--seed", type=whole(0), default=0, metavar="N", help="of the random numbers (default 0)")

    group = parser.add_argument_group(f"for {TABLE}")
    add, folder = group.add_argument, os.environ.get("DENOISER_BSD10")
    add("--images", default=folder, metavar="FOLDER", help="folder of clean pictures (default $DENOISER_BSD10)")
    add("--rows", type=Path, metavar="FILE", help="compute nothing: write it all anew from the rows in this file")
    add("-q", "--quiet", action="store_true", help="only the table at the end, and errors")
    add_workers(group)
    parser.set_defaults(defaults={name: parser.get_default(name) for name in (*_ONLY_TABLE, *_ONLY_FIGURES)})


def run(arguments: argparse.Namespace) -> int:
    """Run the experiment, write its files, and say what was found."""
    from denoiser.paper import report

    foreign = _ONLY_FIGURES if arguments.name == TABLE else _ONLY_TABLE
    for name in foreign:
        if getattr(arguments, name) != arguments.defaults[name]:
            wrong(f"--{name.replace('_', '-')} is no option of {arguments.name}")
    if arguments.name == TABLE:
        return _table(arguments)
    picture = not arguments.no_figure
    if picture:
        report.check_drawing(", or use --no-figure")
    if arguments.image is not None and arguments.name not in _WITH_IMAGE:
        raise ValueError(f"{arguments.name} looks at no picture; --image is for {', '.join(_WITH_IMAGE)}")
    prepare_folder(arguments.dir, report.paths(arguments.dir, arguments.name, picture), arguments.overwrite)
    setting = report.Setting(arguments.quick, arguments.seed, _teller(arguments.name), arguments.image)
    began = time.perf_counter()
    found = patiently(import_module(EXPERIMENTS[arguments.name][0]).run, setting)
    seconds = time.perf_counter() - began
    files = report.write(found, arguments.dir, arguments.name, _command(arguments), picture)
    print(f"{found.title} ({duration(seconds)})")
    print("\n".join(f"- {line}" for line in found.found))
    print(f"written: {', '.join(map(str, files))}")
    return 0


def _table(arguments: argparse.Namespace) -> int:
    """Compute the rows of the table that are missing, and write the page that shows them."""
    from denoiser.paper import report, results_page, table1

    report.check_drawing()
    results_page.check_page(arguments.dir)
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
    made = results_page.write_report(rows, arguments.dir)
    print(f"{table1.markdown(table1.lines(rows))}\n{table1.WHY}\n\n{made[-1]} has it all")
    return 0


def _command(arguments: argparse.Namespace) -> str:
    """The command that makes the same numbers again, without folders of this machine."""
    words = ["denoise reproduce", arguments.name]
    words += ["--quick"] if arguments.quick else []
    words += [f"--seed {arguments.seed}"] if arguments.seed else []
    words += [f"--image {arguments.image.name}"] if arguments.image else []
    return " ".join(words)


def _teller(name: str) -> Callable[[str, float], None]:
    """Progress on stderr, a line now and then."""
    began = last = time.monotonic()

    def tell(what: str, share: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < _EVERY:
            return
        last = now
        left = f", about {duration((now - began) * (1 - share) / share)} to go" if share > 0.05 else ""
        print(f"{name}: {share:.0%} done ({what}){left}", file=sys.stderr, flush=True)

    return tell
