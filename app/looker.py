"""The first look on the screen: begun when a picture or a control is new, gone when a run says it better.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import numpy as np
from qtpy.QtCore import QObject, Signal

from denoiser.pieces import Region

from .background import Background
from .display import picture_bytes
from .glance import Glance
from .session import Plan
from .tone import PLAIN, Tone
from .viewer import Viewer


class Looker(QObject):
    """Holds the blocks that have been looked at so far, and shows them."""

    changed = Signal()  # begins, goes on or ends

    def __init__(self, background: Background, viewer: Viewer, parent: QObject) -> None:
        super().__init__(parent)
        self._viewer = viewer
        self._plan: Plan | None = None
        self._means: dict[Region, np.ndarray] = {}
        self._bytes: dict[Region, np.ndarray] = {}
        self._tone = PLAIN
        self.glance = Glance(background, self)
        self.glance.made.connect(self._made)
        self.glance.ended.connect(self.changed)
        viewer.turned.connect(self.glance.turn)

    @property
    def on(self) -> bool:
        """Whether there is a look on the screen, or one under way."""
        return self._plan is not None

    @property
    def busy(self) -> bool:
        """Whether there is more to come."""
        return self.glance.busy

    @property
    def share(self) -> float:
        """How much of the picture has been looked at."""
        if self._plan is None:
            return 0.0
        height, width = self._plan.source.pixels.shape[:2]
        return sum(np.prod(place.shape) for place in self._means) / (height * width)

    def begin(self, plan: Plan) -> None:
        """What would this become?"""
        if self._plan is not None and self._plan.source is not plan.source:
            self.end()
        self._plan, self._means = plan, {}  # the old blocks stay on the screen until there are new ones
        self.glance.look(plan, self._viewer.seen)
        self.changed.emit()

    def end(self) -> None:
        """Take it away."""
        self.glance.stop()
        self._plan, self._means, self._bytes = None, {}, {}
        self._viewer.show_looks({})
        self.changed.emit()

    def set_tone(self, tone: Tone) -> None:
        """Other black, white and gamma."""
        self._tone = tone
        for place, mean in self._means.items():
            self._show(place, mean)
        self._viewer.show_looks(dict(self._bytes))

    def _made(self, place: Region, mean: np.ndarray) -> None:
        if self._plan is not None:
            self._means[place] = mean
            self._show(place, mean)
            self._viewer.show_looks(dict(self._bytes))
            self.changed.emit()

    def _show(self, place: Region, mean: np.ndarray) -> None:
        assert self._plan is not None
        self._bytes[place] = picture_bytes(mean, self._plan.source, self._tone)
