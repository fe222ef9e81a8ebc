"""The calibration table of a model: what its standard deviations must be multiplied by on pictures it has not seen.

Conformal in spirit: quantiles of |error| / std in bins of noise level and predicted std / sigma. It holds on average
over pictures like those it was fitted on, not for each picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from denoiser.colour import to_planes
from denoiser.learned import QUALITIES, Calibration, LearnedPosterior, Model, predict
from denoiser.metrics import credible_factor, joint_coverage
from denoiser.samplers import make_sampler
from denoiser.training.photographs import GREY

#: Noise levels of a plane, in grey levels; a grey picture's only plane counts sqrt(3)-fold.
LEVELS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
RATIOS = (0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6, 0.8, 1.0)
_STRONGEST = 80.0  # of a colour picture
_ENOUGH = 3000  # pixels in a bin that count as much as all of its noise level
_SHIFT_LEVELS = (4.0, 16.0, 32.0, 90.0)
_SHIFTS = (-3.0, -2.25, -1.5, -1.0, -0.5, 0.0)
_DRAWS = 60


def calibrate(model: Model, pictures: Sequence[np.ndarray], few: int = 4) -> dict[str, Any]:
    """The card's table from clean RGB pictures (height, width, 3), 0..255; `few` of them are sampled for the edges."""
    bare = replace(model, card={})
    factors = {}
    for quality in QUALITIES:
        chosen = pictures if quality == "fast" else pictures[::3]  # eight times the work
        factors[quality] = [[_row(bare, chosen, colour, level, quality) for level in LEVELS] for colour in (0, 1)]
    table = {"levels": list(LEVELS), "ratios": list(RATIOS), "factors": factors}
    marginal = replace(model, card={"calibration": {**table, "shifts": [0.0] * len(LEVELS)}})
    shifts = [_shift(marginal, pictures[:few], level) for level in _SHIFT_LEVELS]
    table["shifts"] = np.interp(np.log(LEVELS), np.log(_SHIFT_LEVELS), shifts).round(3).tolist()
    Calibration.parse(table, model.path)
    return table


def _row(model: Model, pictures: Sequence[np.ndarray], colour: int, level: float, quality: str) -> list[float]:
    """Factors of one noise level, by RATIOS; colour: 0 for the luminance, 1 for the colour planes."""
    ratios, misses = [], []
    for number, picture in enumerate(pictures):
        for clean, sigma in _versions(picture, colour, level):
            noise = np.random.default_rng([number, int(10 * level)]).standard_normal(clean.shape, dtype=np.float32)
            found = predict(clean + sigma * noise, sigma, quality, model=model, edges=False)
            planes = slice(1, 3) if colour else slice(0, 1)
            ratios.append((found.std[planes] / sigma).ravel())
            misses.append((np.abs(found.mean - clean)[planes] / found.std[planes]).ravel())
    ratio, miss = np.concatenate(ratios), np.concatenate(misses)
    normal = credible_factor(0.9)
    overall = np.quantile(miss, 0.9) / normal
    nearest = np.abs(np.log(ratio)[:, None] - np.log(RATIOS)).argmin(axis=1)
    row = []
    for k in range(len(RATIOS)):
        inside = miss[nearest == k]
        own = np.quantile(inside, 0.9) / normal if len(inside) else overall
        weight = len(inside) / (len(inside) + _ENOUGH)
        row.append(round(float(np.clip(np.exp(weight * np.log(own) + (1 - weight) * np.log(overall)), 0.4, 2.5)), 4))
    return row


def _versions(picture: np.ndarray, colour: int, level: float) -> list[tuple[np.ndarray, float]]:
    """Planes and sigma for which a plane of the network has noise of `level`: the colour picture, the grey picture."""
    versions = []
    if level <= _STRONGEST:
        versions.append((to_planes(picture).astype(np.float32), level))
    if not colour:
        versions.append(((picture @ GREY).astype(np.float32)[None], level / float(np.sqrt(3))))
    return versions or [(to_planes(picture).astype(np.float32), level)]


def _shift(model: Model, pictures: Sequence[np.ndarray], level: float) -> float:
    """What is added to the logits of the edges so that differences and block means hold their 90 % best."""
    sampler = make_sampler("direct", {"particles": _DRAWS})
    errors = np.zeros(len(_SHIFTS))
    for number, picture in enumerate(pictures):
        clean, sigma = _versions(picture, 0, level)[-1]
        noisy = clean + sigma * np.random.default_rng(number).standard_normal(clean.shape, dtype=np.float32)
        found = predict(noisy, sigma, model=model)
        for k, shift in enumerate(_SHIFTS):
            field = LearnedPosterior(found.mean[0], found.std[0], found.right[0] + shift, found.down[0] + shift)
            (last,) = sampler.estimates(field, np.random.default_rng(number))
            shares = joint_coverage(clean[0], field.pictures(last.mean, last.std, last.samples)[2])
            errors[k] += sum((share - 0.9) ** 2 for name, share in shares.items() if name != "pixels")
    best = int(errors.argmin())
    if 0 < best < len(_SHIFTS) - 1:  # between the nodes, by a parabola
        a, b, _ = np.polyfit(_SHIFTS[best - 1 : best + 2], errors[best - 1 : best + 2], 2)
        return float(np.clip(-b / (2 * a), _SHIFTS[best - 1], _SHIFTS[best + 1])) if a > 0 else _SHIFTS[best]
    return _SHIFTS[best]
