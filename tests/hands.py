"""What a user's hand does to the window; for the tests of it."""

import os

import pytest

pytest.importorskip("PyQt5", reason="the window's tests need the gui extra")
pytest.importorskip("pytestqt", reason="the window's tests need the gui extra")
from qtpy.QtCore import Qt, QTimer
from qtpy.QtGui import QKeySequence
from qtpy.QtWidgets import QApplication, QFileDialog, QMessageBox

QUICK = {"particles": 4, "iterations": 6, "samples": 8, "burn_in": 4, "keep": 8}  # what makes any method quick
LONG = 60_000


def choose_files(monkeypatch, opened=None, saved=None):
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *a, **k: (str(opened or ""), ""))
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a, **k: (str(saved or ""), ""))


def press(qtbot, window, keys):
    """A shortcut, as the keyboard sends it; which action has it is the window's affair."""
    (action,) = [a for a in window.acts.values() if keys in [s.toString() for s in a.shortcuts()]]
    assert action.isEnabled(), keys
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow, timeout=LONG)
    with qtbot.waitSignal(action.triggered, timeout=LONG):
        code = QKeySequence(keys)[0]
        qtbot.keyClick(
            window,
            Qt.Key(code & ~int(Qt.KeyboardModifierMask)),
            Qt.KeyboardModifiers(code & int(Qt.KeyboardModifierMask)),
        )


def open_(qtbot, window, monkeypatch, path):
    choose_files(monkeypatch, opened=path)
    press(qtbot, window, "Ctrl+O")
    qtbot.waitUntil(lambda: window.source is not None and window.source.path == str(path), timeout=LONG)
    qtbot.waitUntil(lambda: window.viewer.views[0].image.image is not None, timeout=LONG)


def set_method(window, method, **options):
    box = window.controls.method
    box.setCurrentIndex(box.findData(method))
    for name, value in (QUICK | options).items():
        editor = window.controls.options.editors.get(name)
        if editor is not None:
            editor.setValue(value)


def run(qtbot, window):
    before = len(window.table.runs())
    qtbot.mouseClick(window.controls.run_button, Qt.LeftButton)
    assert not window.controls.run_button.isEnabled()
    finished(qtbot, window, before + 1)


def finished(qtbot, window, count):
    def ready():
        shown = window.table.runs()
        return window.controls.run_button.isEnabled() and len(shown) == count and all(r.snapshot.scored for r in shown)

    qtbot.waitUntil(ready, timeout=LONG)


def text(window, row, column):
    return window.table.item(row, column).text()


def answer(choice, asked=None):
    """Click a button of the next question."""

    def click():
        box = QApplication.activeModalWidget()
        if box is None:
            QTimer.singleShot(20, click)
            return
        if asked is not None:
            asked.append(box.informativeText())
        next(b for b in box.buttons() if b.text() == choice).click()

    QTimer.singleShot(0, click)


def warning(qtbot):
    """The text of the warning that is on the screen, which is then closed."""
    boxes = []

    def there():
        boxes[:] = [w for w in QApplication.topLevelWidgets() if isinstance(w, QMessageBox) and w.isVisible()]
        return bool(boxes)

    qtbot.waitUntil(there, timeout=LONG)
    words = boxes[0].text() + " " + boxes[0].informativeText()
    boxes[0].button(QMessageBox.Ok).click()
    return words


def save(qtbot, window, monkeypatch, keys, path):
    choose_files(monkeypatch, saved=path)
    press(qtbot, window, keys)
    qtbot.waitUntil(lambda: os.path.exists(path) and not window.saver.writing, timeout=LONG)
