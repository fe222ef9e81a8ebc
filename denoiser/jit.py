"""Compiled kernels that never break a start, and the threads that run them.

Kernels are plain serial numba functions that release the GIL; `parallel` spreads independent calls
over a pool of Python threads. Numba's own `prange` is not used: its fallback threading layer aborts
the process when two threads enter it, it cannot survive a fork, and it compiles several times slower.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import pickle
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import event
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.errors import NumbaDebugInfoWarning
from numba.extending import intrinsic


def _load_array_functions() -> None:
    """Load numba's array functions without scipy's linear algebra: it takes a sixth of a start, and no kernel uses it.

    Numba imports it only to see whether it is there; whoever multiplies matrices in a kernel still gets it.
    """
    import numba.np.linalg as linalg

    ask, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        linalg.ensure_blas = ask


_load_array_functions()
config: Any = numba.config  # filled at run time, so type checkers see nothing in it
warnings.filterwarnings("ignore", category=NumbaDebugInfoWarning)


class _CheckedFiles(IndexDataCacheFile):
    """Numba's cache files with a checksum: damaged machine code must never be executed."""

    def _save_data(self, name: str, data: Any) -> None:
        payload = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(hashlib.sha256(payload).digest() + payload)

    def _load_data(self, name: str) -> Any:
        with open(self._data_path(name), "rb") as file:
            digest, payload = file.read(32), file.read()
        if hashlib.sha256(payload).digest() != digest:
            raise ValueError("checksum mismatch")
        return pickle.loads(payload)  # our own file, checksum verified


class _SafeCache(FunctionCache):
    """A function cache whose every failure means 'compile again', never an exception."""

    def __init__(self, function: Callable) -> None:
        super().__init__(function)
        plain = self._cache_file
        self._cache_file = _CheckedFiles.__new__(_CheckedFiles)
        self._cache_file.__dict__.update(plain.__dict__)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:
            _warn_cache(f"ignoring a damaged kernel cache ({type(error).__name__})")
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception:
            try:  # a damaged index cannot be extended, but it can be begun anew
                self._cache_file.flush()
                super().save_overload(sig, data)
            except Exception as error:
                _warn_cache(f"kernels could not be cached ({type(error).__name__})")


_cache_warned = False


def _warn_cache(reason: str) -> None:
    """Say once per process why kernels are compiled anew."""
    global _cache_warned
    if not _cache_warned:
        _cache_warned = True
        warnings.warn(f"{reason}; kernels are compiled anew in this session", RuntimeWarning, stacklevel=2)


def kernel(**options: Any) -> Callable[[Callable], Callable]:
    """`numba.njit` that releases the GIL and caches where it can."""

    def decorate(function: Callable) -> Callable:
        compiled = njit(nogil=True, **options)(function)
        if not config.DISABLE_JIT:
            try:
                compiled._cache = _SafeCache(function)
            except Exception as error:  # no writable place for a cache
                _warn_cache(f"no writable cache directory ({type(error).__name__})")
        return compiled

    return decorate


class _CompileListener(event.Listener):
    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell, self._told = tell, False

    def on_start(self, event: Any) -> None:
        if not self._told:
            self._told = True
            self._tell()

    def on_end(self, event: Any) -> None:
        pass


def on_compile(tell: Callable[[], None]) -> None:
    """Have `tell` called once, when a kernel that is in no cache begins to be compiled: seconds pass without a sign."""
    event.register("numba:compile", _CompileListener(tell))


# ------------------------------------------------------------------------------------- bit tricks

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

# ------------------------------------------------------------------------------------- threads

_threads: int | None = None
_pool: Executor | None = None
_worker = threading.local()


def get_threads() -> int:
    """How many threads a run may use: `set_threads`, else NUMBA_NUM_THREADS, else the cores there are."""
    if getattr(_worker, "busy", False):
        return 1
    return _threads or int(config.NUMBA_NUM_THREADS)


def set_threads(count: int) -> None:
    """Limit every later run of this process to `count` threads. Results do not depend on it."""
    global _threads, _pool
    if count < 1:
        raise ValueError(f"threads must be >= 1, got {count}")
    _threads, _pool = count, None


def _forget_pool() -> None:
    global _pool
    _pool = None  # its threads do not exist in a forked child


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def _mark_worker() -> None:
    _worker.busy = True


class Cancelled(Exception):
    """Raised out of a run whose stop was asked for in the middle of a step."""


def stop_when(asked: Callable[[], bool] | None) -> None:
    """Have everything that this thread runs from now on ended with `Cancelled` soon after `asked()` turns true.

    A step of a large picture takes seconds; this is for windows, which cannot wait for the end of one.
    """
    _worker.stop = asked


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Within it, runs of the calling thread use no other thread: for programs that run several at a time."""
    before = getattr(_worker, "busy", False)
    _worker.busy = True
    try:
        yield
    finally:
        _worker.busy = before


def parallel(task: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """`[task(item) for item in items]` on the pool; in the caller's thread where that is no slower.

    The items must not depend on the number of threads, so that results don't either.
    """
    global _pool
    items = list(items)
    asked = getattr(_worker, "stop", None)
    if asked is not None:
        task = _stoppable(task, asked)
    if len(items) < 2 or get_threads() == 1:
        return [task(item) for item in items]
    pool = _pool  # another thread may call set_threads meanwhile
    if pool is None:
        pool = _pool = ThreadPoolExecutor(get_threads(), "denoiser", initializer=_mark_worker)
    return list(pool.map(task, items))


def _stoppable(task: Callable[[Any], Any], asked: Callable[[], bool]) -> Callable[[Any], Any]:
    def checked(item: Any) -> Any:
        if asked():
            raise Cancelled("stopped")
        return task(item)

    return checked
