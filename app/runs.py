"""The runs of a picture as a list: rows of a table, CSV, and what memory their particles may take. No Qt.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from denoiser.outcome import Result

from .session import Snapshot

_MEMORY = 1 << 30  # bytes of particles to keep over all runs; the oldest go first


@dataclass(eq=False)
class Run:
    """A row of the table."""

    number: int
    snapshot: Snapshot
    saved: bool = False

    def row(self) -> dict[str, Any]:
        """What the table and the CSV say."""
        s, p = self.snapshot, self.snapshot.plan
        options = ", ".join(f"{k}={v}" for k, v in asdict(p.sampler).items())
        tiles = s.outcome.tiles
        return {
            "run": self.number, "method": p.sampler.title, "M": s.outcome.draws or None, "sigma": s.level,
            "PSNR": s.psnr, "SSIM": s.ssim, "seconds": s.seconds,
            "iterations": s.step if tiles == 1 else p.sampler.total if s.complete else s.step % p.sampler.total,
            "tiles": tiles, "finished": s.finished, "whole": s.complete,
            "mode": "experiment" if p.experiment else "restore", "prior": p.prior, "seed": p.seed,
            "noise": p.added or ("measured" if p.automatic else "white"), "strength": p.strength,
            "colour strength": p.chroma, "mean std": s.uncertainty if s.sure else None, "options": options,
            "picture": p.source.name,
        }  # fmt: skip


def table_csv(runs: list[Run]) -> str:
    """The table for other programs."""
    out = io.StringIO()
    names = list(runs[0].row()) if runs else ["run"]
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    for run in runs:
        row = run.row()
        writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else "" if v is None else v for k, v in row.items()})
    return out.getvalue()


def save_memory(runs: list[Run]) -> None:
    """Let the particles of the oldest runs go when there are too many to keep."""
    held = 0
    for run in reversed(runs):
        outcome = run.snapshot.outcome
        if isinstance(outcome, Result):
            held += outcome.samples.nbytes
            if held > _MEMORY and outcome.particles and run is not runs[-1]:
                bare = replace(outcome, samples=np.empty((0, *outcome.mean.shape), np.float32))
                run.snapshot = replace(run.snapshot, outcome=bare)
