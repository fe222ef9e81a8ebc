"""Compiled kernels that never break a start: numba functions with a cache that is checked and never stale."""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import njit
from numba.core.errors import NumbaDebugInfoWarning

config: Any = numba.config  # filled at run time, so type checkers see nothing in it
warnings.filterwarnings("ignore", category=NumbaDebugInfoWarning)


def _load_array_functions() -> None:
    """Load numba's array functions without scipy's linear algebra: it takes a sixth of a start, and no kernel uses it.

    Numba imports it only to see whether it is there; whoever multiplies matrices in a kernel still gets it. These are
    numba's own names, which another version may change: then the start takes that sixth longer.
    """
    with contextlib.suppress(Exception):
        import numba.np.linalg as linalg

        ask, linalg.ensure_blas = linalg.ensure_blas, lambda: None
        try:
            import numba.np.arraymath  # noqa: F401
        finally:
            linalg.ensure_blas = ask


_load_array_functions()


@cache
def package_stamp() -> str:
    """A digest of every source file of the package.

    Numba stamps a cached kernel with the file that it stands in; ours inline functions and freeze constants of other
    files, so that a kernel is as old as the oldest of them.
    """
    folder = Path(__file__).resolve().parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _checked_cache(function: Callable) -> Any:
    """A numba cache of the function: stamped with the package, checked by checksums, silent about its failures.

    Built on numba's private classes, so the caller takes any exception as "no cache".
    """
    from numba.core.caching import FunctionCache, IndexDataCacheFile

    class CheckedFiles(IndexDataCacheFile):
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

    class SafeCache(FunctionCache):
        """A function cache whose every failure means 'compile again', never an exception."""

        def __init__(self, function: Callable) -> None:
            super().__init__(function)
            plain = self._cache_file
            self._cache_file = CheckedFiles.__new__(CheckedFiles)
            self._cache_file.__dict__.update(plain.__dict__)
            self._cache_file._source_stamp = (plain._source_stamp, package_stamp())

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

    return SafeCache(function)


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
                compiled._cache = _checked_cache(function)
            except Exception as error:  # no writable place for a cache, or a numba that works otherwise
                _warn_cache(f"no kernel cache ({type(error).__name__})")
        return compiled

    return decorate


def inlined(**options: Any) -> Callable[[Callable], Callable]:
    """`kernel` for a function that other kernels call: each of them gets a copy of its code, and nothing else.

    Otherwise a caller compiled in this process would call the function's own machine code, and a caller from the cache
    the copy that came with it: optimised apart, they round differently, and the first run's bytes are not the second's.
    """
    return kernel(forceinline=True, **options)


def on_compile(tell: Callable[[], None]) -> None:
    """Have `tell` called once, when a kernel that is in no cache begins to be compiled: seconds pass without a sign."""
    with contextlib.suppress(Exception):  # numba's events are not promised to stay
        from numba.core import event

        class Listener(event.Listener):
            told = False

            def on_start(self, event: Any) -> None:
                if not self.told:
                    self.told = True
                    tell()

            def on_end(self, event: Any) -> None:
                pass

        event.register("numba:compile", Listener())
