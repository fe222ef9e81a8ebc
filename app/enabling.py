"""Which buttons and actions can be used at a moment.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations


def enable(window: object) -> None:
    """Make them say what is so."""
    runs, running, here = window.runner.runs, window.runner.running, window.source is not None
    c, acts, free = window.controls, window.acts, here and not running
    c.run_button.setText("Running…" if running else "Run")
    for widget, on in (
        (c.run_button, free), (acts["run"], free), (c.compare_button, free), (acts["compare"], free),
        (c.cancel_button, running), (acts["cancel"], running or window.measuring.pencil.kind), (c.preview_button, here),
        (acts["show_region"], here), (acts["copy_command"], here),
        (acts["runner.undo"], runs and not running), (acts["runner.redo"], window.runner.undone and not running),
        (acts["measure"], here and not c.experiment), (acts["spotter.draw"], here and not c.experiment),
        (c.noise.spot_button, here), (c.noise.measure_button, here), (acts["save:figure"], window.scene is not None),
        (acts["draw:rectangle"], here), (acts["draw:ellipse"], here), (acts["draw:line"], here),
        (acts["load_mask"], here), (acts["measuring.undo"], window.measuring.shapes),
        (acts["copy_numbers"], window.measuring.numbers), (acts["save:numbers"], window.measuring.numbers),
        (acts["step_page:1"], here and window.source.pages > 1), (acts["step_page:-1"], here and window.source.page),
        (acts["auto_tone"], here), (acts["plots.plain"], here),
        (acts["save:result"], window.a is not None or (free and not c.experiment)),  # Save runs first if it must
    ):  # fmt: skip
        widget.setEnabled(bool(on))
    for kind in ("std", "residual", "samples"):
        acts[f"save:{kind}"].setEnabled(window.a is not None)
    for name in ("save:table", "copy_table"):
        acts[name].setEnabled(bool(runs))
