"""Measuring in the window: the numbers are the library's, for whole pictures and for those in tiles."""

import csv
import io

import numpy as np
import pytest
import tifffile
from hands import LONG, Mouse, choose_files, open_, press, run, save, set_method, warning
from PIL import Image
from qtpy.QtCore import QPoint, Qt
from qtpy.QtWidgets import QApplication

from conftest import ROOT
from denoiser import add_noise, measure
from denoiser.cli import main


def ready(qtbot, window):
    qtbot.wait(250)  # a shape that was moved is measured a moment later
    qtbot.waitUntil(lambda: not window.measuring.busy and bool(window.measuring.numbers), timeout=LONG)


def draw(qtbot, window, key, start, end, number=0):
    """A shape by the mouse, from one pixel of the picture to another."""
    count, mouse, view = len(window.measuring.shapes), Mouse(qtbot, window), window.viewer.views[number]
    press(qtbot, window, key)
    mouse.drag(mouse.place(view, *start), mouse.place(view, *end))
    assert len(window.measuring.shapes) == count + 1
    return window.measuring.shapes[-1]


@pytest.fixture
def opened(qtbot, window, file, monkeypatch):
    open_(qtbot, window, monkeypatch, file)
    qtbot.waitUntil(lambda: not window.viewer._busy, timeout=LONG)
    window.viewer.fit()
    qtbot.wait(100)
    set_method(window, "gibbs", samples=20)
    return window


def test_a_rectangle_is_measured_from_the_particles(qtbot, window, file, tmp_path, monkeypatch):
    open_(qtbot, window, monkeypatch, file)
    set_method(window, "mp-svgd", particles=12)
    run(qtbot, window)
    qtbot.wait(100)  # so quick a result comes before the view has found its place
    draw(qtbot, window, "R", (10.5, 20.5), (21.5, 28.5))
    ready(qtbot, window)
    samples = window.a.snapshot.outcome.samples
    found = measure.region(samples, measure.rectangle((64, 64), 10, 20, 12, 9))["mean"]
    mean = next(n for n in window.measuring.numbers if n.quantity == "mean")
    np.testing.assert_allclose((mean.value, mean.low, mean.high), (found.value, found.low, found.high))
    value, reach = (float(v) for v in window.measuring.table.item(0, 1).text().split(" ± "))
    assert (value, reach) == pytest.approx((float(found.value), float(found.reach)), abs=0.1)
    draw(qtbot, window, "E", (30, 30), (50, 44))
    draw(qtbot, window, "D", (5, 50), (45, 58))
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


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize(("key", "kind"), [("R", "rectangle"), ("E", "ellipse"), ("D", "line")])
def test_a_shape_is_drawn_by_the_mouse_in_any_view(qtbot, opened, key, kind, number):
    before = opened.viewer.views[0].box.viewRange()
    shape = draw(qtbot, opened, key, (40.5, 12.5), (19.5, 30.5), number)  # from right to left
    assert (shape.kind, shape.name) == (kind, f"{kind} 1")
    expected = (40.5, 12.5, 19.5, 30.5) if kind == "line" else (19, 12, 41, 31)  # regions are whole pixels
    assert shape.ends == pytest.approx(expected, abs=0.3)
    np.testing.assert_allclose(opened.viewer.views[0].box.viewRange(), before)  # the picture stays
    assert not opened.measuring.pencil.kind
    assert not opened.acts[f"draw:{kind}"].isChecked()
    mouse, view = Mouse(qtbot, opened), opened.viewer.views[1 - number]  # it is there, too, and can be dragged
    x1, y1, x2, y2 = shape.ends
    middle = (x1 + x2) / 2, (y1 + y2) / 2
    mouse.drag(mouse.place(view, *middle), mouse.place(view, middle[0] + 8, middle[1] - 6))
    assert shape.ends == pytest.approx((x1 + 8, y1 - 6, x2 + 8, y2 - 6), abs=1)
    for copy in shape._copies:
        at = copy.mapToParent(copy.boundingRect().center())
        assert (at.x(), at.y()) == pytest.approx((middle[0] + 8, middle[1] - 6), abs=1.5)
    for label in shape._labels:  # its number stays at its beginning
        at = label.parentItem().mapToParent(label.pos())
        assert (at.x(), at.y()) == pytest.approx(shape.ends[:2], abs=0.1)
    ready(qtbot, opened)


