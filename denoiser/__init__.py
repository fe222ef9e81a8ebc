"""A Bayesian image denoiser: the posterior mean of a learned Markov random field, and how far to trust it.

>>> import denoiser
>>> sorted(denoiser.METHODS)
['gibbs', 'map', 'mp-svgd', 'mp-svgd-s', 'svgd']
"""

from denoiser.jit import get_threads, set_threads
from denoiser.metrics import psnr, ssim
from denoiser.noise import add_noise, estimate_sigma
from denoiser.priors import Prior, available_priors, load_prior, save_prior
from denoiser.run import Progress, Result, denoise, iterate
from denoiser.samplers import METHODS

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
    "load_prior",
    "psnr",
    "save_prior",
    "set_threads",
    "ssim",
]
