"""What is seen: a first look at once, black, white and gamma, the uncertainty with its scale."""

import time

import numpy as np
import pytest
import tifffile
from hands import LONG, Mouse, choose_files, open_, press, run, set_method
from PIL import Image
from qtpy.QtCore import QPointF

from conftest import ROOT
from denoiser import add_noise, images
from denoiser.pieces import Region


@pytest.fixture
def photo(tmp_path):
    """A noisy colour photograph of several blocks."""
    pixels = images.read(ROOT / "sample_images" / "astronaut.png").pixels
    pixels = np.tile(pixels, (2, 2, 1))[:500, :800]
    path = tmp_path / "photo.png"
    Image.fromarray(np.clip(add_noise(pixels, 15), 0, 255).astype(np.uint8)).save(path)
    return path


def look(qtbot, window, path, monkeypatch):
    press(qtbot, window, "Ctrl+2")
    window.viewer.views[1].choose("a")
    open_(qtbot, window, monkeypatch, path)
    qtbot.waitUntil(lambda: window.looker.on, timeout=LONG)


def test_a_first_look_comes_by_itself_and_is_what_the_run_gives(qtbot, window, photo, monkeypatch):
    look(qtbot, window, photo, monkeypatch)
    view = window.viewer.views[1]
    qtbot.waitUntil(lambda: bool(view._blocks), timeout=LONG)
    first = next(iter(view._blocks))
    assert first.left <= 400 <= first.right  # the middle of what is seen comes first
    qtbot.waitUntil(lambda: not window.looker.busy, timeout=LONG)
    assert window.looker.share == pytest.approx(1)
    assert not window.runner.runs  # a look is no result
    assert "first look" in view.caption.text()
    shown = {place: item.image.copy() for place, item in view._blocks.items()}
    window.controls.quality.setCurrentIndex(window.controls.quality.findData("fast"))
    run(qtbot, window)
    assert not view._blocks
    whole = np.clip(np.rint(window.a.snapshot.mean), 0, 255)
    for place, pixels in shown.items():
        assert np.mean(np.abs(pixels - place.of(whole)) <= 1) > 0.999


def test_looking_elsewhere_changes_the_order():
    from denoiser_app.looker import blocks, nearest

    todo = blocks((3000, 4000))
    assert sum(np.prod(b.shape) for b in todo) == 3000 * 4000
    corner = nearest(todo, Region(0, 0, 300, 400))
    assert (corner.top, corner.left) == (0, 0)
    other = nearest(todo, Region(2800, 3700, 3000, 4000))
    assert (other.bottom, other.right) == (3000, 4000)


def test_a_control_makes_a_new_look_and_save_does_the_whole(qtbot, window, photo, tmp_path, monkeypatch):
    look(qtbot, window, photo, monkeypatch)
    qtbot.waitUntil(lambda: not window.looker.busy, timeout=LONG)
    before = next(iter(window.viewer.views[1]._blocks.values())).image.copy()
    window.controls.strength.setValue(30)
    qtbot.waitUntil(lambda: window.looker.busy, timeout=LONG)
    qtbot.waitUntil(lambda: not window.looker.busy, timeout=LONG)
    assert not np.array_equal(next(iter(window.viewer.views[1]._blocks.values())).image, before)
    choose_files(monkeypatch, saved=tmp_path / "out.png")
    press(qtbot, window, "Ctrl+S")
    qtbot.waitUntil(lambda: (tmp_path / "out.png").exists() and not window.saver.writing, timeout=LONG)
    assert window.a.saved


