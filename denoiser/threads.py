"""The pool of threads that runs kernels side by side, and how a run is stopped in the middle of a step.

Kernels are serial and release the GIL; `parallel` spreads independent calls over a pool of Python threads. Numba's own
`prange` is not used: its fallback threading layer aborts the process when two threads enter it, it cannot survive a
fork, and it compiles several times slower.
"""

from __future__ import annotations

import contextlib
import numbers
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

_threads: int | None = None
_pool: Executor | None = None
_pool_lock = threading.Lock()
_worker = threading.local()


def default_threads() -> int:
    """NUMBA_NUM_THREADS, else the cores that this process may use."""
    try:
        return max(int(os.environ["NUMBA_NUM_THREADS"]), 1)
    except (KeyError, ValueError):
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def get_threads() -> int:
    """How many threads a run may use: `set_threads`, else NUMBA_NUM_THREADS, else the cores there are."""
    if getattr(_worker, "busy", False):
        return 1
    return _threads or default_threads()


def set_threads(count: int) -> None:
    """Limit every later run of this process to `count` threads. Results do not depend on it."""
    global _threads, _pool
    if not isinstance(count, numbers.Integral) or isinstance(count, bool) or count < 1:
        raise ValueError(f"threads must be a whole number >= 1, got {count!r}")
    _threads, _pool = count, None


def _forget_pool() -> None:
    global _pool, _pool_lock
    _pool, _pool_lock = None, threading.Lock()  # its threads do not exist in a forked child


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
    with _pool_lock:  # two threads that enter first at once share one pool
        pool = _pool
        if pool is None:
            pool = _pool = ThreadPoolExecutor(get_threads(), "denoiser", initializer=_mark_worker)
    return list(pool.map(task, items))


def _stoppable(task: Callable[[Any], Any], asked: Callable[[], bool]) -> Callable[[Any], Any]:
    def checked(item: Any) -> Any:
        if asked():
            raise Cancelled("stopped")
        return task(item)

    return checked
