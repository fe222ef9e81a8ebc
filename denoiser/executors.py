"""Where work runs: this process, local processes, or a Dask cluster, all behind `concurrent.futures.Executor`.

Threads are never oversubscribed. Where several pieces of work run at a time, each uses a fair share of the cores:
local processes `cores // workers` threads each, tasks of a cluster or of a thread pool one. A cluster is given no more
tasks at a time than its workers have cores, which also bounds the images that are on their way.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

import denoiser
from denoiser import threads
from denoiser.data import install

PATIENCE = 10.0  # seconds until a scheduler or its first worker must have answered
_T = TypeVar("_T")


def completed(
    executor: Executor | None, task: Callable[..., Any], calls: Iterable[tuple[_T, tuple]]
) -> Iterator[tuple[_T, Future]]:
    """Run `task(*arguments)` for every (label, arguments); yields (label, finished future) in the order they finish.

    The arguments are made late: only as many tasks are submitted at a time as the executor can well use. Without an
    executor they run here, one after the other.

    >>> [(label, future.result()) for label, future in completed(None, pow, [("a", (2, 3)), ("b", (3, 2))])]
    [('a', 8), ('b', 9)]
    """
    todo = iter(calls)
    if executor is None:
        for label, arguments in todo:
            yield label, _fill(Future(), task, arguments)
        return
    running: dict[Future, _T] = {}
    threads = _share(executor)
    more = True
    while more or running:
        while more and len(running) < _capacity(executor):
            call = next(todo, None)
            if call is None:
                more = False
            else:
                try:
                    future = executor.submit(_with_threads, threads, os.getpid(), task, *call[1])
                except RuntimeError as error:  # a pool that has lost a process takes nothing more
                    future = Future()
                    future.set_exception(error)
                running[future] = call[0]
        finished, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in [f for f in running if f in finished]:  # in the order they were submitted
            yield running.pop(future), future


def _fill(future: Future, task: Callable[..., Any], arguments: tuple) -> Future:
    """Run a task, and have the future hold what became of it."""
    try:
        future.set_result(task(*arguments))
    except Exception as error:
        future.set_exception(error)
    return future


def _capacity(executor: Executor) -> int:
    """Tasks to have submitted at a time: for a pool some in advance, so that no worker waits for us."""
    if isinstance(executor, Cluster):
        return executor.capacity()
    return 2 * int(getattr(executor, "_max_workers", 4))


def _share(executor: Executor) -> int | None:
    """Threads for each task; None for as many as there are."""
    from concurrent.futures import ProcessPoolExecutor  # slow to import

    workers = int(getattr(executor, "_max_workers", 0))
    if isinstance(executor, ThreadPoolExecutor) and workers == 1:
        return None
    if isinstance(executor, ProcessPoolExecutor):
        return max(threads.get_threads() // workers, 1)
    return 1


def _with_threads(count: int | None, parent: int, task: Callable[..., _T], *arguments: Any) -> _T:
    """Run a task where it landed, on so many threads."""
    if count == 1:
        with threads.one_thread():
            return task(*arguments)
    if count is not None and os.getpid() != parent and threads.get_threads() != count:
        threads.set_threads(count)
    return task(*arguments)


def local_processes(workers: int) -> Executor:
    """A pool of so many processes on this machine; a single one is this process itself, in another thread."""
    if workers == 1:
        return ThreadPoolExecutor(1, "denoise")
    import multiprocessing  # slow to import
    from concurrent.futures import ProcessPoolExecutor

    # not forked: a fork of a process with threads may deadlock
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(
        workers, context, _begin_process, (os.getpid(), max(threads.get_threads() // workers, 1))
    )


def _begin_process(parent: int, count: int) -> None:
    """A worker process leaves Ctrl-C to its parent, and ends when the parent is gone, even by a kill."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault("OMP_NUM_THREADS", str(count))  # for the peers' own libraries

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def opened(executor: Executor) -> Iterator[Executor]:
    """The executor, and when something goes wrong no waiting for what it is at."""
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        raise
    executor.shutdown()


