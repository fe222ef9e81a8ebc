"""All inputs of one command: one after the other here, or whole pictures side by side on a cluster.

The cluster gets pixels and gives pixels back. Reading, checking and writing stay here, so that it needs no common file
system and an output is as safe as without it: written as a whole, never over an input, in the journal.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import replace

from denoiser import executors, tiles
from denoiser.cli import paths
from denoiser.cli.compute import Request, answer, brief_answer
from denoiser.cli.job import Job, Report, Work
from denoiser.files import label


def run_all(job: Job, entries: list[paths.Input], executor: Executor | None) -> Iterator[Report]:
    """The reports on all inputs, as they finish."""
    if executor is None:
        yield from map(job.run, entries)
        return
    s = job.settings
    memory = s.memory or tiles.default_memory()  # ours, not the worker's: the same tiles as without a cluster
    task = answer if s.std or s.samples else brief_answer
    at_once: list[Report] = []  # failed already, or nothing to compute
    flying: dict[str, str] = {}  # output -> the input that it is being made of

    def calls() -> Iterator[tuple[Work, tuple[Request]]]:
        for entry in entries:
            work = job.start(entry)
            if work.request is not None:
                target = work.report.output or ""
                other = flying.setdefault(os.path.realpath(target), entry.path)
                if target == paths.STANDARD or other == entry.path:
                    yield work, (replace(work.request, memory=memory),)
                    continue
                work.fail(ValueError(f"{label(target)}: is already the result of {label(other)}"))
            at_once.append(work.report)

    for work, future in executors.completed(executor, task, calls()):
        error = future.exception()
        if error is not None:
            work.fail(error)
        else:
            work.finish(future.result())
        yield work.report
        while at_once:
            yield at_once.pop(0)
    yield from at_once
