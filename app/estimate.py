"""How long a run will take on this machine: a few steps on a piece of the picture, and a rule of three.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import replace

from qtpy.QtCore import QObject, QTimer, Signal

from .background import IDLE, Background
from .session import Plan

_SIDE = 96  # pixels of the piece; with fewer, what is done once a step would count for too much
_STEPS = 3  # the first is not counted: kernels are loaded in it


def seconds(plan: Plan) -> float:
    """What the run of a plan will take, within a factor of two."""
    plan = replace(plan, added="")  # what noise it is does not matter, and a camera's would be measured first
    pixels = plan.source.pixels
    height, width = (min(side, _SIDE) for side in pixels.shape[:2])
    top, left = (pixels.shape[0] - height) // 2, (pixels.shape[1] - width) // 2
    piece = plan.request(pixels[top : top + height, left : left + width])
    marks = [time.perf_counter() for _ in itertools.islice(piece.iterate(), _STEPS)]
    if len(marks) < 2:  # a method of a single step
        began = time.perf_counter()
        steps = list(piece.iterate())
        each = (time.perf_counter() - began) / len(steps)
    else:
        each = (marks[-1] - marks[0]) / (len(marks) - 1)
    work = sum(math.prod(part.outer.shape) for part in plan.request(pixels).pieces())
    return each / (height * width) * work * plan.sampler.total


def compare(plan: Plan) -> tuple[float, float]:
    """Seconds of a plan, and of the same with the quality `fast`."""
    quick, mine = plan.quick(), seconds(plan)
    return mine, mine if quick.sampler == plan.sampler else seconds(quick)


class Estimator(QObject):
    """Answers on a thread, a moment after the last question."""

    told = Signal(object, object)  # seconds of the plan and of `fast`; None, None while nobody knows

    def __init__(self, background: Background, parent: QObject) -> None:
        super().__init__(parent)
        self._background = background
        self._task = IDLE
        self._plan: Plan | None = None
        self._wait = QTimer(self, singleShot=True, interval=60, timeout=self._begin)

    def ask(self, plan: Plan | None) -> None:
        """How long will this take? None: never mind."""
        self.stop()
        self._plan = plan
        self.told.emit(None, None)
        if plan is not None:
            self._wait.start()

    def stop(self) -> None:
        """Leave the processor to others."""
        self._wait.stop()
        self._task.stop()

    def _begin(self) -> None:
        plan = self._plan
        self._task = self._background.start(  # what is wrong with a plan is said when it is run
            lambda _: compare(plan), done=lambda made: self.told.emit(*made), heavy=True
        )
