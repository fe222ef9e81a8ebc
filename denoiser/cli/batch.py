"""All inputs of one command: one after the other here, or whole pictures side by side on a cluster.

The cluster gets pixels and gives pixels back. Reading, checking and writing stay here, so that it needs no common file
system and an output is as safe as without it: written as a whole, never over an input, in the journal.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from concurrent.futures import Executor

from denoiser import executors
from denoiser.cli import paths
from denoiser.cli.job import Batch, Prepared, finish, prepare
from denoiser.cli.progress import patiently, steps
from denoiser.cli.report import Report
from denoiser.files import label
from denoiser.outcome import Result
from denoiser.run import Request


def run_all(batch: Batch, entries: list[paths.Input], executor: Executor | None) -> Iterator[Report]:
    """The reports on all inputs, as they finish."""
    if executor is None:
        yield from _one_by_one(batch, entries)
    else:
        yield from _side_by_side(batch, entries, executor)


def _one_by_one(batch: Batch, entries: list[paths.Input]) -> Iterator[Report]:
    """Here. What another `--resume` on the same folder is at work on comes last, when it is likely to be finished."""
    later: list[paths.Input] = []
    for number, entry in enumerate(itertools.chain(entries, later)):
        work = patiently(prepare, batch, entry)
        if isinstance(work, Prepared) and not _claimed(batch, work):
            if number < len(entries):
                later.append(entry)
                continue
            patiently(_claimed, batch, work, True)
            work = patiently(prepare, batch, entry)  # the other run may have finished it
        yield _done(batch, work)


def _claimed(batch: Batch, work: Prepared, wait: bool = False) -> bool:
    """Whether this process alone works on an output from now on."""
    resuming = batch.journal is not None and batch.settings.resume and work.origin
    return not resuming or batch.journal.claim(work.target, wait)  # type: ignore[union-attr]


def _done(batch: Batch, work: Prepared | Report) -> Report:
    """The report on an input, after what there was left to do."""
    if isinstance(work, Report):
        return work
    try:
        results = [_compute(batch, work, request) for request in work.requests]
    except Exception as error:
        report = batch.failed(work.report, error)
    else:
        report = patiently(finish, batch, work, results)
    if batch.journal is not None:
        batch.journal.release(work.target)
    return report


def _compute(batch: Batch, work: Prepared, request: Request) -> Result:
    """Denoise a page here, with a bar."""
    s, name = batch.settings, label(work.report.input)
    result = request.run(lambda run: steps(run, name, s.quiet), brief=not (s.std or s.samples))
    if s.verbose:
        figure = ", ".join(f"{key} {value:.4g}" for key, value in result.history[-1].items())
        print(f"{name}: {s.sampler}, {s.prior.name}, tiles: {result.tiles}; {figure}", file=sys.stderr)
    return result


def _run(requests: list[Request], brief: bool) -> list[Result]:
    """The task of a worker. brief: the uncertainty of every pixel stays there, for the sake of a slow line."""
    return [request.run(brief=brief) for request in requests]


def _side_by_side(batch: Batch, entries: list[paths.Input], executor: Executor) -> Iterator[Report]:
    brief = not (batch.settings.std or batch.settings.samples)
    at_once: list[Report] = []  # failed already, or nothing to compute
    flying: dict[str, str] = {}  # output -> the input that it is being made of

    def calls() -> Iterator[tuple[Prepared, tuple[list[Request], bool]]]:
        for entry in entries:
            work = prepare(batch, entry)
            if isinstance(work, Report):
                at_once.append(work)
            elif not work.requests:
                at_once.append(finish(batch, work, []))
            else:
                other = flying.setdefault(os.path.realpath(work.target), entry.path)
                if work.target == paths.STANDARD or other == entry.path:
                    yield work, (work.requests, brief)
                else:
                    error = ValueError(f"{label(work.target)}: is already the result of {label(other)}")
                    at_once.append(batch.failed(work.report, error))

    for work, future in executors.completed(executor, _run, calls()):
        error = future.exception()
        yield batch.failed(work.report, error) if error is not None else finish(batch, work, future.result())
        while at_once:
            yield at_once.pop(0)
    yield from at_once
