"""`denoise run`: real image files in, real image files out."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from denoiser import executors, images, jit, pieces, threads
from denoiser.cli import paths
from denoiser.cli.arguments import connect, noise_words, number, positive, whole, wrong
from denoiser.cli.batch import run_all
from denoiser.cli.job import Batch
from denoiser.cli.report import Report, Settings
from denoiser.fields import field_names
from denoiser.files import label
from denoiser.noise import Noise
from denoiser.presets import QUALITIES, choose
from denoiser.samplers import METHODS, flag, with_particles

EXAMPLES = """\
examples:
  denoise photo.jpg                        writes photo-denoised.jpg; measures the noise itself
  denoise photo.jpg -o clean.png           another name, another format
  denoise --sigma 15 --strength 0.8 a.tif  a known noise level, and a lighter hand
  denoise -r pictures --dir clean          a folder tree; --resume goes on after a kill
  denoise photo.png --std sure.png         how uncertain every pixel is (and a readable sure-map.png)
  denoise clean.png --add-noise 20 -o x.png --json      an experiment, with PSNR and SSIM
  denoise -- -odd-name.png                 a name that begins with a dash
exit codes: 0 all done, 1 an input failed, 2 wrong usage, 130 interrupted"""


def _level(text: str) -> str:
    return text if text == "auto" else str(positive(text))


def _noise(text: str) -> str:
    """Words for the noise of a picture; what is no such word must be a file."""
    if text in ("auto", "camera") or os.path.isfile(text):
        return text
    try:
        Noise.from_text(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}, or the name of a file") from None
    return text


def memory_size(text: str) -> int:
    """Bytes: 500M, 2G."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if not match or float(match[1]) <= 0:
        raise argparse.ArgumentTypeError(f"must be a size such as 500M or 2G, got {text!r}")
    return int(float(match[1]) * 1024 ** ("KMGT".index(match[2].upper()) + 1 if match[2] else 2))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Files, noise, quality, what to write, and the samplers' own options."""
    add = parser.add_argument
    add("inputs", nargs="+", metavar="INPUT", help="image files, folders (with -r), patterns, or - for standard input")
    add("-r", "--recursive", action="store_true", help="take all pictures in folders and below")

    add = parser.add_argument_group("output").add_argument
    add("-o", "--output", metavar="FILE", help="the result, of one input; - for standard output")
    add("--dir", type=Path, metavar="DIR", help="folder for the results; keeps the folder tree of the inputs")
    add("--overwrite", action="store_true", help="replace results that exist already (never an input)")
    add("--skip-existing", action="store_true", help="leave out inputs whose result exists already")
    add("--resume", action="store_true", help="go on with a batch that was killed: keep what it finished")
    add(
        "--std",
        metavar="FILE",
        help="uncertainty of every pixel: .png of 16 bits or .tif; and a readable map beside it",
    )
    add("--residual", metavar="FILE", help="what was taken away: .png (16 bits, around mid-grey) or .tif")
    add("--samples", metavar="FILE", help="candidate pictures, mean and uncertainty as numbers: .npz")
    add("--json", action="store_true", help="one JSON object a line on standard output for every input")
    add("-q", "--quiet", action="store_true", help="only errors")
    add("-v", "--verbose", action="store_true", help="more words")

    add = parser.add_argument_group("noise and quality").add_argument
    add(
        "--noise", type=_noise, metavar="WORDS",
        help="auto (the default) measures it; a level in grey levels of 255; poisson:GAIN[,READ]; camera (measured); "
        "or a file: a map of standard deviations as an image, or what `denoise noise --json FILE` wrote",
    )  # fmt: skip
    add("--sigma", type=_level, metavar="N", help="the noise as one level, or auto; 0 copies")
    add("--strength", type=positive, default=1.0, metavar="X", help="multiplies the noise level (default 1; 0 copies)")
    add("--strength-chroma", type=positive, default=1.0, metavar="X", help="multiplies that of the colours alone")
    add("--white", type=number, metavar="N", help="the picture's value of white (default: the file's, or measured)")
    add("--black", type=number, metavar="N", help="the picture's value of black (default: 0, the file's, or measured)")
    add("--page", type=whole(1), metavar="N", help="only this page of a stack (default: all of them)")
    add("--quality", choices=list(QUALITIES), default="normal", help="fast, normal (the default) or best")
    add("--method", choices=list(METHODS), help="how to find the picture (default: one pass of the network)")
    add("--prior", help=f"what pictures look like: {', '.join(field_names())} or a model file (default learned)")
    add("--seed", type=whole(0), default=0, metavar="N", help="of the random numbers (default 0)")

    add = parser.add_argument_group("limits").add_argument
    add("--threads", type=whole(1), metavar="N", help="processor threads (default all); results do not depend on it")
    add("--scheduler", metavar="tcp://HOST:PORT", help="denoise on the workers of this Dask cluster, a picture each")
    default = f"{pieces.DEFAULT_MEMORY >> 20}M, or a quarter of what is free"
    add("--memory", type=memory_size, metavar="SIZE", help=f"larger pictures are cut into tiles (default {default})")
    most = images.MAX_PIXELS
    add("--max-pixels", type=whole(1), default=most, metavar="N", help=f"refuse larger pictures (default {most})")

    add = parser.add_argument_group("experiments").add_argument
    add(
        "--add-noise", type=noise_words, metavar="WORDS",
        help="add noise first, and compare the result with the input: N, poisson:GAIN[,READ] or camera:ISO[,QUALITY]",
    )  # fmt: skip
    add("--reference", metavar="FILE", help="compare the result with this picture: PSNR and SSIM")

    _add_sampler_options(parser)


