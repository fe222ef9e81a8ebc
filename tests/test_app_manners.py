"""What a person may expect of any window: nothing lost, keys that work, a size that fits, plain words."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hands import LONG, answer, choose_files, finished, open_, press, run, save, set_method, text, warning
from qtpy.QtCore import QMimeData, QPointF, QRect, Qt, QTimer, QUrl
from qtpy.QtGui import QDropEvent
from qtpy.QtWidgets import QApplication, QToolBar

from conftest import ROOT
from denoiser.metrics import credible_factor

# ------------------------------------------------------------------------------------------ nothing lost


def test_a_failed_save_arms_nothing(qtbot, window, file, tmp_path, monkeypatch):
    open_(qtbot, window, monkeypatch, file)
    set_method(window, "map")
    run(qtbot, window)
    choose_files(monkeypatch, saved=tmp_path / "no" / "such" / "folder.png")
    answer("Save result A")
    assert not window.close()
    assert "Cannot save" in warning(qtbot)
    run(qtbot, window)
    save(qtbot, window, monkeypatch, "Ctrl+T", tmp_path / "table.csv")
    save(qtbot, window, monkeypatch, "Ctrl+E", tmp_path / "figure.png")
    qtbot.wait(100)
    assert window.isVisible()
    assert not any(r.saved for r in window.runner.runs)  # a table is no result
    save(qtbot, window, monkeypatch, "Ctrl+S", tmp_path / "a.png")
    qtbot.waitUntil(lambda: window.a.saved, timeout=LONG)
    assert [r.saved for r in window.runner.runs] == [False, True]


def test_what_was_dropped_is_opened_after_the_save(qtbot, window, file, noisy_file, tmp_path, monkeypatch):
    open_(qtbot, window, monkeypatch, file)
    set_method(window, "map")
    run(qtbot, window)
    choose_files(monkeypatch, saved=tmp_path / "out.png")
    answer("Save result A")
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(noisy_file))])
    window.dropEvent(QDropEvent(QPointF(300, 300), Qt.CopyAction, data, Qt.LeftButton, Qt.NoModifier))
    qtbot.waitUntil(lambda: window.source.name == "noisy.png", timeout=LONG)
    assert (tmp_path / "out.png").exists()


def enter(seen):
    """Press Enter at the next question."""

    def click():
        box = QApplication.activeModalWidget()
        if box is None:
            QTimer.singleShot(20, click)
            return
        seen.append(box.defaultButton().text())
        box.defaultButton().click()

    QTimer.singleShot(0, click)


def test_enter_never_destroys(qtbot, window, file, tmp_path, monkeypatch):
    open_(qtbot, window, monkeypatch, file)
    set_method(window, "map")
    run(qtbot, window)
    seen = []
    choose_files(monkeypatch)
    enter(seen)
    assert not window.close()
    save(qtbot, window, monkeypatch, "Ctrl+S", tmp_path / "a.png")
    enter(seen)
    press(qtbot, window, "Ctrl+S")  # over what is there
    qtbot.waitUntil(lambda: window.a.saved, timeout=LONG)
    run(qtbot, window)
    press(qtbot, window, "X")
    window.choose(window.runner.runs[0], False)  # A is saved, the other is not
    enter(seen)
    assert not window.close()
    assert seen == ["Save result A", "Cancel", "Cancel"]


# ---------------------------------------------------------------------------------------- keys and words


def test_keys_work_while_a_number_field_has_the_focus(qtbot, window, file, monkeypatch):
    open_(qtbot, window, monkeypatch, file)
    set_method(window, "mp-svgd")
    field = window.controls.options.editors["iterations"]
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, "33")
    assert field.value() == 33
    qtbot.keyClick(field, Qt.Key_S)  # no digit, so it is the window's
    qtbot.waitUntil(lambda: window.viewer.split, timeout=LONG)
    qtbot.keyClick(field, Qt.Key_Return)
    assert field.value() == 33
    assert window.focusWidget() is window.viewer.views[0].canvas
    qtbot.keyClick(window.focusWidget(), Qt.Key_3)
    assert window.viewer.count == 3
    assert field.value() == 33


def test_run_gives_the_keys_to_the_pictures(qtbot, window, file, monkeypatch):
    open_(qtbot, window, monkeypatch, file)
    set_method(window, "map")
    window.controls.seed.setFocus()
    run(qtbot, window)
    qtbot.keyClick(window.focusWidget(), Qt.Key_3)
    assert window.viewer.count == 3
    assert window.controls.seed.value() == 0


def test_alt_n_takes_the_noise_level(qtbot, window):
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow, timeout=LONG)
    qtbot.keyClick(window, Qt.Key_N, Qt.AltModifier)
    before = window.controls.sigma.value()
    qtbot.keyClick(window.focusWidget(), Qt.Key_Right)
    assert window.controls.sigma.value() > before


def test_cancel_at_once_says_so(qtbot, window, file, monkeypatch):
    open_(qtbot, window, monkeypatch, file)
    qtbot.mouseClick(window.controls.run_button, Qt.LeftButton)
    qtbot.mouseClick(window.controls.cancel_button, Qt.LeftButton)
    qtbot.wait(700)
    assert "Starting" not in window.message.text()
    assert "ancelled" in window.message.text()
    assert not window.progress.isVisible()


def test_the_plots_forget_the_last_picture(qtbot, window, file, noisy_file, monkeypatch):
    open_(qtbot, window, monkeypatch, file)
    set_method(window, "gibbs", samples=400)
    run(qtbot, window)
    quality = window.plots.plots[0]
    assert quality.viewRange()[0][1] > 100
    window.runner.runs[0].saved = True
    press(qtbot, window, "Ctrl+2")
    open_(qtbot, window, monkeypatch, noisy_file)
    qtbot.wait(50)
    assert quality.viewRange()[0][1] < 10
    assert "PSNR" not in quality.titleLabel.text  # nobody knows it here


def test_while_a_run_goes_on_the_table_marks_what_is_shown(qtbot, window, file, monkeypatch):
    open_(qtbot, window, monkeypatch, file)
    set_method(window, "map")
    run(qtbot, window)
    set_method(window, "gibbs", samples=20000)
    qtbot.mouseClick(window.controls.run_button, Qt.LeftButton)
    qtbot.waitUntil(lambda: text(window, 0, 0) == "B", timeout=LONG)
    qtbot.mouseClick(window.controls.cancel_button, Qt.LeftButton)
    finished(qtbot, window, 2)
    assert [text(window, row, 0) for row in range(2)] == ["B", "A"]


@pytest.mark.parametrize("screen", [(1024, 768), (1280, 800)])
def test_the_window_fits_the_screen(qtbot, window, file, monkeypatch, screen):
    open_(qtbot, window, monkeypatch, file)
    press(qtbot, window, "3")
    window.fit_screen(QRect(0, 0, *screen))
    qtbot.wait(50)
    assert window.width() <= screen[0]
    assert window.height() <= screen[1] - 30  # a title bar
    bar = window.findChild(QToolBar)
    tools = [bar.widgetForAction(action) for action in bar.actions()]
    assert all(tool.isVisible() for tool in tools)
    for widget in (window.controls.run_button, window.controls.compare_button, window.message, *window.viewer.views):
        corner = widget.mapTo(window, widget.rect().bottomRight())
        assert window.rect().contains(corner), widget


def test_the_interval_is_the_one_of_the_metrics(qtbot, window, file, monkeypatch):
    open_(qtbot, window, monkeypatch, file)
    set_method(window, "mp-svgd", particles=25)
    run(qtbot, window)
    snapshot = window.a.snapshot
    low, high = snapshot.interval(20, 10)
    reach = credible_factor(0.9, 25) * snapshot.std[20, 10]
    np.testing.assert_allclose([low, high], snapshot.mean[20, 10] + np.array([-reach, reach]), rtol=1e-6)


# ---------------------------------------------------------------------------------------- start and end


def gui(*arguments, **environment):
    return [sys.executable, "-m", "denoiser", "gui", *arguments], {**os.environ, **environment}


def test_ctrl_c_in_the_terminal_ends_an_idle_window(tmp_path):
    command, environment = gui(QT_QPA_PLATFORM="offscreen", XDG_CONFIG_HOME=str(tmp_path))
    process = subprocess.Popen(command, env=environment, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    settings = tmp_path / "mpsvgd" / "denoise.conf"
    until = time.monotonic() + 60
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    while process.poll() is None and time.monotonic() < until:
        time.sleep(0.1)
    process.kill()
    _, words = process.communicate()
    assert process.returncode == 130, words
    assert settings.exists()  # it closed properly


@pytest.mark.skipif(sys.platform != "linux", reason="X11")
@pytest.mark.parametrize(
    "broken",
    [{"QT_QPA_PLATFORM": "xcb", "DISPLAY": ":987"}, {"QT_QPA_PLATFORM": "nonsense", "DISPLAY": ":0"}],
    ids=["no screen", "no platform"],
)
def test_a_qt_that_cannot_start_is_one_line(broken):
    command, environment = gui(**broken)
    process = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert process.returncode == 1, process.stderr
    assert len(process.stderr.splitlines()) == 1
    assert process.stderr.startswith("denoise: ")


def test_a_missing_library_is_named(monkeypatch):
    from denoiser_app import screen

    def load(path):
        raise OSError("libxcb-icccm.so.4: cannot open shared object file: No such file or directory")

    monkeypatch.setattr(screen.ctypes, "CDLL", load)
    words = screen._reason("Could not load the Qt platform plugin")
    assert "libxcb-icccm.so.4" in words
    assert "libxcb-icccm4" in words  # what to install


def test_times_are_for_people():
    from denoiser_app.display import duration

    assert [duration(s) for s in (0.2, 59, 100, 3600, 28139)] == ["1 s", "59 s", "2 min", "1 h", "7 h 49 min"]
