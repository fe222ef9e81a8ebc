"""The noise in the window: measured and shown, measured where a person says so, and made of several kinds."""

import shlex

import numpy as np
import pytest
from hands import LONG, Mouse, open_, press, run, save, set_method, warning
from PIL import Image
from qtpy.QtCore import Qt

from denoiser import add_noise, images
from denoiser.cli import main
from denoiser.noise import measure_noise
from denoiser.samplers.mp_svgd import MPSVGD


@pytest.fixture
def photo(qtbot, window, tmp_path, monkeypatch):
    """A colour picture in Restore: texture, and a wall on its left whose noise has a standard deviation of 9."""
    rng = np.random.default_rng(0)
    clean = np.full((96, 128, 3), 120.0) + rng.normal(0, 40, (96, 128, 1)) * (np.arange(128) > 70)[:, None]
    path = tmp_path / "photo.png"
    Image.fromarray(np.clip(add_noise(clean, 9, 1), 0, 255).astype(np.uint8)).save(path)
    press(qtbot, window, "Ctrl+2")
    open_(qtbot, window, monkeypatch, path)
    qtbot.waitUntil(lambda: not window.viewer._busy, timeout=LONG)
    window.viewer.fit()
    qtbot.wait(100)
    return path


def test_the_measured_noise_is_a_curve_and_words(window, photo):
    panel, source = window.controls.noise, window.source
    assert panel.isVisible()
    assert panel.words.text() == f"N{str(source.noise)[1:]}."
    curves = panel.plot.getPlotItem().listDataItems()
    assert len(curves) == 3  # red, green and blue
    x, y = curves[0].getData()
    np.testing.assert_allclose(y, source.noise.curve(x)[0], rtol=1e-6)


def test_the_grain_is_told(qtbot, window, noisy_file, clean, tmp_path, monkeypatch):
    coarse = np.random.default_rng(0).normal(0, 30, (260, 260))
    coarse = sum(np.roll(coarse, (y, x), (0, 1)) for y in (0, 1, 2) for x in (0, 1, 2)) / 3
    Image.fromarray(np.clip(128 + 0.3 * coarse, 0, 255).astype(np.uint8)).save(tmp_path / "coarse.png")
    press(qtbot, window, "Ctrl+2")
    open_(qtbot, window, monkeypatch, tmp_path / "coarse.png")
    assert "grain of about" in window.controls.noise.words.text()
    open_(qtbot, window, monkeypatch, noisy_file)
    assert "grain" not in window.controls.noise.words.text()


def test_the_noise_is_measured_in_a_flat_spot(qtbot, window, photo, tmp_path, monkeypatch, capsys):
    c, mouse, view = window.controls, Mouse(qtbot, window), window.viewer.views[1]
    before = c.sigma.value()
    qtbot.mouseClick(c.noise.spot_button, Qt.LeftButton)
    assert c.noise.spot_button.isChecked()
    mouse.drag(mouse.place(view, 4.5, 10.5), mouse.place(view, 60.5, 80.5))
    qtbot.waitUntil(lambda: "your rectangle" in c.noise.words.text(), timeout=LONG)
    assert not c.noise.spot_button.isChecked()
    assert not window.measuring.shapes  # that is for measuring something else
    assert c.sigma.value() == pytest.approx(9, rel=0.05)
    set_method(window, "map")
    run(qtbot, window)
    plan = window.a.snapshot.plan
    assert plan.automatic  # the grain and the curve of the whole, at the level of the spot
    found = measure_noise(window.source.pixels, -1, window.source.picture.units)
    assert plan.request(window.scene.noisy).noise == found.scaled(plan.times)
    save(qtbot, window, monkeypatch, "Ctrl+S", tmp_path / "window.png")
    monkeypatch.chdir(tmp_path)
    assert main([*shlex.split(plan.command())[1:], "-o", "command.png"]) == 0
    np.testing.assert_array_equal(images.read("command.png").pixels, images.read("window.png").pixels)
    press(qtbot, window, "Ctrl+M")
    assert c.sigma.value() == before
    assert window.controls.plan(window.source).times == 1


def test_a_spot_that_says_nothing_is_refused(qtbot, window, photo, tmp_path, monkeypatch):
    mouse, view = Mouse(qtbot, window), window.viewer.views[0]
    before = window.controls.sigma.value()
    press(qtbot, window, "N")
    mouse.drag(mouse.place(view, 10.2, 10.2), mouse.place(view, 11.8, 11.8))
    assert "too small" in warning(qtbot)
    assert window.controls.sigma.value() == before


def test_a_cancelled_run_does_not_measure_the_noise_again(file, monkeypatch):
    from denoiser_app import background, session, source

    measured, measure = [], session.noise.measure_noise
    plan = session.Plan(source.load(str(file)), True, 20, MPSVGD(particles=4), "pairwise", 0, added="camera:3200,95")
    monkeypatch.setattr(session.noise, "measure_noise", lambda *a: measured.append(measure(*a)) or measured[-1])
    begun = next(session.execute(plan, background.IDLE))  # and no further
    result = session.finish(begun).outcome
    assert len(measured) == 1
    assert (result.sigma, result.sampler, result.channel_axis) == (measured[0].level, plan.sampler, None)
    assert result.samples.shape == (4, 64, 64)


@pytest.mark.parametrize(("kind", "words"), [("poisson", "poisson:1,2"), ("camera", "camera:3200,95")])
def test_an_experiment_with_other_noise(qtbot, window, file, tmp_path, monkeypatch, kind, words, capsys):
    open_(qtbot, window, monkeypatch, file)
    c = window.controls
    assert c.sigma.isVisible()
    c.added.kind.setCurrentIndex(c.added.kind.findData(kind))
    assert c.added.words == words
    assert not c.sigma.isVisible()
    assert all(field.isVisible() for field in c.added.numbers[kind])
    set_method(window, "map")
    qtbot.waitUntil(lambda: "akes about" in c.time_note.text(), timeout=LONG)
    run(qtbot, window)
    snapshot = window.a.snapshot
    row = window.a.row()
    assert row["noise"] == words
    assert 1 < row["sigma"] < 40
    assert row["PSNR"] > 20
    save(qtbot, window, monkeypatch, "Ctrl+S", tmp_path / "window.png")
    monkeypatch.chdir(tmp_path)
    command = snapshot.plan.command()
    assert f"--add-noise {words}" in command
    assert main([*shlex.split(command)[1:], "-o", "command.png"]) == 0
    np.testing.assert_array_equal(images.read("command.png").pixels, images.read("window.png").pixels)
    state = c.state()
    c.added.set_words("")
    assert c.sigma.isVisible()
    c.restore(state)
    assert c.added.words == words
    press(qtbot, window, "Ctrl+2")  # a noisy picture's noise is measured
    assert not c.added.isVisible()
    assert window.controls.plan(window.source).added == ""
