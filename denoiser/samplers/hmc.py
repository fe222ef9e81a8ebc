"""Hamiltonian Monte Carlo (Neal 2011) with a step size that adapts itself: the method that needs a score and no more.

Chains run side by side: a leapfrog step moves all of them. On images it is slow, because the sharpest component of
the expert allows only short steps; on the paper's synthetic grids it is the ground truth.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from denoiser.priors import FilterBank
from denoiser.samplers.base import Estimate, Sampler, option, solver_bytes
from denoiser.samplers.chain_averages import ChainAverages, rhat
from denoiser.samplers.starts import start
from denoiser.target import Target

JITTER = 0.2  # step sizes vary by this share, so that no trajectory comes back to where it began again and again


class DualAveraging:
    """Nesterov's dual averaging of the log step size (Hoffman and Gelman 2014, section 3.2, with their constants)."""

    def __init__(self, step: float, acceptance: float) -> None:
        self.step = step  # to explore with
        self.settled = step  # to keep when adaptation ends
        self._goal, self._centre, self._error, self._count = acceptance, math.log(10 * step), 0.0, 0

    def learn(self, accepted: float) -> None:
        """Take in the acceptance probability of a transition with `step`."""
        self._count += 1
        weight = 1 / (self._count + 10)
        self._error += weight * (self._goal - accepted - self._error)
        log_step = self._centre - math.sqrt(self._count) / 0.05 * self._error
        share = self._count**-0.75
        self.settled = math.exp(share * log_step + (1 - share) * math.log(self.settled))
        self.step = math.exp(log_step)


class Trajectories:
    """Chains on a target, moved together; x has shape (chains, height, width)."""

    def __init__(self, target: Target, x: np.ndarray, leapfrogs: int) -> None:
        self.target, self.leapfrogs = target, leapfrogs
        self.x = np.array(x, np.float32).reshape(-1, *target.shape)
        self.energy = target.energies(self.x)
        self._score = target.score(self.x)

    def transition(self, step: float, rng: np.random.Generator) -> float:
        """Move every chain along a trajectory of leapfrog steps, or leave it; returns the mean acceptance."""
        jittered = np.float32(step * rng.uniform(1 - JITTER, 1 + JITTER))
        with np.errstate(over="ignore", invalid="ignore"):  # a trajectory that flies off is refused
            return self._transition(jittered, rng)

    def _transition(self, step: np.float32, rng: np.random.Generator) -> float:
        momentum = rng.standard_normal(self.x.shape, dtype=np.float32)
        kinetic = 0.5 * (momentum.astype(np.float64) ** 2).sum(axis=(1, 2))
        x, score = self.x, self._score
        for _ in range(self.leapfrogs):
            momentum += 0.5 * step * score
            x = x + step * momentum
            score = self.target.score(x)
            momentum += 0.5 * step * score
        energy = self.target.energies(x)
        change = energy - self.energy + 0.5 * (momentum.astype(np.float64) ** 2).sum(axis=(1, 2)) - kinetic
        chance = np.exp(-np.maximum(np.nan_to_num(change, nan=np.inf), 0))
        moved = rng.random(len(x)) < chance
        self.x = np.where(moved[:, None, None], x, self.x)
        self._score = np.where(moved[:, None, None], score, self._score)
        self.energy = np.where(moved, energy, self.energy)
        return float(chance.mean())


@dataclass(frozen=True)
class HMC(Sampler):
    """Hamiltonian Monte Carlo with several chains; needs many draws on images, and is exact in the long run."""

    name: ClassVar[str] = "hmc"
    title: ClassVar[str] = "HMC"
    draws_option: ClassVar[str] = "samples"

    samples: int = option(400, "draws to average, over all chains together", low=2)
    burn_in: int = option(100, "transitions to forget; the step size adapts meanwhile", low=0)
    chains: int = option(4, "independent chains; they move side by side and make R-hat possible", low=1)
    leapfrogs: int = option(10, "leapfrog steps of a transition", low=1)
    acceptance: float = option(0.8, "share of transitions that the step size aims at", low=0.01, high=0.999)
    keep: int = option(50, "draws to keep as particles, evenly spaced", low=1)

    @property
    def kept(self) -> int:
        return min(self.keep, self.samples)

    def bytes_per_pixel(self, prior: FilterBank) -> int:
        return 5 * self.kept + solver_bytes(prior, self.chains)

    @property
    def total(self) -> int:
        return self.burn_in + math.ceil(self.samples / self.chains)

    def states(
        self, target: Target, rng: np.random.Generator, first: np.ndarray | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
        """States of all chains, their energies, and the acceptance, after every transition; nothing is averaged."""
        x = start(target, rng, self.chains, "smooth") if first is None else first
        chains = Trajectories(target, x, self.leapfrogs)
        adaptive = DualAveraging(0.1 * target.sigma / target.size**0.25, self.acceptance)  # short, and it grows fast
        for number in range(self.total):
            accepted = chains.transition(adaptive.step if number < self.burn_in else adaptive.settled, rng)
            if number < self.burn_in:
                adaptive.learn(accepted)
            yield chains.x, chains.energy, accepted

    def estimates(
        self, target: Target, rng: np.random.Generator, first: np.ndarray | None = None
    ) -> Iterator[Estimate]:
        """Yield an Estimate after each transition; `first` are the states of the chains to begin with."""
        draws = ChainAverages(target.shape, self.samples, self.chains, self.keep)
        for number, (x, energy, accepted) in enumerate(self.states(target, rng, first)):
            burning = number < self.burn_in
            if number in (0, self.burn_in):  # what is averaged during burn-in is for the eye only
                draws.forget()
                energies: list[list[float]] = [[] for _ in x]
            for trace, value in zip(energies, energy, strict=True):
                trace.append(float(value))
            for state in x if burning else x[: self.samples - draws.count]:
                draws.add(state, store=not burning)
            figures = {"energy": float(np.mean(energy)), "rhat": rhat(energies), "acceptance": accepted}
            yield draws.estimate(figures)
