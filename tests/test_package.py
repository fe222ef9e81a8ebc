"""The wheel, built and used as a stranger would."""

import os
import subprocess
import sys
import venv
import zipfile

from conftest import ROOT


def _run(*command, cwd):
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    process = subprocess.run([str(c) for c in command], cwd=cwd, env=environment, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def test_wheel_in_an_empty_venv(tmp_path):
    # sdist first, wheel from the sdist: both must be complete
    _run(sys.executable, "-m", "build", "--outdir", tmp_path / "dist", ROOT, cwd=tmp_path)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"denoiser", "denoiser_app", "mpsvgd"}
    ours = {str(p.relative_to(ROOT)) for p in (ROOT / "denoiser").rglob("*.py")}
    assert ours <= set(names)
    for folder in ("models", "sample_images"):
        assert {f"denoiser/{folder}/{p.name}" for p in (ROOT / folder).iterdir()} - set(names) == set()
    assert "denoiser/py.typed" in names

    venv.create(tmp_path / "venv", with_pip=True)
    binaries = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    _run(binaries / "python", "-m", "pip", "install", "--quiet", wheel, cwd=tmp_path)
    out = _run(binaries / "denoise", "demo", "--image", "colosseum", "--crop", "64", "--dir", "out", cwd=tmp_path)
    assert "PSNR" in out
    made = {p.name for p in (tmp_path / "out").iterdir()}
    assert made == {"noisy.png", "denoised.png", "uncertainty.png", "side-by-side.png"}
    assert "pairwise" in _run(binaries / "denoise", "models", cwd=tmp_path)
    gui = subprocess.run([binaries / "denoise", "gui"], cwd=tmp_path, capture_output=True, text=True)
    assert gui.returncode == 1
    assert "pip install '.[gui]'" in gui.stderr
