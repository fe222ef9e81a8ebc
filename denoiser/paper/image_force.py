"""Section 5.2: the magnitude of the repulsive force on a photograph of growing size."""

from __future__ import annotations

from typing import Any

import numpy as np

from denoiser.evaluation.averages import table
from denoiser.noise import add_noise
from denoiser.paper.denoising import grey_photograph, rescaled
from denoiser.paper.force import draw
from denoiser.paper.methods import STEIN
from denoiser.paper.report import Report, Setting, slope
from denoiser.posterior import Posterior
from denoiser.priors import load_prior
from denoiser.samplers.diagnostics import diagnose

SIGMA = 10.0
PARTICLES = 50
FULL_SIDES = (8, 16, 32, 64, 128, 256)
QUICK_SIDES = (8, 16, 32, 64)


def run(setting: Setting) -> Report:
    """All sizes and methods, with the options that denoising uses."""
    sides = QUICK_SIDES if setting.quick else FULL_SIDES
    name, picture = grey_photograph(setting)
    prior = load_prior("pairwise")
    rows: list[dict[str, Any]] = []
    for side in sides:
        noisy = add_noise(rescaled(picture, side, side), SIGMA, setting.seed)
        posterior = Posterior(prior, noisy, SIGMA, padding=0)
        for method, sampler in STEIN.items():
            setting.tell(f"{method}, {side}x{side}", len(rows) / (len(sides) * len(STEIN)))
            *_, last = sampler(particles=PARTICLES).estimates(posterior, np.random.default_rng(setting.seed))
            pamrf = diagnose(posterior, last.samples, sampler.name).pamrf
            rows.append({"method": method, "side": side, "M": PARTICLES, "PAMRF inf": pamrf[0], "PAMRF 2": pamrf[1]})
    rows.sort(key=lambda row: list(STEIN).index(row["method"]))
    found, lines = [], []
    for method in STEIN:
        values = [row["PAMRF inf"] for row in rows if row["method"] == method]
        found.append(f"{method}: PAMRF goes as side^{slope(sides, values):+.2f} (infinity norm).")
        lines.append([method, *(f"{v:.2g}" for v in values)])
    return Report(
        title="The repulsive force on a photograph",
        paper="(section 5.2) Over a photograph rescaled from 8x8 to 256x256 SVGD's repulsive force (PAMRF) falls with "
        "the size, MP-SVGD's does not.",
        setting=f"{name}, noise {SIGMA:g}, pairwise prior, M = {PARTICLES}, the options of `denoise run`; forces are "
        "measured with h = med^2.",
        found=found,
        tables=["PAMRF, infinity norm.\n\n" + table(["method", *(f"{s}x{s}" for s in sides)], lines)],
        rows=rows,
        draw=lambda figure: draw(figure, rows, "side", "side of the picture, pixels"),
        size=(11, 4.4),
    )
