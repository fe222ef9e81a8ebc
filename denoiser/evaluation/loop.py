"""`evaluate`: every case on any executor, reported as it finishes."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from denoiser.evaluation.plan import Case, Images, Truth, load_truths, make_plan
from denoiser.evaluation.rows import Row
from denoiser.evaluation.work import run_case
from denoiser.executors import completed
from denoiser.priors import Prior


@dataclass(frozen=True)
class Step:
    """A row that has just finished: `done` of `total` are there; `eta` is the seconds that the others may take."""

    row: Row
    done: int
    total: int
    seconds: float
    eta: float


def evaluate(
    images: Images,
    methods: str | Sequence[str],
    sigmas: float | str | Sequence[float | str],
    *,
    particles: int | Sequence[int] | None = None,
    seeds: int | Sequence[int] = 1,
    prior: str | Path | Prior = "pairwise",
    executor: Executor | None = None,
    progress: Callable[[Step], object] | None = None,
) -> list[Row]:
    """Every method on every image, noise level and seed: rows in that order, the same on any executor.

    images: a folder, file names, or a dict of names and arrays in grey levels of 255, without noise.
    methods: names from `METHODS`, with options if need be: "gibbs", "gibbs:samples=600,chains=2".
    sigmas: the noise to add: standard deviations in grey levels, or words such as "poisson:0.5" or "camera:3200", whose
        noise a method is told (a camera's is measured). All methods see the same noisy image: image number
        k (from 0) with seed s gets the noise of `numpy.random.default_rng([k, s])`, which is default_rng(k) for s = 0.
    particles: how many, or several numbers to try, for the methods that have them; None for each method's default.
    seeds: how many, or which. The seed is also that of the method's own random numbers.
    executor: any of `concurrent.futures`, `denoiser.executors.Cluster`, or None for one row after the other, here.
    progress: called with a Step after every row.

    >>> import numpy as np
    >>> flat = {"flat": np.full((16, 16), 100.0)}
    >>> [row] = evaluate(flat, ["tv"], [10])
    >>> row.image, row.method, row.psnr > 30
    ('flat', 'tv', True)
    """
    truths = load_truths(images)
    names = [methods] if isinstance(methods, str) else methods
    levels = [sigmas] if isinstance(sigmas, int | float | str) else sigmas
    cases = make_plan(truths, names, levels, particles, seeds, prior)
    return run_cases(cases, truths, executor=executor, progress=progress)


def run_cases(
    cases: Sequence[Case],
    truths: Sequence[Truth],
    *,
    before: Iterable[Row] = (),
    executor: Executor | None = None,
    progress: Callable[[Step], object] | None = None,
) -> list[Row]:
    """The rows of all cases; those in `before` are not computed again. A case that fails is named after the others."""
    rows = {row.key: row for row in before}
    todo = [case for case in cases if case.key not in rows]
    clock = _Clock(todo)
    failures: list[tuple[Case, BaseException]] = []
    by_number = {truth.number: truth for truth in truths}
    # of one image at a time: cases come image by image, and all images may not fit into memory
    pixels = lru_cache(1)(lambda number: by_number[number].pixels())
    for case, future in completed(executor, run_case, ((case, (case, pixels(case.number))) for case in todo)):
        error = future.exception()
        if error is not None:
            failures.append((case, error))
            continue
        rows[case.key] = future.result()
        clock.finished(case, rows[case.key].seconds)
        if progress is not None:
            progress(Step(rows[case.key], len(rows), len(cases), clock.seconds(), clock.eta()))
    if failures:
        case, error = failures[0]
        what = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{len(failures)} of {len(cases)} rows failed; the first, {case}: {what}")
    return [rows[case.key] for case in cases]


class _Clock:
    """How long the rest may take: methods differ a thousandfold, so each is judged by its own rows."""

    def __init__(self, todo: Sequence[Case]) -> None:
        self._began = self._first = time.perf_counter()
        self._since_first = 0.0  # seconds of the rows after the first, which waits for compilers and imports
        self._left: dict[tuple, int] = defaultdict(int)  # pixels to do, by group
        self._took: dict[tuple, list[float]] = {}  # seconds and pixels done, by group
        for case in todo:
            self._left[case.group] += case.size

    def seconds(self) -> float:
        return time.perf_counter() - self._began

    def finished(self, case: Case, seconds: float) -> None:
        self._left[case.group] -= case.size
        if self._took:
            self._since_first += seconds
        else:
            self._first = time.perf_counter()
        took = self._took.setdefault(case.group, [0.0, 0.0])
        took[0] += seconds
        took[1] += case.size

    def eta(self) -> float:
        """Seconds: work that is left over work that gets done in a second, which is more than 1 on several workers."""
        rates = {group: seconds / pixels for group, (seconds, pixels) in self._took.items()}
        usual = sum(rates.values()) / len(rates)
        left = sum(pixels * rates.get(group, usual) for group, pixels in self._left.items())
        pace = (time.perf_counter() - self._first) / self._since_first if self._since_first else 1.0
        return left * pace
