"""Two people, one window: the photographer's three controls and the researcher's bench."""

from types import SimpleNamespace

import numpy as np
import pytest
from hands import LONG, choose_files, open_, press, set_method
from qtpy.QtCore import QSettings, Qt

from conftest import ROOT


@pytest.fixture
def first(desk, qtbot, tmp_path):
    """The window of somebody who has never been here."""
    from denoiser_app.window import Window

    window = Window(QSettings(str(tmp_path / "new.ini"), QSettings.IniFormat))
    qtbot.addWidget(window, before_close_func=lambda w: w.runner.clear())
    window.show()
    qtbot.waitExposed(window)
    return window


def test_the_first_start_asks_and_the_answer_is_remembered(qtbot, first, noisy_file, tmp_path, monkeypatch):
    assert first.welcome.asking
    assert not first.controls.isVisible()  # one question at a time
    first.open(str(noisy_file))  # as `denoise gui FILE` does
    assert "noisy.png" in first.welcome.note.text()
    qtbot.mouseClick(first.welcome.buttons[False], Qt.LeftButton)
    qtbot.waitUntil(lambda: first.source is not None, timeout=LONG)
    assert first.controls.isVisible()
    assert not first.controls.experiment
    first.close()
    from denoiser_app.window import Window

    again = Window(QSettings(str(tmp_path / "new.ini"), QSettings.IniFormat))
    qtbot.addWidget(again)
    assert not again.welcome.asking
    assert not again.controls.experiment


def test_clean_up_opens_a_file_and_experiment_waits_for_one(qtbot, first, noisy_file, monkeypatch):
    choose_files(monkeypatch, opened=noisy_file)
    qtbot.mouseClick(first.welcome.buttons[False], Qt.LeftButton)
    qtbot.waitUntil(lambda: first.source is not None, timeout=LONG)
    press(qtbot, first, "Ctrl+1")
    assert first.controls.experiment


def test_a_question_that_was_not_answered_is_asked_again(qtbot, first, tmp_path):
    first.close()
    from denoiser_app.window import Window

    again = Window(QSettings(str(tmp_path / "new.ini"), QSettings.IniFormat))
    qtbot.addWidget(again)
    assert again.welcome.asking


def test_restore_has_three_controls_and_the_rest_is_folded(qtbot, window, noisy_file, monkeypatch):
    c = window.controls
    assert c.sigma.isVisible()
    assert not c.strength.isVisible()
    press(qtbot, window, "Ctrl+2")
    open_(qtbot, window, monkeypatch, noisy_file)
    assert [w.isVisible() for w in (c.strength, c.quality, c.chroma)] == [True] * 3
    assert not any(w.isVisible() for w in (c.sigma, c.seed, c.method, c.prior, c.memory))
    assert not c.chroma.isEnabled()  # a grey picture
    set_method(window, "mp-svgd")
    qtbot.mouseClick(c.advanced.button, Qt.LeftButton)
    assert c.sigma.isVisible()
    assert c.method.isVisible()
    for name in ("kernel", "start", "optimiser", "refresh"):
        assert not c.options.editors[name].isVisible(), name
    qtbot.waitUntil(lambda: c.options.fold.button.height() > 5, timeout=LONG)  # it has been laid out
    qtbot.mouseClick(c.options.fold.button, Qt.LeftButton)
    assert c.options.editors["kernel"].isVisible()


def test_strength_and_colour_reach_the_request(qtbot, window, monkeypatch):
    press(qtbot, window, "Ctrl+2")
    open_(qtbot, window, monkeypatch, ROOT / "sample_images" / "cat.png")
    set_method(window, "map")
    window.controls.sigma.setValue(10)
    window.controls.strength.setValue(50)
    window.controls.chroma.setValue(200)
    plan = window.controls.plan(window.source)
    request = plan.request(window.source.pixels[:32, :32])
    assert (request.level, request.chroma) == (5, 2)
    assert "--sigma 5" in plan.command()
    press(qtbot, window, "Ctrl+1")  # an experiment has no such thing
    plan = window.controls.plan(window.source)
    assert (plan.strength, plan.chroma) == (1, 1)


def test_the_time_is_told_before_a_run(qtbot, window, file, monkeypatch):
    open_(qtbot, window, monkeypatch, file)
    set_method(window, "gibbs", samples=200_000)
    qtbot.waitUntil(lambda: "akes about" in window.controls.time_note.text(), timeout=LONG)
    assert "; Fast about" in window.controls.time_note.text()


def test_the_time_is_a_rule_of_three(window, file, qtbot, monkeypatch):
    """With steps of a tenth of a second, whatever this machine does."""
    from denoiser_app import estimate

    open_(qtbot, window, monkeypatch, ROOT / "sample_images" / "camera.png")
    set_method(window, "mp-svgd", particles=2, iterations=7)
    window.estimator.stop()
    window.background.stop_all(10)
    clock = iter(np.arange(0, 100, 0.1))
    monkeypatch.setattr(estimate, "time", SimpleNamespace(perf_counter=lambda: float(next(clock))))
    plan = window.controls.plan(window.source)
    height, width = window.source.pixels.shape
    assert estimate.seconds(plan) == pytest.approx(0.1 * 7 * height * width / 96**2)


def test_a_dropped_picture_keeps_the_mode(qtbot, window, file, noisy_file, monkeypatch):
    press(qtbot, window, "Ctrl+2")
    open_(qtbot, window, monkeypatch, file)
    open_(qtbot, window, monkeypatch, noisy_file)
    assert not window.controls.experiment
