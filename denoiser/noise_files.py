"""What a noise that was written to a file means for a picture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from denoiser.files import label, read_bytes
from denoiser.noise import Noise
from denoiser.units import REAL, Units, kind_of_numbers

_FAR = 64.0  # times the scale, beyond which real numbers are not those of the same camera


def read_noise(path: str | Path, pixels: np.ndarray, scale: Units) -> Noise:
    """A file by `denoise noise --json` or `Noise.to_json`, for a picture of these pixels, whose units are `scale`."""
    text = read_bytes(path).decode("utf-8", "replace")
    try:
        return fitted(Noise.from_json(text), pixels, scale)
    except ValueError as error:
        raise ValueError(f"{label(path)}: {error}") from None


def fitted(noise: Noise, pixels: np.ndarray, scale: Units) -> Noise:
    """A noise for another picture than its own.

    Where its pixels are numbers of the kind that was measured, these numbers stay: black and white may be measured
    frame by frame, but a camera's noise is the same in all frames. Else a grey level becomes a grey level.
    """
    if noise.numbers != kind_of_numbers(pixels):
        return noise.in_units(scale.grey, scale.black)
    if noise.numbers == REAL and not 1 / _FAR < scale.grey / noise.grey < _FAR:
        its, ours = (f"from {u.black:.4g} to {u.white:.4g}" for u in (noise, scale))
        raise ValueError(f"is of real numbers {its}, the picture's go {ours}; scale the one like the other")
    return replace(noise, black=scale.black, white=scale.black + 255 * scale.grey)
