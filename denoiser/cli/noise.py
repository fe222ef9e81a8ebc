"""`denoise noise`: measure the noise of pictures, and nothing else."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from denoiser import images, panels
from denoiser.cli.paths import STANDARD, expand
from denoiser.files import label, same_file, write_bytes
from denoiser.noise import Noise, measure_noise

EXAMPLES = """\
examples:
  denoise noise photo.jpg                    level, how it follows brightness, grain
  denoise noise --json noise.json frame.tif  as JSON; `denoise --noise noise.json *.tif` uses it again
  denoise noise --plot curve.png a.jpg b.jpg standard deviation against brightness
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which files, and how to tell."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="pictures; - for standard input; folders with -r")
    parser.add_argument("-r", "--recursive", action="store_true", help="take all pictures in folders")
    parser.add_argument(
        "--json", nargs="?", const="-", metavar="FILE",
        help="write the measurement as JSON, of one picture to FILE or of all of them to standard output",
    )  # fmt: skip
    parser.add_argument("--plot", metavar="FILE", help="draw standard deviation against brightness (needs matplotlib)")
    parser.add_argument("--overwrite", action="store_true", help="replace FILEs that are there already")


def run(arguments: argparse.Namespace) -> int:
    """Print a row a picture; 1 if one of them could not be read."""
    # `--json photo.jpg` would swallow the picture, and a mistake must not write over it
    for name in (arguments.json, arguments.plot):
        _check_output(name, arguments)
    found: list[tuple[str, Noise]] = []
    failed = 0
    if not arguments.json:
        print(f"{'level':>6} {'dark':>6} {'bright':>6} {'next':>5} {'grain':>5} {'colour':>6} {'sure':>5}  file")
    for entry in expand(arguments.files, arguments.recursive, None):
        try:
            source = sys.stdin.buffer if entry.path == STANDARD else entry.path
            noise = measured(images.read(source))
        except (ValueError, OSError) as error:
            text = " ".join((error.strerror or str(error) if isinstance(error, OSError) else str(error)).split())
            named = text if text.startswith(label(entry.path)) else f"{label(entry.path)}: {text}"
            print(f"denoise: {named}", file=sys.stderr)
            failed += 1
            continue
        found.append((label(entry.path), noise))
        if not arguments.json:
            print(f"{row(noise.in_units(1.0))}  {found[-1][0]}\n{'':6} {noise}")
    if arguments.json == "-":
        print(json.dumps([{"file": name, **json.loads(noise.to_json())} for name, noise in found], indent=1))
    elif arguments.json and len(found) == 1:
        write_bytes(arguments.json, (found[0][1].to_json() + "\n").encode())
    elif arguments.json and found:
        raise ValueError(f"--json {arguments.json} is for one picture; without a name it prints all of them")
    if arguments.plot and found:
        write_bytes(arguments.plot, plot(found, arguments.plot))
    return 1 if failed else 0


def _check_output(name: str | None, arguments: argparse.Namespace) -> None:
    """Refuse a name that is an input, or that exists already."""
    if name is None or name == "-":
        return
    if any(entry != STANDARD and same_file(entry, name) for entry in arguments.files):
        raise ValueError(f"{label(name)} is an input; nothing was written")
    if not arguments.overwrite:
        try:
            open(name, "rb").close()
        except OSError:
            return
        raise ValueError(f"{label(name)} exists already; --overwrite replaces it")


def measured(picture: images.Picture) -> Noise:
    """The noise of a picture in its own units."""
    if max(picture.pixels.shape[:2]) < 2:
        raise ValueError("noise cannot be measured in a single pixel")
    return measure_noise(picture.pixels, picture.channel_axis, picture.units)


def row(noise: Noise) -> str:
    """Level, at the darkest and brightest, correlation of neighbours, grain in pixels, that of colours, sureness.

    noise: in grey levels of 255.
    """
    ends = [(sum(c.sigma[end] ** 2 for c in noise.channels) / len(noise.channels)) ** 0.5 for end in (0, -1)]
    planes = noise.planes or noise.channels[:1]
    rho = planes[0].correlation
    near = f"{(rho[0][1] + rho[1][0]) / 2:5.2f}" if len(rho) > 1 else f"{0:5.2f}"
    colour = f"{max(p.area for p in planes[1:]) ** 0.5:6.1f}" if len(planes) > 1 else f"{'-':>6}"
    grain = planes[0].area ** 0.5
    return f"{noise.level:6.2f} {ends[0]:6.2f} {ends[1]:6.2f} {near} {grain:5.1f} {colour} {noise.confidence:5.0%}"


def plot(measured: list[tuple[str, Noise]], target: str) -> bytes:
    """A file of the kind that `target` ends with: a curve for each noise, three of a colour picture."""
    figure = panels.new_figure((6, 4), "a plot needs")
    axes = figure.add_subplot(
        xlabel="brightness (grey levels)", ylabel="standard deviation (grey levels)", xlim=(0, 255)
    )
    for number, (name, own) in enumerate(measured):
        noise = own.in_units(1.0)
        colours = ["tab:red", "tab:green", "tab:blue"] if len(noise.channels) == 3 else [f"C{number}"]
        for channel, colour in zip(noise.channels, colours, strict=True):
            style = "-" if len(measured) == 1 or len(noise.channels) == 1 else ["-", "--", ":", "-."][number % 4]
            x, y = channel.brightness, channel.sigma
            named = name if colour == colours[0] else None
            axes.plot([0, *x, 255], [y[0], *y, y[-1]], style, color=colour, alpha=0.3)
            axes.plot(x, y, style, color=colour, marker=".", label=named)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize="small")
    kind = Path(target).suffix.lower().lstrip(".") or "png"
    if kind not in figure.canvas.get_supported_filetypes():
        raise ValueError(f"cannot draw a plot as {kind!r}; name it .png, .svg or .pdf")
    return panels.file_of(figure, format=kind, dpi=150)
