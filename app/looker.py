"""A first look at a photograph: what is visible is denoised first, block by block, with the quick model.

Begun when a picture or a control is new, gone when a run says it better. Every block is what the run on the whole would
give there (`Request.region`). Looking elsewhere changes the order.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator

import numpy as np
from qtpy.QtCore import QObject, QTimer, Signal

from denoiser.pieces import Region

from .background import IDLE, Background, Task
from .display import picture_bytes
from .session import Plan
from .tone import PLAIN, Tone
from .viewer import Viewer

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


class Looker(QObject):
    """Works through the blocks on a thread until it is stopped, and shows those that it has."""

    changed = Signal()  # begins, goes on or ends

    def __init__(self, background: Background, viewer: Viewer, parent: QObject) -> None:
        super().__init__(parent)
        self._background, self._viewer = background, viewer
        self._task = IDLE
        self._plan: Plan | None = None
        self._means: dict[Region, np.ndarray] = {}  # in the file's units
        self._bytes: dict[Region, np.ndarray] = {}
        self._tone = PLAIN
        self._seen = Region(0, 0, 1, 1)
        self._wait = QTimer(self, singleShot=True, interval=250, timeout=self._look)
        viewer.turned.connect(self._turn)

    @property
    def on(self) -> bool:
        """Whether there is a look on the screen, or one under way."""
        return self._plan is not None

    @property
    def busy(self) -> bool:
        """Whether there is more to come."""
        return self._task.busy or self._wait.isActive()

    @property
    def share(self) -> float:
        """How much of the picture has been looked at."""
        if self._plan is None:
            return 0.0
        height, width = self._plan.source.pixels.shape[:2]
        return sum(np.prod(place.shape) for place in self._means) / (height * width)

    def begin(self, plan: Plan) -> None:
        """What would this become? `plan` may be slow, the look is quick."""
        if self._plan is not None and self._plan.source is not plan.source:
            self.end()
        self.stop()
        self._plan, self._means = plan, {}  # the old blocks stay on the screen until there are new ones
        self._seen = self._viewer.seen
        self._wait.start()
        self.changed.emit()

    def stop(self) -> None:
        """No more blocks."""
        self._wait.stop()
        self._task.stop()

    def end(self) -> None:
        """Take it away."""
        self.stop()
        self._plan, self._means, self._bytes = None, {}, {}
        self._viewer.show_looks({})
        self.changed.emit()

    def set_tone(self, tone: Tone) -> None:
        """Other black, white and gamma."""
        self._tone = tone
        self._show(self._means)

    def _turn(self, seen: Region) -> None:
        """The user looks elsewhere."""
        self._seen = seen

    def _look(self) -> None:
        assert self._plan is not None
        plan, ready = self._plan.quick(), deque()

        def deliver(*_: object) -> None:
            while ready:
                place, mean = ready.popleft()
                self._means[place] = mean
                self._show({place: mean})
            self.changed.emit()

        self._task = self._background.start(  # what is wrong is said when it is run
            lambda task: self._work(plan, ready, task), step=deliver, done=deliver, failed=deliver, heavy=True
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

    def _show(self, means: dict[Region, np.ndarray]) -> None:
        for place, mean in means.items():
            assert self._plan is not None
            self._bytes[place] = picture_bytes(mean, self._plan.source, self._tone)
        self._viewer.show_looks(dict(self._bytes))
