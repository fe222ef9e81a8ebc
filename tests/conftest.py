from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from denoiser import load_prior
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
