"""What MP-SVGD and SVGD share: the schedule of moves, and the loop.

The sharpest component of the expert has a standard deviation of 0.2 grey levels: neighbouring pixels that it holds
together block each other's way. So the default optimiser is a continuation: the first sweeps use an expert without
components sharper than the noise allows to matter, the later ones raise that cap to the true expert (`schedule`). The
particles start as draws from a Gaussian approximation of the posterior (`starts.py`). benchmarks/README.md has what
else was tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from denoiser.jit import kernel
from denoiser.posterior import widened
from denoiser.priors import FilterBank
from denoiser.samplers.base import Estimate, Sampler, option, solver_bytes
from denoiser.samplers.starts import start
from denoiser.target import Target
from denoiser.threads import parallel

KERNELS = ("rbf", "imq")
CAP = 15.0  # precision of the sharpest component during the first stage, in units of 1 / sigma^2
FIRST_STAGE = 0.5  # share of the iterations that use the capped expert, unless told otherwise
RAMP = 0.7  # share of the second stage in which the cap rises to the true expert
SHAKEN = 5 / 6  # share of the second stage whose moves may be shaken: the last ones settle
HURRY = 120  # sweeps of the second stage in which noise of variance 1 does its work; with fewer it is so much stronger
WEAK = 20.0  # grey levels of noise up to which particles are widened by one number, and shaken with one strength
_STRIP = 1024  # pixels whose moments are one task: their sums stay in the L1 cache


class Pace(NamedTuple):
    """How fast a continuation goes. Its first moves push all particles of a site the same way, however far that is."""

    first: float  # first step, in grey levels at sigma 10: about how far particles travel; sqrt(sigma / 10) times that
    fine: float  # first step of the second stage, in units of sigma
    inertia: float  # how often AdaGrad counts what it sees first: 1 makes the first move a jump of a whole step


PACES = {"continuation": Pace(10, 0.03, 1), "gentle": Pace(10, 0.018, 11)}


@kernel()
def _moments(x, begin, end, mean, std):  # type: ignore[no-untyped-def]
    """Mean and standard deviation (M - 1) over the particles x, (M, pixels), for the pixels begin .. end - 1."""
    total, square = mean[begin:end], std[begin:end]
    total[:] = 0
    square[:] = 0
    for i in range(len(x)):
        line = x[i, begin:end]
        for d in range(len(line)):
            total[d] += line[d]
    for d in range(len(total)):
        total[d] /= len(x)
    for i in range(len(x)):
        line = x[i, begin:end]
        for d in range(len(line)):
            square[d] += (line[d] - total[d]) * (line[d] - total[d])
    for d in range(len(square)):
        square[d] = np.sqrt(square[d] / (len(x) - 1))


def estimate(x: np.ndarray, target: Target, before: np.ndarray) -> Estimate:
    """The Estimate of flat particles x; `before` is the mean before the last move, for the figure `change`."""
    mean, std = np.empty(x.shape[1]), np.empty(x.shape[1])

    count = x.shape[1]
    parallel(lambda begin: _moments(x, begin, min(begin + _STRIP, count), mean, std), range(0, count, _STRIP))
    change = float(np.sqrt(np.mean((mean - before.ravel()) ** 2)))
    shape = target.shape
    return Estimate(mean.reshape(shape), std.reshape(shape), x.reshape(-1, *shape), {"change": change})


class Move(NamedTuple):
    """One sweep of a schedule."""

    step: float  # in grey levels, before AdaGrad divides it
    tables: np.ndarray | None  # score tables of the capped experts; None for the true ones
    fresh: bool  # AdaGrad forgets what it has gathered
    inertia: float = 1.0  # how often AdaGrad counts what it sees in this sweep
    shaken: float = 0.0  # variance of noise that may be added to it, in that of `shaking.py`


def schedule(optimiser: str, iterations: int, target: Target, first_stage: float = FIRST_STAGE) -> Iterator[Move]:
    """The sweeps of an optimiser, one after the other; `first_stage`: the share of them with the capped expert."""
    sigma, sharpest, soft = target.sigma, target.sharpest, CAP / target.sigma**2
    if optimiser == "adagrad":
        for sweep in range(iterations):
            yield Move(0.6 * sigma, None, sweep == 0)
        return
    soft_tables = target.capped_tables(soft) if soft < sharpest else None
    first = round(first_stage * iterations)
    second = iterations - first
    pace = PACES[optimiser]
    for sweep in range(first):
        step = pace.first * math.sqrt(sigma / 10) * _cosine(sweep / first)
        yield Move(step, soft_tables, sweep == 0, 1 if sweep else pace.inertia)
    for sweep in range(second):
        risen = (sweep + 1) / max(round(RAMP * second), 1)
        tables = None
        if risen < 1 and soft_tables is not None:
            tables = target.capped_tables(soft * (sharpest / soft) ** risen)
        shaken = max(HURRY / second, 1.0) if sweep < SHAKEN * second else 0.0
        yield Move(pace.fine * sigma * _cosine(sweep / second), tables, sweep == 0, 1, shaken)


def _cosine(share: float) -> float:
    """A smooth way from 1 at 0 to 0 at 1."""
    return float(0.5 + 0.5 * np.cos(np.pi * share))


class Mover(Protocol):
    """Moves flat particles (M, pixels) in place; `sweep` counts from 0."""

    def __call__(self, x: np.ndarray, sweep: int, move: Move) -> None: ...


@dataclass(frozen=True)
class ParticleSampler(Sampler):
    """The options and the loop of a particle method; `mover` makes the difference."""

    draws_option: ClassVar[str] = "particles"

    particles: int = option(50, "candidate images; time grows with the square, accuracy slowly", low=2)
    iterations: int = option(60, "sweeps over the image", low=1)
    step: float = option(1.0, "multiplies the step sizes", low=0, high=1000)
    kernel: str = option("rbf", "shape of the kernel", choices=KERNELS)
    start: str = option(
        "smooth", "first particles: Gaussian draws, or the picture plus noise", choices=("smooth", "noisy")
    )
    optimiser: str = option(
        "continuation", "continuation: from a softer prior to the true one; adagrad: as in the paper",
        choices=("continuation", "adagrad"),
    )  # fmt: skip
    first_stage: float = option(FIRST_STAGE, "share of the sweeps on the softer prior", low=0, high=1)
    tolerance: float = option(0.0, "stop when the mean moves less than this a sweep (RMS, grey levels)", low=0)
    widen: float = option(1.0, "spread of the particles around their mean is multiplied by this", low=0.1, high=10)
    narrow: float = option(0.0, "that is divided by (noise / 20) to this power, where the noise is > 20", low=0, high=1)

    @property
    def total(self) -> int:
        return self.iterations

    def bytes_per_pixel(self, prior: FilterBank) -> int:
        return (9 if self.widens else 5) * self.particles + solver_bytes(prior)

    @property
    def widens(self) -> bool:
        """Whether particles are given with another spread than they have."""
        return self.widen != 1 or self.narrow > 0

    def mover(self, target: Target, rng: np.random.Generator) -> Mover:
        """What moves the particles of a run on this target; `rng` is for what it does at random."""
        raise NotImplementedError

    def estimates(
        self, target: Target, rng: np.random.Generator, first: np.ndarray | None = None
    ) -> Iterator[Estimate]:
        """Yield an Estimate after each sweep; `first` are particles (M, height, width) to begin with, else `start`."""
        if first is None:
            x = start(target, rng, self.particles, self.start)
        else:
            x = np.array(first, np.float32).reshape(self.particles, target.size)
        mean = x.mean(axis=0, dtype=np.float64)
        mover = self.mover(target, rng)
        factor = np.float32(self.widen) * np.maximum(target.spread / WEAK, 1).astype(np.float32) ** -self.narrow
        moves = schedule(self.optimiser, self.iterations, target, self.first_stage)
        for sweep, move in enumerate(moves):
            mover(x, sweep, move._replace(step=self.step * move.step))
            latest = estimate(x, target, mean)
            mean = latest.mean
            if self.widens:
                std, samples = widened(latest.mean, latest.std, latest.samples, factor)
                latest = replace(latest, std=std, samples=samples)
            yield latest
            if move.tables is None and latest.figures["change"] < self.tolerance:
                return
