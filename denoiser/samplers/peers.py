"""The denoisers that people would use instead, behind the same protocol: one picture, and no idea how sure it is.

Colour goes through the same opponent planes as for our own samplers, one plane at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import ClassVar

import numpy as np

from denoiser.posterior import Posterior
from denoiser.priors import FilterBank
from denoiser.samplers.base import Estimate, Sampler, option


@dataclass(frozen=True)
class Peer(Sampler):
    """A denoiser from another library: a single step from the noisy picture to its answer; the prior plays no part."""

    uncertain: ClassVar[bool] = False
    uses_prior: ClassVar[bool] = False

    @property
    def total(self) -> int:
        return 1

    def bytes_per_pixel(self, prior: FilterBank) -> int:
        return 400

    def answer(self, noisy: np.ndarray, sigma: float) -> np.ndarray:
        """The denoised picture, 0-255 scale."""
        raise NotImplementedError

    def estimates(self, posterior: Posterior, rng: np.random.Generator) -> Iterator[Estimate]:
        noisy = posterior.crop(posterior.noisy)  # peers have their own ways with borders
        height, width = noisy.shape
        wide = np.pad(noisy, ((0, height == 1), (0, width == 1)), mode="edge")  # a line of pixels is not one to all
        mean = np.pad(self.answer(wide, posterior.sigma)[:height, :width], posterior.padding, mode="edge")
        yield Estimate(mean, np.zeros(posterior.shape), np.empty((0, *posterior.shape), np.float32), {})


@dataclass(frozen=True)
class TotalVariation(Peer):
    """Total variation, by Chambolle's algorithm (scikit-image)."""

    name: ClassVar[str] = "tv"
    title: ClassVar[str] = "Total variation"

    weight: float = option(0.8, "smoothing, as a multiple of the noise level", low=0.01)

    def answer(self, noisy: np.ndarray, sigma: float) -> np.ndarray:
        from skimage.restoration import denoise_tv_chambolle  # slow to import

        return denoise_tv_chambolle(noisy, weight=self.weight * sigma)


@dataclass(frozen=True)
class NonLocalMeans(Peer):
    """Non-local means (scikit-image)."""

    name: ClassVar[str] = "nlm"
    title: ClassVar[str] = "NL-means"

    weight: float = option(0.8, "smoothing, as a multiple of the noise level", low=0.01)

    def answer(self, noisy: np.ndarray, sigma: float) -> np.ndarray:
        from skimage.restoration import denoise_nl_means  # slow to import

        # patches and search window of scikit-image's own example: better here than its defaults, by 0.5 dB
        return denoise_nl_means(noisy, h=self.weight * sigma, sigma=sigma, patch_size=5, patch_distance=6)


@dataclass(frozen=True)
class Wavelet(Peer):
    """Wavelet shrinkage with BayesShrink thresholds (scikit-image)."""

    name: ClassVar[str] = "wavelet"
    title: ClassVar[str] = "Wavelets"

    def answer(self, noisy: np.ndarray, sigma: float) -> np.ndarray:
        from skimage.restoration import denoise_wavelet  # slow to import

        return denoise_wavelet(noisy / 255, sigma=sigma / 255, rescale_sigma=False) * 255


@dataclass(frozen=True)
class BM3D(Peer):
    """Block matching and 3-D filtering, by its authors (the package bm3d, which is not ours to ship)."""

    name: ClassVar[str] = "bm3d"
    title: ClassVar[str] = "BM3D"

    def answer(self, noisy: np.ndarray, sigma: float) -> np.ndarray:
        from bm3d import bm3d

        return bm3d(noisy, sigma)


PEERS: tuple[type[Peer], ...] = (TotalVariation, NonLocalMeans, Wavelet, *((BM3D,) if find_spec("bm3d") else ()))