def _flags() -> dict[str, dict[str, str]]:
    """Flag -> method -> the option it sets."""
    flags: dict[str, dict[str, str]] = {}
    for method, sampler in METHODS.items():
        for name in sampler.options():
            flags.setdefault(flag(method, name), {})[method] = name
    return flags


def _add_sampler_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("options of the methods")
    for word, owners in _flags().items():
        kind, spec = METHODS[next(iter(owners))].options()[next(iter(owners.values()))]
        defaults = [f"{m} {METHODS[m].options()[name][1].default}" for m, name in owners.items()]
        meaning = f"{spec.metadata['meaning']} ({', '.join(defaults)})".replace("%", "%%")
        extra: dict[str, Any] = {"type": kind, "metavar": "N"}
        if kind is bool:
            extra = {"action": argparse.BooleanOptionalAction}
        elif spec.metadata["choices"]:
            extra = {"choices": spec.metadata["choices"]}
        group.add_argument(word, dest=word, default=None, help=meaning, **extra)


def _settings(arguments: argparse.Namespace) -> Settings:
    """Everything that all inputs share, checked; wrong usage ends here."""
    given = {f: (owners, getattr(arguments, f)) for f, owners in _flags().items() if getattr(arguments, f) is not None}
    try:
        method = arguments.method or choose(arguments.quality, None, arguments.prior)[0].name
        for word, (owners, _) in given.items():
            if method not in owners:
                known = [f for f, methods in _flags().items() if method in methods]
                wrong(f"{word} is no option of the method {method}, which has {' '.join(known)}")
        options = {owners[method]: value for owners, value in given.values()}
        sampler, loaded = choose(arguments.quality, method, arguments.prior, options)
    except (ValueError, OSError) as error:
        wrong(str(error))
    if arguments.samples is not None:
        sampler = with_particles(sampler)
    for name in ("std", "samples"):
        if getattr(arguments, name) is not None and not sampler.uncertain:
            wrong(f"--{name}: {method} gives one picture, and no idea how sure it is")
    noise = arguments.noise or arguments.sigma or "auto"
    made = {"sampler": sampler, "prior": loaded, "folder": arguments.dir, "noise": noise}
    as_given = {f.name: getattr(arguments, f.name) for f in fields(Settings) if f.name not in made}
    return Settings(**made, **as_given)


