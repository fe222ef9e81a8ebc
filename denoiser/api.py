"""From what users say to a Request, and what most of them want of it: `denoise` and `iterate`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from denoiser import presets
from denoiser.checks import checked_picture
from denoiser.noise import Noise, measure_noise
from denoiser.noise_files import read_noise
from denoiser.outcome import Progress, Result
from denoiser.pieces import Region
from denoiser.priors import Prior
from denoiser.run import Request
from denoiser.samplers import Sampler
from denoiser.units import units


def make_request(
    image: np.ndarray,
    noise: float | str | Path | np.ndarray | Noise | None = None,
    *,
    sigma: float | np.ndarray | None = None,
    method: str | Sampler | None = None,
    prior: str | Path | Prior | None = None,
    quality: str = "normal",
    seed: int = 0,
    channel_axis: int | None = None,
    data_range: float | tuple[float, float] | None = None,
    memory: int | None = None,
    region: Region | None = None,
    chroma: float = 1.0,
    **options: Any,
) -> Request:
    """A Request from what users say.

    image: (height, width), or with channels along `channel_axis`; whole or real numbers.
    noise: its standard deviation in the image's own units, a map of that of the image's shape, a `Noise`, words such as
        "poisson:0.5,3" in grey levels of 255, or the name of a file by `denoise noise --json` or `Noise.to_json`;
        measured when left out. `sigma` is another name for it.
    method: a name from `METHODS` with its `options`, or a sampler made by hand.
    prior: "learned", "pairwise", "foe3x3" or the path of a model file.
    quality: "fast", "normal" or "best", for what `method` and `prior` leave open.
    seed: the same seed gives the same bytes, on any number of threads.
    data_range: value of white, or black and white as a pair. Default: as the type, or the values, say (`units.units`).
    memory: bytes to work in; larger images are cut into tiles, and have no samples. Default: 384 MB.
    region: only this part of the image, as the run on the whole would give it.
    chroma: multiplies the noise of the colours alone.
    """
    if noise is not None and sigma is not None:
        raise ValueError("noise and sigma are two names of one thing; give one of them")
    sampler, loaded = presets.choose(quality, method, prior, options)
    black, white = data_range if isinstance(data_range, tuple | list) else (None, data_range)
    level = sigma if noise is None else noise
    if level is None or isinstance(level, str | Path):
        level = _noise_in(image, level, channel_axis, white, black)
    return Request(image, level, sampler, loaded, seed, channel_axis, white, black, memory, region, chroma)


def _noise_in(
    image: Any, words: str | Path | None, axis: int | None, white: float | None, black: float | None
) -> Noise:
    """The noise that words or a file tell, or that is measured in the picture, in its own units."""
    picture = checked_picture(image, axis)
    upright = picture if axis is None else np.moveaxis(picture, axis, -1)
    scale = units(upright, white=white, black=black)
    if words is not None and Path(words).suffix.lower() == ".json":
        return read_noise(words, picture, scale)
    if words is not None:
        return Noise.from_text(str(words)).in_units(scale.grey, scale.black)
    found = measure_noise(upright, None if axis is None else -1, scale)
    if found.level < 1e-6 * scale.grey:
        raise ValueError("no noise was found in the picture; say how strong it is: noise=")
    return found


def iterate(image: np.ndarray, noise: Any = None, **arguments: Any) -> Iterator[Progress]:
    """Denoise step by step; arguments as in `make_request`. Bad ones raise here, before the first step."""
    return make_request(image, noise, **arguments).iterate()


def denoise(
    image: np.ndarray,
    noise: Any = None,
    *,
    progress: Callable[[Progress], object] | None = None,
    **arguments: Any,
) -> Result:
    """Denoise an image and say how sure each pixel is.

    image, noise and the other arguments are those of `make_request`: method, prior, quality, seed, channel_axis,
    data_range, memory, region, chroma, and the options of the method. Noise that is left out is measured.
    progress: called with a Progress after every iteration.

    >>> flat = denoise(np.full((16, 16), 0.5), 0.1, method="map")
    >>> bool(np.allclose(flat.mean, 0.5, atol=1e-3))
    True
    """

    def watch(steps: Iterator[Progress]) -> Iterator[Progress]:
        for step in steps:
            if progress is not None:
                progress(step)
            yield step

    return make_request(image, noise, **arguments).run(watch)
