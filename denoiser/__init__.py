"""A Bayesian image denoiser: the posterior mean of a learned Markov random field, and how far to trust it.

>>> import denoiser
>>> sorted(denoiser.METHODS)
['gibbs', 'hmc', 'map', 'mp-svgd', 'mp-svgd-s', 'svgd']
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from denoiser.jit import get_threads, set_threads
    from denoiser.metrics import psnr, ssim
    from denoiser.noise import add_noise, estimate_sigma
    from denoiser.priors import Prior, available_priors, load_prior, save_prior
    from denoiser.run import Progress, Result, denoise, iterate
    from denoiser.samplers import METHODS
    from denoiser.tiles import iterate_tiles

__version__ = "0.1.0"

__all__ = [
    "METHODS",
    "Prior",
    "Progress",
    "Result",
    "add_noise",
    "available_priors",
    "denoise",
    "estimate_sigma",
    "get_threads",
    "iterate",
    "iterate_tiles",
    "load_prior",
    "psnr",
    "save_prior",
    "set_threads",
    "ssim",
]

# Where each name lives. They are imported when first asked for: numba takes longer to load than `--help` may.
_HOMES = {
    "jit": ("get_threads", "set_threads"),
    "metrics": ("psnr", "ssim"),
    "noise": ("add_noise", "estimate_sigma"),
    "priors": ("Prior", "available_priors", "load_prior", "save_prior"),
    "run": ("Progress", "Result", "denoise", "iterate"),
    "samplers": ("METHODS",),
    "tiles": ("iterate_tiles",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'denoiser' has no attribute {name!r}")
    value = getattr(import_module(f"denoiser.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
