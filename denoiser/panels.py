"""Pictures of results: heat maps with a colour bar, panels side by side, and figures of matplotlib, an extra."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from denoiser.data import install

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Nine anchors from black over purple and orange to pale yellow; lightness rises evenly, so it reads in grey too.
_HEAT = np.array(
    [
        (0, 0, 4), (28, 16, 68), (79, 18, 123), (129, 37, 129), (181, 54, 122),
        (229, 80, 100), (251, 135, 97), (254, 194, 135), (252, 253, 191),
    ],
    dtype=float,
)  # fmt: skip
_MARGIN, _CAPTION = 8, 24


def heat(values: np.ndarray, top: float) -> np.ndarray:
    """Values 0..top as colours, uint8, shape values.shape + (3,)."""
    at = np.clip(values / top if top > 0 else values * 0, 0, 1) * (len(_HEAT) - 1)
    anchors = np.arange(len(_HEAT))
    return np.stack([np.interp(at, anchors, _HEAT[:, c]) for c in range(3)], axis=-1).round().astype(np.uint8)


def heat_map(std: np.ndarray) -> np.ndarray:
    """A readable picture of an uncertainty map: colours from 0 to its 99.5th percentile, and a labelled bar."""
    if std.ndim == 3:
        std = np.sqrt((std**2).mean(axis=-1))
    top = max(float(np.percentile(std, 99.5)), 1e-12)
    height, width = std.shape
    font = ImageFont.load_default(12)
    canvas = Image.new("RGB", (width + 88, max(height, 60)), "white")
    canvas.paste(Image.fromarray(heat(std, top)), (0, 0))
    bar = heat(np.linspace(top, 0, height)[:, None].repeat(14, axis=1), top)
    canvas.paste(Image.fromarray(bar), (width + 8, 0))
    draw = ImageDraw.Draw(canvas)
    for share in (0, 0.5, 1):
        y = min(max((1 - share) * height - 7, 0), height - 15)
        draw.text((width + 28, y), f"{share * top:.3g}", fill="black", font=font)
    draw.text((width + 28, height * 0.25), "grey\nlevels", fill="black", font=font)
    return np.asarray(canvas)


def side_by_side(panels: list[tuple[str, np.ndarray]]) -> np.ndarray:
    """Panels (caption, image on the 0-255 scale) in one row on white."""
    pictures = []
    for _, panel in panels:
        pixels = np.clip(np.rint(panel), 0, 255).astype(np.uint8)
        pictures.append(Image.fromarray(pixels).convert("RGB"))
    width = sum(p.width for p in pictures) + _MARGIN * (len(pictures) + 1)
    height = max(p.height for p in pictures) + _CAPTION + 2 * _MARGIN
    canvas = Image.new("RGB", (width, height), "white")
    draw, font = ImageDraw.Draw(canvas), ImageFont.load_default(14)
    x = _MARGIN
    for (caption, _), picture in zip(panels, pictures, strict=True):
        draw.text((x, _MARGIN), caption, fill="black", font=font)
        canvas.paste(picture, (x, _CAPTION + _MARGIN))
        x += picture.width + _MARGIN
    return np.asarray(canvas)


def new_figure(size: tuple[float, float], who: str = "figures need") -> Figure:
    """A figure of so many inches; without pyplot, so no window system and no state that others share.

    who: the beginning of the sentence that a user without matplotlib reads.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError(f"{who} matplotlib: {install('plots')}") from None
    return Figure(figsize=size, layout="constrained")


def file_of(figure: Figure, **options: Any) -> bytes:
    """The bytes of a file of a figure; options: of `savefig`."""
    out = io.BytesIO()
    figure.savefig(out, **options)
    return out.getvalue()
