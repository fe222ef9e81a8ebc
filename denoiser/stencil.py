"""A filter bank on an image of a given shape: responses, their adjoint, and the linear systems they make.

Given one precision lambda_c a clique, the posterior is Gaussian with precision matrix
Q = W diag(lambda) W^T + diag(c), where W^T x are the filter responses. Q is kept as a stencil: one coefficient
a pixel for each offset at which two pixels share a clique. Images are flat here: pixel (r, c) is r * width + c,
and a clique is named by the pixel under its filter's top left corner.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from denoiser.conjugate_gradients import checkerboard_workspace, solve_checkerboard, solve_stencil
from denoiser.jit import inlined, kernel
from denoiser.priors import FilterBank

_MOST = 20 * 1000  # iterations of a solver: it ends long before that, or never


@inlined(fastmath=True)
def filter_responses(x, width, starts, offsets, taps, extents, out):  # type: ignore[no-untyped-def]
    """out[f, clique] = J_f . x_clique; 0 where the window does not fit into the image."""
    out[:] = 0
    for f in range(len(extents)):
        for row in range(extents[f, 0]):
            line = out[f, row * width : row * width + extents[f, 1]]
            for t in range(starts[f], starts[f + 1]):
                source = x[row * width + offsets[t] : row * width + offsets[t] + extents[f, 1]]
                tap = taps[t]
                for i in range(len(line)):
                    line[i] += tap * source[i]


@inlined(fastmath=True)
def filter_adjoint(values, width, starts, offsets, taps, extents, out):  # type: ignore[no-untyped-def]
    """out[pixel] += sum over the cliques with that pixel of tap * values[f, clique]."""
    for f in range(len(extents)):
        for row in range(extents[f, 0]):
            line = values[f, row * width : row * width + extents[f, 1]]
            for t in range(starts[f], starts[f + 1]):
                target = out[row * width + offsets[t] : row * width + offsets[t] + extents[f, 1]]
                tap = taps[t]
                for i in range(len(line)):
                    target[i] += tap * line[i]


@kernel(fastmath=True)
def _assemble(precisions, width, extents, pairs, products, diagonal, coefficients):  # type: ignore[no-untyped-def]
    """Add W diag(precisions) W^T to the diagonal and to the coefficients of the other offsets.

    pairs[q] = (filter, offset of the first tap, index of the stencil offset or -1 for the diagonal).
    """
    coefficients[:] = 0
    for q in range(len(pairs)):
        f, first, k = pairs[q]
        product = products[q]
        for row in range(extents[f, 0]):
            line = precisions[f, row * width : row * width + extents[f, 1]]
            if k < 0:
                target = diagonal[row * width + first : row * width + first + extents[f, 1]]
            else:
                target = coefficients[k, row * width + first : row * width + first + extents[f, 1]]
            for i in range(len(line)):
                target[i] += product * line[i]


class Stencil:
    """The filter bank of `prior` on images of `shape`, computed in `dtype`; `bank` is what the kernels know of it.

    scale: what each clique's response is multiplied by, shape `cliques`; None for 1. It makes W into W diag(scale).
    """

    def __init__(
        self, prior: FilterBank, shape: tuple[int, int], dtype: type = np.float32, scale: np.ndarray | None = None
    ) -> None:
        height, width = shape
        self._scale: np.ndarray | None = None if scale is None else np.asarray(scale, dtype)
        self.prior, self.shape, self.size, self.dtype = prior, shape, height * width, dtype
        starts, offsets, taps = [0], [], []
        pairs, products, steps, couplings = [], [], [], set()
        for f, (values, support) in enumerate(zip(prior.filters, prior.supports, strict=True)):
            for r, c in support:
                offsets.append(r * width + c)
                taps.append(values[r, c])
            starts.append(len(taps))
            if values.shape[0] > height or values.shape[1] > width:
                continue  # not one clique fits
            for r, c in support:
                for r2, c2 in support:
                    step = (r2 - r) * width + c2 - c
                    if (r2, c2) == (r, c):
                        index = -1
                    elif (r2, c2) > (r, c):
                        couplings.add((r2 - r, c2 - c))
                        if step not in steps:
                            steps.append(step)
                        index = steps.index(step)
                    else:
                        continue
                    pairs.append((f, r * width + c, index))
                    products.append(values[r, c] * values[r2, c2])
        extents = [(max(height - f.shape[0] + 1, 0), max(width - f.shape[1] + 1, 0)) for f in prior.filters]
        self.extents = np.array(extents)
        self.extents[(self.extents == 0).any(axis=1)] = 0
        self.bank: tuple[Any, ...] = (width, np.array(starts), np.array(offsets), np.array(taps, dtype), self.extents)
        self._pairs = np.array(pairs, dtype=np.int64).reshape(-1, 3)
        self._products: np.ndarray = np.array(products, dtype)
        self._steps = np.array(steps, dtype=np.int64)
        #: Which coefficients couple a pixel to that on its right and to that below, where there are no others.
        self._neighbours = (steps.index(1), steps.index(width)) if couplings == {(0, 1), (1, 0)} else None
        self.cliques = len(prior.filters), self.size

    def responses(self, x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Filter responses of the flat image x, shape `cliques`."""
        out = np.empty(self.cliques, self.dtype) if out is None else out
        filter_responses(x, *self.bank, out)
        if self._scale is not None:
            out *= self._scale
        return out

    def adjoint(self, values: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Add the transpose of `responses`, applied to one value a clique, to the flat image `out`."""
        filter_adjoint(values if self._scale is None else values * self._scale, *self.bank, out)
        return out

    def workspace(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scratch arrays for `solve`; one a thread."""
        n, k, dtype = self.size, len(self._steps), self.dtype
        work = checkerboard_workspace(self.shape, dtype) if self._neighbours else np.empty((4, n), dtype)
        return np.empty(n, dtype), np.empty((k, n), dtype), work

    def solve(
        self,
        precisions: np.ndarray,
        constant: float | np.ndarray,
        b: np.ndarray,
        x: np.ndarray,
        tolerance: float,
        workspace: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
    ) -> int:
        """Solve (W diag(precisions) W^T + diag(constant)) x = b in place of x; returns iterations, -1 if that failed.

        constant: one number, or one a pixel (flat).
        """
        diagonal, coefficients, work = workspace or self.workspace()
        diagonal[:] = constant
        if self._scale is not None:
            precisions = precisions * self._scale**2
        width, extents = self.shape[1], self.extents
        _assemble(precisions, width, extents, self._pairs, self._products, diagonal, coefficients)
        if self._neighbours:
            across, down = coefficients[self._neighbours[0]], coefficients[self._neighbours[1]]
            return int(solve_checkerboard(diagonal, across, down, width, b, x, tolerance, _MOST, work))
        return int(solve_stencil(diagonal, coefficients, self._steps, b, x, tolerance, _MOST, work))
