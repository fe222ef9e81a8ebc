"""How far it is: a bar on a terminal, now and then a line elsewhere. And waiting in a way that Ctrl-C can end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from denoiser.run import Progress

_EVERY = 10.0  # seconds between two plain lines
_T = TypeVar("_T")
_helper = ThreadPoolExecutor(1, "denoise")


def patiently(task: Callable[..., _T], *arguments: Any) -> _T:
    """`task(*arguments)` in another thread: compiled code cannot be interrupted, but waiting for it can."""
    return _helper.submit(task, *arguments).result()


def steps(source: Iterable[Progress], name: str, quiet: bool) -> Iterator[Progress]:
    """The reports of a run, shown on stderr as they come."""
    iterator = iter(source)
    bar = None
    told = time.monotonic()
    try:
        while (progress := patiently(next, iterator, None)) is not None:
            if not quiet and sys.stderr.isatty():
                from tqdm import tqdm

                bar = bar or tqdm(total=progress.total, desc=name, unit="step", file=sys.stderr, leave=False)
                bar.update(progress.step - bar.n)
            elif not quiet and time.monotonic() - told > _EVERY and progress.step < progress.total:
                told = time.monotonic()
                share = progress.step / progress.total
                print(f"{name}: {share:.0%} done, about {duration(progress.eta)} to go", file=sys.stderr, flush=True)
            yield progress
    finally:
        if bar is not None:
            bar.close()


def duration(seconds: float) -> str:
    """Seconds as a person says them.

    >>> duration(3.2), duration(200), duration(9000)
    ('4 s', '4 min', '2 h 30 min')
    """
    if seconds < 90:
        return f"{int(seconds) + 1} s"
    minutes = round(seconds / 60 + 0.49)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
