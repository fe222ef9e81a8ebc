"""The posterior p(x | y) of a clean image x given a noisy one: a prior times a Gaussian likelihood."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from denoiser.checks import checked_noise, noise_level
from denoiser.priors import Prior
from denoiser.stencil import Stencil
from denoiser.target import SitePotentials, Target

_BLOCK = 1 << 14  # cliques whose energy is computed at a time


def widened(
    mean: np.ndarray, std: np.ndarray, samples: np.ndarray, factor: float | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviations, and float32 particles `factor` times as far from their mean; a number, or one a pixel."""
    centre, times = mean.astype(np.float32), np.asarray(factor, np.float32)
    return std * factor, centre + times * (samples - centre)


class Posterior(Target):
    """Prior and likelihood on the mirror-padded noisy image; samplers work on the padded field.

    noisy: grey image, 0-255 scale, shape (height, width).
    sigma: standard deviation of its noise, same scale: one number, or one a pixel (a noise map, the shape of noisy).
    origin: row and column at which it lies in the picture that it was cut from; random numbers follow the picture.
    The padding is inferred with the image and thrown away by `crop`, as published (CVPR 2010).
    """

    prior: Prior
    #: What the spread of particles around their mean, and so the standard deviation, is multiplied by in `pictures`.
    widen: float = 1.0

    def __init__(
        self,
        prior: Prior,
        noisy: np.ndarray,
        sigma: float | np.ndarray,
        padding: int | None = None,
        origin: tuple[int, int] = (0, 0),
    ) -> None:
        self.origin = origin
        self.padding = prior.padding if padding is None else padding
        values = np.asarray(noisy, dtype=np.float64)
        noise = checked_noise(sigma, values.shape)
        super().__init__(prior, np.pad(values, self.padding, mode="symmetric"), noise_level(noise))
        #: Standard deviation of the noise at every site, shape (height, width) with the padding.
        self.noise_map = np.pad(np.broadcast_to(noise, values.shape), self.padding, mode="symmetric")
        #: 1 / noise_map^2: what a picture says about each of its sites.
        self.noise_precision = self.noise_map**-2

    @property
    def spread(self) -> np.ndarray:
        """The noise map, float32."""
        return self.noise_map.astype(np.float32)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation at every site, where the field knows them without sampling."""
        raise ValueError("this posterior does not know its mean; a sampler has to find it")

    def pictures(self, mean: np.ndarray, std: np.ndarray, samples: np.ndarray) -> tuple[np.ndarray, ...]:
        """What a sampler found on the sites, as pictures in grey levels: without the padding, widened."""
        mean, std, samples = self.crop(mean), self.crop(std), self.crop(samples)
        return (mean, std, samples) if self.widen == 1 else (mean, *widened(mean, std, samples, self.widen))

    def crop(self, fields: np.ndarray) -> np.ndarray:
        """Take the padding off the last two axes."""
        p = self.padding
        return fields[..., p : fields.shape[-2] - p, p : fields.shape[-1] - p] if p else fields

    @cached_property
    def exact_stencil(self) -> Stencil:
        """The prior's filters on the padded image, in float64."""
        return Stencil(self.prior, self.shape, np.float64, self.clique_scale)

    @cached_property
    def tables(self) -> np.ndarray:
        """The experts' score tables, one row a filter."""
        return np.stack([expert.table for expert in self.prior.experts])

    @cached_property
    def potentials(self) -> SitePotentials:
        """The Gaussian likelihood, and the prior's weak Gaussian."""
        sites = SitePotentials.gaussian(self.noisy, self.noise_precision, self.prior.epsilon)
        if self.clique_scale is None:
            return sites
        return sites._replace(scale=np.ascontiguousarray(self.clique_scale, np.float32))

    def capped_tables(self, cap: float) -> np.ndarray:
        """Score tables of experts that hold no pixel with a component of precision above `cap`."""
        experts, filters = self.prior.experts, self.prior.filters
        capped = [e.capped(cap / (f**2).max()) for e, f in zip(experts, filters, strict=True)]
        return np.stack([expert.table for expert in capped])

    @cached_property
    def sharpest(self) -> float:  # type: ignore[override]
        """The largest precision with which a single component of an expert holds a pixel."""
        pairs = zip(self.prior.experts, self.prior.filters, strict=True)
        return max(float(e.precisions.max() * (f**2).max()) for e, f in pairs)

    def energy(self, x: np.ndarray) -> np.ndarray:
        """-log p(x | y) up to a constant, exactly, for images of shape (..., height, width)."""
        x = np.asarray(x, dtype=np.float64)
        total = 0.5 * (self.noise_precision * (x - self.noisy) ** 2).sum(axis=(-2, -1))
        return total + self.prior_energy(x)

    def prior_energy(self, x: np.ndarray) -> np.ndarray:
        """-log p(x) up to a constant, exactly."""
        x = np.asarray(x, dtype=np.float64)
        total = 0.5 * self.prior.epsilon * (x**2).sum(axis=(-2, -1))
        for response, expert in zip(self.responses(x), self.prior.experts, strict=True):
            rows = max(_BLOCK // max(response.shape[-1], 1), 1)  # a log density is held for every component
            for first in range(0, response.shape[-2], rows):
                total = total - expert.log_density(response[..., first : first + rows, :]).sum(axis=(-2, -1))
        return total
