"""What the words for quality mean: which sampler, with which options, on which prior."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from denoiser.calibration import QUALITIES
from denoiser.fields import LEARNED, LearnedPrior, load_field
from denoiser.priors import Prior
from denoiser.samplers import METHODS, Sampler, make_sampler

#: Without another word: the learned field, in one pass or in the average of four or eight.
_LEARNED = {"fast": "learned-fast", "normal": "learned", "best": "learned-best"}
#: On the Markov priors: method and options that a word for quality stands for.
_SAMPLED: dict[str, tuple[str, dict[str, Any]]] = {
    "fast": ("mp-svgd", {"particles": 8, "iterations": 16}),
    "normal": ("mp-svgd", {}),
    "best": ("gibbs", {}),
}
#: MP-SVGD's options `widen` and `narrow` for 90 % intervals to hold, on filters of two pixels and on larger ones. They
#: belong to MP-SVGD as it is: measure again when that changes (benchmarks/intervals.py --fit).
_WIDEN = {"fast": ((1.1, 0.25), (1.53, 0.2)), "normal": ((1.0, 0.1), (1.2, 0.1))}

#: The noise with which intervals of mp-svgd-b hold on filters of more than two pixels; its default is for those of two.
_SHAKING_OF_LARGE_FILTERS = 0.55


def choose(
    quality: str = "normal",
    method: str | Sampler | None = None,
    prior: str | Path | Prior | None = None,
    options: dict[str, Any] | None = None,
) -> tuple[Sampler, Prior]:
    """The sampler and the prior that a user asks for; whatever is left out, `quality` decides.

    >>> sampler, prior = choose("fast", prior="pairwise")
    >>> sampler.name, sampler.draws
    ('mp-svgd', 8)
    >>> choose("best", "gibbs")[1].name
    'foe3x3'
    """
    if quality not in QUALITIES:
        raise ValueError(f"quality must be one of {', '.join(QUALITIES)}, got {quality!r}")
    name = method.name if isinstance(method, Sampler) else method
    if prior is None:
        prior = _usual_prior(quality, name)
    if prior == "learned":
        prior = _LEARNED[quality]
    loaded = load_field(prior)
    learned = isinstance(loaded, LearnedPrior)
    if isinstance(method, Sampler):
        if options:
            raise ValueError(f"options ({', '.join(options)}) go into the sampler itself when method is one")
        sampler = method
    else:
        usual, preset = ("direct", {}) if learned else _SAMPLED[quality]
        if usual == "mp-svgd" and "widen" not in (options or {}):
            widen, narrow = _WIDEN[quality][not loaded.pairwise]
            preset = {**preset, "widen": widen, "narrow": narrow}
        name = name or usual
        if name != usual:
            large = name == "mp-svgd-b" and not learned and not loaded.pairwise
            preset = {"shaking": _SHAKING_OF_LARGE_FILTERS} if large else {}
        sampler = make_sampler(name, {**preset, **(options or {})})
    if sampler.needs_moments and not learned:
        raise ValueError(f"{sampler.name} needs a field that knows its mean: prior {' or '.join(LEARNED)}")
    return sampler, loaded


def _usual_prior(quality: str, method: str | None) -> str:
    """The learned field unless a sampler is asked for by name: those are the paper's, on the paper's priors."""
    if method is None or (method in METHODS and METHODS[method].needs_moments):
        return "learned"
    return "foe3x3" if quality == "best" else "pairwise"
