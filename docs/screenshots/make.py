"""Pictures of the window for README and docs: `make screenshots`. Needs a screen, real or Xvfb.

Usage: make.py FOLDER [NAME...]; with QT_SCALE_FACTOR=2 only those of both modes, 2560 x 1600.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import tifffile
from PIL import Image
from qtpy.QtCore import QCoreApplication, QEvent, QPointF, QSettings, Qt
from qtpy.QtGui import QMouseEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication

import denoiser
from denoiser import images
from denoiser.data import data_folder

SIZE = 1280, 800
SHARP = ("restore", "experiment")


def wait(ready, seconds=400.0):
    until = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > until:
            raise SystemExit("the window did not get ready")
        QApplication.processEvents()
        time.sleep(0.01)
    for _ in range(40):  # and let it draw
        QApplication.processEvents()
        time.sleep(0.01)


def scored(window, count):
    runs = window.runner.runs
    return len(runs) == count and not window.runner.running and all(r.snapshot.scored for r in runs)


def open_(window, path):
    window.runner.clear()
    window.welcome.settle()  # the question of the first start
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


def draw(window, kind, start, end):
    """A shape, with the mouse, in the first view; in pixels of the picture."""
    view = window.viewer.views[0]
    canvas = view.canvas

    def place(at):
        return canvas.mapFromScene(view.box.mapViewToScene(QPointF(*at)))

    window.draw(kind)
    QTest.mousePress(canvas.viewport(), Qt.LeftButton, Qt.NoModifier, place(start))
    QTest.mouseMove(canvas.viewport(), place(end))
    QTest.mouseRelease(canvas.viewport(), Qt.LeftButton, Qt.NoModifier, place(end))
    wait(lambda: not window.measuring.pencil.kind)


def part(name, top, left, side=176):
    """Some of a sample: the whole would take minutes."""
    return images.read(data_folder("sample_images") / f"{name}.png").pixels[top : top + side, left : left + side]


def first(window, folder):
    """What a newcomer sees."""
    wait(lambda: window.welcome.asking)


def photo(window, folder):
    """A noisy photograph of 12 megapixels, as it is a moment after it was opened."""
    path = Path(folder) / "colosseum.jpg"
    with Image.open(data_folder("sample_images") / "colosseum.png") as small:
        clean = np.asarray(small.convert("RGB").resize((4000, 3000), Image.LANCZOS), np.float32)
    noisy = clean + np.random.default_rng(0).normal(0, 12, clean.shape).astype(np.float32)
    Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8)).save(path, quality=92)
    window.controls.set_mode(0)
    open_(window, path)
    window.acts["viewer.set_split:1"].trigger()
    window.viewer.actual_size()
    wait(lambda: looked_at(window))
    hover(window, 0, (0.7, 0.4))


def looked_at(window):
    """Whether all that is seen has been denoised."""
    seen, there = window.viewer.seen, window.looker._means
    inside = sum(
        max(min(b.bottom, seen.bottom) - max(b.top, seen.top), 0)
        * max(min(b.right, seen.right) - max(b.left, seen.left), 0)
        for b in there
    )
    return inside == seen.shape[0] * seen.shape[1]


def restore(window, folder):
    """A result, before and after in one view."""
    path = Path(folder) / "colosseum-noisy.png"
    images.write_png(path, denoiser.add_noise(part("colosseum", 20, 60, 256), 18.0, 3))
    window.controls.set_mode(0)
    open_(window, path)
    QTest.mouseClick(window.controls.run_button, Qt.LeftButton)
    wait(lambda: scored(window, 1))
    window.acts["viewer.set_split:1"].trigger()
    hover(window, 0, (0.6, 0.55))


def experiment(window, folder):
    path = Path(folder) / "cat.png"
    images.write_png(path, part("cat", 40, 120))
    window.controls.set_mode(1)
    open_(window, path)
    window.controls.added.set_words("poisson:2,4")
    window.acts["viewer.set_views:3"].trigger()
    run(window, "tv", "nlm", "gibbs", "mp-svgd")
    hover(window, 1, (0.45, 0.4))


def micrograph(window, folder):
    """12 bits in a 16-bit file, with handles on its histogram, and measurements with their error bars."""
    rows, columns = np.mgrid[0:220, 0:300]
    cells = [(60, 80, 26), (140, 190, 34), (90, 240, 18), (170, 70, 22)]
    light = sum(
        90 * np.exp(-((((rows - y) ** 2 + (columns - x) ** 2) / (2 * (r / 1.6) ** 2)) ** 2)) for y, x, r in cells
    )
    noisy = np.random.default_rng(1).normal(120 + light, 14)
    path = Path(folder) / "cells.tif"
    tifffile.imwrite(path, np.clip(noisy, 0, 4095).astype(np.uint16))
    window.controls.set_mode(0)
    open_(window, path)
    window.acts["viewer.set_views:2"].trigger()
    window.viewer.views[1].choose("uncertainty")
    run(window, "gibbs")
    draw(window, "rectangle", (62, 44), (98, 76))
    draw(window, "rectangle", (20, 105), (56, 137))
    draw(window, "line", (130, 140), (250, 140))
    wait(lambda: not window.measuring.busy and len(window.measuring.numbers) > 50)


def main(folder):
    for attribute in (Qt.AA_EnableHighDpiScaling, Qt.AA_UseHighDpiPixmaps):
        QCoreApplication.setAttribute(attribute)
    application = QApplication(["denoise"])
    from denoiser_app.window import Window

    sharp = application.devicePixelRatio() > 1
    wanted = sys.argv[2:] or [f.__name__ for f in (first, photo, restore, experiment, micrograph)]
    with tempfile.TemporaryDirectory() as scratch:
        window = Window(QSettings(f"{scratch}/settings.ini", QSettings.IniFormat))
        window.resize(*SIZE)
        window.show()
        for name in wanted:
            if sharp and name not in SHARP:
                continue
            globals()[name](window, scratch)
            for theme in ("light",) if name == "first" else ("light", "dark"):
                window.set_theme(theme)
                wait(lambda: True)
                path = Path(folder) / f"{name}-{theme}{'@2x' if sharp else ''}.png"
                window.grab().save(str(path))
                print(path)
            window.set_theme("light")
        for entry in window.runner.runs:
            entry.saved = True
        window.end()


if __name__ == "__main__":
    main(sys.argv[1])
