"""Conjugate gradients for the precision matrices of filters on an image: symmetric stencils, scaled to a unit diagonal.

If b holds a draw from N(., Q), the scaled residual of a wild guess is about 1 a pixel: `tolerance` is relative to that.
Both solvers take x as start and solution, overwrite what they get but b, and return the iterations used, or -1 when
`most` did not do or numbers overflowed.
"""

from __future__ import annotations

import numpy as np

from denoiser.jit import inlined, kernel

_BLOCK = 1024  # pixels that are worked on together: their rows of all arrays stay in the L1 cache
_FINITE = {"reassoc", "contract", "arcp", "nsz"}  # fastmath, but not "nnan": what is not finite must end the loop


@inlined(fastmath=True)
def _advance(coefficients, steps, alpha, beta, r, x, p, q):  # type: ignore[no-untyped-def]
    """x += alpha p, then p = r + beta p, then q = A p for the unit-diagonal stencil A; returns p . q.

    In one pass: p is renewed just ahead of the block whose product is computed, so that it comes from the cache.
    Offsets are taken two at a time, which halves the traffic of q; next to the ends of the image, one at a time.
    """
    n, far = len(p), steps.max() if len(steps) else 0
    total, renewed = 0.0, 0
    for begin in range(0, n, _BLOCK):
        end = min(begin + _BLOCK, n)
        until = min(end + far, n)
        p_next, r_next, x_next = p[renewed:until], r[renewed:until], x[renewed:until]
        for i in range(len(p_next)):
            x_next[i] += alpha * p_next[i]
            p_next[i] = r_next[i] + beta * p_next[i]
        renewed = until
        here, mine = q[begin:end], p[begin:end]
        for i in range(len(here)):
            here[i] = mine[i]
        twos = len(steps) // 2 if begin >= far and end + far <= n else 0
        for k in range(0, 2 * twos, 2):
            one, two = steps[k], steps[k + 1]
            a, a_right, b, b_left = coefficients[k], p[one:], coefficients[k, begin - one :], p[begin - one :]
            c, c_right, d, d_left = coefficients[k + 1], p[two:], coefficients[k + 1, begin - two :], p[begin - two :]
            a, a_right, c, c_right = a[begin:end], a_right[begin:end], c[begin:end], c_right[begin:end]
            for i in range(len(here)):
                here[i] += a[i] * a_right[i] + b[i] * b_left[i] + c[i] * c_right[i] + d[i] * d_left[i]
        for k in range(2 * twos, len(steps)):
            step = steps[k]
            last = min(end, n - step)
            if last > begin:
                right, a = p[begin + step : last + step], coefficients[k, begin:last]
                for i in range(len(right)):
                    here[i] += a[i] * right[i]
            first = max(begin, step)
            if first < end:
                left, b = p[first - step : end - step], coefficients[k, first - step : end - step]
                mine_too = q[first:end]
                for i in range(len(left)):
                    mine_too[i] += b[i] * left[i]
        part = p.dtype.type(0)
        for i in range(len(here)):
            part += here[i] * mine[i]
        total += part
    return total


@kernel(fastmath=_FINITE)
def solve_stencil(diagonal, coefficients, steps, b, x, tolerance, most, work):  # type: ignore[no-untyped-def]
    """Any stencil: coefficients[k, i] couples the pixels i and i + steps[k] of the flat image."""
    n = len(b)
    scale, r, p, q = work[0], work[1], work[2], work[3]
    zero, one = b.dtype.type(0), b.dtype.type(1)
    for i in range(n):
        scale[i] = one / np.sqrt(diagonal[i])
        r[i] = x[i] / scale[i]  # where the first step leads, from 0
        x[i] = p[i] = zero
    for k in range(len(steps)):
        here, there, a = scale[: n - steps[k]], scale[steps[k] :], coefficients[k]
        for i in range(len(there)):
            a[i] *= here[i] * there[i]
    squared, alpha, beta = 0.0, zero, zero
    iterations = -1  # the step to the start is not one of them
    while iterations < 0 or (squared > tolerance * tolerance * n and iterations < most):
        curvature = _advance(coefficients, steps, alpha, beta, r, x, p, q)
        if iterations < 0:
            alpha = one
            for i in range(n):
                r[i] = b[i] * scale[i]
        elif curvature > 0:
            alpha = b.dtype.type(squared / curvature)
        else:  # NaN too
            return -1
        fresh = 0.0
        for begin in range(0, n, _BLOCK):
            part, left, moved = zero, r[begin : begin + _BLOCK], q[begin : begin + _BLOCK]
            for i in range(len(left)):
                left[i] -= alpha * moved[i]
                part += left[i] * left[i]
            fresh += part
        beta = b.dtype.type(fresh / squared) if iterations >= 0 else zero
        squared = fresh
        iterations += 1
    for i in range(n):
        x[i] = (x[i] + alpha * p[i]) * scale[i]
    return iterations if squared <= tolerance * tolerance * n else -1


