"""Random fields over the plane: what is drawn at a pixel depends on its place in the picture, not on the tile.

So neighbouring tiles, and a preview of a region, see the random numbers that a run on the whole picture sees there.
The plane is cut into blocks; a block's numbers come from a generator of its own, seeded with the draw and the block.
"""

from __future__ import annotations

import numpy as np

_BLOCK = 64  # pixels a side: a generator costs as much as a thousand numbers, and what overlaps the border is lost


def _fields(rng: np.random.Generator, kind: str, shape: tuple[int, ...], origin: tuple[int, int]) -> np.ndarray:
    draw = int(rng.integers(2**63))
    height, width = shape[-2:]
    out = np.empty((*shape[:-2], height, width), np.float32)
    for top in range(origin[0] // _BLOCK * _BLOCK, origin[0] + height, _BLOCK):
        for left in range(origin[1] // _BLOCK * _BLOCK, origin[1] + width, _BLOCK):
            generator = np.random.Generator(np.random.SFC64([draw, top, left]))
            block = getattr(generator, kind)((*shape[:-2], _BLOCK, _BLOCK), dtype=np.float32)
            y, x = top - origin[0], left - origin[1]
            part = block[..., max(-y, 0) : height - y, max(-x, 0) : width - x]
            out[..., max(y, 0) : y + _BLOCK, max(x, 0) : x + _BLOCK] = part
    return out


def normal_fields(rng: np.random.Generator, shape: tuple[int, ...], origin: tuple[int, int]) -> np.ndarray:
    """Standard normal float32 of a shape (..., height, width) that lies at `origin` = (row, column) of the plane.

    >>> whole = normal_fields(np.random.default_rng(0), (2, 100, 90), (0, 0))
    >>> part = normal_fields(np.random.default_rng(0), (2, 30, 70), (50, 20))
    >>> np.array_equal(part, whole[:, 50:80, 20:90])
    True
    """
    return _fields(rng, "standard_normal", shape, origin)


def uniform_fields(rng: np.random.Generator, shape: tuple[int, ...], origin: tuple[int, int]) -> np.ndarray:
    """Like `normal_fields`, uniform in [0, 1)."""
    return _fields(rng, "random", shape, origin)
