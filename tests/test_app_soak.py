"""500 pictures opened, looked at and run in one window process: it must not grow."""

import os
import subprocess
import sys

import pytest

from conftest import ROOT

pytest.importorskip("PyQt5", reason="the window's tests need the gui extra")

_SOAK = """
import os, resource, sys, time
import numpy as np
from PIL import Image
from qtpy.QtCore import QSettings
from qtpy.QtWidgets import QApplication
application = QApplication(["denoise"])
from denoiser_app.window import Window
folder, count = sys.argv[1], int(sys.argv[2])
settings = QSettings(f"{folder}/settings.ini", QSettings.IniFormat)
settings.setValue("state", '{"controls": {"experiment": false, "quality": "fast"}}')
window = Window(settings)
window.show()

def wait(ready):
    until = time.monotonic() + 120
    while not ready():
        assert time.monotonic() < until
        application.processEvents()
        time.sleep(0.002)

rng = np.random.default_rng(0)
sizes = []
for number in range(count):
    side = 40 + 8 * (number % 10)
    path = f"{folder}/{number % 20}.png"
    Image.fromarray(rng.integers(0, 256, (side, side + 9, 3)).astype(np.uint8)).save(path)
    before = window.source
    window.open(path)
    wait(lambda: window.source is not before and window.scene is not None)
    window.run()
    wait(lambda: window.a is not None and window.a.snapshot.scored and not window.runner.running)
    window.a.saved = True
    with open("/proc/self/statm") as file:
        sizes.append(int(file.read().split()[1]) * resource.getpagesize() >> 10)
share = count // 5
first, last = (float(np.mean(part)) for part in (sizes[share // 2 : share], sizes[-share:]))
print(f"{count} pictures in a window: {first / 1024:.0f} MB, at the end {last / 1024:.0f} MB", flush=True)
window.end()
assert last < 1.05 * first, (first, last)
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc")
def test_500_pictures_in_one_window(tmp_path):
    process = subprocess.run(
        [sys.executable, "-c", _SOAK, str(tmp_path), "500"], capture_output=True, text=True, cwd=ROOT,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
    )  # fmt: skip
    print(process.stdout)
    assert process.returncode == 0, process.stdout + process.stderr[-2000:]