class Cluster(Executor):
    """A Dask cluster, by the address of its scheduler. Tasks of workers that die run again on others.

    A task with an argument that has a `key` is known to the scheduler by it, so it is never there twice.
    """

    def __init__(self, address: str) -> None:
        if not re.fullmatch(r"tcp://.+:\d{1,5}", address):
            raise ValueError(f"--scheduler must look like tcp://HOST:PORT, got {address!r}")
        try:
            import distributed
        except ImportError:
            raise ValueError(f"a cluster needs Dask: {install('dask')}") from None
        self.address, self._lost = address, f"{address}: the connection to the scheduler was lost"
        self._cores: dict[str, int] = {}  # worker -> cores of its machine
        try:
            client = functools.partial(distributed.Client, address, timeout=PATIENCE, set_as_default=False)
            self._client = _within(PATIENCE, client)
        except Exception as error:  # whatever Dask makes of an address
            raise OSError(f"{address}: no Dask scheduler answered within {PATIENCE:g} s") from error
        try:
            self._check("scheduler", self._client.run_on_scheduler(_describe))
            self._client.wait_for_workers(1, timeout=PATIENCE)
            self._look(list(self._client.nthreads()), strict=True)
        except TimeoutError:
            self.shutdown(wait=False)
            raise OSError(f"{address}: this Dask scheduler has no workers") from None
        except BaseException:
            self.shutdown(wait=False)
            raise

    def _look(self, workers: list[str], strict: bool = False) -> None:
        """Learn how many cores new workers have; with `strict`, whether they could do our work at all."""
        for worker, answer in self._client.run(_describe, workers=workers, on_error="return").items():
            if strict:
                self._check(f"worker {worker}", answer)
            if not isinstance(answer, BaseException):
                self._cores[worker] = answer[1]

    def _check(self, who: str, answer: Any) -> None:
        if isinstance(answer, BaseException):
            raise OSError(f"{self.address}: the {who} cannot help: {answer}")
        if answer[0] != denoiser.__version__:
            raise OSError(f"{self.address}: the {who} has denoiser {answer[0]}, not {denoiser.__version__}")

    def capacity(self) -> int:
        """Tasks that run at a time: the workers' threads, but on no machine more than it has cores."""
        try:
            threads: dict[str, int] = self._client.nthreads()
            new = [worker for worker in threads if worker not in self._cores]
            if new:
                self._look(new)
        except (OSError, RuntimeError, ValueError):  # a closed client raises all of them
            raise OSError(self._lost) from None
        hosts: dict[str, int] = {}
        for worker, count in threads.items():
            host = worker.rpartition(":")[0]
            hosts[host] = min(hosts.get(host, 0) + count, self._cores.get(worker, 1))
        return max(sum(hosts.values()), 1)

    def submit(self, task: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future:
        """Have it done on some worker."""
        name = next((argument.key for argument in arguments if hasattr(argument, "key")), None)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)  # pictures are large
            inner = self._client.submit(
                task, *arguments, pure=False, retries=1, key=name and f"denoise-{name}", **options
            )  # fmt: skip
        outer: Future = Future()
        outer.set_running_or_notify_cancel()
        inner.add_done_callback(lambda _: self._pass_on(inner, outer))
        return outer

    def _pass_on(self, inner: Any, outer: Future) -> None:
        try:
            if inner.status == "finished":
                outer.set_result(inner.result())
            elif inner.status == "error":
                outer.set_exception(_in_words(inner.exception()))
            else:
                outer.set_exception(OSError(self._lost))
        except BaseException as error:  # a result that could not be fetched
            outer.set_exception(_in_words(error))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster; it goes on without us."""
        with contextlib.suppress(Exception):
            self._client.close(timeout=2)


def _within(seconds: float, make: Callable[[], _T]) -> _T:
    """What `make` makes, or TimeoutError: a server that takes the call and says nothing would keep it forever."""
    future: Future = Future()
    threading.Thread(target=lambda: _fill(future, make, ()), daemon=True).start()
    return future.result(timeout=seconds)


def _describe() -> tuple[str, int]:
    """What a worker says about itself."""
    return denoiser.__version__, threads.default_threads()


def _in_words(error: BaseException) -> BaseException:
    if type(error).__name__ == "KilledWorker":
        return OSError("every worker that took it died; are they short of memory?")
    return error
