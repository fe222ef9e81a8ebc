"""A picture's own units: which of its values are black and white, so that models made for grey levels 0 to 255 fit.

What a model needs is contrast: it was learned on photographs that fill 0 to 255, and a picture whose scale is wrong by
a factor of 2 loses half a decibel, by 16 five (`python benchmarks/units.py`). So 8-bit pictures are what they are;
deeper ones have the range that the caller or the file names, or the range of the depth that the pixels evidently use,
and otherwise a range measured so that the contents fill nineteen twentieths of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

FAR = 64.0  # ranges beyond black or white up to which the experts' tables hold (docs/reliability.md)
REAL = "real"  # kind of numbers
OPTIONS = "--white and --black, or data_range="  # what decides where we cannot
_DEPTHS = tuple(2.0**bits - 1 for bits in (8, 10, 12, 14, 16, 24, 32))
_BLOCK = 3  # pixels a side: the median of a block ignores up to four hot or dead pixels in it
_BLOCKS = 1 << 18  # as many are looked at, spread over the picture
_TAIL = 0.1  # per cent of the blocks that may be darker or brighter than the contents
_FILLED = 0.95  # of the range, by the contents of a picture whose range is measured
_BLOCK_NOISE = 0.41  # standard deviation of the median of nine normal numbers of standard deviation 1
_QUARTILE = 0.6745  # half of a standard normal variable's values are closer to 0
_LOUDEST = 50.0  # grey levels of noise, beyond which there is no more picture to see by stretching


@dataclass(frozen=True)
class Units:
    """Values of black (grey level 0) and white (255) in the picture's own numbers, and who says so, in words."""

    black: float
    white: float
    how: str

    @property
    def grey(self) -> float:
        """One grey level in the picture's own numbers."""
        return (self.white - self.black) / 255

    def to_grey(self, values: np.ndarray) -> np.ndarray:
        """The picture's own numbers -> grey levels, float64."""
        return (np.asarray(values, np.float64) - self.black) / self.grey

    def from_grey(self, levels: np.ndarray) -> np.ndarray:
        """The inverse of `to_grey`, exact but for the last bit of a float64."""
        return np.asarray(levels, np.float64) * self.grey + self.black

    def __str__(self) -> str:
        return f"black {self.black:.6g}, white {self.white:.6g} ({self.how})"


@dataclass(frozen=True)
class _Contents:
    """Where nearly all of a picture lies: low, high, and the noise of single pixels, in the picture's own numbers."""

    low: float
    high: float
    noise: float

    def fill(self, black: float, white: float) -> float:
        """Which part of a range they take up, 0 to 1; 0 if they do not lie in it."""
        slack = min(0.05 * (white - black) + 3 * _BLOCK_NOISE * self.noise, 0.25 * (white - black))
        inside = black - slack <= self.low and self.high <= white + slack
        return (self.high - self.low) / (white - black) if inside else 0.0


def units(
    pixels: np.ndarray | list[np.ndarray],
    *,
    white: float | None = None,
    black: float | None = None,
    claim: Units | None = None,
) -> Units:
    """Black and white of a picture, or of the pages of a stack that shall be denoised in one scale.

    pixels: (height, width) or (height, width, channels), whole or real numbers; or a list of such arrays of one type.
    white, black: what the user says; it goes before everything else. White alone means a black of 0.
    claim: what the file says, by a tag, a header, or a depth in bits. It is not believed where the contents leave the
        range or take up less than a quarter.

    Raises a ValueError of one line for values that are not finite, for a range that is none, and for pixels so far
    from the range that models would spoil them.

    >>> print(units(np.arange(4096, dtype=np.uint16).reshape(64, 64)))
    black 0, white 4095 (12 bits, seen in the pixels)
    >>> print(units(np.zeros((9, 9)), white=2.5))
    black 0, white 2.5 (given)
    """
    pages = [_checked(page) for page in (pixels if isinstance(pixels, list) else [pixels])]
    for name, value in (("white", white), ("black", black)):
        if value is not None and not np.isfinite(value):
            raise ValueError(f"{name} must be a finite number, got {value}")
    lowest, highest = min(float(page.min()) for page in pages), max(float(page.max()) for page in pages)
    if not np.isfinite(lowest) or not np.isfinite(highest):
        raise ValueError("some of its pixels are not numbers (NaN or infinite); replace them first")
    if white is not None:
        found = Units(0.0 if black is None else float(black), float(white), "given")
    else:
        found = _decided(pages, (lowest, highest), claim)
        if black is not None:
            found = Units(float(black), found.white, f"black given, white: {found.how}")
    span, most = found.white - found.black, max(abs(found.white), abs(found.black))
    if not span > 1e-30 * most:
        raise ValueError(f"white must be more than black, got black {found.black:.6g} and white {found.white:.6g}")
    if not 1e-100 < span < 1e100 or most > 1e12 * span:
        raise ValueError(
            f"{found}: a range beyond what numbers can tell; subtract an offset, or divide, first, "
            f"or set the range by {OPTIONS}"
        )
    reach = FAR * span
    for value in (lowest, highest):
        if not found.black - reach <= value <= found.white + reach:
            raise ValueError(
                f"a pixel of {value:.6g} lies too far from {found}; replace it, or set the range by {OPTIONS}"
            )
    return found


