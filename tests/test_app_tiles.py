"""Pictures in tiles, as every photograph is: what the window says of them is what the command's Result says."""

import numpy as np
import pytest
import tifffile
from hands import LONG, answer, choose_files, finished, open_, press, run, save, set_method, text, warning
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QApplication

from conftest import ROOT
from denoiser import denoise, images
from denoiser.samplers import METHODS


@pytest.fixture
def astronaut(qtbot, window, monkeypatch):
    """512x512 in colour, in tiles, soon done."""
    open_(qtbot, window, monkeypatch, ROOT / "sample_images" / "astronaut.png")
    set_method(window, "mp-svgd", particles=3, iterations=2)
    window.controls.set_mode(0)
    window.controls.sigma.setValue(15)
    window.controls.memory.setValue(48)
    return images.read(ROOT / "sample_images" / "astronaut.png").pixels


def test_a_picture_in_tiles_tells_what_the_result_does(qtbot, window, astronaut, tmp_path, monkeypatch):
    run(qtbot, window)
    snapshot, outcome = window.a.snapshot, window.a.snapshot.outcome
    sampler = METHODS["mp-svgd"](particles=3, iterations=2)
    result = denoise(astronaut, 15.0, method=sampler, channel_axis=-1, memory=48 << 20)
    assert outcome.tiles == result.tiles > 1
    np.testing.assert_array_equal(snapshot.mean, result.mean)
    np.testing.assert_array_equal(snapshot.std, result.std)
    assert (outcome.draws, outcome.particles) == (result.draws, result.particles) == (3, 0)
    assert outcome.uncertainty == result.uncertainty
    low, high = result.interval(0.9)
    mine = snapshot.interval(100, 200)
    np.testing.assert_array_equal(mine, (low[100, 200], high[100, 200]))
    row = window.a.row()
    assert (row["M"], row["iterations"], row["tiles"]) == (3, 2, result.tiles)
    assert row["mean std"] == pytest.approx(result.uncertainty)
    window.viewer.views[0].choose("particle")
    qtbot.waitUntil(lambda: "tiles" in window.viewer.views[0].empty.text(), timeout=LONG)  # why there are none
    choose_files(monkeypatch, saved=tmp_path / "p.npz")
    press(qtbot, window, "Ctrl+P")
    assert "tiles" in warning(qtbot)
    assert not (tmp_path / "p.npz").exists()
    steps, spread = snapshot.curves["std"]
    assert steps == sorted(set(steps))
    assert len(steps) <= result.tiles  # a point a tile: no zigzag
    assert spread[-1] == pytest.approx(result.uncertainty)
    window.controls.memory.setValue(4096)  # with more memory it is one piece, and has particles
    run(qtbot, window)
    assert (window.a.snapshot.outcome.tiles, window.a.snapshot.particles) == (1, 3)


def test_a_cancelled_picture_in_tiles_is_finished_parts_and_a_veil(qtbot, window, astronaut, tmp_path, monkeypatch):
    set_method(window, "mp-svgd", particles=3, iterations=20)
    live = []
    window.runner.progressed.connect(live.append)
    qtbot.mouseClick(window.controls.run_button, Qt.LeftButton)
    qtbot.waitUntil(lambda: bool(live) and 0 < live[-1].finished < 1, timeout=LONG)
    qtbot.mouseClick(window.controls.cancel_button, Qt.LeftButton)
    finished(qtbot, window, 1)
    snapshot = window.a.snapshot
    done = snapshot.done
    assert 0 < done.mean() < 1
    assert np.isnan(snapshot.std[~done]).all()  # and not 0, which would be certainty
    assert (snapshot.std[done] > 0).all()
    assert np.mean(snapshot.mean[~done] == astronaut[~done]) > 0.99  # but for the seams
    assert snapshot.uncertainty == pytest.approx(np.nanmean(snapshot.std))
    assert "% finished" in text(window, 0, 8)
    from denoiser_app.display import Scene, readout, render

    scene = Scene(snapshot.plan.source, False, snapshot.noisy, snapshot)
    shown = render(scene, "a")
    assert (shown[done] == np.clip(np.rint(snapshot.mean[done]), 0, 255)).all()
    assert np.abs(shown[~done].astype(float) - astronaut[~done]).mean() > 10  # the veil
    row, column = np.argwhere(~done)[0]
    assert "not finished" in readout(scene, (row, column))
    choose_files(monkeypatch, saved=tmp_path / "part.png")
    asked = []
    answer("Cancel", asked)
    press(qtbot, window, "Ctrl+S")
    assert "finished" in asked[0]
    assert not (tmp_path / "part.png").exists()
    choose_files(monkeypatch, saved=tmp_path / "std.png")
    answer("Save all the same")
    press(qtbot, window, "Ctrl+U")
    assert "TIFF" in warning(qtbot)
    answer("Save all the same")
    save(qtbot, window, monkeypatch, "Ctrl+U", tmp_path / "std.tif")
    np.testing.assert_array_equal(np.isnan(tifffile.imread(tmp_path / "std.tif")[..., 0]), ~done)


def test_cancelled_before_the_first_tile_there_is_no_result(qtbot, window, astronaut):
    set_method(window, "mp-svgd", particles=8, iterations=500)
    qtbot.mouseClick(window.controls.run_button, Qt.LeftButton)
    qtbot.waitUntil(lambda: window.runner.live is not None, timeout=LONG)
    qtbot.mouseClick(window.controls.cancel_button, Qt.LeftButton)
    assert window.table.rowCount() == 0
    assert "Cancelled" in window.message.text()
    assert QApplication.activeModalWidget() is None
