"""The one loop that everything runs: `iterate` yields Progress, `denoise` drains it to a Result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from denoiser import colour, export
from denoiser.posterior import Posterior
from denoiser.priors import Prior, load_prior
from denoiser.samplers import DEFAULT_METHOD, Estimate, Sampler, make_sampler

#: What the words for quality mean: arguments of `denoise`. What a user asks for by name goes before them.
QUALITIES: dict[str, dict[str, Any]] = {
    "fast": {"method": "mp-svgd", "particles": 8, "iterations": 16},
    "normal": {},
    "best": {"method": "gibbs", "prior": "foe3x3"},
}


@dataclass(frozen=True, eq=False)
class Result:
    """A denoised image and how far to trust it, in the image's own units and layout.

    mean: the MMSE image (the mode, for MAP). std: posterior standard deviation of every pixel.
    samples: particles, shape (M,) + image.shape. history: the figures of every iteration.
    chains: of a Markov chain method, whose samples come from them in turn: sample i from chain i % chains; else 0.
    """

    mean: np.ndarray
    std: np.ndarray
    samples: np.ndarray
    seconds: float
    method: str
    sigma: float
    history: list[dict[str, float]] = field(repr=False)
    chains: int = 0
    channel_axis: int | None = None

    def to_arviz(self) -> Any:
        """The samples as `arviz.InferenceData`: the variable `image` of the group `posterior`.

        Its first dimensions are chain and draw for a Markov chain method, and `sample` for particles, which have no
        order; then come row and column, and channel where the image has them. Needs the extra: mpsvgd[arviz].
        """
        names = ["row", "column"]
        if self.channel_axis is not None:
            names.insert(self.channel_axis % 3, "channel")
        attributes = {"method": self.method, "sigma": self.sigma, "seconds": self.seconds}
        return export.to_arviz(self.samples, names, self.chains, attributes)


@dataclass(frozen=True, eq=False)
class Progress:
    """A run after `step` of at most `total` iterations; `eta` is the seconds it may still take."""

    step: int
    total: int
    seconds: float
    eta: float
    figures: dict[str, float]
    _estimates: tuple[Estimate, ...] = field(repr=False)
    _frame: _Frame = field(repr=False)

    @cached_property
    def mean(self) -> np.ndarray:
        """The MMSE image so far, in the image's own units and layout."""
        return self._frame.image(np.stack([e.mean for e in self._estimates]))

    @cached_property
    def std(self) -> np.ndarray:
        """The standard deviation of every pixel so far."""
        return self._frame.std(np.stack([e.std for e in self._estimates]))

    @property
    def samples(self) -> np.ndarray:
        """The particles so far, shape (M,) + image.shape, float32."""
        count = min(len(e.samples) for e in self._estimates)
        return self._frame.image(np.stack([e.samples[:count] for e in self._estimates], axis=-3)).astype(np.float32)

    @property
    def particles(self) -> int:
        """How many samples there are; cheap."""
        return min((len(e.samples) for e in self._estimates), default=0)

    def sample(self, index: int) -> np.ndarray:
        """One of `samples`, without the work of making the others."""
        return self._frame.image(np.stack([e.samples[index] for e in self._estimates])).astype(np.float32)

    def detached(self) -> Progress:
        """The same, with particles that the next iterations do not move."""
        return replace(self, _estimates=tuple(replace(e, samples=e.samples.copy()) for e in self._estimates))


class _Frame:
    """How a user's image becomes grey planes on the 0-255 scale, and results become images again."""

    def __init__(self, image: np.ndarray, sigma: float, channel_axis: int | None, data_range: float | None) -> None:
        image = np.asarray(image)
        if image.dtype.kind not in "uif":
            raise ValueError(f"image must hold whole or real numbers, got dtype {image.dtype}")
        if channel_axis is None:
            if image.ndim != 2:
                raise ValueError(f"image must have 2 axes unless channel_axis is given, got shape {image.shape}")
        elif image.ndim != 3 or not -3 <= channel_axis < 3:
            raise ValueError(f"channel_axis {channel_axis} does not fit an image of shape {image.shape}")
        elif image.shape[channel_axis] not in (1, 3):
            raise ValueError(f"image must have 1 or 3 channels, got {image.shape[channel_axis]}")
        self.channel_axis = channel_axis
        values = image.astype(np.float64)
        if channel_axis is not None:
            values = np.moveaxis(values, channel_axis, -1)
        if min(values.shape[:2]) < 2:
            raise ValueError(f"image must be at least 2x2 pixels, got shape {image.shape}")
        if not np.isfinite(values).all():
            raise ValueError(f"image must be finite, got {np.count_nonzero(~np.isfinite(values))} NaN or Inf pixels")
        if not isinstance(sigma, int | float | np.integer | np.floating) or not np.isfinite(sigma) or sigma <= 0:
            raise ValueError(f"sigma must be > 0, got {sigma!r}")
        if data_range is None:
            data_range = _guess_range(image, float(sigma))
        elif not np.isfinite(data_range) or data_range <= 0:
            raise ValueError(f"data_range must be > 0, got {data_range!r}")
        self.scale = 255.0 / data_range
        values = values * self.scale
        self.colour = values.ndim == 3 and values.shape[-1] == 3
        self.gains = np.array(colour.GAINS if self.colour else (1.0,))
        if self.colour:
            self.planes = colour.to_planes(values) * self.gains[:, None, None]
        else:
            self.planes = values.reshape(1, *values.shape[:2])

    def image(self, planes: np.ndarray) -> np.ndarray:
        """(..., planes, height, width) on the 0-255 scale -> images in the user's units and layout."""
        values = np.moveaxis(planes, -3, -1)
        if self.colour:
            values = colour.to_channels(planes / self.gains[:, None, None])
        return self._layout(values / self.scale)

    def std(self, planes: np.ndarray) -> np.ndarray:
        """Like `image`, for standard deviations."""
        values = np.moveaxis(planes, -3, -1)
        if self.colour:
            values = colour.std_to_channels(planes / self.gains[:, None, None])
        return self._layout(values / self.scale)

    def _layout(self, values: np.ndarray) -> np.ndarray:
        if self.channel_axis is None:
            return values[..., 0]
        axis = self.channel_axis if self.channel_axis >= 0 else self.channel_axis + 3
        return np.moveaxis(values, -1, axis - 3) if axis < 2 else values


