"""Which signal of which part calls what in the window, and which buttons and actions can be used at a moment.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

from functools import partial

from .display import readout


def connect(window: object) -> None:
    """Once, when the window is made."""
    c, r = window.controls, window.runner
    c.run_button.clicked.connect(window.run)
    c.cancel_button.clicked.connect(window.cancel)
    c.compare_button.clicked.connect(window.compare)
    c.noise.measure_button.clicked.connect(window.measure)
    c.noise.spot_button.clicked.connect(window.draw_spot)
    c.preview_button.clicked.connect(window.acts["show_region"].trigger)
    c.changed.connect(window.redo_noise.start)
    c.mode_changed.connect(window.measure)
    c.method_changed.connect(window.preview)
    c.fields.finished.connect(window.viewer.take_keys)
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
    window.viewer.region_moved.connect(window.preview)
    window.opener.opened.connect(window.opened)
    window.opener.opened.connect(lambda source: window.about_picture.setToolTip(str(source.picture.units)))
    window.opener.busy.connect(lambda name: window.tell(f"Reading {name}…"))
    window.opener.busy.connect(window.welcome.reading)
    window.opener.failed.connect(lambda *_: window.welcome.reading(""))
    window.saver.saved.connect(window.tell)
    for part in (r, window.opener, window.saver):
        part.failed.connect(window.report)


def enable(window: object) -> None:
    """Make buttons and actions say what is so."""
    c, acts, runs, running = window.controls, window.acts, window.runner.runs, window.runner.running
    here, numbers, result = window.source is not None, window.measuring.numbers, window.a is not None
    free, noisy = here and not running, here and not c.experiment
    c.run_button.setText("Running…" if running else "Run")
    for on, parts in (
        (here, (c.preview_button, c.noise.spot_button, c.noise.measure_button, "show_region", "copy_command")),
        (here, ("draw:rectangle", "draw:ellipse", "draw:line", "load_mask", "auto_tone", "plots.plain")),
        (free, (c.run_button, c.compare_button, "run", "compare")),
        (running, (c.cancel_button,)),
        (running or window.measuring.pencil.kind, ("cancel",)),
        (noisy, ("measure", "draw_spot")),
        (here and window.source.pages > 1, ("opener.step_page:1",)),
        (here and window.source.page, ("opener.step_page:-1",)),
        (runs and not running, ("runner.undo",)),
        (window.runner.undone and not running, ("runner.redo",)),
        (runs, ("save:table", "copy_table")),
        (window.measuring.shapes, ("measuring.undo",)),
        (numbers, ("copy_numbers", "save:numbers")),
        (window.scene is not None, ("save:figure",)),
        (result or (noisy and not running), ("save:result",)),  # Save runs first if it must
        (result, ("save:std", "save:residual", "save:samples")),
    ):
        for part in parts:
            (acts[part] if isinstance(part, str) else part).setEnabled(bool(on))
