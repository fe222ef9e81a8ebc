"""The ground truth of a grid: histograms of very many draws by Hamiltonian Monte Carlo."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from denoiser.paper.grid import GridMRF
from denoiser.paper.methods import Marginals
from denoiser.paper.report import Setting
from denoiser.samplers.hmc import HMC

CHAINS = 100
LEAPFROGS = 12  # with steps that 80 % survive: draws 10 transitions apart are all but independent
LOW, HIGH, STEP = -20.0, 25.0, 0.01  # of the histograms; draws beyond are counted in the last bins
POOL = 10_000  # draws to keep, for HMC as a method
SHAPE = (10, 10)  # of the grid in section 5.1


class TruthScale(NamedTuple):
    """How long the ground truth and the Stein methods run."""

    samples: int  # of each chain
    burn_in: int
    iterations: int  # of the Stein methods


FULL = TruthScale(40_000, 10_000, 2000)
QUICK = TruthScale(2000, 300, 400)


def scale_of(setting: Setting) -> TruthScale:
    """The paper's lengths, or short ones."""
    return QUICK if setting.quick else FULL


class Truth(NamedTuple):
    """What a long run of HMC says of a grid."""

    marginals: Marginals
    draws: np.ndarray  # (POOL at most, height, width), evenly spaced, of all chains


def ground_truth(
    grid: GridMRF, samples: int, burn_in: int, rng: np.random.Generator, tell: Callable[[float], None] = lambda _: None
) -> Truth:
    """`samples` draws of each of 100 chains after `burn_in`; `tell` hears the share that is done."""
    sampler = HMC(samples=CHAINS * samples, burn_in=burn_in, chains=CHAINS, leapfrogs=LEAPFROGS)
    counts = np.zeros((grid.size, round((HIGH - LOW) / STEP)), np.int64)
    every = max(samples * CHAINS // POOL, 1)  # transitions between two that are kept
    pool = []
    first = grid.noisy + rng.normal(0, 2, (CHAINS, *grid.shape))  # far apart: around both modes of every node
    for number, (x, _, _) in enumerate(sampler.states(grid, rng, first)):
        if number % 100 == 0:
            tell(number / sampler.total)
        if number < burn_in:
            continue
        bins = ((x.reshape(CHAINS, -1).astype(np.float64) - LOW) / STEP).astype(np.int64)
        np.add.at(counts, (np.arange(grid.size), bins.clip(0, counts.shape[1] - 1)), 1)
        if (number - burn_in) % every == 0:
            pool.append(x)
    centres = LOW + STEP * (np.arange(counts.shape[1]) + 0.5)
    return Truth(Marginals(centres[:, None], (counts / (CHAINS * samples)).T), np.concatenate(pool)[:POOL])
