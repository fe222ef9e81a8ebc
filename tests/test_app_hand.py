"""The real window under a real X server and window manager, driven by a real pointer and keyboard (xdotool)."""

import contextlib
import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image, ImageGrab

from conftest import ROOT
from denoiser import add_noise, images

pytest.importorskip("PyQt5", reason="the window's tests need the gui extra")
TOOLS = ("Xvfb", "openbox", "xdotool")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not all(map(shutil.which, TOOLS)), reason=f"needs {', '.join(TOOLS)}: .ci/qt-libraries"),
]
SCREEN = 1280, 800


def until(ready, seconds=120.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(subprocess.CalledProcessError):
            if found := ready():
                return found
        time.sleep(0.1)
    raise AssertionError("nothing came of it")


class Hand:
    """What a person at the screen does and sees."""

    def __init__(self, display):
        self.display = display

    def do(self, *words):
        environment = {**os.environ, "DISPLAY": self.display}
        return subprocess.run(["xdotool", *map(str, words)], env=environment, check=True, capture_output=True).stdout

    def window(self, name):
        return until(lambda: self.do("search", "--onlyvisible", "--name", name).split()[-1].decode())

    def keys(self, *keys):
        self.do("key", "--delay", 60, *keys)

    def see(self):
        time.sleep(0.6)
        return np.asarray(ImageGrab.grab(xdisplay=self.display).convert("RGB")).astype(int)

    def changes(self, act, box, seconds=30):
        """Whether an act changes what is seen in (left, top, right, bottom)."""
        left, top, right, bottom = box
        before = self.see()[top:bottom, left:right]
        act()
        return until(lambda: np.abs(self.see()[top:bottom, left:right] - before).mean() > 1, seconds)

    def drag(self, start, end):
        self.do("mousemove", *start, "mousedown", 1)
        for step in range(1, 9):
            x, y = (round(a + (b - a) * step / 8) for a, b in zip(start, end, strict=True))
            self.do("mousemove", x, y)
            time.sleep(0.05)
        self.do("mouseup", 1)


@pytest.fixture
def hand():
    read, write = os.pipe()
    words = ["Xvfb", "-displayfd", str(write), "-screen", "0", f"{SCREEN[0]}x{SCREEN[1]}x24", "-nolisten", "tcp"]
    server = subprocess.Popen(words, pass_fds=[write], stderr=subprocess.DEVNULL)
    os.close(write)
    with open(read) as number:
        display = f":{number.readline().strip()}"
    manager = subprocess.Popen(["openbox"], env={**os.environ, "DISPLAY": display}, stderr=subprocess.DEVNULL)
    yield Hand(display)
    for process in (manager, server):
        process.terminate()
        process.wait()


def test_open_zoom_run_cancel_split_draw_save_close(hand, tmp_path):
    clean = images.read(ROOT / "sample_images" / "camera.png").pixels[:256, :256]
    Image.fromarray(np.clip(add_noise(clean, 15), 0, 255).astype(np.uint8)).save(tmp_path / "photo.png")
    (tmp_path / "mpsvgd").mkdir()
    (tmp_path / "mpsvgd" / "denoise.conf").write_text(
        '[General]\nstate="{\\"controls\\": {\\"experiment\\": false}}"\n'
    )
    environment = {k: v for k, v in os.environ.items() if k != "QT_QPA_PLATFORM"}
    environment |= {"DISPLAY": hand.display, "XDG_CONFIG_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "denoiser", "gui", str(tmp_path / "photo.png")]
    process = subprocess.Popen(command, env=environment, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        _drive(hand, hand.window("photo.png"), tmp_path)
        assert process.wait(60) == 0
    finally:
        process.kill()
        _, words = process.communicate()
    assert "Traceback" not in words


def _drive(hand, window, folder):
    hand.do("windowfocus", "--sync", window)
    place = dict(
        line.split("=") for line in hand.do("getwindowgeometry", "--shell", window).decode().split() if "=" in line
    )
    x, y, width, height = (int(place[name]) for name in ("X", "Y", "WIDTH", "HEIGHT"))
    assert x >= 0
    assert x + width <= SCREEN[0]  # it fits the screen
    assert y >= 0
    assert y + height <= SCREEN[1]
    view = x + 320, y + 110, x + width - 20, y + 520  # where the pictures are
    middle = x + (304 + width) // 4 + 76, y + 300  # of the left one

    def wheel():
        hand.do("mousemove", *middle, "click", "--repeat", 4, "--delay", 80, 4)

    assert hand.changes(wheel, view)
    assert hand.changes(lambda: hand.drag(middle, (middle[0] + 80, middle[1] + 40)), view)
    hand.keys("0")
    hand.keys("ctrl+r", "Escape")  # run, and cancel
    time.sleep(1)
    assert hand.changes(lambda: hand.keys("s"), view)
    centre = x + 304 + (width - 304) // 2, y + 300  # the line of the split view
    assert hand.changes(lambda: hand.drag(centre, (centre[0] - 120, centre[1])), view)
    below = x + 310, y + height - 200, x + 790, y + height - 40  # where the numbers are
    hand.keys("r")  # a rectangle, drawn and measured
    assert hand.changes(lambda: hand.drag((centre[0] - 60, centre[1] - 80), (centre[0] + 40, centre[1])), below)
    hand.keys("ctrl+s")  # which runs first, because there is but a first look
    dialog = hand.window("Save the result")
    hand.do("windowfocus", "--sync", dialog)
    hand.keys("ctrl+a")
    hand.do("type", "--delay", 20, str(folder / "clean.png"))
    hand.keys("Return")
    until((folder / "clean.png").exists)
    time.sleep(1)
    hand.do("windowfocus", "--sync", window)
    hand.keys("ctrl+q")
