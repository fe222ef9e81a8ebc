"""A run is a value: a Request decides every byte; `iterate` yields Progress after Progress, `run` gives the Result."""

from __future__ import annotations

import hashlib
import json
import math
import numbers
import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

import denoiser
from denoiser import fields, pieces, presets
from denoiser.checks import all_alike, checked_noise, checked_picture, noise_level
from denoiser.colour import Frame
from denoiser.noise import Noise
from denoiser.outcome import Clock, Progress, Result
from denoiser.pieces import Canvas, Piece, Region
from denoiser.posterior import Posterior
from denoiser.priors import Prior
from denoiser.samplers import Estimate, Sampler, flag
from denoiser.units import units

_MOST = 1e6  # grey levels of noise that make sense


@dataclass(frozen=True, eq=False)
class Request:
    """Everything that decides the bytes of a run, and nothing else.

    picture: (height, width), or with 1 or 3 channels along `channel_axis`; whole or real numbers.
    noise: in the picture's units: its standard deviation, a map of that (the picture's shape, or height x width), or a
        `Noise`, which may depend on brightness and be correlated.
    sampler, prior: made by `presets.choose`. seed: the same gives the same bytes, on any number of threads.
    white, black: the picture's values for white and black; what is left out is decided by `units.units`.
    memory: bytes to work in, beyond the pictures themselves; larger pictures are cut into tiles. None: a default.
    region: only this part of the picture, as the run on the whole would give it.
    chroma: multiplies the noise of the colour planes.
    """

    picture: np.ndarray
    noise: float | np.ndarray | Noise
    sampler: Sampler
    prior: Prior
    seed: int = 0
    channel_axis: int | None = None
    white: float | None = None
    black: float | None = None
    memory: int | None = None
    region: Region | None = None
    chroma: float = 1.0

    def __post_init__(self) -> None:
        def fill(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        fill("picture", checked_picture(self.picture, self.channel_axis))
        if not isinstance(self.noise, Noise):
            fill("noise", checked_noise(self.noise, self.picture.shape, self.channel_axis))
        elif len(self.noise.channels) > 1 and self._upright.shape[2:] != (3,):
            raise ValueError("the noise is that of three channels, and the picture has one")
        if self.white is not None and not (np.isfinite(self.white) and self.white > (self.black or 0)):
            raise ValueError(f"white (data_range) must be more than black, {self.black or 0:g}; got {self.white!r}")
        scale = units(self._upright, white=self.white, black=self.black)
        fill("white", scale.white)
        fill("black", scale.black)
        fill("memory", pieces.default_memory() if self.memory is None else self.memory)
        if not 1e-6 <= self.level * self.frame.scale <= _MOST:
            raise ValueError(f"sigma must lie between 1e-06 and {_MOST:.0e} grey levels of 255, got {self.level:g}")
        if not (isinstance(self.seed, numbers.Integral) and self.seed >= 0):
            raise ValueError(f"seed must be a whole number >= 0, got {self.seed!r}")
        if not (math.isfinite(self.chroma) and self.chroma > 0):
            raise ValueError(f"chroma must be > 0, got {self.chroma!r}")
        top, left, bottom, right = self.region or self._whole
        if not (0 <= top < bottom <= self._shape[0] and 0 <= left < right <= self._shape[1]):
            raise ValueError(f"region {tuple(self.region or ())} does not lie in a picture of shape {self._shape}")
        self.pieces()  # says when the memory is too little

    @property
    def _upright(self) -> np.ndarray:
        """The picture with its channels, if any, last."""
        return self.picture if self.channel_axis is None else np.moveaxis(self.picture, self.channel_axis, -1)

    @property
    def _shape(self) -> tuple[int, int]:
        height, width = self._upright.shape[:2]
        return height, width

    @property
    def _whole(self) -> Region:
        return Region(0, 0, *self._shape)

    @property
    def level(self) -> float:
        """The noise as one number, RMS."""
        return self.noise.level if isinstance(self.noise, Noise) else noise_level(self.noise)

    @cached_property
    def frame(self) -> Frame:
        """How this picture becomes planes."""
        channels = 1 if self.channel_axis is None else self.picture.shape[self.channel_axis]
        assert self.white is not None
        assert self.black is not None
        alike = all_alike(self._upright, (self.white - self.black) / 255)
        return Frame(self.channel_axis, channels, self.black, self.white, alike, fields.gains(self.prior))

    def pieces(self) -> list[Piece]:
        """What is computed one after the other: the whole, the region, or tiles that fit into the memory."""
        margins = fields.margins(self.prior)
        if self.region is not None:
            return pieces.only(self.region, self._shape, margins)
        cost = self.sampler.bytes_per_pixel(self.prior) * len(self.frame.gains)
        assert self.memory is not None
        most = self.memory // cost
        if margins.sites(*self._shape) <= most:
            return pieces.only(self._whole, self._shape, margins)
        try:
            return pieces.cut(self._shape, most, margins)
        except ValueError as error:
            least = math.ceil(pieces.least(self._shape, margins) * cost / 2**20)
            raise ValueError(f"{error}; allow {least} MB") from None

    def iterate(self, *, brief: bool = False) -> Iterator[Progress]:
        """The run, step by step; to cancel is to stop iterating. brief: of the std of tiles only its mean."""
        return _steps(self, self.pieces(), brief)

    def run(self, watch: Callable[[Iterator[Progress]], Iterator[Progress]] = iter, *, brief: bool = False) -> Result:
        """The run to its end. `watch` may look at every step. brief: without samples, and of std only its mean."""
        began = time.perf_counter()
        history: list[dict[str, float]] = []
        last: Progress | None = None
        for last in watch(self.iterate(brief=brief)):
            history.append(last.figures)
        assert last is not None  # every sampler yields at least once
        mean = last.mean
        samples = last.samples if not brief else np.empty((0, *mean.shape), np.float32)
        std = np.asarray(last.uncertainty) if brief else last.std
        seconds = time.perf_counter() - began
        return Result(
            mean, std, samples, seconds, self.sampler, self.level, history, last.draws, last.tiles, self.channel_axis
        )

    def identity(self) -> dict[str, Any]:
        """All that decides the bytes except the picture and its noise, as plain values."""
        return identity(self.sampler, self.prior) | {
            "seed": self.seed, "axis": self.channel_axis, "white": self.white, "black": self.black,
            "memory": self.memory, "region": self.region, "chroma": self.chroma,
        }  # fmt: skip

    def key(self) -> str:
        """The same for the same bytes, on any machine; different when anything that decides them is different."""
        noise = self.noise.key() if isinstance(self.noise, Noise) else _digest(np.asarray(self.noise))
        parts = {**self.identity(), "picture": _digest(self.picture), "noise": noise}
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:20]

    def command(self, source: str, *more: str) -> str:
        """The command line that makes the same bytes from the file `source`; `more` are words to add."""
        words = ["denoise", source, *more]
        if "--noise" not in more:
            words += ["--sigma", f"{self.level * self.frame.scale:g}"]
        words += ["--strength-chroma", f"{self.chroma:g}"] if self.chroma != 1 else []
        words += ["--method", self.sampler.name, "--prior", self.prior.name, "--seed", str(self.seed)]
        if self.memory is not None and self.memory != pieces.default_memory():
            words += ["--memory", f"{self.memory / 1024!r}K"]
        usual, _ = presets.choose(method=self.sampler.name, prior=self.prior)  # what the words so far stand for
        for name, (kind, _) in self.sampler.options().items():
            value = getattr(self.sampler, name)
            if value == getattr(usual, name):
                continue
            if kind is bool:
                words.append(flag(self.sampler.name, name) if value else flag(self.sampler.name, f"no_{name}"))
            else:
                words += [flag(self.sampler.name, name), str(value)]
        return shlex.join(words)


