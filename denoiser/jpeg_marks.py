"""What a JPEG did to a picture, read off its pixels: cosine coefficients of 8x8 blocks are multiples of a step."""

from __future__ import annotations

import numpy as np

_SIDE = 8  # pixels of a JPEG's block
_FREQUENCIES = [(u, v) for u in range(_SIDE) for v in range(_SIDE) if 2 <= u + v <= 6]
_STEPS = np.arange(2, 41)  # grey levels, of orthonormal coefficients; finer ones drown in the rounding of pixels
_LUMA = np.array([0.299, 0.587, 0.114])
_BLOCKS = 2000  # as many are looked at
_SURE = 0.4  # mean cosine above which coefficients count as multiples; 0.2 is the most that chance makes
_FEWEST = 20  # coefficients without which nothing can be said


def _basis() -> np.ndarray:
    k = np.arange(_SIDE)
    rows = np.cos(np.pi * (2 * k + 1) * k[:, None] / (2 * _SIDE)) * np.sqrt(2 / _SIDE)
    rows[0] /= np.sqrt(2)
    return rows


def coefficients(parts: list[np.ndarray]) -> np.ndarray:
    """Cosine coefficients of the brightness of blocks, spread over parts (height, width, channels) of a picture.

    The parts begin at a multiple of 8 pixels. Shape (blocks, 8, 8), at most about `_BLOCKS`.
    """
    found = []
    for part in parts:
        height, width = (n // _SIDE * _SIDE for n in part.shape[:2])
        luma = part[:height, :width] @ (_LUMA if part.shape[2] == 3 else np.full(part.shape[2], 1 / part.shape[2]))
        blocks = luma.reshape(height // _SIDE, _SIDE, width // _SIDE, _SIDE).swapaxes(1, 2)
        found.append(blocks.reshape(-1, _SIDE, _SIDE))
    blocks = np.concatenate(found)
    basis = _basis()
    return basis @ blocks[:: max(len(blocks) // _BLOCKS, 1)] @ basis.T


def step(values: np.ndarray) -> float:
    """The step of which magnitudes of coefficients (n,) are multiples, in grey levels; 0 if there is none."""
    phases = np.cos(2 * np.pi * values / _STEPS[:, None])
    counted = values > 0.6 * _STEPS[:, None]
    count = counted.sum(axis=1)
    means = np.where(count > max(_FEWEST, 0.01 * len(values)), (phases * counted).sum(axis=1) / np.maximum(count, 1), 0)
    best = int(means.argmax())
    return float(_STEPS[best]) if means[best] > _SURE else 0.0


def damage(parts: list[np.ndarray]) -> float:
    """About the variance that rounding to a JPEG's steps adds where a picture has texture, in grey levels squared.

    Rounding is an error of step^2 / 12 where coefficients are large; where they are small it takes noise away. So the
    share of large coefficients counts, and 0 is said of a picture whose blocks do not begin at a multiple of 8.
    """
    found = np.abs(coefficients(parts))
    if len(found) < _FEWEST:
        return 0.0
    total = 0.0
    for u, v in _FREQUENCIES:
        width = step(found[:, u, v])
        total += float((found[:, u, v] > 1.5 * width).mean()) * width**2 / 12
    return total / len(_FREQUENCIES)
