"""What the words for quality mean: which sampler, with which options, on which prior."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from denoiser.priors import Prior, load_prior
from denoiser.samplers import DEFAULT_METHOD, METHODS, Sampler, make_sampler

QUALITIES = ("fast", "normal", "best")
DEFAULT_PRIOR = "pairwise"

#: Arguments that a word for quality stands for. What a user asks for by name goes before them.
_MEANINGS: dict[str, dict[str, Any]] = {
    "fast": {"method": "mp-svgd", "particles": 8, "iterations": 16},
    "normal": {},
    "best": {"method": "gibbs", "prior": "foe3x3"},
}


def choose(
    quality: str = "normal",
    method: str | Sampler | None = None,
    prior: str | Path | Prior | None = None,
    options: dict[str, Any] | None = None,
) -> tuple[Sampler, Prior]:
    """The sampler and the prior that a user asks for; whatever is left out, `quality` decides.

    >>> sampler, prior = choose("fast")
    >>> sampler.name, prior.name
    ('mp-svgd', 'pairwise')
    """
    if quality not in QUALITIES:
        raise ValueError(f"quality must be one of {', '.join(QUALITIES)}, got {quality!r}")
    preset = _MEANINGS[quality]
    if prior is None:
        prior = preset.get("prior", DEFAULT_PRIOR)
    if isinstance(method, Sampler):
        if options:
            raise ValueError(f"options ({', '.join(options)}) go into the sampler itself when method is one")
        return method, load_prior(prior)
    name = method or preset.get("method", DEFAULT_METHOD)
    known = METHODS[name].options() if name in METHODS else {}
    filled = {key: value for key, value in preset.items() if key in known and preset.get("method") == name}
    return make_sampler(name, {**filled, **(options or {})}), load_prior(prior)
