"""What the window works on, without Qt: a picture, what is to be done with it, and what came of it.

Arrays are in the file's own units, as on the command line, so that both write the same bytes; `grey` is one grey level
of 255 in these units.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from denoiser import metrics, noise
from denoiser.fields import load_field
from denoiser.noise import Noise
from denoiser.outcome import Outcome, Progress, Result
from denoiser.pieces import Region
from denoiser.presets import choose
from denoiser.priors import Prior
from denoiser.run import Request
from denoiser.samplers import Sampler

from .source import Source, shown_level

_REPORTING = 0.15  # share of a run's time that may go into showing it
_EVERY = 0.1  # seconds between two Snapshots

Curve = tuple[list[int], list[float]]


def preset(quality: str) -> tuple[Sampler, Prior]:
    """What a word for quality stands for; on the Markov priors if the network is not installed."""
    try:
        return choose(quality)
    except ValueError:
        return choose(quality, prior="foe3x3" if quality == "best" else "pairwise")


@dataclass(frozen=True, eq=False)
class Plan:
    """What the controls ask for; `request` makes it, on a thread, into the value that is run.

    sigma: noise level in grey levels; in an experiment so much is added first, unless `added` names another noise
    (`noise.parse_noise`). times: the noise is so much stronger than was measured, as a flat spot has shown. strength,
    chroma: how much of the noise, and of the colour noise beyond that, is taken away; 1 is all. memory: bytes, None for
    the default.
    """

    source: Source
    experiment: bool
    sigma: float
    sampler: Sampler
    prior: str
    seed: int
    strength: float = 1.0
    chroma: float = 1.0
    memory: int | None = None
    times: float = 1.0
    added: str = ""

    @property
    def automatic(self) -> bool:
        """Whether the noise is the one that was measured, brightness, grain and all; a level set by hand is white."""
        known = not self.experiment and self.source.noise is not None
        return known and self.sigma == shown_level(self.source.measured * self.times)

    @property
    def words(self) -> str:
        """The noise of an experiment, as the command line names it."""
        return self.added or f"{self.sigma:g}"

    def noisy(self) -> np.ndarray:
        """The picture to denoise."""
        if not self.experiment:
            return self.source.pixels
        scale, model = self.source.picture.units, noise.parse_noise(self.words)
        return scale.from_grey(model.add(scale.to_grey(self.source.pixels), [self.seed, 0]))

    def _noise(self, noisy: np.ndarray) -> float | Noise:
        """The noise that is removed, in the file's units: measured, or what was set or added."""
        source = self.source
        if self.automatic:
            assert source.noise is not None
            return source.noise.scaled(self.strength * self.times)
        if not (self.experiment and self.added):
            return self.sigma * self.strength * source.grey
        made = noise.parse_noise(self.added).noise  # None for a camera's, which nobody knows but by measuring
        if made is None:
            return noise.measure_noise(noisy, source.axis, source.picture.units)
        return made.in_units(source.grey, source.black)

    def request(self, noisy: np.ndarray, region: Region | None = None) -> Request:
        """The run on this picture, which `noisy` made, or on a region of it."""
        source = self.source
        return Request(
            noisy, self._noise(noisy), self.sampler, load_field(self.prior), self.seed, source.axis,
            white=source.picture.white, black=source.picture.black, memory=self.memory, region=region,
            chroma=self.chroma,
        )  # fmt: skip

    def quick(self) -> Plan:
        """The same with the quality `fast`."""
        sampler, prior = preset("fast")
        return replace(self, sampler=sampler, prior=prior.name)

    def command(self) -> str:
        """The command line that makes the same bytes."""
        plain = replace(self, added="")  # the words depend on neither the noise nor the pixels, but on their type
        corner = plain.request(self.source.pixels[:2, :2])
        more = ["--add-noise", self.words] if self.experiment else []
        if self.experiment and self.added:
            more += ["--noise", "auto" if self.added.startswith("camera") else self.added]
        elif self.automatic:
            strength = self.strength * self.times
            more += ["--noise", "auto"] + (["--strength", repr(strength)] if strength != 1 else [])
        more += ["--page", str(self.source.page + 1)] if self.source.pages > 1 else []
        return corner.command(self.source.path or "pasted.png", *more)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A run so far, or at its end. Nothing of it changes any more.

    outcome: what the library knows, a Progress while the run goes on, its Result once it has been finished. done: where
    the picture is finished, bool (height, width); None for everywhere.
    """

    plan: Plan
    noisy: np.ndarray
    outcome: Outcome
    mean: np.ndarray
    std: np.ndarray
    done: np.ndarray | None
    step: int
    total: int
    seconds: float
    eta: float
    curves: dict[str, Curve]  # psnr, change, std: iterations and values
    level: float  # of the noise, in grey levels
    noise: Noise  # that was removed, in the file's units
    complete: bool = False
    scored: bool = False  # `finish` has been here
    psnr: float | None = None
    ssim: float | None = None

    @property
    def particles(self) -> int:
        """How many particles can be looked at; `outcome.without` says why there are none."""
        return self.outcome.particles

    def particle(self, index: int) -> np.ndarray:
        """One of them."""
        return self.outcome.sample(index) if isinstance(self.outcome, Progress) else self.outcome.samples[index]

    @property
    def sure(self) -> bool:
        """Whether there is any uncertainty to show."""
        return self.plan.sampler.uncertain and (self.done is None or bool(self.done.any()))

    @cached_property
    def finished(self) -> float:
        """The share of the picture that is finished."""
        return 1.0 if self.done is None else float(self.done.mean())

    @cached_property
    def uncertainty(self) -> float:
        """The mean standard deviation of a pixel in grey levels, over all that is finished."""
        return self.outcome.uncertainty / self.plan.source.grey

    def interval(self, row: int, column: int) -> tuple[np.ndarray, np.ndarray]:
        """The values between which 90 % of the probability lies, a channel each."""
        reach = metrics.credible_factor(0.9, self.outcome.draws or None) * self.std[row, column]
        return self.mean[row, column] - reach, self.mean[row, column] + reach


def execute(plan: Plan, task: Any) -> Iterator[Snapshot]:
    """Do a run; Snapshots as often as the window looks, and the last one always: with its Result."""
    noisy = plan.noisy()
    request = plan.request(noisy)
    book = _Book(plan, request, noisy)
    began = time.perf_counter()
    latest, spent = -_EVERY, 0.0  # when the last Snapshot was made; what they took
    last: Progress | None = None
    for last in request.iterate():
        book.history.append(last.figures)
        now = time.perf_counter()
        due = now - latest >= _EVERY and spent <= _REPORTING * (now - began) and not task.waiting
        if last.step == 1 or due:
            made = book.snapshot(last)
            latest = time.perf_counter()
            spent += latest - now
            yield made
    assert last is not None  # every sampler yields at least once
    yield book.end(last)


class _Book:
    """Keeps the curves of a run, and what was shown last."""

    def __init__(self, plan: Plan, request: Request, noisy: np.ndarray) -> None:
        self.plan, self.noisy = plan, noisy
        self.history: list[dict[str, float]] = []
        self._curves: dict[str, Curve] = {name: ([], []) for name in ("psnr", "change", "std")}
        self._before: tuple[np.ndarray, int] = np.asarray(noisy, np.float32), 0  # the last mean shown, and its step
        self._level = request.level / plan.source.grey if plan.added else plan.sigma
        white = 255 * plan.source.grey
        self._noise = request.noise if isinstance(request.noise, Noise) else Noise.flat(request.level, white)
        self._tiles = -1  # finished when the arrays below were made
        self._mean = self._std = self._done = None

    def _look(self, progress: Progress) -> bool:
        """Take the arrays; whether they are new. Of a picture in tiles they are, whenever a tile is finished."""
        whole = progress.tiles == 1
        ready = progress.step if whole else progress.step * progress.tiles // progress.total
        if ready == self._tiles:
            return False
        self._tiles = ready
        if not whole and ready == 0:  # nothing is finished: no need for arrays of a whole photograph
            self._mean, shape = self.noisy, self.noisy.shape
            self._std = np.broadcast_to(np.float32(np.nan), shape)
            self._done = np.broadcast_to(np.bool_(False), shape[:2])
            return False
        self._mean = self._std = self._done = None  # first, because they are large
        self._mean, self._std = progress.mean, progress.std
        self._done = None if whole or progress.step == progress.total else progress.done
        return True

    def snapshot(self, progress: Progress) -> Snapshot:
        """What is known at this step."""
        fresh = self._look(progress)
        mean, std, done = self._mean, self._std, self._done
        kept = progress.detached()
        outcome: Outcome = kept if progress.tiles == 1 else _frozen(kept, self._noise, mean, std, self.history)
        if fresh:
            self._note(progress, mean, outcome.uncertainty)
        curves = {name: (list(x), list(y)) for name, (x, y) in self._curves.items()}
        return Snapshot(
            self.plan, self.noisy, outcome, mean, std, done, progress.step, progress.total, progress.seconds,
            progress.eta, curves, self._level, self._noise,
        )  # fmt: skip

    def end(self, progress: Progress) -> Snapshot:
        """The same of a run that came to its end."""
        made = self.snapshot(progress)
        result = _frozen(progress, self._noise, made.mean, made.std, self.history, progress.samples)
        return replace(made, outcome=result, total=made.step, eta=0.0, complete=True)

    def _note(self, progress: Progress, mean: np.ndarray, spread: float) -> None:
        """A point of each curve."""
        grey = self.plan.source.grey
        values = {"std": spread / grey} if self.plan.sampler.uncertain else {}
        if progress.tiles == 1:  # how much of a picture in tiles changes says which tile it was
            values["change"] = _rms(mean - self._before[0]) / grey / max(progress.step - self._before[1], 1)
            self._before = mean, progress.step
        if self.plan.experiment:
            values["psnr"] = 20 * np.log10(255 * grey / max(_rms(mean - self.plan.source.pixels), 1e-9))
        for name, value in values.items():
            self._curves[name][0].append(progress.step)
            self._curves[name][1].append(float(value))


def _frozen(
    progress: Progress, removed: Noise, mean: np.ndarray, std: np.ndarray, history: list, samples: Any = None
) -> Result:
    """A Result of where a run stands."""
    samples = np.empty((0, *mean.shape), np.float32) if samples is None else samples
    return Result(
        mean, std, samples, progress.seconds, progress.sampler, removed.level, list(history), progress.draws,
        progress.tiles, progress.channel_axis,
    )  # fmt: skip


def _rms(difference: np.ndarray) -> float:
    flat = np.asarray(difference, np.float32).ravel()
    return float(np.sqrt(np.dot(flat, flat) / flat.size))


def finish(snapshot: Snapshot) -> Snapshot:
    """What is worth computing only once: the particles of a run that was cancelled, PSNR and SSIM."""
    plan, outcome = snapshot.plan, snapshot.outcome
    if isinstance(outcome, Progress):
        outcome = _frozen(outcome, snapshot.noise, snapshot.mean, snapshot.std, [], outcome.samples)
    psnr = ssim = None
    if plan.experiment:
        grey = plan.source.grey
        psnr, ssim = metrics.compare(plan.source.pixels / grey, snapshot.mean / grey, plan.source.axis)
    return replace(snapshot, outcome=outcome, scored=True, psnr=psnr, ssim=ssim)


def preview(plan: Plan, region: Region) -> Iterator[tuple[Region, np.ndarray]]:
    """The mean in a region, as the whole run will give it."""
    for progress in plan.request(plan.noisy(), region).iterate():
        yield region, progress.mean
