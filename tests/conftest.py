from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from denoiser import add_noise, images, load_prior
from denoiser.gsm import GSM
from denoiser.priors import Prior

ROOT = Path(__file__).resolve().parent.parent

# A shell starts background jobs deaf to Ctrl-C, and so would be the commands that the tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=["pairwise", "foe3x3"])
def prior(request):
    return load_prior(request.param)


@pytest.fixture
def gaussian_prior():
    """A one-component mixture: the posterior is Gaussian, with a closed form."""
    expert = GSM(np.array([1.0]), np.array([1.0]), 0.01)
    return Prior("gaussian", (np.array([[1.0, -1.0]]), np.array([[1.0], [-1.0]])), (expert, expert), padding=2)


@pytest.fixture
def picture():
    """A small, odd-sized picture with an edge, a slope and some texture."""
    rows, columns = np.mgrid[0:23, 0:31]
    texture = 20 * np.sin(0.9 * rows) * np.sin(0.7 * columns)
    return 60 + 3.0 * columns + 70 * (rows > 11) + np.where(columns > 15, texture, 0)


@pytest.fixture(scope="session")
def bsd10():
    folder = Path(os.environ.get("DENOISER_BSD10", ROOT.parent / "shared" / "data" / "bsd10"))
    files = sorted(folder.glob("*.png"))
    if not files:
        pytest.skip("no bsd10 images: set DENOISER_BSD10")
    return files


# ------------------------------------------------------------------------------------------ the window


@pytest.fixture
def clean():
    """64x64 pixels of a photograph."""
    return images.read(ROOT / "sample_images" / "camera.png").pixels[60:124, 190:254]


@pytest.fixture
def file(tmp_path, clean):
    path = tmp_path / "clean.png"
    Image.fromarray(clean).save(path)
    return path


@pytest.fixture
def noisy_file(tmp_path, clean):
    path = tmp_path / "noisy.png"
    Image.fromarray(np.clip(add_noise(clean, 20), 0, 255).astype(np.uint8)).save(path)
    return path


@pytest.fixture
def settings(tmp_path):
    from qtpy.QtCore import QSettings

    settings = QSettings(str(tmp_path / "settings.ini"), QSettings.IniFormat)
    settings.setValue("state", '{"controls": {"experiment": true}}')  # has been here before
    return settings


@pytest.fixture
def desk(qapp, request):
    """A place for windows: when the test is over they are destroyed here, and not by the threads of the next one."""
    from denoiser_app import collector
    from qtpy.QtCore import QEvent

    yield
    request.node.funcargs.clear()
    qapp.sendPostedEvents(None, QEvent.DeferredDelete)
    collector.uninstall()


@pytest.fixture
def window(desk, qtbot, settings):
    """The window on the screen."""
    from denoiser_app.window import Window

    window = Window(settings)
    qtbot.addWidget(window, before_close_func=lambda w: w.runner.clear())  # closes without a question
    window.show()
    qtbot.waitExposed(window)
    return window
