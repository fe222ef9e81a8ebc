"""Measuring noise in a single picture: its level at every brightness, and how it is correlated.

The noise meter (`noise_meter`) says of every block how strong the noise is and how sure that is; texture that looks
like noise makes it unsure. Here a smooth curve over brightness is laid through what it says, every block with the
weight that its sureness gives it. Blocks at black or white, and painted ones, are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from denoiser import jpeg_marks, noise_meter
from denoiser.noise_meter import BLOCK, LAGS, LEAST

_FEWEST = 4  # blocks without which nothing can be said
_NODES = 13  # of a curve over brightness: quantiles of the blocks, so that their mean is that over the picture
_SMOOTH, _LEVEL = 300.0, 10.0  # how many sure blocks a bend of the curve must convince, and a slope
_ABOVE, _BELOW = 0.7, 3.0  # doubts off the curve at which a block begins to count less: texture only adds
_SURE = 0.15  # doubt of a block that counts half as much as it could
_CLIPPED = 0.02  # share of black or white pixels that spoils a block
_WHITE = 0.12  # correlation of neighbours below which noise counts as white
_UNSHRUNK = 1.08  # least squares draws correlations to their mean: those of colour are measured so much too small
# Correlation of brightness, what is read -> what it is; how much a JPEG's damage weighs against the noise, and what it
# takes from the correlation. The meter can't see steps of 8x8 blocks. Fitted on BSDS300's training set (docs/noise.md).
_LEAST_GRAIN, _SLOPE, _RISE = 0.47, 0.40, 2.8
_DAMAGE, _LOST = 15.0, 0.36
_STRONGEST = 50.0  # grey levels: the meter has learned noise up to 70, and stronger noise is scaled down for it
_FLOOR = 0.02  # grey levels: no picture but a painted one has less


@dataclass(frozen=True)
class Spectrum:
    """What blocks say about one plane.

    brightness, variance: of the noise, at rising values of brightness, 0-255 scale; shape (nodes,).
    correlation: autocorrelation at (rows, columns) apart, shape (lags, lags); 1 x 1 for white noise.
    doubt: standard deviation of the logarithm of the level.
    """

    brightness: np.ndarray
    variance: np.ndarray
    correlation: np.ndarray
    doubt: float

    def as_tuples(self, white: float) -> tuple[tuple[float, ...], tuple[float, ...], tuple[tuple[float, ...], ...]]:
        """Brightness, standard deviation and correlation, in the units of a picture whose white is `white`."""
        unit = white / 255
        brightness, sigma = self.brightness * unit, np.sqrt(self.variance) * unit
        return tuple(brightness.tolist()), tuple(sigma.tolist()), tuple(map(tuple, self.correlation.tolist()))


def spectra(picture: np.ndarray, white: float) -> tuple[list[Spectrum], list[Spectrum], float]:
    """The noise of the channels of a picture (height, width, channels), of its opponent planes if it has three, and
    how sure it is, from 0 to 1. Brightness and variance on the 0-255 scale."""
    height, width, channels = picture.shape
    unit = 255 / white
    if min(height, width) < BLOCK:
        return [_guess(picture[..., c] * unit) for c in range(channels)], [], 0.0
    ends = _ends(picture)
    chosen = [picture[part] for part in noise_meter.squares(height, width)]
    states = np.concatenate([_state(part, ends) for part in chosen])
    usable = states == 0
    trust = 1.0 if usable.sum() >= 0.05 * (states < 2).sum() else 0.3
    usable = usable if usable.sum() >= _FEWEST else states < 2
    if usable.sum() < _FEWEST:
        return [_guess(picture[..., c] * unit) for c in range(channels)], [], 0.0
    readings = noise_meter.Readings(*(a[..., usable] for a in _readings(chosen, unit)))
    found = fit(readings, jpeg_marks.damage([part * unit for part in chosen]))
    own, opponent = (found[3:], found[:3]) if channels == 3 else (found, [])
    return own, opponent, trust * _confidence(found[0].doubt, int(usable.sum()))


def _readings(parts: list[np.ndarray], unit: float) -> noise_meter.Readings:
    """What the meter says of parts of a picture, of which `unit` makes grey levels."""
    found = noise_meter.read([(part * unit).astype(np.float32) for part in parts])
    typical = float(np.median(found.level))
    if typical < _STRONGEST:
        return found
    less = 0.2 * _STRONGEST / typical
    again = noise_meter.read([(128 + (part * unit - 128) * less).astype(np.float32) for part in parts])
    return again._replace(brightness=found.brightness, level=again.level / less)


def _confidence(doubt: float, blocks: int) -> float:
    """How sure a measurement is: 1 for a doubt of a tenth in every block, a half for one of four tenths."""
    return float(np.exp(-2.3 * max(doubt - 0.1, 0)) * min(blocks / 8, 1))


def fit(readings: noise_meter.Readings, damage: float = 0.0) -> list[Spectrum]:
    """A curve and a correlation of each plane that the meter speaks about, in its order; damage: `jpeg_marks`."""
    levels, doubts, told = readings.level, readings.doubt, readings.correlation
    brightness, colour = readings.brightness, len(levels) > len(readings.brightness)
    if colour:  # planes follow the mean of the channels
        brightness = np.concatenate([np.repeat(brightness.mean(axis=0, keepdims=True), 3, axis=0), brightness])
    curves = [_curve(*plane) for plane in zip(brightness, levels, doubts, strict=True)]
    tables = []
    for k, (correlation, level, doubt) in enumerate(zip(told, levels, doubts, strict=False)):
        variances = np.maximum(level**2 - LEAST**2, 1e-3)
        means = np.average(correlation, axis=1, weights=variances * _weights(doubt))
        if colour and k > 0:
            tables.append(_table(_UNSHRUNK * means))
            continue
        everywhere = np.average(correlation, axis=1, weights=variances)
        noise = float(curves[k][1].mean()) / (3 if colour else 1)  # the plane of brightness is sqrt(3) times as large
        tables.append(_table(_corrected(means, everywhere, _DAMAGE * damage / (_DAMAGE * damage + noise))))
    if colour:
        tables += [tables[0]] * 3  # a channel has the grain of brightness
    return [
        Spectrum(*curve, table, float(np.mean(doubt**-2.0) ** -0.5))
        for curve, table, doubt in zip(curves, tables, doubts, strict=True)
    ]


def _corrected(sure: np.ndarray, everywhere: np.ndarray, damaged: float) -> np.ndarray:
    """The correlations (6,) of brightness from those read in sure blocks and in all, and a JPEG's share of the noise.

    Where texture was rounded away, the error is strong and hardly correlated.
    """
    first, all_over = (float(means[0] + means[len(LAGS)]) / 2 for means in (sure, everywhere))
    own = min(_LEAST_GRAIN + _SLOPE * first, _RISE * first)
    right = max((1 - damaged) * own + damaged * (all_over - _LOST), 0.0)
    return sure * (right / max(first, 1e-3))


def _curve(brightness: np.ndarray, level: np.ndarray, doubt: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes, and the variance there: least squares of the logarithm of the level, robust, bends held back."""
    nodes = _rising(np.quantile(brightness, np.linspace(0, 1, _NODES)))
    weights = _weights(doubt)
    logarithm = np.log(level)
    if len(nodes) < 3:
        values = np.full(len(nodes), np.average(logarithm, weights=weights))
        return nodes, _variance(values)
    place = np.interp(brightness, nodes, np.arange(len(nodes)))
    first = np.minimum(place.astype(int), len(nodes) - 2)
    share = place - first
    hats = np.zeros((len(brightness), len(nodes)))
    hats[np.arange(len(place)), first] = 1 - share
    hats[np.arange(len(place)), first + 1] = share
    # in which the curve of photons is nearly straight; a straight line below black
    scale = np.sqrt(np.maximum(nodes, 0) + 20) + np.minimum(nodes, 0) / (2 * np.sqrt(20))
    steps = np.diff(scale)
    bends = np.zeros((len(nodes) - 2, len(nodes)))
    for i in range(len(bends)):
        bends[i, i : i + 3] = 1 / steps[i], -1 / steps[i] - 1 / steps[i + 1], 1 / steps[i + 1]
    slopes = np.diff(np.eye(len(nodes)), axis=0)
    penalty = _SMOOTH * steps.mean() ** 2 * bends.T @ bends + _LEVEL * slopes.T @ slopes
    robust = np.ones(len(brightness))
    for _ in range(5):
        normal = hats.T @ (hats * (weights * robust)[:, None]) + penalty
        values = np.linalg.solve(normal, hats.T @ (weights * robust * logarithm))
        error = (logarithm - hats @ values) / doubt
        robust = np.minimum(1, np.where(error > 0, _ABOVE, _BELOW) / np.maximum(np.abs(error), 1e-6)) ** 2
    return nodes, _variance(values)


