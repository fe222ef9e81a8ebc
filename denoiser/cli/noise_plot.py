"""Noise curves as a picture: standard deviation against brightness."""

from __future__ import annotations

import io
from pathlib import Path

from denoiser.data import install
from denoiser.noise import Noise


def plot(measured: list[tuple[str, Noise]], name: str) -> bytes:
    """A file of the kind that `name` ends with: a curve for each noise, three for the channels of a colour picture."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError(f"a plot needs matplotlib: {install('plots')}") from None
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot(
        xlabel="brightness (grey levels)", ylabel="standard deviation (grey levels)", xlim=(0, 255)
    )
    for number, (label, noise) in enumerate(measured):
        grey = 255 / noise.white
        colours = ["tab:red", "tab:green", "tab:blue"] if len(noise.channels) == 3 else [f"C{number}"]
        for channel, colour in zip(noise.channels, colours, strict=True):
            style = "-" if len(measured) == 1 or len(noise.channels) == 1 else ["-", "--", ":", "-."][number % 4]
            x = [b * grey for b in channel.brightness]
            y = [s * grey for s in channel.sigma]
            named = label if colour == colours[0] else None
            axes.plot([0, *x, 255], [y[0], *y, y[-1]], style, color=colour, alpha=0.3)
            axes.plot(x, y, style, color=colour, marker=".", label=named)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize="small")
    kind = Path(name).suffix.lower().lstrip(".") or "png"
    if kind not in figure.canvas.get_supported_filetypes():
        raise ValueError(f"cannot draw a plot as {kind!r}; name it .png, .svg or .pdf")
    file = io.BytesIO()
    figure.savefig(file, format=kind, dpi=150)
    return file.getvalue()
