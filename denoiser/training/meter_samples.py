"""Squares to teach the noise meter: photographs with noise of every kind on them, and the truth about it."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
from scipy.ndimage import gaussian_filter, uniform_filter

from denoiser.camera import jpeg
from denoiser.colour import OPPONENT
from denoiser.noise_meter import BLOCK, LAGS
from denoiser.training.noises import any_camera, planes_of_channels, planes_of_grey, spread_of
from denoiser.training.photographs import GREY, Photographs, enlarged, turned

#: What is drawn how often.
KINDS = {"none": 0.14, "white": 0.32, "poisson": 0.12, "varying": 0.04, "camera": 0.38}
_GREY = {"none": 0.3, "white": 0.5, "poisson": 0.5, "varying": 0.5, "camera": 0.1}  # of them are grey
_WINDOW = 32  # pixels over which the square of a residual is averaged where nobody knows what to expect of it
_BANK = 768  # squares that are held; each is seen a few times


class Square(NamedTuple):
    """A square of `size` pixels, float32.

    noisy: opponent planes in grey levels, shape (3, size, size).
    variance: of the noise of every block, of the three planes and then of red, green and blue;
        shape (6, size / 8, size / 8).
    correlation: of the planes of the whole square, at `LAGS` along rows, then along columns; shape (3, 6).
    counts: whether a block of a plane is to be learned from, shape of variance; clipped ones are not.
    """

    noisy: np.ndarray
    variance: np.ndarray
    correlation: np.ndarray
    counts: np.ndarray


class Squares:
    """Draws squares; making them is dear, so a bank of them is kept and slowly renewed."""

    def __init__(self, photographs: Photographs, rng: np.random.Generator, size: int = 128) -> None:
        self.photographs, self.rng, self.size = photographs, rng, size
        self.bank = deque[Square](maxlen=_BANK)

    def batch(self, count: int, fresh: int) -> Square:
        """Arrays of `count` squares, stacked; so many of the bank are new."""
        self.bank.extend(self.make() for _ in range(fresh))
        chosen = self.rng.choice(len(self.bank), count, replace=len(self.bank) < count)
        squares = [_turned(self.bank[k], int(self.rng.integers(8))) for k in chosen]
        return Square(*(np.stack(arrays) for arrays in zip(*squares, strict=True)))

    def make(self) -> Square:
        """A new one; JPEG's grid lies anywhere in half of them, as in pictures that were cut."""
        clean, noisy, spread, grey = self._pair()
        y, x = self.rng.integers(BLOCK, size=2) * (self.rng.random() < 0.5)
        inside = np.s_[y : y + self.size, x : x + self.size]
        return _square(clean[inside], noisy[inside], None if spread is None else spread[inside], grey)

    def _pair(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, bool]:
        """Clean and noisy channels, the standard deviation of the noise, None if nobody knows it, and if it is grey."""
        rng = self.rng
        kind = str(rng.choice(list(KINDS), p=list(KINDS.values())))
        grey = bool(rng.random() < _GREY[kind])
        clean = self._clean(share=0.5 if kind == "camera" else 0.25)
        if grey:
            clean = np.repeat((clean @ GREY)[..., None], 3, axis=2)
        if kind == "camera":
            noisy = any_camera(clean, rng, (100, 50000), (70, 101), (-0.4, 0.9), (2.5, 6.0)).astype(np.float32)
            return clean, np.repeat(noisy.mean(axis=2, keepdims=True), 3, axis=2) if grey else noisy, None, grey
        level = self._level()
        spread, _ = spread_of(kind, np.float32(0) if kind == "none" else level, clean, rng)
        noisy = clean + spread * self._field(grey)
        finish = rng.random()
        if finish < 0.45:  # as a microscope, or an experiment, has it
            return clean, noisy, spread, grey
        pixels = np.round(np.clip(noisy, 0, 255)).astype(np.uint8)
        if finish < 0.75:
            return clean, pixels.astype(np.float32), np.sqrt(spread**2 + np.float32(1 / 12)), grey
        return clean, self._jpeg(pixels, grey), None, grey

    def _clean(self, share: float) -> np.ndarray:
        """A square in grey levels (size, size, 3): a share enlarged, as sensors see, others sharp as when reduced."""
        rng, size = self.rng, self.size + BLOCK
        if rng.random() < share:
            small = self.photographs.crop(int(size / 1.2 / 7 ** rng.random() ** 2), rng)
            return self._dimmed(enlarged(small, size))
        clean = self.photographs.crop(size, rng).astype(np.float32)
        if rng.random() < 0.25:
            blurred = gaussian_filter(clean, (rng.uniform(0.6, 1.5),) * 2 + (0,))
            clean = np.clip(clean + np.float32(rng.uniform(0.2, 1.2)) * (clean - blurred), 0, 255)
        clean = self._dimmed(clean)
        return clean if rng.random() < 0.5 else np.round(clean)

    def _dimmed(self, clean: np.ndarray) -> np.ndarray:
        """Sometimes of less contrast, as microscopes and bad light make pictures."""
        rng = self.rng
        if rng.random() < 0.8:
            return clean
        contrast = np.float32(rng.uniform(0.15, 1))
        return clean * contrast + np.float32(255 * (1 - contrast) * rng.random() ** 2)

    def _level(self) -> np.float32:
        """Weak noise, which texture looks like, is more than half of what there is."""
        rng = self.rng
        return np.float32(6 * rng.random() ** 1.7 if rng.random() < 0.55 else 6 + 64 * rng.random() ** 2)

    def _field(self, grey: bool) -> np.ndarray:
        """Noise of standard deviation 1, sometimes with a grain."""
        rng, size = self.rng, self.size + BLOCK
        field = rng.standard_normal((size, size, 1 if grey else 3), dtype=np.float32)
        if rng.random() < 0.1:
            width = rng.uniform(0.4, 1.5)
            taps = np.exp(-0.5 * (np.arange(-8, 9) / width) ** 2)
            norm = (taps**2).sum() / taps.sum() ** 2  # of one axis: the variance that is left
            field = gaussian_filter(field, (width, width, 0), truncate=8 / width, mode="wrap") / np.float32(norm)
        return field

    def _jpeg(self, pixels: np.ndarray, grey: bool) -> np.ndarray:
        quality, subsampling = int(self.rng.integers(70, 101)), int(self.rng.choice([0, 2]))
        found = jpeg(np.ascontiguousarray(pixels[..., 0] if grey else pixels), quality, subsampling).astype(np.float32)
        return np.repeat(found[..., None], 3, axis=2) if grey else found


