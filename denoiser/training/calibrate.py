"""The calibration table of a model: what its standard deviations must be multiplied by on pictures it has not seen.

Conformal in spirit: quantiles of |error| / std in bins of noise level and predicted std / sigma. It holds on average
over pictures like those it was fitted on, not for each picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from denoiser.calibration import QUALITIES, Calibration
from denoiser.colour import to_planes
from denoiser.learned import LearnedPosterior, Model, predict
from denoiser.metrics import credible_factor, joint_coverage
from denoiser.samplers import make_sampler
from denoiser.training.photographs import GREY

#: Noise levels of a plane, in grey levels; a grey picture's only plane counts sqrt(3)-fold.
LEVELS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
RATIOS = (0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6, 0.8, 1.0)
_ENOUGH = 3000  # pixels in a bin that count as much as all of its noise level
_SHIFT_LEVELS = (4.0, 16.0, 32.0, 80.0)
_SHIFTS = (-5.0, -4.0, -3.0, -2.5, -2.0, -1.5, -1.0, 0.0)
_COLOURED = 80.0  # grey levels of noise that a colour picture learned with, about; a grey one's plane goes further
_DRAWS = 60


def calibrate(model: Model, pictures: Sequence[np.ndarray], colours: str = "both", few: int = 5) -> dict[str, Any]:
    """The card's table from clean RGB pictures (height, width, 3), 0..255; `few` of them are sampled for the edges.

    colours: of the pictures that the network is for: "grey", "colour" or "both".
    """
    bare = replace(model, card={}, grey=None)
    factors = {}
    for quality in QUALITIES:
        chosen = pictures if quality == "fast" else pictures[::4]  # eight times the work
        rows = [_rows(bare, chosen, level, quality, colours) for level in LEVELS]
        factors[quality] = [_filled([row[plane] for row in rows]) for plane in range(3)]
    table = {"levels": list(LEVELS), "ratios": list(RATIOS), "factors": factors}
    marginal = replace(bare, card={"calibration": {**table, "shifts": [0.0] * len(LEVELS)}})
    shifts = [_shift(marginal, pictures[:few], level, colours) for level in _SHIFT_LEVELS]
    table["shifts"] = np.interp(np.log(LEVELS), np.log(_SHIFT_LEVELS), shifts).round(3).tolist()
    Calibration.parse(table, model.path)
    return table


def _rows(
    model: Model, pictures: Sequence[np.ndarray], level: float, quality: str, colours: str
) -> list[list[float] | None]:
    """Factors of one noise level by RATIOS, of three planes; None for a plane that has no such noise."""
    seen: list[list[np.ndarray]] = [[], [], []]  # (std / sigma, |error| / std), flat
    for number, picture in enumerate(pictures):
        for clean, sigma in _trials(picture, level, colours):
            noise = np.random.default_rng([number, int(10 * level)]).standard_normal(clean.shape, dtype=np.float32)
            found = predict(clean + sigma * noise, sigma, quality, model=model, edges=False)
            pairs = np.stack([found.std / sigma, np.abs(found.mean - clean) / found.std])
            for plane in range(len(clean)):
                seen[plane].append(pairs[:, plane].reshape(2, -1))
    return [_factors(*np.concatenate(plane, axis=1)) if plane else None for plane in seen]


def _filled(rows: list[list[float] | None]) -> list[list[float]]:
    """Rows by noise level; beyond the strongest that was seen, its own; 1 where none was."""
    known = [row for row in rows if row is not None] or [[1.0] * len(RATIOS)]
    return [known[min(k, len(known) - 1)] for k in range(len(rows))]


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


def _trials(picture: np.ndarray, level: float, colours: str) -> list[tuple[np.ndarray, float]]:
    """Clean planes and their noise: of the picture in colour, if it can be so noisy, and of the grey one."""
    trials = []
    if colours != "grey" and level <= _COLOURED:
        trials.append((to_planes(picture).astype(np.float32), level))
    if colours != "colour":  # a grey picture's plane is the network's luminance over sqrt(3)
        trials.append(((picture @ GREY).astype(np.float32)[None], level / float(np.sqrt(3))))
    return trials


def _shift(model: Model, pictures: Sequence[np.ndarray], level: float, colours: str) -> float:
    """What is added to the logits of the edges so that differences and block means hold their 90 % best."""
    sampler = make_sampler("direct", {"particles": _DRAWS})
    errors = np.zeros(len(_SHIFTS))
    for number, picture in enumerate(pictures):
        clean, sigma = _trials(picture, min(level, _COLOURED), colours)[-1]
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
