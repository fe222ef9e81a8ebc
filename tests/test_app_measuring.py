"""Measuring in the window: the numbers are the library's, for whole pictures and for those in tiles."""

import csv
import io

import numpy as np
import pytest
from hands import LONG, Mouse, open_, press, run, save, set_method
from qtpy.QtWidgets import QApplication

from conftest import ROOT
from denoiser import measure


def ready(qtbot, window):
    qtbot.wait(250)  # a shape that was moved is measured a moment later
    qtbot.waitUntil(lambda: window.measuring._task is None and bool(window.measuring.numbers), timeout=LONG)


def test_a_rectangle_is_measured_from_the_particles(qtbot, window, file, tmp_path, monkeypatch):
    open_(qtbot, window, monkeypatch, file)
    set_method(window, "mp-svgd", particles=12)
    run(qtbot, window)
    press(qtbot, window, "R")
    _, shape = window.measuring.shapes[0]
    shape.setPos((10, 20))
    shape.setSize((12, 9))
    window.measuring._settle.start()
    ready(qtbot, window)
    samples = window.a.snapshot.outcome.samples
    found = measure.region(samples, measure.rectangle((64, 64), 10, 20, 12, 9))["mean"]
    mean = next(n for n in window.measuring.numbers if n.quantity == "mean")
    np.testing.assert_allclose((mean.value, mean.low, mean.high), (found.value, found.low, found.high))
    value, reach = (float(v) for v in window.measuring.table.item(0, 1).text().split(" ± "))
    assert (value, reach) == pytest.approx((float(found.value), float(found.reach)), abs=0.1)
    press(qtbot, window, "E")
    press(qtbot, window, "D")
    ready(qtbot, window)
    items = {n.item for n in window.measuring.numbers}
    assert items == {"rectangle 1", "ellipse 2", "line 3", "rectangle 1 - ellipse 2"}
    assert window.measuring.plot.isVisible()
    press(qtbot, window, "Ctrl+Shift+M")
    rows = list(csv.DictReader(io.StringIO(QApplication.clipboard().text())))
    assert float(rows[0]["value"]) == pytest.approx(mean.value)
    save(qtbot, window, monkeypatch, "Ctrl+Alt+M", tmp_path / "numbers.csv")
    assert (tmp_path / "numbers.csv").read_text() == QApplication.clipboard().text()
    press(qtbot, window, "Shift+R")
    assert not window.measuring.numbers


def test_a_shape_is_dragged_by_the_mouse(qtbot, window, file, monkeypatch):
    open_(qtbot, window, monkeypatch, file)
    set_method(window, "gibbs", samples=20)
    press(qtbot, window, "R")
    _, shape = window.measuring.shapes[0]
    mouse, view = Mouse(qtbot, window), window.viewer.views[0]
    x, y = shape.pos()
    w, h = shape.size()
    start = mouse.place(view, x + w / 2, y + h / 2)
    mouse.drag(start, mouse.place(view, x + w / 2 + 15, y + h / 2 - 10))
    assert tuple(shape.pos()) == pytest.approx((x + 15, y - 10), abs=1)


def test_a_picture_in_tiles_is_measured_too(qtbot, window, monkeypatch):
    open_(qtbot, window, monkeypatch, ROOT / "sample_images" / "astronaut.png")
    set_method(window, "mp-svgd", particles=6, iterations=4)
    window.set_mode(0)
    window.controls.sigma.setValue(15)
    window.controls.memory.setValue(48)
    run(qtbot, window)
    assert window.a.snapshot.particles == 0
    press(qtbot, window, "R")
    _, shape = window.measuring.shapes[0]
    shape.setPos((200, 220))
    shape.setSize((30, 20))
    window.measuring._settle.start()
    ready(qtbot, window)
    means = [n for n in window.measuring.numbers if n.quantity == "mean"]
    assert [n.channel for n in means] == ["red", "green", "blue"]
    whole = window.a.snapshot.mean[220:240, 200:230].mean(axis=(0, 1))
    np.testing.assert_allclose([n.value for n in means], whole, atol=0.2)
    assert all(n.low < n.value < n.high for n in means)


def test_a_method_that_is_not_uncertain_says_so(qtbot, window, file, monkeypatch):
    open_(qtbot, window, monkeypatch, file)
    set_method(window, "tv")
    run(qtbot, window)
    press(qtbot, window, "R")
    qtbot.waitUntil(lambda: "cannot be measured" in window.measuring.note.text(), timeout=LONG)
