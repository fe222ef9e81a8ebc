"""How values become brightness on the screen: black, white and gamma, and a guess that shows what there is. No Qt.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_TAIL = 0.1  # per cent of the pixels that Auto leaves black, and as many white
_DULL = 96.0  # grey levels; what takes up less of the range is stretched when it is opened


@dataclass(frozen=True)
class Tone:
    """Grey levels of the picture that are shown black and white, and the exponent between them."""

    black: float = 0.0
    white: float = 255.0
    gamma: float = 1.0

    def bytes(self, levels: np.ndarray) -> np.ndarray:
        """Grey levels, float32 and ours to change, as they are shown: uint8."""
        if (self.black, self.white) != (0.0, 255.0):
            levels -= np.float32(self.black)
            levels *= np.float32(255 / max(self.white - self.black, 1e-6))
        np.clip(levels, 0, 255, out=levels)
        if self.gamma != 1:
            levels *= np.float32(1 / 255)
            np.power(levels, np.float32(1 / self.gamma), out=levels)
            levels *= 255
        return np.rint(levels, out=levels).astype(np.uint8)


PLAIN = Tone()


def auto(levels: np.ndarray) -> Tone:
    """Black and white where nearly all grey levels lie between them."""
    some = levels.ravel()[:: max(levels.size // 500_000, 1)]
    black, white = (float(v) for v in np.percentile(some, (_TAIL, 100 - _TAIL)))
    middle = (black + white) / 2
    reach = max((white - black) / 2, 0.5)
    return Tone(middle - reach, middle + reach)


def few(values: np.ndarray, size: int | None = None) -> np.ndarray:
    """Every fourth row and column of a picture of many numbers; `size`: those of the picture it belongs to."""
    return values[::4, ::4] if (size or values.size) > 10**7 else values


def first(levels: np.ndarray) -> Tone:
    """What a fresh picture is shown with: as it is, unless hardly anything of it would be seen."""
    found = auto(levels)
    dull = found.white - found.black < _DULL and (found.white < 128 or found.black > 128)
    return found if dull else PLAIN
