"""The calibration table of a model: what its standard deviations must be multiplied by on pictures it has not seen.

Conformal in spirit: quantiles of |error| / std in bins of noise level and predicted std / sigma. It holds on average
over pictures like those it was fitted on, not for each picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from denoiser.calibration import QUALITIES, Calibration
from denoiser.learned import LearnedPosterior, Model, predict
from denoiser.metrics import credible_factor, joint_coverage
from denoiser.samplers import make_sampler
from denoiser.training.noises import Batch
from denoiser.training.validate import with_noise

#: Noise levels of a plane, in grey levels; a grey picture's only plane counts sqrt(3)-fold.
LEVELS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
RATIOS = (0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6, 0.8, 1.0)
_ENOUGH = 3000  # pixels in a bin that count as much as all of its noise level
_SHIFT_LEVELS = (4.0, 16.0, 32.0, 80.0)
_SHIFTS = (-5.0, -4.0, -3.0, -2.5, -2.0, -1.5, -1.0, 0.0, 1.0, 2.0)
_COLOURED = 80.0  # grey levels of noise that a colour picture learned with, about; a grey one's plane goes further
_ISOS = (800.0, 3200.0, 12800.0, 40000.0)
_DRAWS = 60


def calibrate(
    model: Model, pictures: Sequence[np.ndarray], colours: str = "both", noise: str = "all", few: int = 5
) -> dict[str, Any]:
    """The card's table from clean RGB pictures (height, width, 3), 0..255; `few` of them are sampled for the edges.

    colours, noise: what the network is for, as in `Recipe`.
    """
    bare = replace(model, card={}, siblings={})
    factors = {}
    for quality in QUALITIES:
        chosen = pictures if quality == "fast" else pictures[::4]  # eight times the work
        factors[quality] = [_table(*plane) for plane in _misses(bare, chosen, quality, colours, noise)]
    table = {"levels": list(LEVELS), "ratios": list(RATIOS), "factors": factors}
    marginal = replace(bare, card={"calibration": {**table, "shifts": [0.0] * len(LEVELS)}})
    kind = "camera" if noise == "camera" else "colour" if colours == "colour" else "grey"
    strengths = _ISOS if noise == "camera" else _SHIFT_LEVELS
    levels, shifts = zip(*(_shift(marginal, pictures[:few], kind, strength) for strength in strengths), strict=True)
    table["shifts"] = np.interp(np.log(LEVELS), np.log(levels), shifts).round(3).tolist()
    Calibration.parse(table, model.path)
    return table


def _misses(model: Model, pictures: Sequence[np.ndarray], quality: str, colours: str, noise: str) -> list[np.ndarray]:
    """Of each of three planes: sigma, std / sigma and |error| / std of all pixels with noise, shape (3, pixels)."""
    seen: list[list[np.ndarray]] = [[np.empty((3, 0), np.float32)] for _ in range(3)]
    for number, picture in enumerate(pictures):
        for clean, noisy, sigma in _trials(picture, colours, noise, number):
            found = predict(noisy, sigma, quality, model=model, edges=False)
            for plane in range(3):
                if sigma[plane].all():
                    std, error = found.std[plane], np.abs(found.mean[plane] - clean[plane])
                    seen[plane].append(np.stack([sigma[plane], std / sigma[plane], error / std]).reshape(3, -1))
    return [np.concatenate(plane, axis=1) for plane in seen]


def _trials(picture: np.ndarray, colours: str, noise: str, seed: int) -> Iterator[Batch]:
    """A picture with white noise of every level, in colour and in grey, and as a camera would have taken it."""
    rng = np.random.default_rng(seed)
    for level in LEVELS if noise != "camera" else ():
        if colours != "grey" and level <= _COLOURED:
            yield with_noise(picture, "colour", level, rng)
        if colours != "colour":
            yield with_noise(picture, "grey", level / float(np.sqrt(3)), rng)
    if colours != "grey" and noise != "white":
        for iso in _ISOS:
            yield with_noise(picture, "camera", iso, rng)


def _table(sigma: np.ndarray, ratio: np.ndarray, miss: np.ndarray) -> list[list[float]]:
    """Factors by LEVELS and RATIOS; beyond the strongest noise that was seen, its own; 1 where none was."""
    nearest = np.searchsorted(np.log(LEVELS)[:-1] + np.diff(np.log(LEVELS)) / 2, np.log(sigma))
    rows = [[1.0] * len(RATIOS)]
    for k in range(len(LEVELS)):
        inside = nearest == k
        rows.append(_factors(ratio[inside], miss[inside]) if inside.any() else rows[-1])
    return rows[1:]


def _factors(ratio: np.ndarray, miss: np.ndarray) -> list[float]:
    """By RATIOS, what makes 90 % of |error| / std lie below the normal quantile; thin bins lean on all together."""
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


def _shift(model: Model, pictures: Sequence[np.ndarray], kind: str, strength: float) -> tuple[float, float]:
    """The noise level of the first plane, and what to add to the logits of the edges for such noise.

    With it differences and block means hold their 90 % best. kind, strength: "grey", "colour" or "camera", and the
    level of the white noise, or the ISO.
    """
    sampler = make_sampler("direct", {"particles": _DRAWS})
    errors, levels = np.zeros(len(_SHIFTS)), []
    for number, picture in enumerate(pictures):
        told = strength / float(np.sqrt(3)) if kind == "grey" else strength
        clean, noisy, sigma = with_noise(picture, kind, told, np.random.default_rng(number))
        levels.append(float(sigma[0].mean()))
        found = predict(noisy, sigma, model=model)
        for k, shift in enumerate(_SHIFTS):
            field = LearnedPosterior(found.mean[0], found.std[0], found.right[0] + shift, found.down[0] + shift)
            (last,) = sampler.estimates(field, np.random.default_rng(number))
            shares = joint_coverage(clean[0], field.pictures(last.mean, last.std, last.samples)[2])
            errors[k] += sum((share - 0.9) ** 2 for name, share in shares.items() if name != "pixels")
    return float(np.mean(levels)), _lowest(errors)


def _lowest(errors: np.ndarray) -> float:
    """The shift of the smallest error, between the nodes by a parabola."""
    best = int(errors.argmin())
    if 0 < best < len(_SHIFTS) - 1:
        a, b, _ = np.polyfit(_SHIFTS[best - 1 : best + 2], errors[best - 1 : best + 2], 2)
        return float(np.clip(-b / (2 * a), _SHIFTS[best - 1], _SHIFTS[best + 1])) if a > 0 else _SHIFTS[best]
    return _SHIFTS[best]
