"""A first look at a photograph: what is visible is denoised first, block by block, with the quick model.

Every block is what the run on the whole would give there (`Request.region`). Looking elsewhere changes the order.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from qtpy.QtCore import QObject, QTimer, Signal

from denoiser.pieces import Region

from .background import Background, Task
from .controls import preset
from .session import Plan

BLOCK = 384  # pixels a side; with its halo it takes a part of a second


def blocks(shape: tuple[int, ...]) -> list[Region]:
    """Parts of about equal size that cover a picture."""
    counts = [max(round(side / BLOCK), 1) for side in shape[:2]]
    cuts = [[round(side * n / count) for n in range(count + 1)] for side, count in zip(shape[:2], counts, strict=True)]
    return [
        Region(top, left, bottom, right)
        for top, bottom in zip(cuts[0], cuts[0][1:], strict=False)
        for left, right in zip(cuts[1], cuts[1][1:], strict=False)
    ]


def nearest(todo: list[Region], seen: Region) -> Region:
    """The block to do next: one that can be seen, and of those the one next to the middle."""
    row, column = (seen.top + seen.bottom) / 2, (seen.left + seen.right) / 2

    def far(block: Region) -> tuple[bool, float]:
        hidden = (
            block.bottom <= seen.top or block.top >= seen.bottom or block.right <= seen.left or block.left >= seen.right
        )
        return hidden, math.hypot((block.top + block.bottom) / 2 - row, (block.left + block.right) / 2 - column)

    return min(todo, key=far)


class Glance(QObject):
    """Works through the blocks on a thread until it is stopped."""

    made = Signal(object, object)  # Region, its mean in the file's units
    began = Signal()
    ended = Signal()

    def __init__(self, background: Background, parent: QObject) -> None:
        super().__init__(parent)
        self._background = background
        self._task: Task | None = None
        self._plan: Plan | None = None
        self._seen = Region(0, 0, 1, 1)
        self._ready: deque[tuple[Region, np.ndarray]] = deque()
        self._wait = QTimer(self, singleShot=True, interval=250, timeout=self._begin)

    @property
    def busy(self) -> bool:
        """Whether there is more to come."""
        return self._task is not None or self._wait.isActive()

    def look(self, plan: Plan, seen: Region) -> None:
        """Show what this plan's picture becomes, what is seen first; `plan` may be slow, the look is quick."""
        self.stop()
        sampler, prior = preset("fast")
        self._plan, self._seen = replace(plan, sampler=sampler, prior=prior.name), seen
        self._wait.start()

    def turn(self, seen: Region) -> None:
        """The user looks elsewhere."""
        self._seen = seen

    def stop(self) -> None:
        """Nothing of it any more."""
        self._wait.stop()
        if self._task is not None:
            self._task.stop()
            self._task = None
        self._ready.clear()

    def _begin(self) -> None:
        plan, ready = self._plan, deque()
        assert plan is not None
        self._ready = ready
        self.began.emit()
        self._task = self._background.start(
            lambda task: self._work(plan, ready, task),
            step=lambda _: self._deliver(),
            done=lambda _: self._end(),
            failed=lambda *_: self._end(),  # what is wrong is said when it is run
            heavy=True,
        )

    def _work(self, plan: Plan, ready: deque, task: Task) -> Iterator[int]:
        """On the thread: one block after the other."""
        noisy = plan.noisy()
        todo = blocks(noisy.shape)
        while todo and not task.stopped:
            block = nearest(todo, self._seen)
            todo.remove(block)
            result = plan.request(noisy, block).run(brief=True)
            ready.append((block, np.asarray(result.mean, np.float32)))
            yield len(todo)

    def _deliver(self) -> None:
        while self._ready:
            self.made.emit(*self._ready.popleft())

    def _end(self) -> None:
        self._deliver()
        self._task = None
        self.ended.emit()