def kind_of_numbers(pixels: np.ndarray) -> str:
    """The kind of numbers that pixels are: reals of any width are one, since they are read and written in several."""
    return REAL if pixels.dtype.kind == "f" else pixels.dtype.name


def _checked(page: np.ndarray) -> np.ndarray:
    """(height, width, channels), if that is what it is."""
    if np.ma.is_masked(page):
        raise ValueError("a masked array with masked pixels; fill them with values first")
    page = np.asarray(page)
    if page.dtype.kind not in "uif":
        raise ValueError(f"pixels must be whole or real numbers, got {page.dtype}")
    if page.ndim not in (2, 3):
        raise ValueError(f"pixels must have 2 or 3 axes, got the shape {page.shape}")
    if not page.size:
        raise ValueError(f"pixels must not be empty, got the shape {page.shape}")
    return page.reshape(*page.shape[:2], -1)


def _decided(pages: list[np.ndarray], ends: tuple[float, float], claim: Units | None) -> Units:
    """The range of a picture that nobody has given one; `ends` are its smallest and largest value."""
    dtype = pages[0].dtype
    if dtype == np.uint8:  # too coarse to be stretched
        return claim or Units(0.0, 255.0, "8 bits")
    contents = _contents(pages)
    if claim is not None and contents.fill(claim.black, claim.white) >= 0.25:
        return claim
    for most in _customary(dtype):
        if contents.high > most / 2 and contents.fill(0.0, most) >= 0.25:
            return Units(0.0, most, _words(most, dtype))
    for most in _DEPTHS:  # only if nearly filled: 100 to 700 are not ten bits, but a range of their own
        if contents.fill(0.0, most) >= 0.75:
            return Units(0.0, most, f"{round(np.log2(most + 1))} bits, seen in the pixels")
    return _measured(dtype, contents, ends, claim)


def _measured(dtype: np.dtype, contents: _Contents, ends: tuple[float, float], claim: Units | None) -> Units:
    """A range that the contents fill well, however noisy they are; for a flat picture one that they lie in."""
    low, high = contents.low, contents.high
    if not high > low:
        if claim is not None and claim.black <= low <= claim.white:
            return claim
        top = max(map(abs, ends))
        most = next((m for m in (*_customary(dtype), *_DEPTHS) if top <= m), top)
        return Units(0.0, most, f"a flat picture, {_words(most, dtype)}")
    span = max((high - low) / _FILLED, contents.noise * 255 / _LOUDEST)
    middle = (low + high) / 2
    words = f"measured: {100 - 2 * _TAIL:g} % of the picture lie between {low:.5g} and {high:.5g}"
    if claim is not None:
        words += f", little of the {claim.white:.6g} that it says ({claim.how})"
    return Units(middle - span / 2, middle + span / 2, words)


def _customary(dtype: np.dtype) -> tuple[float, ...]:
    """Whites that are believed even if the contents fill only a part: what the type holds, and what everybody uses."""
    if dtype.kind == "f":
        return (1.0, 255.0)
    most = float(np.iinfo(dtype).max)
    return (most,) if dtype.itemsize <= 2 and dtype.kind == "u" else (255.0, most)


def _words(most: float, dtype: np.dtype) -> str:
    if dtype.kind == "f":
        return f"real numbers from 0 to {most:g}"
    return f"{round(np.log2(most + 1))} bits"


def _contents(pages: list[np.ndarray]) -> _Contents:
    """Low and high of the medians of 3x3 blocks but for a tenth of a per cent, so that no hot pixel decides."""
    medians, diagonals = [], []
    for page in pages:
        height, width, channels = page.shape
        side_y, side_x = min(_BLOCK, height), min(_BLOCK, width)
        rows, columns = height // side_y, width // side_x
        step = max(1, math.ceil(math.sqrt(rows * columns * len(pages) / _BLOCKS)))
        ys = (np.arange(0, rows, step) * side_y)[:, None] + np.arange(side_y)
        xs = (np.arange(0, columns, step) * side_x)[:, None] + np.arange(side_x)
        # axes: blocks down, 3, blocks across, 3, channels
        blocks = page[ys.ravel()[:, None], xs.ravel()].astype(np.float64)
        blocks = blocks.reshape(len(ys), side_y, len(xs), side_x, channels)
        medians.append(np.median(blocks, axis=(1, 3)).ravel())
        if side_y > 1 and side_x > 1:
            across = blocks[:, :, :, 0] - blocks[:, :, :, 1]
            diagonals.append(np.abs(across[:, 0] - across[:, 1]).ravel())
    low, high = (float(value) for value in np.percentile(np.concatenate(medians), [_TAIL, 100 - _TAIL]))
    noise = float(np.median(np.concatenate(diagonals))) / 2 / _QUARTILE if diagonals else 0.0
    return _Contents(low, high, noise)