def checkerboard_workspace(shape: tuple[int, int], dtype: type) -> np.ndarray:
    """Scratch for `solve_checkerboard`, (9, height + 2, half + 2): half rows of one colour, with a rim of zeros."""
    return np.zeros((9, shape[0] + 2, (shape[1] + 1) // 2 + 2), dtype)


@kernel(fastmath=_FINITE)
def solve_checkerboard(diagonal, across, down, width, b, x, tolerance, most, work):  # type: ignore[no-untyped-def]
    """Couplings of direct neighbours only: `across` of the pixels i and i + 1, `down` of i and i + width.

    Neighbours have different colours, so that scaled to a unit diagonal A = [[1, B], [B^T, 1]]: the red half of the
    solution follows from the black one, x_r = b_r - B x_b, and what is left is (1 - B^T B) x_b = b_b - B^T b_r. That
    takes half the iterations, each on half the numbers (Reid 1972).
    Colours are stored apart: pixel (r, c), red where r + c is even, is at [r + 1, c // 2 + 1]. Its neighbours above,
    below and on one side then have its own place in the array of the other colour; that on the other side is one on.
    """
    n, height, half = len(b), len(b) // width, work.shape[2] - 2
    side, beyond, above, below = work[0], work[1], work[2], work[3]  # the couplings of red pixels to black ones
    red, black, r, p, q = work[4], work[5], work[6], work[7], work[8]
    zero, scale = b.dtype.type(0), diagonal
    for i in range(n):
        scale[i] = b.dtype.type(1) / np.sqrt(diagonal[i])
    for row in range(height):
        odd, here = row % 2, row + 1
        for j in range((width + 1 - odd) // 2):  # red
            i = row * width + 2 * j + odd
            left = across[i - 1] * scale[i] * scale[i - 1] if 2 * j + odd > 0 else zero
            right = across[i] * scale[i] * scale[i + 1] if 2 * j + odd < width - 1 else zero
            side[here, j + 1], beyond[here, j + 1] = (left, right) if odd else (right, left)
            above[here, j + 1] = down[i - width] * scale[i] * scale[i - width] if row > 0 else zero
            below[here, j + 1] = down[i] * scale[i] * scale[i + width] if row < height - 1 else zero
            red[here, j + 1] = b[i] * scale[i]
        for j in range((width + odd) // 2):  # black
            i = row * width + 2 * j + 1 - odd
            r[here, j + 1], black[here, j + 1], p[here, j + 1] = b[i] * scale[i], zero, x[i] / scale[i]
    squared, alpha, beta = 0.0, b.dtype.type(1), zero
    iterations = -1  # the step to the start is not one of them
    while iterations < 0 or (squared > tolerance * tolerance * n and iterations < most):
        curvature = 0.0
        for row in range(1, height + 1):  # q = B p; the curvature p (1 - B^T B) p = p . p - q . q
            first = 0 if row % 2 else 2
            p_here, p_above, p_below = p[row, 1 : half + 1], p[row - 1, 1:], p[row + 1, 1:]
            p_far, q_here = p[row, first:], q[row, 1:]
            a, c, d, e = side[row, 1:], beyond[row, 1:], above[row, 1:], below[row, 1:]
            part = zero
            for j in range(len(p_here)):
                value = a[j] * p_here[j] + c[j] * p_far[j] + d[j] * p_above[j] + e[j] * p_below[j]
                q_here[j] = value
                part += p_here[j] * p_here[j] - value * value
            curvature += part
        if iterations < 0:
            q -= red
        elif curvature > 0:
            alpha = b.dtype.type(squared / curvature)
        else:  # NaN too
            return -1
        fresh = 0.0
        for row in range(1, height + 1):  # r -= alpha (p - B^T q)
            first = 2 if row % 2 else 0
            q_here, q_above, q_below, q_far = q[row, 1 : half + 1], q[row - 1, 1:], q[row + 1, 1:], q[row, first:]
            a, c, d, e = side[row, 1:], beyond[row, first:], below[row - 1, 1:], above[row + 1, 1:]
            p_here, r_here, x_here = p[row, 1:], r[row, 1:], black[row, 1:]
            part = zero
            for j in range(len(q_here)):
                value = p_here[j] - (a[j] * q_here[j] + c[j] * q_far[j] + d[j] * q_above[j] + e[j] * q_below[j])
                x_here[j] += alpha * p_here[j]
                r_here[j] -= alpha * value
                part += r_here[j] * r_here[j]
            fresh += part
        beta = b.dtype.type(fresh / squared) if iterations >= 0 else zero
        squared = fresh
        for row in range(1, height + 1):
            p_here, r_here = p[row, 1 : half + 1], r[row, 1:]
            for j in range(len(p_here)):
                p_here[j] = r_here[j] + beta * p_here[j]
        iterations += 1
    for row in range(height):
        odd, here, far = row % 2, row + 1, 1 if row % 2 else -1
        for j in range((width + odd) // 2):
            i = row * width + 2 * j + 1 - odd
            x[i] = black[here, j + 1] * scale[i]
        for j in range((width + 1 - odd) // 2):
            i, k = row * width + 2 * j + odd, j + 1
            value = b[i] * scale[i] - side[here, k] * black[here, k] - beyond[here, k] * black[here, k + far]
            value -= above[here, k] * black[here - 1, k] + below[here, k] * black[here + 1, k]
            x[i] = value * scale[i]
    return iterations if squared <= tolerance * tolerance * n else -1