def test_the_pencil_is_put_away(qtbot, opened):
    mouse, view = Mouse(qtbot, opened), opened.viewer.views[0]
    start, end = mouse.place(view, 20, 20), mouse.place(view, 30, 26)

    def moves_the_picture():
        mouse.drag(start, end)
        there = (mouse.place(view, 20, 20) - end).manhattanLength() <= 4
        opened.viewer.fit()
        qtbot.wait(50)
        return there

    for away in ("R", "Esc"):  # the same key, or Escape
        press(qtbot, opened, "R")
        assert view.canvas.viewport().cursor().shape() == Qt.CrossCursor
        assert opened.acts["draw:rectangle"].isChecked()
        press(qtbot, opened, away)
        assert not opened.measuring.pencil.kind
        assert moves_the_picture()
    press(qtbot, opened, "R")
    mouse.drag(start, start + QPoint(1, 1))  # a click is no rectangle
    assert not opened.measuring.shapes
    assert opened.measuring.pencil.kind == "rectangle"
    mouse.drag(start, end + QPoint(2000, 0))  # what goes beyond the picture ends there
    assert opened.measuring.shapes[0].ends[2] == 64
    press(qtbot, opened, "Backspace")
    assert not opened.measuring.shapes


def test_a_mask_is_loaded_from_a_file(qtbot, opened, tmp_path, monkeypatch):
    mask = np.zeros((64, 64), np.uint8)
    mask[10:20, 30:45] = mask[12:16, 5:9] = 200
    Image.fromarray(mask).save(tmp_path / "mask.png")
    choose_files(monkeypatch, opened=tmp_path / "mask.png")
    press(qtbot, opened, "M")
    qtbot.waitUntil(lambda: bool(opened.measuring.shapes), timeout=LONG)
    ready(qtbot, opened)
    mean = next(n for n in opened.measuring.numbers if n.quantity == "mean")
    assert mean.item == "mask 1"
    assert mean.value == pytest.approx(opened.scene.noisy[mask > 0].mean(), abs=2)
    for bad, words in ((mask[:60], "64 x 60"), (0 * mask, "black")):
        Image.fromarray(bad).save(tmp_path / "bad.png")
        choose_files(monkeypatch, opened=tmp_path / "bad.png")
        press(qtbot, opened, "M")
        assert words in warning(qtbot)
    assert len(opened.measuring.shapes) == 1
    press(qtbot, opened, "Shift+R")
    assert not opened.measuring.numbers


def test_a_picture_in_tiles_is_measured_too(qtbot, window, monkeypatch):
    open_(qtbot, window, monkeypatch, ROOT / "sample_images" / "astronaut.png")
    set_method(window, "mp-svgd", particles=6, iterations=4)
    window.controls.set_mode(0)
    window.controls.sigma.setValue(15)
    window.controls.memory.setValue(48)
    run(qtbot, window)
    assert window.a.snapshot.particles == 0
    draw(qtbot, window, "R", (200.5, 220.5), (229.5, 239.5))
    window.measuring.shapes[0].put((200, 220, 230, 240))
    window.measuring.refresh()
    ready(qtbot, window)
    means = [n for n in window.measuring.numbers if n.quantity == "mean"]
    assert [n.channel for n in means] == ["red", "green", "blue"]
    whole = window.a.snapshot.mean[220:240, 200:230].mean(axis=(0, 1))
    np.testing.assert_allclose([n.value for n in means], whole, atol=0.2)
    assert all(n.low < n.value < n.high for n in means)


def test_numbers_are_in_the_units_of_the_file(qtbot, window, clean, tmp_path, monkeypatch, capsys):
    """As `denoise measure` prints them: counts of a micrograph, and not grey levels of the screen."""
    counts = np.rint(1000 + 8 * add_noise(clean, 10)).astype(np.uint16)
    tifffile.imwrite(tmp_path / "cells.tif", counts)
    press(qtbot, window, "Ctrl+2")
    open_(qtbot, window, monkeypatch, tmp_path / "cells.tif")
    window.viewer.fit()
    qtbot.wait(100)
    run(qtbot, window)
    draw(qtbot, window, "R", (10.5, 20.5), (29.5, 39.5))
    ready(qtbot, window)
    mean = next(n for n in window.measuring.numbers if n.quantity == "mean")
    assert main(["measure", str(tmp_path / "cells.tif"), "--region", "10,20,20,20"]) == 0
    told = next(line for line in capsys.readouterr().out.splitlines() if "mean" in line)
    assert mean.value == pytest.approx(float(told.split("mean ")[1].split()[0]), rel=1e-5)
    Mouse(qtbot, window).move(Mouse(qtbot, window).place(window.viewer.views[0], 30.5, 31.5))
    assert f"noisy {counts[31, 30]}" in window.readout.text()
    assert "white" in window.about_picture.toolTip()


def test_a_method_that_is_not_uncertain_says_so(qtbot, opened):
    window = opened
    set_method(window, "tv")
    run(qtbot, window)
    qtbot.wait(100)  # so quick a result comes before the view has found its place
    draw(qtbot, window, "R", (10, 10), (30, 30))
    qtbot.waitUntil(lambda: "cannot be measured" in window.measuring.note.text(), timeout=LONG)
