"""2^x in a handful of multiplications, for the innermost loops: bits of a float32 taken apart and put together."""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from denoiser.jit import config

if config.DISABLE_JIT:

    def float_from_bits(bits: int) -> np.float32:
        """Reinterpret an int32 as a float32."""
        return np.int32(bits).view(np.float32)

    def bits_from_float(value: float) -> np.int32:
        """Reinterpret a float32 as an int32."""
        return np.float32(value).view(np.int32)

else:

    @intrinsic
    def float_from_bits(typingctx, bits):  # type: ignore[no-untyped-def]
        """Reinterpret an int32 as a float32."""

        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            return builder.bitcast(args[0], ir.FloatType())

        return types.float32(types.int32), codegen

    @intrinsic
    def bits_from_float(typingctx, value):  # type: ignore[no-untyped-def]
        """Reinterpret a float32 as an int32."""

        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            return builder.bitcast(args[0], ir.IntType(32))

        return types.int32(types.float32), codegen


@njit(nogil=True, inline="always")
def exp2(x):  # type: ignore[no-untyped-def]
    """2^x for float32 x <= 0 (2^-100 below that), relative error below 3e-7, in code that LLVM vectorises.

    x = n + f with n integer and |f| <= 1/2: 2^n goes into the exponent bits, 2^f is a minimax polynomial.
    """
    x = max(x, np.float32(-100.0))  # below is 0 for our purposes, and products must not become denormal
    n = np.int32(x - np.float32(0.5))  # rounds to nearest, because x <= 0 and casts truncate
    f = x - np.float32(n)
    p = np.float32(1.32764706e-3)
    p = p * f + np.float32(9.67554132e-3)
    p = p * f + np.float32(5.55071328e-2)
    p = p * f + np.float32(2.40221197e-1)
    p = p * f + np.float32(6.93146967e-1)
    p = p * f + np.float32(1.0)
    return p * float_from_bits(np.int32((n + np.int32(127)) << np.int32(23)))


@njit(nogil=True, inline="always")
def rough_exp2(x):  # type: ignore[no-untyped-def]
    """`exp2` with relative error 3e-6: one step less, for the innermost loop of the program."""
    x = max(x, np.float32(-100.0))
    n = np.int32(x - np.float32(0.5))
    f = x - np.float32(n)
    p = np.float32(9.57010048e-3)
    p = p * f + np.float32(5.59178602e-2)
    p = p * f + np.float32(2.40247449e-1)
    p = p * f + np.float32(6.93121815e-1)
    p = p * f + np.float32(9.99999261e-1)
    return p * float_from_bits(np.int32((n + np.int32(127)) << np.int32(23)))


LOG2E = math.log2(math.e)
