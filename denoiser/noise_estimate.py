"""Measuring noise in a single picture: its level at every brightness, and how it is correlated.

Small blocks are taken apart by the cosine transform. Noise has the same spectrum in every flat block; texture adds to
it. To measure one half of the frequencies, the flattest blocks are chosen by the other half (frequencies alternate like
the fields of a chess board): texture shows in both, while the noise of the two halves is independent, so that choosing
the quietest blocks does not make the noise look smaller than it is. White noise is known by its highest frequencies,
which texture reaches last, and measured there; camera noise, which demosaicing and JPEG have smoothed, at all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from denoiser.colour import OPPONENT

_SIZE = 8  # pixels a side of a block
_COARSE = 16  # of a block of colour differences, whose grain is larger
_BLOCKS = 12_000  # blocks that are looked at, at most
_FEWEST = 24  # blocks without which nothing can be said about brightness or correlation
_LAGS = 5  # pixels up to which the autocorrelation is told
_MEDIAN = 0.4549364231195724  # of the square of a standard normal variable
_WHITE = 0.45  # white: the highest frequencies have at least this share of the power of the middle ones
_FLATTEST = 0.1  # share of the blocks that white noise is measured in
_TEXTURE = 2.5  # camera noise is at most so much stronger at low frequencies than at middle ones; the rest is texture
_LOSS = (
    1.2  # camera noise is so much stronger in all of a picture than in its flat blocks, which JPEG makes smoother still
)
_COLOUR = 0.65  # camera noise is at most so strong in colour as in brightness (0.6 in Canon, Nikon and Sony JPEGs)
_CLIPPED = 0.02  # share of black or white pixels that spoils a block


@dataclass(frozen=True)
class Spectrum:
    """What blocks say about one plane.

    brightness, variance: of the noise, at the middle of each class of brightness; shape (classes,).
    correlation: autocorrelation at (rows, columns) apart, shape (lags, lags); 1 x 1 for white noise.
    flat: share of the blocks in which nothing but noise was found.
    """

    brightness: np.ndarray
    variance: np.ndarray
    correlation: np.ndarray
    flat: float

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
    channels = [measure(fine[c : c + 1], means[c], is_white)[0] for c in range(3)]
    if is_white:
        return channels, luminance + measure(opponent[1:], means.mean(axis=0), True), trust * _confidence(luminance[0])
    coarse, spoilt = coefficients(picture, _COARSE)
    coarse = coarse * unit
    usable = ((coarse[:, :, 1:] ** 2).sum(axis=(0, 2)) > 1e-9) & ~spoilt
    if usable.sum() < _FEWEST:
        colours = measure(opponent[1:], means.mean(axis=0), False, coarse=True)
    else:
        coarse = coarse[:, usable]
        differences = np.einsum("pc,cnf->pnf", OPPONENT[1:], coarse)
        colours = measure(differences, coarse[:, :, 0].mean(axis=0) / _COARSE, False, coarse=True)
    most = _COLOUR**2 * luminance[0].variance.mean()
    colours = [replace(c, variance=c.variance * min(1, most / c.variance.mean())) for c in colours]
    return channels, luminance + colours, trust * _confidence(luminance[0])


def _confidence(spectrum: Spectrum) -> float:
    """How sure a measurement is: a fifth of flat blocks is plenty."""
    return float(min(spectrum.flat / 0.2, 1))


def _guess(plane: np.ndarray) -> Spectrum:
    """White noise by the median of second differences, for pictures that are too small or constant."""
    values = plane.astype(np.float64)
    differences = (
        [values] if min(values.shape) < 2 else [values[1:, 1:] - values[1:, :-1] - values[:-1, 1:] + values[:-1, :-1]]
    )
    middle = float(np.median(np.abs(differences[0]))) if min(values.shape) > 1 else 0.0
    return Spectrum(np.array([values.mean()]), np.array([(middle / 0.6745 / 2) ** 2]), np.ones((1, 1)), 0.0)


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


def measure(planes: np.ndarray, brightness: np.ndarray, white: bool | None, coarse: bool = False) -> list[Spectrum]:
    """The spectra of planes from the transforms of their blocks, shape (planes, blocks, size^2).

    brightness: of the blocks, 0-255 scale, shape (blocks,). white: whether the noise is white; None to find out.
    coarse: these are colour differences: texture is weak in them, and grain may be of any size.
    """
    side = round(planes.shape[2] ** 0.5)
    radius = np.hypot(*np.indices((side, side))).ravel() / side
    halves = [np.flatnonzero(np.indices((side, side)).sum(axis=0).ravel() % 2 == parity) for parity in (0, 1)]
    halves[0] = halves[0][1:]  # not the mean
    power = planes**2
    classes = _classes(brightness)
    count = classes.max() + 1
    middles = np.array([brightness[classes == k].mean() for k in range(count)])
    shape, level = np.ones((len(planes), side * side)), np.ones((len(planes), count))
    known = white
    for rehearsal in (True, True, True, False, False, False):
        looks_white = known is not False
        band = (
            radius > 0.75
            if looks_white
            else (radius > 0) & (radius < 0.4)
            if coarse
            else (radius > 0.3) & (radius < 0.65)
        )
        centre = _median_power if looks_white else _mean_power
        fresh_shape, fresh_level = shape.copy(), np.zeros_like(level)
        flat = 0.0
        for here, there in (halves, halves[::-1]):
            energy, freedom = _energy(power[:, :, there], shape[:, there], level[:, classes])
            chosen = _flattest(energy, freedom, looks_white, coarse)
            flat += float(np.mean(energy <= 2 * _quietest(energy, freedom))) / 2
            fresh_shape[:, here] = centre(power[:, chosen][:, :, here] / level[:, classes[chosen]][:, :, None], (1,))
            measured = here[band[here]]
            for k in range(count):
                members = np.flatnonzero(classes == k)
                members = members[_flattest(energy[members], freedom, looks_white, coarse)]
                scaled = power[:, members][:, :, measured] / shape[:, None, measured]
                fresh_level[:, k] += centre(scaled, (1, 2)) / 2
        shape = np.maximum(fresh_shape, 1e-3 * fresh_shape.max(axis=1, keepdims=True) + 1e-12)  # JPEG makes zeros
        if known is False and not coarse:
            middle = shape[:, (radius > 0.29) & (radius < 0.43)].mean(axis=1, keepdims=True)
            shape = np.where(radius < 0.43, np.minimum(shape, _TEXTURE * middle), shape)
        shape /= np.median(shape[:, band], axis=1, keepdims=True)
        level = np.stack(
            [_curve(middles, v, np.bincount(classes), looks_white) for v in np.maximum(fresh_level, 1e-12)]
        )
        if known is None and rehearsal:
            high, middling = radius > 0.85, (radius > 0.45) & (radius < 0.65)
            is_white = bool(np.median(shape[0, high]) > _WHITE * np.median(shape[0, middling]))
            known = None if is_white else False
    if looks_white:
        return [Spectrum(middles, v, np.ones((1, 1)), flat) for v in level]
    return [_coloured(middles, v, s.reshape(side, side), flat) for v, s in zip(level, shape, strict=True)]


def _coloured(middles: np.ndarray, level: np.ndarray, shape: np.ndarray, flat: float) -> Spectrum:
    """The spectrum of correlated noise: its power at every frequency, summed by the trapezoid rule."""
    side = len(shape)
    shape = shape.copy()
    shape[0, 0] = 1.1 * max(shape[0, 1], shape[1, 0])  # the mean of a block says nothing
    extended = np.pad(shape, ((0, 1), (0, 1)), mode="edge")
    weights = np.ones(side + 1)
    weights[[0, -1]] = 0.5
    waves = weights * np.cos(np.pi * np.arange(side + 1) * np.arange(_LAGS + 1)[:, None] / side)
    covariance = waves @ extended @ waves.T / side**2
    return Spectrum(middles, _LOSS**2 * level * covariance[0, 0], covariance / covariance[0, 0], flat)


def _energy(power: np.ndarray, shape: np.ndarray, level: np.ndarray) -> tuple[np.ndarray, float]:
    """How much each block has of the given frequencies in all planes together, and its degrees of freedom.

    Frequencies at which the noise is weak count less: JPEG leaves a few large ones among many zeros there.
    """
    weights = 1 / (shape + 0.2 * shape.max(axis=1, keepdims=True))
    shares = weights * shape
    energy = np.einsum("pnf,pf,pn->n", power, weights, 1 / level) / shares.sum()
    return energy, float(shares.sum() ** 2 / (shares**2).sum())


def _quietest(energy: np.ndarray, freedom: float) -> float:
    """The mean energy of noise alone, if the tenth of the blocks with the least energy has nothing else."""
    spread = 2 / (9 * freedom)
    return float(np.quantile(energy, 0.1) / (1 - spread - 1.2816 * np.sqrt(spread)) ** 3)  # Wilson and Hilferty 1931


def _flattest(energy: np.ndarray, freedom: float, white: bool, coarse: bool) -> np.ndarray:
    """Numbers of the blocks to measure in."""
    limit = np.quantile(energy, _FLATTEST) if white else 2 * _quietest(energy, freedom)
    if coarse and not white:
        limit = np.median(energy)
    fewest = np.partition(energy, min(_FEWEST, len(energy)) - 1)[min(_FEWEST, len(energy)) - 1]
    return np.flatnonzero(energy <= max(limit, fewest))


def _median_power(squares: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return np.median(squares, axis=axes) / _MEDIAN


def _mean_power(squares: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return squares.mean(axis=axes)


def _classes(brightness: np.ndarray) -> np.ndarray:
    """The class of brightness of each block: at most ten, of equal numbers of blocks, at least 4 grey levels wide."""
    most = int(np.clip(len(brightness) // 150, 1, 10))
    edges, last = [], brightness.min()
    for edge in np.quantile(brightness, np.linspace(0, 1, most + 1)[1:-1]):
        if edge - last >= 4 and brightness.max() - edge >= 4:
            edges.append(edge)
            last = edge
    return np.searchsorted(np.array(edges), brightness, side="right")


def _curve(brightness: np.ndarray, variance: np.ndarray, counts: np.ndarray, white: bool) -> np.ndarray:
    """The variance as a straight line that lies low in what was measured, since texture only adds to it.

    Lines a + b * brightness through positive values, rising for shot noise, falling for tone curves; the one with the
    least sum of errors counts, where an error below the line weighs three times one above it.
    """
    best: tuple[float, np.ndarray] = (np.inf, variance)
    below = 0.25 if white else 0.5
    for tilt in np.linspace(0, 1, 21) if white else np.linspace(-0.9, 0.95, 38):
        x = np.clip(brightness, 0, 255) / 255
        line = 1 - abs(tilt) + abs(tilt) * 2 * (x if tilt >= 0 else 1 - x) + 1e-3
        ratio = np.log(variance / line)
        order = np.argsort(ratio)
        share = np.cumsum(counts[order]) / counts.sum()
        scale = ratio[order][np.searchsorted(share, below)]
        error = ratio - scale
        loss = float((counts * np.where(error > 0, below * error, (below - 1) * error)).sum())
        if loss < best[0] - 1e-9:
            best = loss, line * np.exp(scale)
    return best[1]
