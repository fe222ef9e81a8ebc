"""What a user's hand does to the window; for the tests of it."""

import os

import pytest

pytest.importorskip("PyQt5", reason="the window's tests need the gui extra")
pytest.importorskip("pytestqt", reason="the window's tests need the gui extra")
from qtpy.QtCore import QPoint, QPointF, Qt, QTimer
from qtpy.QtGui import QKeySequence, QWheelEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QFileDialog, QMessageBox

QUICK = {"particles": 4, "iterations": 6, "samples": 8, "burn_in": 4, "keep": 8}  # what makes any method quick
LONG = 180_000  # milliseconds; other programs may have the processors


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


class Mouse:
    """Events to the window as a whole, as the window system sends them: whoever lies on top gets them."""

    def __init__(self, qtbot, window):
        self.bot, self.window = qtbot, window

    def place(self, view, column, row):
        """Where a pixel of the picture is, in the window."""
        canvas = view.canvas
        point = canvas.mapFromScene(view.box.mapViewToScene(QPointF(column, row)))
        return canvas.viewport().mapTo(self.window, point)

    def move(self, at):
        """In two steps, because pyqtgraph waits for a second one; and leaves out what comes too fast."""
        for shift in (2, 0):
            QTest.mouseMove(self.window.windowHandle(), at + QPoint(shift, 0))
            self.bot.wait(25)

    def drag(self, start, end, button=Qt.LeftButton):
        self.move(start)
        QTest.mousePress(self.window.windowHandle(), button, Qt.NoModifier, start)
        for step in range(1, 6):
            QTest.mouseMove(self.window.windowHandle(), start + (end - start) * step / 5)
            self.bot.wait(25)
        QTest.mouseRelease(self.window.windowHandle(), button, Qt.NoModifier, end)
        self.bot.wait(25)

    def wheel(self, at, steps):
        handle = self.window.windowHandle()
        self.move(at)
        for _ in range(abs(steps)):
            turn = QPoint(0, 120 if steps > 0 else -120)
            event = QWheelEvent(
                QPointF(at), QPointF(handle.mapToGlobal(at)), QPoint(), turn, Qt.NoButton, Qt.NoModifier,
                Qt.NoScrollPhase, False,
            )  # fmt: skip
            QApplication.sendEvent(handle, event)
            self.bot.wait(25)

    def click(self, at):
        QTest.mouseClick(self.window.windowHandle(), Qt.LeftButton, Qt.NoModifier, at)

    def double_click(self, at):
        QTest.mouseDClick(self.window.windowHandle(), Qt.LeftButton, Qt.NoModifier, at)
        self.bot.wait(25)
