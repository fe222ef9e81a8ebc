"""Batches to learn from: clean planes, noisy planes and the noise map that one would measure."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from denoiser.camera import camera_noise
from denoiser.colour import OPPONENT
from denoiser.training.photographs import GREY, Photographs, enlarged, turned

#: What is drawn how often. Grey pictures go in as colour ones with equal channels: their colour planes are zero.
KINDS = {
    ("white", "grey"): 0.38,
    ("white", "colour"): 0.29,
    ("poisson", "grey"): 0.04,
    ("poisson", "colour"): 0.03,
    ("varying", "grey"): 0.03,
    ("varying", "colour"): 0.02,
    ("camera", "grey"): 0.05,
    ("camera", "colour"): 0.16,
}
_CAMERA = {"all": 1, "white": 0, "camera": 8}  # how much more often camera noise is drawn, by what is to be learned
_STRONGEST = 75.0  # grey levels
_QUANTISED = 0.15  # of the pictures with white or Poisson noise are 8-bit ones, clipped at black and white
_SOFT = 0.75  # of the pictures have colours less sharp than their brightness
_DYED, _STRONG = 0.05, 0.06  # of the pictures are in one or two channels alone; in very strong colours
_BANK, _SQUARE = 160, 256  # camera pictures that are held, and their side
_REDUCED = 0.35  # of the camera pictures are as sharp as a reduced photograph


class Batch(NamedTuple):
    """Arrays of shape (N, 3, size, size), float32, opponent planes in grey levels."""

    clean: np.ndarray
    noisy: np.ndarray
    sigma: np.ndarray


class Noises:
    """Draws batches; camera noise is dear, so a bank of such pictures is kept and slowly renewed."""

    def __init__(
        self, photographs: Photographs, rng: np.random.Generator, colours: str = "both", noise: str = "all"
    ) -> None:
        self.photographs, self.rng = photographs, rng
        self.kinds = [kind for kind in KINDS if colours in ("both", kind[1])]
        odds = np.array([KINDS[kind] * (_CAMERA[noise] if kind[0] == "camera" else 1) for kind in self.kinds])
        self.odds = odds / odds.sum()
        self.camera = any(kind == "camera" and odds for (kind, _), odds in zip(self.kinds, self.odds, strict=True))
        self.bank = deque[Batch](maxlen=_BANK)
        self.made = 0

    def batch(self, count: int, size: int) -> Batch:
        """`count` samples."""
        chosen = self.rng.choice(len(self.kinds), count, p=self.odds)
        if self.camera and (self.made < _BANK or self.made % 2 == 0):
            self._renew()
        self.made += 1
        samples = [self._sample(*self.kinds[int(k)], size=size) for k in chosen]
        return Batch(*(np.stack(arrays) for arrays in zip(*samples, strict=True)))

    def _sample(self, kind: str, colours: str, size: int) -> Batch:
        rng = self.rng
        if kind == "camera":
            return self._from_bank(colours, size)
        clean = self.photographs.crop(size, rng).astype(np.float32)
        clean = np.repeat((clean @ GREY)[..., None], 3, axis=2) if colours == "grey" else recoloured(clean, rng)
        level = np.float32(_STRONGEST * rng.random() ** 2)
        spread, read = spread_of(kind, level, clean, rng)
        field = rng.standard_normal((size, size, 1 if colours == "grey" else 3), dtype=np.float32)
        noisy: np.ndarray = clean + spread * field
        rounding = np.float32(1 / 12 if rng.random() < _QUANTISED else 0)  # its variance
        if rounding:
            noisy = np.round(np.clip(noisy, 0, 255))
        if kind == "poisson" and rng.random() < 0.7:  # the map is read off the noisy picture
            spread = photon_spread(level, read, _blurred(noisy))
        spread = np.sqrt(spread**2 + rounding)
        if colours == "grey":  # one field of noise in three equal channels
            return Batch(*(planes_of_grey(field[..., 0]) for field in (clean, noisy, spread)))
        variance = planes_of_channels(spread**2, OPPONENT**2)
        return Batch(planes_of_channels(clean), planes_of_channels(noisy), np.sqrt(variance))

    def _from_bank(self, colours: str, size: int) -> Batch:
        rng = self.rng
        entry = self.bank[rng.integers(len(self.bank))]
        y, x = (int(rng.integers(n - size + 1)) for n in entry.clean.shape[1:])
        which = int(rng.integers(8))
        parts = [turned(a[:, y : y + size, x : x + size].transpose(1, 2, 0), which).transpose(2, 0, 1) for a in entry]
        if colours == "grey":
            parts = [part * np.array([1, 0, 0], np.float32)[:, None, None] for part in parts]
        clean, noisy, sigma = parts
        return Batch(clean, noisy, sigma * np.float32(np.exp(rng.uniform(-0.4, 0.4))))  # as estimates miss it

    def _renew(self) -> None:
        """One more camera picture, instead of the oldest if the bank is full."""
        rng = self.rng
        clean = self._sensor_crop()
        noisy = any_camera(clean, rng, isos=(600, 40000), qualities=(70, 100), smooth=(-0.3, 0.8), chroma=(3.5, 7.0))
        self.bank.append(Batch(planes_of_channels(clean), planes_of_channels(noisy), camera_map(clean, noisy)))

    def _sensor_crop(self) -> np.ndarray:
        """A crop, most often enlarged: reduced photographs are sharper than what sensors see."""
        rng = self.rng
        if rng.random() < _REDUCED:
            return recoloured(self.photographs.crop(_SQUARE, rng).astype(np.float32), rng).astype(np.float64)
        small = self.photographs.crop(int(_SQUARE / rng.uniform(1.2, 3.0)), rng)
        return recoloured(enlarged(small, _SQUARE), rng).astype(np.float64)


def any_camera(
    clean: np.ndarray,
    rng: np.random.Generator,
    isos: tuple[float, float],
    qualities: tuple[int, int],
    smooth: tuple[float, float],
    chroma: tuple[float, float],
) -> np.ndarray:
    """The picture as some camera would have taken it. The ranges are those of the arguments of `camera_noise`.

    chroma: two bounds of the blur of the colours, one of which is drawn.
    """
    return camera_noise(
        clean,
        iso=float(np.exp(rng.uniform(*np.log(isos)))),
        rng=rng,
        quality=int(rng.integers(*qualities)) if rng.random() < 0.9 else None,
        smooth=max(rng.uniform(*smooth), 0.0),
        smooth_chroma=max(rng.uniform(-0.5, rng.choice(chroma)), 0.0),
        subsampling=int(rng.choice([0, 2])),
    )


def recoloured(crop: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A crop (size, size, 3) in other colours: soft ones, as most cameras and JPEGs leave them, and seldom vivid ones.

    Reduced photographs have ten times the fine colour detail that others have; a network that learned from them alone
    leaves noise in the colours. Pictures of dyes have one or two channels alone.
    """
    from scipy.ndimage import gaussian_filter

    chance = rng.random()
    if chance < _DYED:
        crop = crop * rng.permutation(np.array([1, rng.integers(2), 0], np.float32))
    elif chance < _DYED + _STRONG:
        grey = crop.mean(axis=2, keepdims=True)
        crop = np.clip(grey + np.float32(rng.uniform(1.5, 5)) * (crop - grey)[..., rng.permutation(3)], 0, 255)
    if rng.random() > _SOFT:
        return crop
    planes = crop @ OPPONENT.T.astype(np.float32)
    planes[..., 1:] = gaussian_filter(planes[..., 1:], rng.uniform(0.7, 2.2), mode="mirror", truncate=3, axes=(0, 1))
    return planes @ OPPONENT.astype(np.float32)