def identity(sampler: Sampler, prior: Prior) -> dict[str, Any]:
    """A method as plain values: for keys. A prior that plays no part is not in it."""
    return {
        "version": denoiser.__version__, "method": sampler.name, "options": asdict(sampler),
        "prior": [prior.name, prior.fingerprint] if sampler.uses_prior else None,
    }  # fmt: skip


def _digest(array: np.ndarray) -> str:
    about = repr((array.shape, array.dtype.str)).encode()
    return hashlib.sha256(about + np.ascontiguousarray(array).tobytes()).hexdigest()


def _steps(request: Request, parts: list[Piece], brief: bool = False) -> Iterator[Progress]:
    """Run piece after piece; the particles of one are gone when the next begins."""
    began = time.perf_counter()
    sampler, frame, tiled = request.sampler, request.frame, len(parts) > 1
    picture = request._upright if request._upright.ndim == 3 else request._upright[..., None]
    canvas = Canvas(picture, frame.dtype, brief) if tiled else None
    flat = replace(frame, channel_axis=-1)  # the canvas has its channels last
    clock = Clock()
    work = [math.prod(part.outer.shape) for part in parts]

    def report(number: int, step: int, estimates: tuple[Estimate, ...], figures: dict[str, float]) -> Progress:
        seconds = time.perf_counter() - began
        left = sum(work) / (sum(work[:number]) + work[number] * step / sampler.total) - 1
        clock.step = number * sampler.total + step
        return Progress(
            sampler, clock.step, len(parts) * sampler.total, seconds, seconds * left, figures, number + 1, len(parts),
            () if tiled else estimates, frame, clock, canvas,
        )  # fmt: skip

    def one(number: int, part: Piece) -> Iterator[Progress]:
        inside = part.outer if tiled else part.inner.within(part.outer)
        last: tuple[Estimate, ...] = ()
        figures: dict[str, float] = {}
        for step, estimates in enumerate(_piece_steps(request, part.outer, frame), 1):
            if last and tiled:  # one behind, because the last report must come after the tile is on the canvas
                yield report(number, step - 1, last, figures)
            last = estimates if tiled else tuple(_cropped(e, inside) for e in estimates)
            figures = _figures(last, frame)
            if not tiled:
                yield report(number, step, last, figures)
        if canvas is not None:
            canvas.add(part, flat.image(np.stack([e.mean for e in last])), flat.std(np.stack([e.std for e in last])))
            if number == len(parts) - 1:
                canvas.finish()
            yield report(number, sampler.total, last, figures)  # all steps, even where the sampler stopped early

    for number, part in enumerate(parts):
        yield from one(number, part)


