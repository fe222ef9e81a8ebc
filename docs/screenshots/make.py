"""Pictures of the window for the README: `make screenshots`. Needs a screen, real or Xvfb.

Usage: make.py FOLDER; QT_SCALE_FACTOR=2 makes only the sharp one.
"""

import sys
import tempfile
import time
from pathlib import Path

from qtpy.QtCore import QCoreApplication, QEvent, QPointF, QSettings, Qt
from qtpy.QtGui import QMouseEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication

import denoiser
from denoiser import images
from denoiser.data import data_folder

SIZE = 1280, 800


def wait(ready, seconds=240.0):
    until = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > until:
            raise SystemExit("the window did not get ready")
        QApplication.processEvents()
        time.sleep(0.01)
    for _ in range(30):  # and let it draw
        QApplication.processEvents()
        time.sleep(0.01)


def scored(window, count):
    runs = window.runner.runs
    return len(runs) == count and not window.runner.running and all(r.snapshot.scored for r in runs)


def open_(window, path):
    window.runner.clear()
    window.open(str(path))
    wait(lambda: window.source is not None and window.source.path == str(path) and window.scene is not None)


def run(window, *methods):
    c = window.controls
    for method in methods:
        c.method.setCurrentIndex(c.method.findData(method))
        count = len(window.runner.runs) + 1
        QTest.mouseClick(c.run_button, Qt.LeftButton)
        wait(lambda count=count: scored(window, count))


def hover(window, view, share=(0.5, 0.5)):
    canvas = window.viewer.views[view].canvas
    for shift in (-3, 0):
        at = QPointF(share[0] * canvas.width() + shift, share[1] * canvas.height())
        event = QMouseEvent(QEvent.MouseMove, at, Qt.NoButton, Qt.NoButton, Qt.NoModifier)
        QApplication.sendEvent(canvas.viewport(), event)
        wait(lambda: True)


def shoot(window, path):
    wait(lambda: True)
    window.grab().save(str(path))
    print(path)


def part(name, top, left, side=176):
    """Some of a sample: the whole would take minutes."""
    return images.read(data_folder("sample_images") / f"{name}.png").pixels[top : top + side, left : left + side]


def experiment(window, folder):
    path = Path(folder) / "cat.png"
    images.write_png(path, part("cat", 40, 120))
    open_(window, path)
    window.acts["viewer.set_views:3"].trigger()
    run(window, "tv", "nlm", "gibbs", "mp-svgd")
    window.controls.quality.setCurrentIndex(window.controls.quality.findData("normal"))
    hover(window, 1, (0.45, 0.4))


def restore(window, folder):
    noisy = denoiser.add_noise(part("colosseum", 20, 60), 18.0, 3)
    path = Path(folder) / "colosseum-noisy.png"
    images.write_png(path, noisy)
    window.set_mode(0)
    open_(window, path)
    run(window, "gibbs", "mp-svgd")
    window.controls.quality.setCurrentIndex(window.controls.quality.findData("normal"))
    window.acts["viewer.set_split:1"].trigger()
    hover(window, 0, (0.6, 0.55))


def main(folder):
    for attribute in (Qt.AA_EnableHighDpiScaling, Qt.AA_UseHighDpiPixmaps):
        QCoreApplication.setAttribute(attribute)
    application = QApplication(["denoise"])
    from denoiser_app.window import Window

    with tempfile.TemporaryDirectory() as scratch:
        window = Window(QSettings(f"{scratch}/settings.ini", QSettings.IniFormat))
        window.resize(*SIZE)
        window.show()
        sharp = application.devicePixelRatio() > 1
        for name, make in (("experiment", experiment), ("restore", restore)):
            if sharp and name == "restore":
                continue
            make(window, scratch)
            for theme in ("light", "dark"):
                window.set_theme(theme)
                if sharp and theme == "dark":
                    continue
                shoot(window, Path(folder) / f"{name}-{theme}{'@2x' if sharp else ''}.png")
        for entry in window.runner.runs:
            entry.saved = True
        window.close()


if __name__ == "__main__":
    main(sys.argv[1])
