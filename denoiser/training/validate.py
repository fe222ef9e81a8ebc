"""How good the network is by now: PSNR on pictures it does not learn from, with NL-means beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

from denoiser.camera import camera_noise
from denoiser.training.network import Network
from denoiser.training.noises import Batch, camera_map, planes_of_channels, planes_of_grey
from denoiser.training.photographs import GREY, Photographs

SIDE = 192  # pixels of the square that is cut from the middle of each picture
_COUNT = 12  # pictures
#: What is measured: (colours, white sigma) or ("camera", ISO).
TRIALS: dict[str, tuple[str, float]] = {
    "grey 10": ("grey", 10),
    "grey 20": ("grey", 20),
    "grey 25": ("grey", 25),
    "colour 25": ("colour", 25),
    "camera 6400": ("camera", 6400),
}


def squares(files: Sequence[Path], count: int) -> list[np.ndarray]:
    """The middle of at most `count` pictures, evenly chosen among the files: (SIDE, SIDE, 3), float64."""
    chosen = [files[i] for i in np.linspace(0, len(files) - 1, min(count, len(files))).astype(int)]
    pictures = Photographs(chosen, smallest=SIDE).reduced[1.0]
    if not pictures:
        raise ValueError(f"no picture of at least {SIDE} x {SIDE} pixels to validate on")
    middles = [((p.shape[0] - SIDE) // 2, (p.shape[1] - SIDE) // 2) for p in pictures]
    return [p[y : y + SIDE, x : x + SIDE].astype(float) for p, (y, x) in zip(pictures, middles, strict=True)]


class Validation:
    """Squares from the middle of some pictures, and what NL-means makes of them."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.crops = squares(files, _COUNT)

    def trials(self) -> Iterator[tuple[str, Batch]]:
        """Every trial's name and its pictures, noisy: always the same noise."""
        for name, (colours, level) in TRIALS.items():
            samples = [with_noise(crop, colours, level, np.random.default_rng(k)) for k, crop in enumerate(self.crops)]
            yield name, Batch(*(np.stack(arrays) for arrays in zip(*samples, strict=True)))

    def measure(self, network: Network) -> dict[str, float]:
        """PSNR of the mean by trial, and what the 90 % intervals of all pixels cover."""
        figures, inside = {}, []
        network.eval()
        for name, batch in self.trials():
            with torch.no_grad():
                out = network(torch.from_numpy(batch.noisy), torch.from_numpy(batch.sigma))
            figures[name] = psnr(out.mean.numpy(), batch.clean)
            std = out.log_std.exp().numpy() * batch.sigma
            inside.append((np.abs(out.mean.numpy() - batch.clean) <= 1.645 * std)[batch.sigma > 0].mean())
        network.train()
        return {**figures, "coverage": float(np.mean(inside))}

    def peers(self) -> dict[str, float]:
        """PSNR of NL-means, told the level, on the same pictures."""
        figures = {}
        for name, batch in self.trials():
            restored = [_nl_means(y, s) for y, s in zip(batch.noisy, batch.sigma, strict=True)]
            figures[name] = psnr(np.stack(restored), batch.clean)
        return figures


def psnr(planes: np.ndarray, clean: np.ndarray) -> float:
    """Mean over the pictures; planes (N, 3, h, w) of colour or of grey pictures."""
    errors = ((planes - clean) ** 2).mean(axis=(1, 2, 3))  # a third of a grey picture's planes holds all its error
    return float(np.mean(10 * np.log10(255**2 / np.maximum(errors, 1e-9))))


def _nl_means(noisy: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    """Every plane that has noise, by itself; patches and search window as `denoiser.samplers.peers` has them."""
    from skimage.restoration import denoise_nl_means

    out = noisy.copy()
    for plane, level in zip(out, np.sqrt((sigma**2).mean(axis=(1, 2))), strict=True):
        if level > 0:
            plane[:] = denoise_nl_means(plane, h=0.8 * level, sigma=level, patch_size=5, patch_distance=6)
    return out


def with_noise(crop: np.ndarray, colours: str, level: float, rng: np.random.Generator) -> Batch:
    """One picture (height, width, 3) with white noise of `level`, "colour" or "grey", or with a "camera"'s of that ISO.

    The batch's arrays have the shape (3, height, width).
    """
    if colours == "camera":
        noisy = camera_noise(crop, level, rng)
        return Batch(planes_of_channels(crop), planes_of_channels(noisy), camera_map(crop, noisy))
    clean = crop @ GREY if colours == "grey" else crop
    noisy = clean + level * rng.standard_normal(clean.shape)
    planes = planes_of_grey if colours == "grey" else planes_of_channels
    sigma = planes_of_grey(np.full(clean.shape, level)) if colours == "grey" else np.full_like(planes(clean), level)
    return Batch(planes(clean), planes(noisy), sigma)
