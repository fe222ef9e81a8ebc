"""Measuring noise in a single picture: its level at every brightness, and how it is correlated.

Small blocks are taken apart by the cosine transform. Noise has the same spectrum in every flat block; texture adds to
it. To measure one half of the frequencies, the flattest blocks are chosen by the other half (frequencies alternate like
the fields of a chess board): texture shows in both, while the noise of the two halves is independent, so that choosing
the quietest blocks does not make the noise look smaller than it is. White noise is recognised by its highest
frequencies, which texture reaches last, and measured there; camera noise, which demosaicing and JPEG have
smoothed, at all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from denoiser.colour import OPPONENT

_SIZE = 8  # pixels a side of a block
_COARSE = 16  # of a block of colour differences, whose grain is larger
_BLOCKS = 12_000  # blocks that are looked at, at most
_FEWEST = 24  # blocks without which nothing can be said about brightness or correlation
_NODES = 13  # of a curve over brightness: quantiles of the blocks, so that their mean is that over the picture
_LAGS = 5  # pixels up to which the autocorrelation is told
_MEDIAN = 0.4549364231195724  # of the square of a standard normal variable
_FLATNESS = 0.45  # white noise: the highest frequencies have at least this share of the power of the middle ones
_LOSS = 1.4  # camera noise is so much stronger in all of a picture than in its flat blocks, which JPEG smooths
_MOST_COLOUR = 0.65  # camera noise is at most so strong in colour as in brightness (0.6 in Canon, Nikon and Sony JPEGs)
_STEADY = 0.85  # as in `_flat_share`: what noise has, whose level varies a little from block to block
_FLAT = 0.06  # share of flat blocks with which a level of camera noise is believed
_CLIPPED = 0.02  # share of black or white pixels that spoils a block


@dataclass(frozen=True)
class Spectrum:
    """What blocks say about one plane.

    brightness, variance: of the noise, at rising values of brightness, 0-255 scale; shape (nodes,).
    correlation: autocorrelation at (rows, columns) apart, shape (lags, lags); 1 x 1 for white noise.
    flat: share of the blocks in which nothing but noise was found.
    steady: how much they look like noise alone, 1 if they do (`_flat_share`).
    """

    brightness: np.ndarray
    variance: np.ndarray
    correlation: np.ndarray
    flat: float
    steady: float

    def as_tuples(self, white: float) -> tuple[tuple[float, ...], tuple[float, ...], tuple[tuple[float, ...], ...]]:
        """Brightness, standard deviation and correlation, in the units of a picture whose white is `white`."""
        unit = white / 255
        brightness, sigma = self.brightness * unit, np.sqrt(self.variance) * unit
        return tuple(brightness.tolist()), tuple(sigma.tolist()), tuple(map(tuple, self.correlation.tolist()))


def spectra(picture: np.ndarray, white: float) -> tuple[list[Spectrum], list[Spectrum], float]:
    """The noise of the channels of a picture (height, width, channels), of its opponent planes if it has three, and
    how sure it is, from 0 to 1. Brightness and variance on the 0-255 scale."""
    unit = 255 / white
    fine, spoilt = coefficients(picture, _SIZE)
    fine = fine * unit
    alive = (fine[:, :, 1:] ** 2).sum(axis=(0, 2)) > 1e-9  # painted areas say nothing about the rest
    if not alive.any():
        return [_guess(picture[..., c] * unit) for c in range(picture.shape[2])], [], 0.0
    usable = alive & ~spoilt
    trust = 1.0 if usable.sum() >= 0.05 * alive.sum() else 0.3
    usable = usable if usable.sum() >= _FEWEST else alive
    if usable.sum() < _FEWEST:
        return [_guess(picture[..., c] * unit) for c in range(picture.shape[2])], [], 0.0
    fine = fine[:, usable]
    means = fine[:, :, 0] / _SIZE
    if len(fine) != 3:
        found = [measure(fine[c : c + 1], means[c], None)[0] for c in range(len(fine))]
        return found, [], trust * _confidence(found[0])
    opponent = np.einsum("pc,cnf->pnf", OPPONENT, fine)
    luminance = measure(opponent[:1], means.mean(axis=0), None)
    is_white = len(luminance[0].correlation) == 1
    channels = [measure(fine[c : c + 1], means[c], _WHITE if is_white else _CAMERA)[0] for c in range(3)]
    if is_white:
        colours = measure(opponent[1:], means.mean(axis=0), _WHITE)
        return channels, luminance + colours, trust * _confidence(luminance[0])
    coarse, spoilt = coefficients(picture, _COARSE)
    coarse = coarse * unit
    usable = ((coarse[:, :, 1:] ** 2).sum(axis=(0, 2)) > 1e-9) & ~spoilt
    if usable.sum() < _FEWEST:
        colours = measure(opponent[1:], means.mean(axis=0), _COLOUR)
    else:
        coarse = coarse[:, usable]
        differences = np.einsum("pc,cnf->pnf", OPPONENT[1:], coarse)
        colours = measure(differences, coarse[:, :, 0].mean(axis=0) / _COARSE, _COLOUR)
    most = _MOST_COLOUR**2 * luminance[0].variance.mean()
    colours = [replace(c, variance=c.variance * min(1, most / max(c.variance.mean(), 1e-12))) for c in colours]
    return channels, luminance + colours, trust * _confidence(luminance[0])


def _confidence(spectrum: Spectrum) -> float:
    """How sure a measurement is: an eighth of flat blocks is plenty."""
    return float(min(spectrum.flat / 0.125, 1) * min(spectrum.steady / _STEADY, 1))


def _guess(plane: np.ndarray) -> Spectrum:
    """White noise by the median of second differences, for pictures that are too small or constant."""
    values = plane.astype(np.float64)
    differences = np.diff(np.diff(values, axis=0), axis=1)  # of four pixels: twice the noise
    sigma = float(np.median(np.abs(differences))) / 0.6745 / 2 if differences.size else 0.0
    return Spectrum(np.array([values.mean()]), np.array([sigma**2]), np.ones((1, 1)), 0.0, 0.0)


def coefficients(picture: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosine transforms of blocks all over a picture of shape (height, width, channels), and which of them are clipped.

    Returns shape (channels, blocks, size * size), and shape (blocks,). Blocks stand an odd number of pixels apart, so
    that they meet JPEG's grid in every position.
    """
    height, width, channels = picture.shape
    step = 5
    while ((height - size) // step + 1) * ((width - size) // step + 1) > _BLOCKS * _SIZE / size:
        step += 2
    if min(height, width) < size:
        return np.empty((channels, 0, size * size)), np.empty(0, bool)
    windows = np.lib.stride_tricks.sliding_window_view(picture, (size, size), axis=(0, 1))[::step, ::step]
    blocks = windows.reshape(-1, channels, size, size)
    spoilt = np.zeros(len(blocks))
    for channel in range(channels):
        for end in (picture[..., channel].min(), picture[..., channel].max()):
            if np.count_nonzero(picture[..., channel] == end) > max(8, 5e-4 * height * width):
                spoilt = np.maximum(spoilt, (blocks[:, channel] == end).mean(axis=(1, 2)))
    rows = np.arange(size)[:, None]
    basis = np.cos(np.pi * (np.arange(size) + 0.5) * rows / size) * np.sqrt(np.where(rows == 0, 1, 2) / size)
    found = np.einsum("ui,ncij,vj->cnuv", basis, blocks.astype(np.float64), basis, optimize=True)
    return found.reshape(channels, -1, size * size), spoilt > _CLIPPED


class _Way(NamedTuple):
    """How a kind of noise is measured."""

    low: float  # frequencies at which its level is measured, as shares of the highest one along an axis
    high: float
    average: Callable[..., np.ndarray]  # of the squares of coefficients
    share: float  # of the blocks that it is measured in; 0: of those that hold noise alone
    below: float  # share of what was measured that lies below the fitted curve; 0: twice the share of flat blocks
    tilts: np.ndarray  # of the curves that are tried
    texture: float  # how much stronger than at middle frequencies the noise may be at low ones


def _median_power(squares: np.ndarray, axis: tuple[int, ...]) -> np.ndarray:
    return np.median(squares, axis=axis) / _MEDIAN


# White noise: medians in the flattest few, at the highest frequencies; since texture can only add, the curve lies low
# in what was measured. Camera noise: JPEG leaves a few large coefficients among many zeros, so means, in blocks of
# noise. Colour differences: weak texture, coarse grain, and blocks that JPEG has emptied, so half of all blocks.
_TILTS = np.linspace(-0.9, 0.95, 38)
_WHITE = _Way(0.75, 2, _median_power, 0.04, 0.25, np.linspace(0, 1.15, 70), np.inf)
_CAMERA = _Way(0.3, 0.65, np.mean, 0, 0, _TILTS, 2.5)
_COLOUR = _Way(0, 0.4, np.mean, 0.5, 0.5, _TILTS, np.inf)


def measure(planes: np.ndarray, brightness: np.ndarray, way: _Way | None) -> list[Spectrum]:
    """The spectra of planes from the transforms of their blocks, shape (planes, blocks, size^2).

    brightness: of the blocks, 0-255 scale, shape (blocks,). way: of the noise; None to find out by the first plane.
    """
    power = planes**2
    side = round(planes.shape[2] ** 0.5)
    radius = np.hypot(*np.indices((side, side))).ravel() / side
    classes = _classes(brightness)
    counts = np.bincount(classes)
    middles = np.bincount(classes, brightness) / counts
    shape, level = np.ones((len(planes), side * side)), np.ones((len(planes), len(counts)))
    looking = way is None
    way = way or _WHITE
    for step in range(6):
        shape, measured, found = _improve(power, classes, shape, level, radius, way)
        below = way.below or float(np.clip(2 * found[0], 0.2, 0.5))
        fits = [_fit(middles, variance, counts, way.tilts, below) for variance in measured]
        level = np.stack([factor * _line(tilt, middles) for tilt, factor in fits])
        if looking and step < 3 and way is _WHITE:
            high, middling = radius > 0.85, (radius > 0.45) & (radius < 0.65)
            way = _WHITE if np.median(shape[0, high]) > _FLATNESS * np.median(shape[0, middling]) else _CAMERA
    nodes = _rising(np.quantile(brightness, np.linspace(0, 1, _NODES)))
    if way is _WHITE:
        return [Spectrum(nodes, factor * _line(tilt, nodes), np.ones((1, 1)), *found) for tilt, factor in fits]
    known = np.clip(nodes, middles[0], middles[-1])
    curves = [factor * _line(tilt, known) for tilt, factor in fits]
    return [
        _coloured(nodes, c, s.reshape(side, side), *found, way is _COLOUR) for c, s in zip(curves, shape, strict=True)
    ]


def _improve(
    power: np.ndarray, classes: np.ndarray, shape: np.ndarray, level: np.ndarray, radius: np.ndarray, way: _Way
) -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
    """Shape of the spectrum (planes, frequencies), level (planes, classes) and flat share, from what they seemed to be.

    The power of noise at a frequency is shape * level; the median of the shape is 1 where the level is measured.
    """
    side = round(shape.shape[1] ** 0.5)
    odd = np.indices((side, side)).sum(axis=0).ravel() % 2 == 1
    halves = np.flatnonzero(~odd)[1:], np.flatnonzero(odd)  # without the mean of a block
    band = (radius > way.low) & (radius < way.high)
    better, measured = shape.copy(), np.zeros_like(level)
    energies = [_energy(power[:, :, half], shape[:, half], level[:, classes]) for half in halves]
    share, steady = _flat_share(*energies)
    for here, energy in zip(halves, energies[::-1], strict=True):
        chosen = _flattest(energy, way.share or share)
        better[:, here] = way.average(power[:, chosen][:, :, here] / level[:, classes[chosen], None], axis=(1,))
        at = here[band[here]]
        for k in range(level.shape[1]):
            members = np.flatnonzero(classes == k)
            members = members[_flattest(energy[members], way.share or share)]
            measured[:, k] += way.average(power[:, members][:, :, at] / shape[:, None, at], axis=(1, 2)) / 2
    better = np.maximum(better, 1e-3 * better.max(axis=1, keepdims=True) + 1e-12)  # JPEG makes zeros
    middle = better[:, (radius > 0.29) & (radius < 0.43)].mean(axis=1, keepdims=True)
    better = np.where(radius < 0.43, np.minimum(better, way.texture * middle), better)
    return better / np.median(better[:, band], axis=1, keepdims=True), np.maximum(measured, 1e-12), (share, steady)


def _flat_share(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """The share of blocks that hold noise alone, and how steady their energy is: 1 for noise, less for texture.

    In blocks of noise alone, the energy of one half of the frequencies does not depend on that of the other half: the
    quieter half of a set of blocks, chosen by the one, is as loud as all of the set in the other.
    """
    share = 0.5
    while True:
        ratios = []
        for chosen_by, seen_in in ((one, other), (other, one)):
            order = np.argsort(chosen_by)
            many = max(int(share * len(order)), 2 * _FEWEST)
            ratios.append(seen_in[order[: many // 2]].mean() / max(seen_in[order[:many]].mean(), 1e-12))
        steady = float(np.mean(ratios))
        if steady > _STEADY or share * len(one) < 4 * _FEWEST:
            return share, steady
        share /= 2


def _rising(values: np.ndarray) -> np.ndarray:
    """Those of the values, which do not fall, that lie at least a tenth of a grey level above the one before."""
    kept = [values[0]]
    for value in values[1:]:
        if value - kept[-1] >= 0.1:
            kept.append(value)
    return np.array(kept)


def _coloured(
    brightness: np.ndarray, level: np.ndarray, shape: np.ndarray, flat: float, steady: float, coarse: bool
) -> Spectrum:
    """The spectrum of correlated noise: its power at every frequency, summed by the trapezoid rule."""
    side = len(shape)
    shape = shape.copy()
    shape[0, 0] = 1.1 * max(shape[0, 1], shape[1, 0])  # the mean of a block says nothing
    extended = np.pad(shape, ((0, 1), (0, 1)), mode="edge")
    weights = np.ones(side + 1)
    weights[[0, -1]] = 0.5
    waves = weights * np.cos(np.pi * np.arange(side + 1) * np.arange(_LAGS + 1)[:, None] / side)
    covariance = waves @ extended @ waves.T / side**2
    # texture that looks like noise is the worse error
    doubt = 1.0 if coarse else min(1, flat / _FLAT) ** 0.5 * min(1, steady / _STEADY) ** 2
    return Spectrum(
        brightness, doubt * _LOSS**2 * level * covariance[0, 0], covariance / covariance[0, 0], flat, steady
    )


def _energy(power: np.ndarray, shape: np.ndarray, level: np.ndarray) -> np.ndarray:
    """How much each block has of the given frequencies in all planes together; 1 is what noise has on average.

    Frequencies at which the noise is weak count less: JPEG leaves a few large ones among many zeros there.
    """
    weights = 1 / (shape + 0.2 * shape.max(axis=1, keepdims=True))
    return np.einsum("pnf,pf,pn->n", power, weights, 1 / level) / (weights * shape).sum()


def _flattest(energy: np.ndarray, share: float) -> np.ndarray:
    """Numbers of the share of blocks with the least energy."""
    return np.argsort(energy)[: max(int(share * len(energy)), _FEWEST)]


def _classes(brightness: np.ndarray) -> np.ndarray:
    """The class of brightness of each block: at most ten, of equal numbers of blocks, at least 4 grey levels wide."""
    most = int(np.clip(len(brightness) // 150, 1, 10))
    edges, last = [], brightness.min()
    for edge in np.quantile(brightness, np.linspace(0, 1, most + 1)[1:-1]):
        if edge - last >= 4 and brightness.max() - edge >= 4:
            edges.append(edge)
            last = edge
    return np.searchsorted(np.array(edges), brightness, side="right")


def _line(tilt: float, brightness: np.ndarray) -> np.ndarray:
    """A straight line over brightness, 0-255 scale: positive, 1 in the middle, rising or falling with the tilt.

    With tilt 1 it begins at 0 for black, as shot noise does; above 1 it begins later, where a sensor's black lies.
    """
    x = np.clip(brightness, 0, 255) / 255
    return np.maximum(1 - abs(tilt) + abs(tilt) * 2 * (x if tilt >= 0 else 1 - x), 4e-3)


def _fit(
    brightness: np.ndarray, variance: np.ndarray, counts: np.ndarray, tilts: np.ndarray, below: float
) -> tuple[float, float]:
    """(tilt, factor) of the curve factor * _line(tilt) for the variance that was measured in classes of brightness.

    Rising for shot noise, falling for tone curves; by quantile regression of the logarithm, so that the share `below`
    of what was measured lies below the curve.
    """
    best, found = np.inf, (0.0, 0.0)
    for tilt in tilts:
        ratio = np.log(variance / _line(tilt, brightness))
        order = np.argsort(ratio)
        share = np.cumsum(counts[order]) / counts.sum()
        scale = ratio[order][np.searchsorted(share, below)]
        error = ratio - scale
        loss = float((counts * np.where(error > 0, below * error, (below - 1) * error)).sum())
        if loss < best - 1e-9:
            best, found = loss, (float(tilt), float(np.exp(scale)))
    return found
