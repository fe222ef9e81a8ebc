"""What the Markov chains share: running averages over draws, some draws kept as particles, and R-hat."""

from __future__ import annotations

import numpy as np

from denoiser.samplers.base import Estimate


class ChainAverages:
    """Averages over at most `samples` draws of a field that `chains` chains add in turn; `keep` of them are stored."""

    def __init__(self, shape: tuple[int, int], samples: int, chains: int, keep: int) -> None:
        self.samples = samples
        self._shape = shape
        self._wanted = _evenly(samples, chains, min(keep, samples))
        self._kept = np.empty((len(self._wanted), *shape), np.float32)
        self.forget()

    def forget(self) -> None:
        """Begin again: burn-in is over."""
        self.count = self._stored = 0
        self._sums = np.zeros((3, *self._shape))  # of the means, of x and of x^2

    def add(self, x: np.ndarray, mean: np.ndarray | None = None, store: bool = True) -> None:
        """Take in a draw x; `mean` is what to average instead of x, such as E[x | z]."""
        values = x.reshape(self._shape).astype(np.float64)
        self._sums += values if mean is None else mean.reshape(self._shape), values, values**2
        if store and self.count == self._wanted[min(self._stored, len(self._wanted) - 1)]:
            self._kept[self._stored] = values
            self._stored += 1
        self.count += 1

    def estimate(self, figures: dict[str, float]) -> Estimate:
        """Mean, standard deviation and stored draws so far."""
        mean, mean_x, mean_xx = self._sums / self.count
        variance = np.maximum(mean_xx - mean_x**2, 0) * (self.count / max(self.count - 1, 1))
        return Estimate(mean, np.sqrt(variance), self._kept[: self._stored], figures, self.count)


def _evenly(samples: int, chains: int, count: int) -> np.ndarray:
    """`count` numbers of draws: those of all chains, in their order, in evenly spaced sweeps."""
    whole = samples // chains  # the last sweep may lack some chains
    sweeps = whole if count <= whole * chains else whole + 1
    chosen = np.linspace(0, sweeps - 1, -(-count // chains)).astype(int)
    return (chosen[:, None] * chains + np.arange(chains)).ravel()[:count]


def rhat(traces: list[list[float]]) -> float:
    """Gelman and Rubin's potential scale reduction of one number over several chains; nan if too short."""
    length = min(len(trace) for trace in traces)
    if len(traces) < 2 or length < 4:
        return float("nan")
    values = np.array([trace[:length] for trace in traces])
    within = values.var(axis=1, ddof=1).mean()
    between = values.mean(axis=1).var(ddof=1)
    return float(np.sqrt((length - 1) / length + between / within)) if within > 0 else 1.0
