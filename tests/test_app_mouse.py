"""The window under the mouse. Events go to the window and find their way: nothing may lie over the pictures."""

import numpy as np
import pytest
from hands import LONG, Mouse, open_, press, run, set_method
from qtpy.QtCore import QPoint
from qtpy.QtWidgets import QScrollArea


@pytest.fixture
def mouse(qtbot, window, file, monkeypatch):
    open_(qtbot, window, monkeypatch, file)
    qtbot.waitUntil(lambda: not window.viewer._busy, timeout=LONG)
    qtbot.wait(100)
    return Mouse(qtbot, window)


def width(view):
    (left, right), _ = view.box.viewRange()
    return right - left


@pytest.mark.parametrize("number", [0, 1])
def test_the_wheel_zooms_around_the_cursor(mouse, window, number):
    view = window.viewer.views[number]
    before, at = width(view), mouse.place(view, 20, 30)
    mouse.wheel(at, 4)
    assert width(view) < 0.75 * before
    assert width(window.viewer.views[1 - number]) == pytest.approx(width(view), rel=0.05)  # the other follows
    still = mouse.place(view, 20, 30)
    assert (still - at).manhattanLength() <= 3
    mouse.wheel(at, -4)
    assert width(view) == pytest.approx(before, rel=0.02)


def test_a_drag_moves_the_picture(mouse, window):
    view = window.viewer.views[0]
    start = mouse.place(view, 30, 30)
    mouse.drag(start, start + QPoint(40, -25))
    assert (mouse.place(view, 30, 30) - start - QPoint(40, -25)).manhattanLength() <= 4


def test_a_double_click_fits_and_then_shows_pixels(mouse, window, qtbot):
    view = window.viewer.views[0]
    whole, at = width(view), mouse.place(view, 32, 32)
    mouse.wheel(at, 6)
    mouse.double_click(at)
    assert width(view) == pytest.approx(whole, rel=0.02)
    mouse.double_click(at)
    across, _ = view.box.viewPixelSize()
    assert across == pytest.approx(1, rel=0.02)  # a pixel is a pixel


def test_the_values_under_the_cursor_are_told(mouse, window, clean):
    view = window.viewer.views[0]
    mouse.move(mouse.place(view, 10.5, 20.5))
    assert "x 10  y 20" in window.readout.text()
    assert f"clean {clean[20, 10]}" in window.readout.text()
    mouse.move(QPoint(5, 300))  # off the pictures
    assert window.readout.text() == ""


def test_the_line_of_the_split_view_is_dragged(mouse, window, qtbot):
    set_method(window, "map")
    run(qtbot, window)
    press(qtbot, window, "S")
    view = window.viewer.views[0]
    qtbot.waitUntil(lambda: view.over.image is not None and view.line.isVisible(), timeout=LONG)
    qtbot.wait(50)
    at = mouse.place(view, view.line.value(), 10)
    before = view.box.viewRange()
    mouse.drag(at, mouse.place(view, 50, 10))
    assert view.line.value() == pytest.approx(50, abs=1.5)
    assert view.over.image.shape[1] == pytest.approx(14, abs=2)
    np.testing.assert_allclose(view.box.viewRange(), before)  # the picture stays


def test_the_frame_of_the_preview_is_dragged_and_sized(mouse, window, qtbot):
    set_method(window, "map")
    viewer, view = window.viewer, window.viewer.views[0]
    viewer.roi.setSize((20, 20))
    viewer.roi.setPos((10, 10))
    press(qtbot, window, "Ctrl+G")
    qtbot.wait(50)
    mouse.drag(mouse.place(view, 20, 20), mouse.place(view, 35, 28))
    region = viewer.region
    assert (region.left, region.top) == (25, 18)
    assert (region.right - region.left, region.bottom - region.top) == (20, 20)
    qtbot.waitUntil(lambda: view.patch.image is not None or viewer.views[1].patch.image is not None, timeout=LONG)
    mouse.drag(mouse.place(view, 45, 38), mouse.place(view, 55, 44))  # by its corner
    region = viewer.region
    assert (region.right - region.left, region.bottom - region.top) == (30, 26)


def test_the_wheel_over_the_panel_changes_nothing(mouse, window, qtbot):
    """Somebody scrolls. Qt hands on what a real wheel sends, not what a test does: that it scrolls is not seen here."""
    set_method(window, "hmc")
    c = window.controls
    c.options.fold.set_open(True)
    scroll, before = c.findChild(QScrollArea), c.state()
    for field in (c.quality, c.method, c.prior, c.memory, c.seed, c.sigma, c.added.kind, *c.options.editors.values()):
        scroll.ensureWidgetVisible(field)
        qtbot.wait(20)
        for steps in (1, -1):
            mouse.wheel(field.mapTo(window, field.rect().center()), steps)
            assert c.state() == before, field.objectName()
            assert not field.hasFocus(), field.objectName()


def test_nothing_lies_over_a_picture(mouse, window):
    for view in window.viewer.views[:2]:
        at = mouse.place(view, 32, 32)
        assert window.childAt(at) is view.canvas.viewport()