def _square(clean: np.ndarray, noisy: np.ndarray, spread: np.ndarray | None, grey: bool) -> Square:
    """The truth about a noisy square; spread: of its channels, None where it has to be read off the residual."""
    residual = noisy - clean
    planes = planes_of_channels(residual)
    fields = np.concatenate([planes, residual.transpose(2, 0, 1)])
    if spread is None:
        squares = uniform_filter(fields**2, (0, _WINDOW, _WINDOW), mode="mirror")
    else:
        own = spread.transpose(2, 0, 1) ** 2
        squares = np.concatenate([planes_of_grey(spread) ** 2 if grey else np.tensordot(OPPONENT**2, own, 1), own])
    counts = np.ones((6, len(noisy) // BLOCK, len(noisy) // BLOCK), np.float32)
    if (noisy == np.round(noisy)).all():  # 8 bits
        clipped = np.any((noisy <= 0) | (noisy >= 255), axis=2).astype(np.float32)
        counts *= _blocks(clipped[None]) < 0.02
    if grey:
        counts[1:3] = 0
    return Square(planes_of_channels(noisy), _blocks(squares), correlations(planes), counts)


def correlations(residual: np.ndarray) -> np.ndarray:
    """Of planes (3, height, width), at `LAGS` along rows, then along columns; shape (3, 6)."""
    centred = residual - residual.mean(axis=(1, 2), keepdims=True)
    variance = np.maximum((centred**2).mean(axis=(1, 2)), 1e-6)
    along = [(centred[:, :, k:] * centred[:, :, :-k]).mean(axis=(1, 2)) / variance for k in LAGS]
    down = [(centred[:, k:] * centred[:, :-k]).mean(axis=(1, 2)) / variance for k in LAGS]
    return np.stack([*along, *down], axis=1).astype(np.float32)


def _blocks(fields: np.ndarray) -> np.ndarray:
    """Means of blocks, (n, height, width) -> (n, height / 8, width / 8)."""
    count, height, width = fields.shape
    return fields.reshape(count, height // BLOCK, BLOCK, width // BLOCK, BLOCK).mean(axis=(2, 4), dtype=np.float32)


def _turned(square: Square, which: int) -> Square:
    """One of the eight flips and turns."""
    fields = [
        np.ascontiguousarray(turned(f.transpose(1, 2, 0), which).transpose(2, 0, 1))
        for f in (square.noisy, square.variance, square.counts)
    ]
    half = len(LAGS)
    correlation = np.roll(square.correlation, half, axis=1) if which & 4 else square.correlation
    return Square(fields[0], fields[1], correlation, fields[2])