def _weights(doubt: np.ndarray) -> np.ndarray:
    """Of blocks, at most 1: those that are sure decide."""
    return (_SURE**2 / (doubt**2 + _SURE**2)) ** 2


def _variance(logarithm: np.ndarray) -> np.ndarray:
    return np.maximum(np.exp(2 * logarithm) - LEAST**2, _FLOOR**2)


def _table(means: np.ndarray) -> np.ndarray:
    """The autocorrelation, lags x lags, from that along rows and columns (6,): their product."""
    rows, columns = means[: len(LAGS)], means[len(LAGS) :]
    if max(rows[0], columns[0]) < _WHITE:
        return np.ones((1, 1))
    return np.outer(_decay(columns), _decay(rows))


def _decay(told: np.ndarray) -> np.ndarray:
    """The correlation at 0 to 5 pixels."""
    one, two, four = np.clip(told, 0, 0.99)
    two, four = min(two, one), min(four, two)
    return np.array([1, one, two, np.sqrt(two * four), four, four * np.sqrt(four / max(two, 1e-6))])


def _ends(picture: np.ndarray) -> list[list[float]]:
    """The values of each channel at which its pixels pile up: black and white of clipped pictures."""
    few = max(8, 5e-4 * picture.shape[0] * picture.shape[1])
    return [
        [end for end in (plane.min(), plane.max()) if np.count_nonzero(plane == end) > few]
        for plane in np.moveaxis(picture, -1, 0)
    ]


