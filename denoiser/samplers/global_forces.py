"""The forces of SVGD: one kernel on whole images (paper, Eq. 3)."""

from __future__ import annotations

import numpy as np

from denoiser.jit import kernel as compiled
from denoiser.threads import parallel

_STRIP = 2048  # pixels whose partial sums are one task


@compiled(fastmath=True)
def _squared_distances(x, out):  # type: ignore[no-untyped-def]
    """out[i, j] = |x_i - x_j|^2 over a strip of pixels."""
    for i in range(len(x)):
        for j in range(i):
            total = np.float32(0)
            for d in range(x.shape[1]):
                total += (x[i, d] - x[j, d]) ** 2
            out[i, j] = out[j, i] = total
        out[i, i] = 0


@compiled(fastmath=True)
def _combine(weights, values, out):  # type: ignore[no-untyped-def]
    """out = weights @ values for a strip of pixels, four rows of values at a time: fewer loads and stores."""
    out[:] = 0
    count = weights.shape[1]
    for i in range(len(weights)):
        line, weight = out[i], weights[i]
        for j in range(0, count - 3, 4):
            w0, w1, w2, w3 = weight[j], weight[j + 1], weight[j + 2], weight[j + 3]
            v0, v1, v2, v3 = values[j], values[j + 1], values[j + 2], values[j + 3]
            for d in range(len(line)):
                line[d] += w0 * v0[d] + w1 * v1[d] + w2 * v2[d] + w3 * v3[d]
        for j in range(count - count % 4, count):
            w0, v0 = weight[j], values[j]
            for d in range(len(line)):
                line[d] += w0 * v0[d]


def _strips(size: int) -> list[slice]:
    return [slice(begin, begin + _STRIP) for begin in range(0, size, _STRIP)]


def global_forces(
    x: np.ndarray, scores: np.ndarray, *, kernel: str = "rbf", bandwidth: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """(G, R) of SVGD with one kernel on whole images (Eq. 3), h = bandwidth * med^2; shapes (M, pixels)."""
    count = len(x)
    strips = _strips(x.shape[1])

    def distances(strip: slice) -> np.ndarray:
        out = np.empty((count, count))
        _squared_distances(x[:, strip], out)
        return out

    squares = np.sum(parallel(distances, strips), axis=0)
    h = bandwidth * max(_median(squares), 1e-12)
    if kernel == "imq":
        k = 1 / np.sqrt(1 + squares / (2 * h))
        slope = k**3 / (2 * h)
    else:
        k = np.exp(-squares / (2 * h))
        slope = k / h
    smooth = (k / count).astype(np.float32)
    # sum_j slope_ij (x_i - x_j) is a matrix product too: a Laplacian of the particles
    push = ((np.diag(slope.sum(axis=1)) - slope) / count).astype(np.float32)
    gradients, repulsions = np.empty_like(x), np.empty_like(x)

    def combine(strip: slice) -> None:
        _combine(smooth, scores[:, strip], gradients[:, strip])
        _combine(push, x[:, strip], repulsions[:, strip])

    parallel(combine, strips)
    return gradients, repulsions


def _median(squares: np.ndarray) -> float:
    """Squared median of the distances between different particles."""
    pairs = squares[np.triu_indices(len(squares), 1)]
    return float(np.median(pairs)) if len(pairs) else 1.0
