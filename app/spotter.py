"""The noise, where a person says that the picture is flat.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from qtpy.QtCore import QObject, Signal

from denoiser.pieces import Region

from .background import Background
from .pencil import Ends, Pencil, boxed
from .source import Source
from .spot import measure_spot


class Spotter(QObject):
    """Has a rectangle drawn and measures in it, on a thread. `ask` gives the noisy picture, or None."""

    found = Signal(object, object)  # Source, Spot
    failed = Signal(str, object, str)

    def __init__(self, background: Background, pencil: Pencil, ask: Callable[[], Source | None]) -> None:
        super().__init__(background)
        self._background, self._pencil, self._ask = background, pencil, ask

    def draw(self) -> None:
        """With the pencil; a second wish puts it away."""
        source = self._ask()
        if source is None or self._pencil.kind == "spot":
            self._pencil.put_away()
        else:
            self._pencil.take("spot", partial(self._drawn, source))

    def _drawn(self, source: Source, ends: Ends) -> None:
        left, top, right, bottom = (int(v) for v in boxed(ends))
        self._background.start(
            lambda _: measure_spot(source, Region(top, left, bottom, right)),
            done=lambda spot: self.found.emit(source, spot),
            failed=partial(self.failed.emit, "The noise cannot be measured here"),
        )