def _state(part: np.ndarray, ends: list[list[float]]) -> np.ndarray:
    """Of every block: 0 for one that can be used, 1 for a clipped one, 2 for one that is painted; shape (blocks,)."""
    height, width = (n // BLOCK for n in part.shape[:2])
    blocks = part[: height * BLOCK, : width * BLOCK].reshape(height, BLOCK, width, BLOCK, -1)
    painted = (blocks == blocks[:, :1, :, :1]).all(axis=(1, 3, 4))
    clipped = np.zeros((height, width), bool)
    for channel, values in enumerate(ends):
        for end in values:
            clipped |= (blocks[..., channel] == end).mean(axis=(1, 3)) > _CLIPPED
    return np.where(painted, 2, clipped).ravel()


def _rising(values: np.ndarray) -> np.ndarray:
    """Those of the values, which do not fall, that lie at least a grey level above the one before."""
    kept = [values[0]]
    for value in values[1:]:
        if value - kept[-1] >= 1:
            kept.append(value)
    return np.array(kept)


def _guess(plane: np.ndarray) -> Spectrum:
    """White noise by the median of second differences, for pictures that are too small or constant."""
    values = plane.astype(np.float64)
    differences = np.diff(np.diff(values, axis=0), axis=1)  # of four pixels: twice the noise
    sigma = float(np.median(np.abs(differences))) / 0.6745 / 2 if differences.size else 0.0
    return Spectrum(np.array([values.mean()]), np.array([sigma**2]), np.ones((1, 1)), 1.0)
