"""A Bayesian image denoiser: the posterior mean of a learned Markov random field, and how far to trust it.

>>> import denoiser
>>> {"mp-svgd", "svgd", "gibbs", "map", "tv"} <= set(denoiser.METHODS)
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from denoiser.api import denoise, iterate, make_request
    from denoiser.evaluation import Row, evaluate, read_rows, summary, to_csv, to_json
    from denoiser.metrics import coverage, psnr, ssim
    from denoiser.noise import Noise, add_noise, estimate_noise, estimate_sigma
    from denoiser.outcome import Progress, Result
    from denoiser.pieces import Region
    from denoiser.priors import Prior, available_priors, load_prior, save_prior
    from denoiser.run import Request
    from denoiser.samplers import METHODS
    from denoiser.threads import get_threads, set_threads

__version__ = "0.2.0"

__all__ = [
    "METHODS",
    "Noise",
    "Prior",
    "Progress",
    "Region",
    "Request",
    "Result",
    "Row",
    "add_noise",
    "available_priors",
    "coverage",
    "denoise",
    "estimate_noise",
    "estimate_sigma",
    "evaluate",
    "get_threads",
    "iterate",
    "load_prior",
    "make_request",
    "psnr",
    "read_rows",
    "save_prior",
    "set_threads",
    "ssim",
    "summary",
    "to_csv",
    "to_json",
]

# Where each name lives. They are imported when first asked for: numba takes longer to load than `--help` may.
_HOMES = {
    "evaluation": ("Row", "evaluate", "read_rows", "summary", "to_csv", "to_json"),
    "threads": ("get_threads", "set_threads"),
    "metrics": ("coverage", "psnr", "ssim"),
    "noise": ("Noise", "add_noise", "estimate_noise", "estimate_sigma"),
    "priors": ("Prior", "available_priors", "load_prior", "save_prior"),
    "outcome": ("Progress", "Result"),
    "pieces": ("Region",),
    "api": ("denoise", "iterate", "make_request"),
    "run": ("Request",),
    "samplers": ("METHODS",),
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