def test_a_look_over_a_result_says_so_and_what_is_seen_is_saved(qtbot, window, noisy_file, tmp_path, monkeypatch):
    from denoiser_app.saver import figure_panels

    look(qtbot, window, noisy_file, monkeypatch)
    qtbot.waitUntil(lambda: not window.looker.busy, timeout=LONG)
    view = window.viewer.views[1]
    assert [words for words, _ in figure_panels(window.scene, window.viewer)] == ["Noisy"]
    window.controls.quality.choose("fast")
    run(qtbot, window)
    assert view.caption.text() == "Direct"
    window.controls.strength.setValue(30)
    qtbot.waitUntil(lambda: "first look" in view.caption.text(), timeout=LONG)
    qtbot.waitUntil(lambda: not window.looker.busy, timeout=LONG)
    (seen,) = (item.image for item in view._blocks.values())
    assert [words for words, _ in figure_panels(window.scene, window.viewer)] == ["Noisy", "Result A  Direct"]
    choose_files(monkeypatch, saved=tmp_path / "out.png")
    press(qtbot, window, "Ctrl+S")
    qtbot.waitUntil(lambda: (tmp_path / "out.png").exists() and not window.saver.writing, timeout=LONG)
    assert [r.snapshot.plan.strength for r in window.runner.runs] == [1, 0.3]
    assert np.abs(images.read(tmp_path / "out.png").pixels.astype(int) - seen).max() <= 1


def test_the_split_line_cuts_the_look(qtbot, window, photo, monkeypatch):
    look(qtbot, window, photo, monkeypatch)
    press(qtbot, window, "S")
    view = window.viewer.views[0]
    qtbot.waitUntil(lambda: bool(view._blocks) and view.line.isVisible(), timeout=LONG)
    view.line.setValue(560)
    assert view.sheet.rect().left() == 560
    assert view.sheet.rect().right() == 800


def test_the_split_line_stays_in_sight(qtbot, window, photo, monkeypatch):
    look(qtbot, window, photo, monkeypatch)
    view = window.viewer.views[0]
    view.box.setRange(xRange=(20, 120), yRange=(20, 120), padding=0)
    press(qtbot, window, "S")
    qtbot.waitUntil(view.line.isVisible, timeout=LONG)
    (left, right), _ = view.box.viewRange()
    qtbot.waitUntil(lambda: left < view.line.value() < right, timeout=LONG)
    view.box.setRange(xRange=(600, 700), yRange=(20, 120), padding=0)
    qtbot.waitUntil(lambda: 500 < view.line.value() < 800, timeout=LONG)


@pytest.fixture
def micrograph(tmp_path):
    """12 bits in a 16-bit file, hardly brighter than black."""
    clean = images.read(ROOT / "sample_images" / "camera.png").pixels[:96, :96]
    path = tmp_path / "micro.tif"
    tifffile.imwrite(path, (100 + 200 * clean / 255 + np.random.default_rng(0).normal(0, 8, clean.shape)).astype("u2"))
    return path


def test_a_dark_micrograph_is_seen(qtbot, window, micrograph, monkeypatch):
    press(qtbot, window, "Ctrl+2")
    open_(qtbot, window, monkeypatch, micrograph)
    shown = window.viewer.views[0].image.image
    low, high = np.percentile(shown, (5, 95))
    assert high - low > 100
    assert "16-bit grey, TIFF" in window.about_picture.text()


def test_the_preview_has_the_tone_of_the_picture(qtbot, window, micrograph, monkeypatch):
    """Black is not 0 in this file, and what is hardly seen is stretched when it is opened."""
    from denoiser_app.display import picture_bytes

    press(qtbot, window, "Ctrl+2")
    open_(qtbot, window, monkeypatch, micrograph)
    set_method(window, "map", iterations=20)
    press(qtbot, window, "Ctrl+G")
    view = window.viewer.views[1]
    qtbot.waitUntil(lambda: view.patch.image is not None and not window.runner.previewing, timeout=LONG)
    place, seen = window.viewer.region, [(window.tone, view.patch.image)]
    window.plots.handles["white"].setValue((window.tone.black + window.tone.white) / 2)
    qtbot.waitUntil(lambda: window.viewer.scene.tone is window.tone, timeout=LONG)
    seen.append((window.tone, view.patch.image))
    run(qtbot, window)
    for tone, patch in seen:
        expected = picture_bytes(place.of(window.a.snapshot.mean), window.source, tone)
        assert np.mean(np.abs(patch.astype(int) - expected) <= 3) > 0.99