def _guess_range(image: np.ndarray, sigma: float) -> float:
    """White of an image: the largest value of whole-number types; 1 or 255 for real ones."""
    if image.dtype.kind == "u":
        return float(np.iinfo(image.dtype).max)
    if image.dtype.kind == "i":
        return 255.0
    return 1.0 if sigma < 1 and np.abs(image).mean() <= 1 + sigma else 255.0


def iterate(
    image: np.ndarray,
    sigma: float,
    *,
    method: str | Sampler = DEFAULT_METHOD,
    prior: str | Path | Prior = "pairwise",
    seed: int = 0,
    channel_axis: int | None = None,
    data_range: float | None = None,
    origin: tuple[int, int] = (0, 0),
    **options: Any,
) -> Iterator[Progress]:
    """Denoise step by step; arguments as in `denoise`. Bad ones raise here, before the first step.

    origin: row and column of the picture that this image was cut from. The random numbers are those that the whole
    picture would get there, so that away from its edges a piece becomes what it becomes in the whole.
    """
    sampler = method if isinstance(method, Sampler) else make_sampler(method, options)
    frame = _Frame(image, sigma, channel_axis, data_range)
    loaded = load_prior(prior)
    level = float(sigma) * frame.scale
    pairs = zip(frame.planes, frame.gains, strict=True)
    posteriors = [Posterior(loaded, plane, level * float(gain), origin=origin) for plane, gain in pairs]
    try:
        rngs = np.random.default_rng(seed).spawn(len(posteriors))
    except (TypeError, ValueError):
        raise ValueError(f"seed must be a whole number >= 0, got {seed!r}") from None
    return _steps(sampler, posteriors, rngs, frame)


def _steps(
    sampler: Sampler, posteriors: list[Posterior], rngs: list[np.random.Generator], frame: _Frame
) -> Iterator[Progress]:
    """Run the sampler on all planes side by side."""
    began = time.perf_counter()
    running = [sampler.estimates(p, rng) for p, rng in zip(posteriors, rngs, strict=True)]
    latest: list[Estimate | None] = [None] * len(running)
    for step in range(1, sampler.total + 1):
        fresh = [next(generator, None) for generator in running]
        if all(estimate is None for estimate in fresh):
            return  # every plane converged early
        latest = [new or old for new, old in zip(fresh, latest, strict=True)]
        estimates = [e for e in latest if e is not None]
        for estimate in estimates:
            if not (np.isfinite(estimate.mean).all() and np.isfinite(estimate.std).all()):
                raise FloatingPointError(f"{sampler.name} diverged at iteration {step}; try a smaller step")
        cropped = tuple(
            Estimate(p.crop(e.mean), p.crop(e.std), p.crop(e.samples), e.figures)
            for p, e in zip(posteriors, estimates, strict=True)
        )
        figures = {key: float(np.mean([e.figures[key] for e in cropped])) for key in cropped[0].figures}
        spread = [e.std.mean() / gain for e, gain in zip(cropped, frame.gains, strict=True)]
        figures["std"] = float(np.mean(spread) / frame.scale)
        seconds = time.perf_counter() - began
        yield Progress(step, sampler.total, seconds, seconds / step * (sampler.total - step), figures, cropped, frame)


def denoise(
    image: np.ndarray,
    sigma: float,
    *,
    method: str | Sampler = DEFAULT_METHOD,
    prior: str | Path | Prior = "pairwise",
    seed: int = 0,
    channel_axis: int | None = None,
    data_range: float | None = None,
    progress: Callable[[Progress], object] | None = None,
    **options: Any,
) -> Result:
    """Denoise an image and say how sure each pixel is.

    image: (height, width), or with channels along `channel_axis`; uint8, uint16 or real.
    sigma: standard deviation of the noise, in the image's own units.
    method: a name from `METHODS` with its `options`, or a sampler made by hand.
    prior: "pairwise", "foe3x3" or the path of a model file.
    seed: the same seed gives the same bytes, on any number of threads.
    data_range: value of white. Default: the largest of the type; for real images 1 or 255, by their values.
    progress: called with a Progress after every iteration.

    >>> flat = denoise(np.full((16, 16), 0.5), 0.1, method="map")
    >>> bool(np.allclose(flat.mean, 0.5, atol=1e-3))
    True
    """
    sampler = method if isinstance(method, Sampler) else make_sampler(method, options)
    steps = iterate(
        image,
        sigma,
        method=sampler,
        prior=prior,
        seed=seed,
        channel_axis=channel_axis,
        data_range=data_range,
    )
    history, last = [], None
    for last in steps:
        history.append(last.figures)
        if progress is not None:
            progress(last)
    assert last is not None  # every sampler yields at least once
    chains = getattr(sampler, "chains", 0)
    return Result(
        last.mean, last.std, last.samples, last.seconds, sampler.name, float(sigma), history, chains, channel_axis
    )
