"""Which signal of which part calls what in the window.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

from functools import partial

from .display import readout
from .enabling import enable


def connect(window: object) -> None:
    """Once, when the window is made."""
    c, r = window.controls, window.runner
    c.run_button.clicked.connect(window.run)
    c.cancel_button.clicked.connect(window.cancel)
    c.compare_button.clicked.connect(window.compare)
    c.noise.measure_button.clicked.connect(window.measure)
    c.noise.spot_button.clicked.connect(window.spotter.draw)
    window.spotter.found.connect(lambda source, spot: c.take_noise(source, spot) if source is window.source else None)
    c.preview_button.clicked.connect(window.acts["show_region"].trigger)
    c.changed.connect(window.redo_noise.start)
    c.mode_changed.connect(window.measure)
    c.method_changed.connect(window.preview)
    c.finished.connect(window.viewer.take_keys)
    c.run_button.clicked.connect(window.viewer.take_keys)
    r.state_changed.connect(window.update_state)
    r.progressed.connect(window.progressed)
    r.added.connect(window.added)
    r.previewed.connect(window.viewer.show_patch)
    c.changed.connect(window.asked_anew)
    c.method_changed.connect(window.asked_anew)
    window.looker.changed.connect(window.looked)
    window.plots.tone_changed.connect(window.set_tone)
    window.measuring.ask = window.measurable
    window.measuring.changed.connect(partial(enable, window))
    window.measuring.pencil.changed.connect(window.drawing)
    window.measuring.pencil.changed.connect(partial(enable, window))
    window.measuring.copy.clicked.connect(window.copy_numbers)
    window.measuring.csv.clicked.connect(lambda: window.save("numbers"))
    window.estimator.told.connect(c.tell_time)
    window.welcome.answered.connect(window.answered)
    window.table.chosen.connect(window.choose)
    window.viewer.hovered.connect(lambda at: window.readout.setText(readout(window.scene, at)))
    window.viewer.region_moved.connect(lambda _: window.preview())
    window.opener.opened.connect(window.opened)
    window.opener.opened.connect(lambda source: window.about_picture.setToolTip(str(source.picture.units)))
    window.opener.busy.connect(lambda name: window.tell(f"Reading {name}…"))
    window.opener.busy.connect(window.welcome.reading)
    window.opener.failed.connect(lambda *_: window.welcome.reading(""))
    window.saver.saved.connect(window.saved_one)
    for part in (r, window.opener, window.saver, window.spotter):
        part.failed.connect(window.report)