def test_a_control_turned_while_the_noise_is_made_does_not_lose_the_fit(qtbot, window, file, monkeypatch):
    """On a slow machine the window itself does so: the controls it has restored ask for noise once more."""
    from denoiser_app.session import Plan

    quick = Plan.noisy
    monkeypatch.setattr(Plan, "noisy", lambda plan: (time.sleep(0.3), quick(plan))[1])
    choose_files(monkeypatch, opened=file)
    press(qtbot, window, "Ctrl+O")
    qtbot.waitUntil(lambda: window.source is not None, timeout=LONG)
    window.redo_noise.start()
    qtbot.waitUntil(lambda: window.viewer.views[0].image.image is not None, timeout=LONG)
    qtbot.wait(100)
    for view in window.viewer.views[:2]:
        (left, right), (top, bottom) = view.box.viewRange()
        assert left <= 0 < 64 <= right
        assert top <= 0 < 64 <= bottom
        assert min(right - left, bottom - top) < 1.1 * 64


def test_black_white_and_gamma_by_hand(qtbot, window, file, clean, monkeypatch):
    open_(qtbot, window, monkeypatch, file)
    window.viewer.views[0].choose("clean")
    view = window.viewer.views[0]

    def shown(expected):
        qtbot.waitUntil(
            lambda: view.image.image is not None and np.abs(view.image.image.astype(int) - expected).max() <= 1,
            timeout=LONG,
        )

    press(qtbot, window, "Shift+L")
    shown(clean)
    window.plots.handles["black"].setValue(50)
    window.plots.handles["white"].setValue(150)
    shown(np.clip(2.55 * (clean.astype(float) - 50), 0, 255))
    window.plots.handles["gamma"].setValue(75)
    assert window.tone.gamma == pytest.approx(2)
    shown(255 * np.sqrt(np.clip((clean.astype(float) - 50) / 100, 0, 1)))
    press(qtbot, window, "Shift+L")
    shown(clean)
    press(qtbot, window, "L")
    assert (window.tone.black, window.tone.white) != (0, 255)


def test_a_handle_is_dragged_by_the_mouse(qtbot, window, file, monkeypatch):
    open_(qtbot, window, monkeypatch, file)
    qtbot.wait(100)
    mouse, plot = Mouse(qtbot, window), window.plots.plots[2]

    def place(level):
        low, high = plot.viewRange()[1]
        at = window.plots.mapFromScene(plot.vb.mapViewToScene(QPointF(level, (low + high) / 2)))
        return window.plots.viewport().mapTo(window, at)

    mouse.drag(place(255), place(180))
    assert window.tone.white == pytest.approx(180, abs=4)


def test_curves_are_shown_where_there_are_any(qtbot, window, noisy_file, monkeypatch):
    quality, spread, histogram = window.plots.plots
    assert quality.isVisible()  # an experiment has some
    press(qtbot, window, "Ctrl+2")
    open_(qtbot, window, monkeypatch, noisy_file)
    qtbot.waitUntil(lambda: not quality.isVisible() and not spread.isVisible(), timeout=LONG)
    qtbot.waitUntil(lambda: histogram.geometry().width() > 0.9 * window.plots.width(), timeout=LONG)
    set_method(window, "mp-svgd")
    run(qtbot, window)
    assert quality.isVisible()
    set_method(window, "map")
    run(qtbot, window)
    assert quality.isVisible()
    assert spread.listDataItems()[0].xData is None  # a method that does not say how sure it is has not said 0


def test_the_uncertainty_has_a_scale(qtbot, window, file, monkeypatch):
    open_(qtbot, window, monkeypatch, file)
    set_method(window, "gibbs", samples=20)
    run(qtbot, window)
    view = window.viewer.views[1]
    assert not view.bar.isVisible()
    view.choose("uncertainty")
    qtbot.waitUntil(view.bar.isVisible, timeout=LONG)
    from denoiser_app.display import heat_top

    assert view.bar.top == pytest.approx(heat_top(window.a.snapshot))
    assert "grey levels" in view.bar.toolTip()
