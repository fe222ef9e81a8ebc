"""The window, offscreen, through its buttons and keys."""

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("PyQt5", reason="the window's tests need the gui extra")
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QFileDialog, QMessageBox

from denoiser import add_noise


@pytest.fixture
def file(tmp_path, picture):
    path = tmp_path / "noisy.png"
    Image.fromarray(np.clip(add_noise(picture, 20), 0, 255).astype(np.uint8)).save(path)
    return path


@pytest.fixture
def window(qtbot):
    from denoiser_app.window import Window

    window = Window()
    qtbot.addWidget(window)
    window.show()
    return window


def test_open_run_save(qtbot, window, file, tmp_path, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *a, **k: (str(file), ""))
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a, **k: (str(tmp_path / "out.png"), ""))
    assert not window.run_button.isEnabled()
    qtbot.mouseClick(window.open_button, Qt.LeftButton)
    assert 10 < window.sigma.value() < 35
    window.method.setCurrentIndex(window.method.findData("map"))
    qtbot.mouseClick(window.run_button, Qt.LeftButton)
    qtbot.waitUntil(window.save_button.isEnabled, timeout=60_000)
    qtbot.mouseClick(window.save_button, Qt.LeftButton)
    with Image.open(tmp_path / "out.png") as saved:
        assert saved.size == (31, 23)


def test_cancel_keeps_the_result(qtbot, window, file):
    window.open(str(file))
    window.method.setCurrentIndex(window.method.findData("gibbs"))
    qtbot.mouseClick(window.run_button, Qt.LeftButton)
    qtbot.waitUntil(lambda: window.result is not None, timeout=60_000)
    qtbot.mouseClick(window.cancel_button, Qt.LeftButton)
    qtbot.waitUntil(window.save_button.isEnabled, timeout=10_000)
    assert window.result.step >= 1


def test_closing_in_the_middle_of_a_run(qtbot, window, file):
    window.open(str(file))
    qtbot.mouseClick(window.run_button, Qt.LeftButton)
    qtbot.waitUntil(lambda: window.result is not None, timeout=60_000)
    window.close()


def test_a_bad_file_is_a_message(qtbot, window, tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(QMessageBox, "warning", lambda *a: said.append(a[-1]))
    (tmp_path / "bad.png").write_bytes(b"not a picture")
    window.open(str(tmp_path / "bad.png"))
    assert "bad.png" in said[0]
    assert not window.run_button.isEnabled()
