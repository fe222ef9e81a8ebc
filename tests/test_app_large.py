"""A photograph of 12 megapixels: seen soon, never in the way, in little memory; in a window process of its own."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from conftest import ROOT

pytest.importorskip("PyQt5", reason="the window's tests need the gui extra")

# Opens a photograph as `denoise gui FILE` does, waits for a first part, zooms in, waits for all that is seen, splits.
_LOOK = """
import contextlib, json, os, resource, sys, time
import denoiser_app, denoiser_app.window as module
from denoiser_app.looker import blocks
from qtpy.QtCore import QSettings, Qt, QTimer
from qtpy.QtWidgets import QApplication
path, scratch = sys.argv[1:]
settings = QSettings(scratch, QSettings.IniFormat)
settings.setValue("state", '{"controls": {"experiment": false}}')
module.Window.__init__.__defaults__ = (settings,)
facts = {"longest": 0.0, "busy": 0.0, "wall": 0.0}
last = began = None

def queues():
    "Seconds that each of our threads was ready to run while other programs had the processors."
    found = {}
    for number in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{number}/schedstat") as file:
            found[number] = int(file.read().split()[1]) / 1e9
    return found

def tick():
    "How long the event loop did not look at its timers. busy: processor time of its own thread. wall: by the clock;"
    "longest: without the time for which it, or one that has Python's lock and it waits for, waited for a processor."
    global last
    now, spent, waits = time.perf_counter(), time.thread_time(), queues()
    if last is not None:
        main = str(os.getpid())
        waited = {number: waits[number] - last[2].get(number, 0.0) for number in waits}
        others = max((t for number, t in waited.items() if number != main), default=0.0)
        facts["wall"] = max(facts["wall"], now - last[0])
        facts["busy"] = max(facts["busy"], spent - last[1])
        facts["longest"] = max(facts["longest"], now - last[0] - waited[main] - others)
    last = time.perf_counter(), time.thread_time(), waits

timer = QTimer(interval=0)
timer.setTimerType(Qt.PreciseTimer)
timer.timeout.connect(tick)
plain = module.Window.show
def show(window):
    global began
    plain(window)
    QApplication.processEvents()
    began = time.process_time()
    timer.setInterval(5)
    timer.start()
    QTimer.singleShot(0, lambda: watch(window))
module.Window.show = show

def watch(window):
    if not window.viewer.views[1]._blocks:
        return QTimer.singleShot(5, lambda: watch(window))
    facts["seconds"] = time.process_time() - began  # of all threads
    window.viewer.actual_size()
    QTimer.singleShot(150, lambda: sharp(window, time.process_time()))

def sharp(window, since):
    seen = window.viewer.seen
    there = window.viewer.views[1]._blocks
    parts = [b for b in blocks(window.source.pixels.shape) if b.bottom > seen.top and b.top < seen.bottom
             and b.right > seen.left and b.left < seen.right]
    if not all(part in there for part in parts):
        return QTimer.singleShot(5, lambda: sharp(window, since))
    facts["sharp"] = time.process_time() - since
    facts["parts"] = len(parts)
    window.acts["viewer.set_split:1"].trigger()
    QTimer.singleShot(1500, lambda: end(window))

def end(window):
    timer.stop()
    facts["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(facts), flush=True)
    window.end()

sys.exit(denoiser_app.main(path))
"""


@pytest.fixture(scope="module")
def photo(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "photo.jpg"
    with Image.open(ROOT / "sample_images" / "colosseum.png") as small:
        pixels = np.asarray(small.convert("RGB").resize((4000, 3000)), np.float32)
    noisy = pixels + np.random.default_rng(0).normal(0, 12, pixels.shape).astype(np.float32)
    Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8)).save(path, quality=92)
    return path


def test_12_megapixels_are_seen_soon_and_the_event_loop_is_never_blocked(photo, tmp_path):
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    command = [sys.executable, "-c", _LOOK, str(photo), str(tmp_path / "settings.ini")]
    process = subprocess.run(command, capture_output=True, text=True, timeout=170, env=environment, cwd=ROOT)
    assert process.returncode == 0, process.stderr
    facts = json.loads(process.stdout)
    print(facts)
    assert max(facts["longest"], facts["busy"]) < 0.05
    assert facts["seconds"] < 3  # the middle of the whole picture
    assert facts["sharp"] < 3  # all that is seen at the size of its pixels, after a zoom
    assert facts["memory"] < 2000
