"""What is known about a picture: during a run (Progress) and after it (Result)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from denoiser import metrics
from denoiser.colour import Frame
from denoiser.data import install
from denoiser.measure import Measurement
from denoiser.measure import measure as measure_particles
from denoiser.measure import region as measure_region
from denoiser.pieces import Canvas
from denoiser.samplers import Estimate, Sampler


class Outcome:
    """What is known about a picture, during a run (Progress) or after it (Result), in the picture's own units.

    mean: the MMSE image (the mode, for MAP), of the picture's shape. std: standard deviation of every pixel, the same
    shape. samples: particles, shape (M,) + the picture's; empty where there are none, and `without` says why.
    """

    sampler: Sampler
    tiles: int
    draws: int
    channel_axis: int | None
    mean: np.ndarray
    std: np.ndarray
    samples: np.ndarray

    @property
    def particles(self) -> int:
        """How many samples there are."""
        return len(self.samples)

    @property
    def without(self) -> str:
        """Why there are no particles; empty where there are."""
        if self.particles:
            return ""
        if not self.sampler.uncertain:
            return f"{self.sampler.name} gives one picture, and no idea how sure it is"
        if self.tiles > 1:
            return f"cut into {self.tiles} tiles, whose particles do not make one picture; allow more memory"
        if not self.sampler.kept:
            return "none were drawn: mean and uncertainty did not need them; ask for particles=50"
        return "its particles were let go to save memory"

    @property
    def uncertainty(self) -> float:
        """The mean standard deviation of a pixel, over all of the picture that is finished."""
        total, count, flat = 0.0, 0, self.std.ravel(order="K")  # in parts: a photograph has many numbers
        for part in np.array_split(flat, max(flat.size >> 20, 1)):
            known = part[np.isfinite(part)]
            total, count = total + float(known.sum(dtype=np.float64)), count + known.size
        return total / count if count else math.nan

    def interval(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The values between which each pixel lies with probability `level`: `metrics.credible_factor` times std."""
        if not self.sampler.uncertain:
            raise ValueError(self.without)
        reach = metrics.credible_factor(level, self.draws or None) * self.std
        return self.mean - reach, self.mean + reach

    def measure(self, function: Callable[[np.ndarray], object], level: float = 0.9) -> Measurement:
        """What `function` says of a picture, a number or an array, with its interval, from the particles."""
        return measure_particles(self._drawn(), function, level)

    def region(self, mask: np.ndarray, level: float = 0.9) -> dict[str, Measurement]:
        """Mean, sum and std of the pixels in a mask (height, width), with their intervals, from the particles."""
        samples = self._drawn()
        if self.channel_axis is not None:
            samples = np.moveaxis(samples, self.channel_axis % 3 + 1, -1)
        return measure_region(samples, mask, level)

    def _drawn(self) -> np.ndarray:
        if not self.particles:
            raise ValueError(f"there are no particles to measure with: {self.without}")
        return self.samples


@dataclass(frozen=True, eq=False)
class Result(Outcome):
    """A denoised picture and how far to trust it.

    seconds: that the run took. history: the figures of every iteration. sigma: the noise level that was removed, RMS
    over the picture. draws: behind mean and std; 0 where they are not made of draws. tiles: parts it was cut into.
    """

    mean: np.ndarray
    std: np.ndarray
    samples: np.ndarray
    seconds: float
    sampler: Sampler
    sigma: float
    history: list[dict[str, float]] = field(repr=False)
    draws: int = 0
    tiles: int = 1
    channel_axis: int | None = None

    @property
    def method(self) -> str:
        """The name of the sampler."""
        return self.sampler.name

    @property
    def chains(self) -> int:
        """Of a Markov chain method, whose samples come from them in turn: sample i from chain i % chains; else 0."""
        return self.sampler.chains

    def to_arviz(self) -> Any:
        """The samples as `arviz.InferenceData`: the variable `image` of the group `posterior`.

        Its first dimensions are chain and draw for a Markov chain method, and `sample` for particles, which have no
        order; then come row and column, and channel where the image has them. Needs the extra `arviz`.
        """
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # that a later version will be different
                import arviz
                import xarray
        except ImportError:
            raise ValueError(f"ArviZ is not installed: {install('arviz')}") from None
        if not self.particles:
            raise ValueError(f"there are no samples to export: {self.without}")
        names = ["row", "column"]
        if self.channel_axis is not None:
            names.insert(self.channel_axis % 3, "channel")
        samples, first = self.samples, ["sample"]
        if self.chains:
            draws, rest = divmod(len(samples), self.chains)
            if not draws:
                raise ValueError(f"{len(samples)} samples are too few for {self.chains} chains; keep more")
            if rest:
                warnings.warn(f"{rest} of {len(samples)} samples left out: chains have one length", stacklevel=2)
            samples = samples[: draws * self.chains]
            samples = samples.reshape(-1, self.chains, *samples.shape[1:]).swapaxes(0, 1)
            first = ["chain", "draw"]
        coordinates = {name: np.arange(size) for name, size in zip(first, samples.shape, strict=False)}
        attributes = {"method": self.method, "sigma": self.sigma, "seconds": self.seconds}
        dataset = xarray.Dataset({"image": ([*first, *names], samples)}, coordinates, attributes)
        return arviz.InferenceData(posterior=dataset)


