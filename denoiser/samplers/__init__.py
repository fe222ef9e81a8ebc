"""The registry: name -> class. A new sampler is one file and one line here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from denoiser.samplers.base import Estimate, Sampler, option
from denoiser.samplers.direct import Direct
from denoiser.samplers.gibbs import Gibbs
from denoiser.samplers.hmc import HMC
from denoiser.samplers.map import Map
from denoiser.samplers.mp_svgd import MPSVGD, MPSVGDBatches, MPSVGDSingle
from denoiser.samplers.peers import PEERS
from denoiser.samplers.svgd import SVGD

_SAMPLERS: tuple[type[Sampler], ...] = (Direct, MPSVGD, MPSVGDSingle, MPSVGDBatches, SVGD, Gibbs, HMC, Map, *PEERS)
METHODS = {sampler.name: sampler for sampler in _SAMPLERS}
_DRAWN = 50  # candidate pictures, of a method that needs none for its mean

__all__ = ["METHODS", "Estimate", "Sampler", "flag", "make_sampler", "option", "with_particles"]


def make_sampler(method: str, options: dict[str, Any]) -> Sampler:
    """The sampler of that name with these options, or a ValueError that says what there is."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    known = METHODS[method].options()
    for name, value in options.items():
        if name not in known:
            raise ValueError(f"{method} has no option {name!r} (got {value!r}); it has {', '.join(known)}")
    return METHODS[method](**options)


def flag(method: str, option: str) -> str:
    """The command line's name of a method's option; `--samples` is taken, by the file to write them to.

    >>> flag("gibbs", "burn_in"), flag("gibbs", "samples")
    ('--burn-in', '--gibbs-samples')
    """
    words = option.replace("_", "-")
    return f"--{method}-{words}" if words == "samples" else f"--{words}"


def with_particles(sampler: Sampler) -> Sampler:
    """The sampler as one that has particles: a method that needs none for its mean draws some besides.

    >>> with_particles(make_sampler("direct", {})).kept, with_particles(make_sampler("gibbs", {})).kept
    (50, 50)
    """
    if sampler.kept or not sampler.uncertain:
        return sampler
    return replace(sampler, particles=_DRAWN)  # type: ignore[call-arg]
