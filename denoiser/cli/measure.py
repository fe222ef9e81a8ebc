"""`denoise measure`: numbers from regions and lines of a noisy picture, each with its interval."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from denoiser import images, measure, panels
from denoiser.cli.arguments import positive, whole, wrong
from denoiser.cli.denoise import memory_size
from denoiser.files import label, write_bytes
from denoiser.noise import Noise, measure_noise
from denoiser.particles import Item, Number, draw_particles, line_item, mask_item, numbers, read_mask, to_csv
from denoiser.presets import QUALITIES, choose
from denoiser.run import Request
from denoiser.samplers import METHODS

EXAMPLES = """\
examples:
  denoise measure cells.tif --region 120,80,40,30                the mean in a rectangle, and how sure it is
  denoise measure cells.tif --region 120,80,40,30 --region 10,10,40,30       two, and their difference
  denoise measure cells.tif --mask nucleus.png --csv numbers.csv             any shape: pixels that are not black
  denoise measure gel.tif --line 10,50,200,50 --plot profile.png             a profile with its band
positions are in pixels from the upper left corner; numbers are in the picture's own units"""


def _four(kind: str, text: str) -> tuple[str, tuple[float, ...]]:
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if len(values) != 4 or not np.isfinite(values).all():
        raise argparse.ArgumentTypeError(f"must be four numbers such as 10,20,30,40, got {text!r}")
    return kind, values


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to measure, in which picture, and how it is denoised."""
    add = parser.add_argument
    add("file", metavar="FILE", help="a noisy picture")
    for kind, parse, metavar, meaning in (  # in one list, in the order they are named
        ("region", partial(_four, "region"), "X,Y,W,H", "a rectangle: its corner, width and height"),
        ("ellipse", partial(_four, "ellipse"), "X,Y,W,H", "the ellipse in such a rectangle"),
        ("mask", lambda name: ("mask", name), "FILE", "a picture of the same size; what is not 0 counts"),
        ("line", partial(_four, "line"), "X1,Y1,X2,Y2", "a profile along a line"),
    ):
        add(f"--{kind}", dest="items", action="append", type=parse, metavar=metavar, help=meaning)
    add("--level", type=float, default=0.9, metavar="P", help="probability of the intervals (default 0.9)")
    add("--csv", metavar="FILE", help="the numbers for other programs")
    add("--plot", metavar="FILE", help="profiles with their bands, or means with their error bars, as PNG")
    add("--overwrite", action="store_true", help="replace files that exist already")
    add("--sigma", type=positive, metavar="N", help="noise level in grey levels of 255 (default: measured)")
    add("--quality", choices=list(QUALITIES), default="normal", help="fast, normal (the default) or best")
    add("--method", choices=list(METHODS), help="how particles are drawn (default: what `denoise run` takes)")
    add("--prior", help="what pictures look like (default: what `denoise run` takes)")
    add("--seed", type=whole(0), default=0, metavar="N", help="of the random numbers (default 0)")
    add("--memory", type=memory_size, metavar="SIZE", help="for large regions")


def run(arguments: argparse.Namespace) -> int:
    """Read, draw particles where they are needed, measure, print."""
    if not arguments.items:
        wrong("nothing to measure: name a --region, --ellipse, --mask or --line")
    if not 0 < arguments.level < 1:
        wrong(f"--level must lie between 0 and 1, got {arguments.level:g}")
    if arguments.csv and arguments.plot and os.path.realpath(arguments.csv) == os.path.realpath(arguments.plot):
        wrong("--csv and --plot must be two files")
    for target in (arguments.csv, arguments.plot):
        if target:
            _check(target, arguments)
    try:
        sampler, prior = choose(arguments.quality, arguments.method, arguments.prior)
    except (ValueError, OSError) as error:
        wrong(str(error))
    picture = images.read(arguments.file)
    items = [_item(f"{kind} {n}", kind, value, picture) for n, (kind, value) in enumerate(arguments.items, 1)]
    scale, axis = picture.units, picture.channel_axis
    if arguments.sigma is None:
        noise = measure_noise(picture.pixels, axis, scale)
    else:
        noise = Noise.flat(arguments.sigma).in_units(scale.grey, scale.black)
    if not noise.level > 0:
        raise ValueError(f"{label(arguments.file)}: no noise was found in it; give --sigma")
    request = Request(
        picture.pixels, noise, sampler, prior, arguments.seed, axis, scale.white, scale.black, arguments.memory
    )
    found = list(numbers(partial(draw_particles, request), items, arguments.level))
    for line in lines(found, arguments.level):
        print(line)
    if arguments.csv:
        write_bytes(arguments.csv, to_csv(found, arguments.level).encode())
    if arguments.plot:
        write_bytes(arguments.plot, plot(found, arguments.level))
    return 0


def _check(target: str, arguments: argparse.Namespace) -> None:
    masks = [value for kind, value in arguments.items if kind == "mask"]
    if any(images.same_file(name, target) for name in (arguments.file, *masks)):
        raise ValueError(f"{label(target)}: is an input; nothing was written")
    if os.path.lexists(target) and not arguments.overwrite:
        raise ValueError(f"{label(target)}: exists already; --overwrite replaces it")


def _item(name: str, kind: str, value: Any, picture: images.Picture) -> Item:
    """What a word of the command line names."""
    shape = picture.pixels.shape[:2]
    if kind == "line":
        return line_item(name, shape, *value)
    if kind != "mask":
        return mask_item(name, (measure.rectangle if kind == "region" else measure.ellipse)(shape, *value))
    return mask_item(name, read_mask(value, shape))


def lines(found: list[Number], level: float) -> Iterator[str]:
    """For people; profiles are left to --csv and --plot but for their length."""
    yield f"intervals of {100 * level:g} %"
    for n in found:
        if n.distance is None:
            name = f"{n.item}{', ' + n.channel if n.channel else ''}"
            value, low, high = n.texts(6)
            yield f"{name}: {n.quantity} {value}  ({low} to {high})"
    for name in dict.fromkeys(n.item for n in found if n.distance is not None):
        along = [n for n in found if n.item == name]
        least, greatest = (end(along, key=lambda n: n.value).texts(6)[0] for end in (min, max))
        reach = np.mean([(n.high - n.low) / 2 for n in along])
        yield f"{name}: {len(along)} values from {least} to {greatest}, each +- {reach:.3g} or so"


_INK = {"": "#2563c9", "red": "#c43c39", "green": "#3a8f4d", "blue": "#2563c9"}


def plot(found: list[Number], level: float) -> bytes:
    """Profiles with their bands above, means with their error bars below, as PNG."""
    profiles = list(dict.fromkeys((n.item, n.channel) for n in found if n.distance is not None))
    means = [n for n in found if n.distance is None and n.quantity == "mean"]
    parts = [bool(profiles), bool(means)]
    figure = panels.new_figure((7, 3.2 * sum(parts)), "--plot needs")
    axes = list(np.atleast_1d(figure.subplots(sum(parts), 1)))
    if profiles:
        axis = axes.pop(0)
        for item, channel in profiles:
            along = [n for n in found if (n.item, n.channel) == (item, channel)]
            x = [n.distance for n in along]
            axis.fill_between(x, [n.low for n in along], [n.high for n in along], color=_INK[channel], alpha=0.25, lw=0)
            axis.plot(x, [n.value for n in along], color=_INK[channel], lw=1.2, label=f"{item} {channel}".strip())
        axis.set(xlabel="pixels along the line", ylabel="value")
        axis.legend(frameon=False)
    if means:
        axis = axes.pop(0)
        names = [f"{n.item} {n.channel}".strip() for n in means]
        reach = [(n.high - n.low) / 2 for n in means]
        axis.errorbar([n.value for n in means], range(len(means)), xerr=reach, fmt="o", color=_INK[""], capsize=3)
        axis.set_yticks(range(len(means)), names)
        axis.invert_yaxis()
        axis.set(xlabel=f"mean, with its {100 * level:g} % interval")
    return panels.file_of(figure, format="png", dpi=130)
