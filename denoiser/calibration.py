"""A table that makes 90 % intervals hold: what the network's standard deviations and edges are corrected by."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from denoiser.files import label

QUALITIES = ("fast", "normal", "best")


@dataclass(frozen=True, eq=False)
class Calibration:
    """What standard deviations are multiplied by, so that 90 % intervals hold.

    levels: noise levels, grey levels, shape (L,). ratios: predicted std / sigma, shape (R,). factors: by quality, shape
    (3, L, R): one table a plane. Between the nodes the logarithms are interpolated.
    shifts: what the logits of edges are shifted by at each level, so that means of blocks hold their intervals too.
    """

    levels: np.ndarray
    ratios: np.ndarray
    factors: dict[str, np.ndarray]
    shifts: np.ndarray

    @staticmethod
    def parse(table: Any, path: Path) -> Calibration:
        """From the card; ValueError for anything else."""
        try:
            levels, ratios, shifts = (np.asarray(table[key], np.float64) for key in ("levels", "ratios", "shifts"))
            given = {"normal": table["factors"]["fast"], **table["factors"]}  # cards of before had no "normal"
            factors = {quality: np.asarray(given[quality], np.float64) for quality in QUALITIES}
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"{label(path)}: the calibration of its card is damaged") from None
        grid = (3, len(levels), len(ratios))
        good = all(f.shape == grid and (f > 0).all() and (f < 100).all() for f in factors.values())
        rising = all(a.ndim == 1 and len(a) > 1 and (a > 0).all() and (np.diff(a) > 0).all() for a in (levels, ratios))
        if not good or not rising or shifts.shape != levels.shape or not (np.abs(shifts) < 20).all():
            raise ValueError(f"{label(path)}: the calibration of its card is damaged")
        return Calibration(levels, ratios, factors, shifts)

    def log_factors(self, quality: str, log_std: np.ndarray, sigma: np.ndarray) -> np.ndarray:
        """log of the factor of every pixel, for three planes log(std / sigma) and the noise map, (3, height, width)."""
        out = np.empty_like(log_std)
        at_levels, at_ratios = np.log(self.levels), np.log(self.ratios)
        for plane in range(len(log_std)):
            table = np.log(self.factors[quality][plane])
            level = _place(_log(sigma[plane]), at_levels)
            ratio = _place(log_std[plane], at_ratios)
            out[plane] = _bilinear(table, level, ratio)
        return out

    def shift(self, sigma: np.ndarray) -> np.ndarray:
        """What the logits of a pixel's edges are shifted by."""
        return np.interp(_log(sigma), np.log(self.levels), self.shifts).astype(np.float32)


def _log(sigma: np.ndarray) -> np.ndarray:
    """log of the noise map, which may hold zeros."""
    return np.log(np.maximum(sigma, 1e-3))


def _place(values: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Where values lie among the nodes, as a number of nodes; beyond the ends, at the ends."""
    return np.interp(values, nodes, np.arange(len(nodes)))


def _bilinear(table: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    r = np.minimum(rows.astype(np.int64), table.shape[0] - 2)
    c = np.minimum(columns.astype(np.int64), table.shape[1] - 2)
    down, right = rows - r, columns - c
    above = table[r, c] + right * (table[r, c + 1] - table[r, c])
    below = table[r + 1, c] + right * (table[r + 1, c + 1] - table[r + 1, c])
    return above + down * (below - above)