def _check_usage(arguments: argparse.Namespace, entries: list[paths.Input]) -> None:
    """Options that do not go together."""
    several = len(entries) > 1
    for name in ("output", "std", "residual", "samples", "reference"):
        if several and getattr(arguments, name) is not None:
            flag = "-o" if name == "output" else f"--{name}"
            wrong(f"{flag} is for one input, got {len(entries)}" + ("; use --dir" if name == "output" else ""))
    for one, other in (
        ("output", "dir"), ("overwrite", "skip_existing"), ("quiet", "verbose"), ("add_noise", "reference"),
        ("noise", "sigma"),
        ("scheduler", "threads"), ("resume", "std"), ("resume", "residual"), ("resume", "samples"),
    ):  # fmt: skip
        if getattr(arguments, one) not in (None, False) and getattr(arguments, other) not in (None, False):
            wrong(f"--{one} and --{other} do not go together".replace("_", "-"))
    for name, suffixes in (("std", ".png or .tif"), ("residual", ".png or .tif"), ("samples", ".npz")):
        value = getattr(arguments, name)
        if value is not None and Path(value).suffix.lower().replace(".tiff", ".tif") not in suffixes.split(" or "):
            wrong(f"--{name} {label(value)}: must end in {suffixes}")
    to_stdout = arguments.output == paths.STANDARD or (
        arguments.output is None and arguments.dir is None and any(e.path == paths.STANDARD for e in entries)
    )
    if to_stdout and several:
        wrong("- is for one input")
    if to_stdout and arguments.json:
        wrong("--json would mix with the picture on standard output; give -o FILE")
    if to_stdout and sys.__stdout__ is None:
        wrong("standard output is closed; give -o FILE")
    if to_stdout and sys.stdout.isatty():
        wrong("a picture is not written to a terminal; give -o FILE, or > FILE")
    if arguments.output == "":
        wrong("-o needs a name")
    if arguments.dir is not None and os.path.lexists(arguments.dir) and not arguments.dir.is_dir():
        wrong(f"--dir {label(arguments.dir)}: is not a folder")
    suffix = Path(arguments.output or "x.png").suffix.lower()
    if suffix and arguments.output != paths.STANDARD and suffix not in images.SUFFIXES:
        wrong(f"-o {label(arguments.output)}: {suffix} cannot be written; use one of {' '.join(images.SUFFIXES)}")


def run(arguments: argparse.Namespace) -> int:
    """Denoise every input; one that fails is named, and the others are still done."""
    entries = paths.expand(arguments.inputs, arguments.recursive, arguments.dir)
    _check_usage(arguments, entries)
    settings = _settings(arguments)
    if arguments.threads is not None:
        threads.set_threads(arguments.threads)
    if not settings.quiet:
        jit.on_compile(
            lambda: print("denoise: compiling for this machine; only this once, about a minute", file=sys.stderr)
        )
    batch = Batch(settings, [e.path for e in entries])
    failed = 0
    with contextlib.ExitStack() as stack:
        if batch.journal is not None:
            stack.callback(batch.journal.close)
        cluster = None
        if arguments.scheduler is not None:
            cluster = stack.enter_context(executors.opened(connect(arguments.scheduler)))
        for report in run_all(batch, entries, cluster):
            failed += report.status == "failed"
            _tell(report, arguments)
    if len(entries) > 1 and failed:
        print(f"denoise: {failed} of {len(entries)} inputs failed", file=sys.stderr)
    return 1 if failed else 0


def _tell(report: Report, arguments: argparse.Namespace) -> None:
    if report.status == "failed":
        print(f"denoise: {report.error}", file=sys.stderr, flush=True)
    elif not arguments.quiet:
        # a picture may be on standard output, or JSON
        stream = sys.stderr if arguments.json or report.output == paths.STANDARD else sys.stdout
        print(report.line(), file=stream, flush=True)
    if arguments.json:
        print(json.dumps(report.as_json()), flush=True)