def _piece_steps(request: Request, outer: Region, frame: Frame) -> Iterator[tuple[Estimate, ...]]:
    """Run the sampler on all planes of a piece side by side; the padding is cut off again."""
    sampler = request.sampler
    picture = outer.of(request._upright)
    planes = frame.planes(picture)
    noise = request.noise
    if isinstance(noise, Noise):
        whole = picture if frame.colour or picture.ndim == 2 else picture[..., 0]
        maps = noise.plane_maps(whole)
        grain = fields.noise_factors(request.prior, noise, len(maps))
        sigmas = frame.plane_sigmas(maps, grain, request.chroma)
    else:
        sigma = noise if np.ndim(noise) == 0 else outer.of(np.asarray(noise))
        sigmas = frame.sigmas(sigma, request.chroma)
    known = noise if isinstance(noise, Noise) else None
    targets = fields.posteriors(request.prior, planes, sigmas, (outer.top, outer.left), known)
    rngs = np.random.default_rng(request.seed).spawn(len(targets))
    running = [sampler.estimates(target, rng) for target, rng in zip(targets, rngs, strict=True)]
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
        yield tuple(_shown(t, e) for t, e in zip(targets, estimates, strict=True))


def _shown(target: Posterior, estimate: Estimate) -> Estimate:
    """The estimate as pictures."""
    mean, std, samples = target.pictures(estimate.mean, estimate.std, estimate.samples)
    return replace(estimate, mean=mean, std=std, samples=samples)


def _cropped(estimate: Estimate, region: Region) -> Estimate:
    """The estimate of a part of the field."""
    at = np.s_[..., region.top : region.bottom, region.left : region.right]
    return replace(estimate, mean=estimate.mean[at], std=estimate.std[at], samples=estimate.samples[at])


def _figures(estimates: tuple[Estimate, ...], frame: Frame) -> dict[str, float]:
    """The figures of all planes as one: `std` and `change` in the picture's units, the others averaged."""
    figures = {key: float(np.mean([e.figures[key] for e in estimates])) for key in estimates[0].figures}
    pairs = list(zip(estimates, frame.gains, strict=True))
    if "change" in figures:  # RMS over the planes, which are scaled by their gains
        figures["change"] = math.sqrt(np.mean([(e.figures["change"] / g) ** 2 for e, g in pairs])) / frame.scale
    figures["std"] = float(np.mean([e.std.mean() / g for e, g in pairs])) / frame.scale
    return figures