def camera_map(clean: np.ndarray, noisy: np.ndarray) -> np.ndarray:
    """The noise map of every plane that a perfect estimate gives: standard deviation by brightness, (3, h, w)."""
    guide = _blurred(noisy.mean(axis=2, keepdims=True))[..., 0]
    squares = planes_of_channels(noisy - clean) ** 2
    edges = np.quantile(guide, np.linspace(0, 1, 9))
    inside = np.clip(np.searchsorted(edges, guide, side="right") - 1, 0, 7)
    counts = np.bincount(inside.ravel(), minlength=8)
    centres = np.bincount(inside.ravel(), guide.ravel(), minlength=8) / np.maximum(counts, 1)
    filled = counts > 0
    order = np.argsort(centres[filled])
    out = np.empty(squares.shape, np.float32)
    for p, plane in enumerate(squares):
        variances = np.bincount(inside.ravel(), plane.ravel(), minlength=8) / np.maximum(counts, 1)
        out[p] = np.sqrt(np.interp(guide, centres[filled][order], variances[filled][order]))
    return out


def planes_of_channels(channels: np.ndarray, matrix: np.ndarray = OPPONENT) -> np.ndarray:
    """(h, w, 3) -> (3, h, w), float32."""
    return np.ascontiguousarray((channels @ matrix.T).transpose(2, 0, 1), dtype=np.float32)


def planes_of_grey(field: np.ndarray) -> np.ndarray:
    """A grey field, or its noise map, in three equal channels: all of it is in the first plane."""
    out = np.zeros((3, *field.shape[:2]), np.float32)
    out[0] = np.sqrt(np.float32(3)) * (field if field.ndim == 2 else field[..., 0])
    return out


def _blurred(channels: np.ndarray) -> np.ndarray:
    from scipy.ndimage import uniform_filter

    return uniform_filter(channels, (7, 7, 1), mode="mirror")


def spread_of(
    kind: str, level: np.float32, clean: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.float32]:
    """Standard deviation of noise of a level in every pixel and channel of a square, and that of the dark in it."""
    if kind == "varying":
        return np.repeat(level * smooth_field(len(clean), rng)[..., None], 3, axis=2), level
    if kind == "poisson":
        read = level * np.float32(np.sqrt(rng.random() * 0.5))
        return photon_spread(level, read, clean), read
    return np.full(clean.shape, level), level


def photon_spread(level: np.float32, read: np.float32, brightness: np.ndarray) -> np.ndarray:
    """Standard deviation of Poisson-Gaussian noise: var = gain * x + read^2, which is level^2 at mid-grey."""
    return np.sqrt((level**2 - read**2) / 128 * np.maximum(brightness, 0) + read**2)


def smooth_field(size: int, rng: np.random.Generator) -> np.ndarray:
    """A smooth field between 0.3 and 1: bilinear between random corners."""
    corners = rng.uniform(0.3, 1, (2, 2)).astype(np.float32)
    t = np.linspace(0, 1, size, dtype=np.float32)
    sides = (1 - t)[:, None] * corners[0] + t[:, None] * corners[1]
    return (1 - t) * sides[:, :1] + t * sides[:, 1:]