class Clock:
    """How far a run is, for those who hold an earlier Progress of it."""

    step = 0


@dataclass(frozen=True, eq=False)
class Progress(Outcome):
    """A run after `step` of at most `total` iterations; `eta` is the seconds it may still take.

    Of a picture in tiles, `tile` of `tiles` is being worked on; `mean` is the noisy picture and `std` nan where no tile
    has been finished, and both are the picture as it stands when they are looked at.
    """

    sampler: Sampler
    step: int
    total: int
    seconds: float
    eta: float
    figures: dict[str, float]
    tile: int
    tiles: int
    _estimates: tuple[Estimate, ...] = field(repr=False)
    _frame: Frame = field(repr=False)
    _clock: Clock | None = field(repr=False)  # None: nothing moves any more
    _canvas: Canvas | None = field(default=None, repr=False)

    @cached_property
    def _mean(self) -> np.ndarray:
        return self._frame.image(np.stack([e.mean for e in self._estimates]))

    @cached_property
    def _std(self) -> np.ndarray:
        return self._frame.std(np.stack([e.std for e in self._estimates]))

    @property
    def mean(self) -> np.ndarray:  # type: ignore[override]
        """The MMSE image so far."""
        return self._mean if self._canvas is None else self._frame.layout(self._canvas.mean())

    @property
    def std(self) -> np.ndarray:  # type: ignore[override]
        """The standard deviation of every pixel so far."""
        return self._std if self._canvas is None else self._frame.layout(self._canvas.std())

    @property
    def channel_axis(self) -> int | None:  # type: ignore[override]
        """Where the picture has its channels."""
        return self._frame.channel_axis

    @property
    def done(self) -> np.ndarray:
        """Where the picture is finished as far as this run goes: bool, (height, width)."""
        if self._canvas is not None:
            return self._canvas.done
        return np.ones(self._estimates[0].mean.shape, bool)

    @property
    def draws(self) -> int:  # type: ignore[override]
        """How many draws stand behind the mean so far; 0 for a point estimate."""
        if self._canvas is None:
            return min(self.sampler.draws if e.draws is None else e.draws for e in self._estimates)
        return self.sampler.draws

    @property
    def particles(self) -> int:
        """How many samples there are; cheap."""
        return 0 if self._canvas is not None else min(len(e.samples) for e in self._estimates)

    @property
    def samples(self) -> np.ndarray:  # type: ignore[override]
        """The particles so far, shape (M,) + image.shape; none where tiles are many."""
        if self._canvas is not None:
            return np.empty((0, *self.mean.shape), np.float32)
        return self._pictures(slice(self.particles))

    def sample(self, index: int) -> np.ndarray:
        """One of `samples`, without the work of making the others."""
        return self._pictures(index)

    def _pictures(self, which: int | slice) -> np.ndarray:
        if self._clock is not None and self._clock.step != self.step:
            raise ValueError("the run has gone on and moved its particles; take `detached()` before the next step")
        chosen = np.stack([e.samples[which] for e in self._estimates], axis=-3)
        return self._frame.image(chosen).astype(self._frame.dtype)

    def detached(self) -> Progress:
        """The same, with particles that the next iterations do not move."""
        kept = tuple(replace(e, samples=e.samples.copy()) for e in self._estimates)
        return replace(self, _estimates=kept, _clock=None)
