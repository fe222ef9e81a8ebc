"""`denoise reproduce` as a user meets it."""

import os
import sys

import numpy as np
import pytest
from PIL import Image

from denoiser.cli import main
from denoiser.cli.reproduce import EXPERIMENTS
from denoiser.paper import toy


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(toy, "QUICK", toy.Scale((1, 2, 100), (10,), 5))


def _last_line(capsys):
    return capsys.readouterr().err.strip().splitlines()[-1]


def test_three_files(tmp_path, capsys):
    assert main(["reproduce", "toy", "--quick", "--dir", str(tmp_path / "a" / "b")]) == 0
    out = capsys.readouterr().out
    folder = tmp_path / "a" / "b"
    assert sorted(p.name for p in folder.iterdir()) == ["toy.csv", "toy.md", "toy.png"]
    assert "Made by `denoise reproduce toy --quick`" in (folder / "toy.md").read_text()
    assert str(folder / "toy.png") in out
    with Image.open(folder / "toy.png") as picture:
        assert picture.width > 1000


def test_results_are_not_overwritten_unasked(tmp_path, capsys):
    call = ["reproduce", "toy", "--quick", "--no-figure", "--dir", str(tmp_path)]
    assert main(call) == 0
    (tmp_path / "toy.md").write_text("mine")
    assert main(call) == 1
    assert _last_line(capsys) == f"denoise: {tmp_path / 'toy.csv'} exists already; --overwrite replaces it"
    assert (tmp_path / "toy.md").read_text() == "mine"
    assert main([*call, "--overwrite"]) == 0
    assert (tmp_path / "toy.md").read_text() != "mine"
    assert not (tmp_path / "toy.png").exists()


def test_the_same_seed_gives_the_same_numbers(tmp_path):
    for folder, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        call = ["reproduce", "toy", "--quick", "--no-figure", "--dir", str(tmp_path / folder), "--seed", seed]
        assert main(call) == 0
    a, b, c = ((tmp_path / folder / "toy.csv").read_text() for folder in "abc")
    assert a == b != c


@pytest.mark.parametrize("argv", [["reproduce"], ["reproduce", "nothing"], ["reproduce", "toy", "--seed", "x"]])
def test_wrong_usage(argv, capsys):
    with pytest.raises(SystemExit) as stop:
        main(argv)
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert argv[-1] != "nothing" or all(name in error for name in EXPERIMENTS)


def test_bad_places_are_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        assert main(["reproduce", "toy", "--quick", "--dir", str(folder)]) == 1
        error = capsys.readouterr().err.strip()
        assert error.startswith("denoise: ")
        assert "\n" not in error
        assert "file" in error


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(tmp_path, capsys):
    tmp_path.chmod(0o500)
    assert main(["reproduce", "toy", "--quick", "--dir", str(tmp_path)]) == 1
    assert "cannot be written" in _last_line(capsys)


def test_without_matplotlib(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["reproduce", "toy", "--quick", "--dir", str(tmp_path)]) == 1
    assert _last_line(capsys).endswith("pip install '.[plots]' in its checkout, or use --no-figure")
    assert not list(tmp_path.iterdir())  # said before the work, not after
    assert main(["reproduce", "toy", "--quick", "--no-figure", "--dir", str(tmp_path)]) == 0


def test_a_picture_of_the_user(tmp_path, capsys):
    missing = tmp_path / "missing.png"
    assert main(["reproduce", "denoising", "--quick", "--dir", str(tmp_path), "--image", str(missing)]) == 1
    assert "missing.png" in _last_line(capsys)
    tiny = tmp_path / "tiny.png"
    Image.fromarray(np.zeros((6, 6), np.uint8)).save(tiny)
    assert main(["reproduce", "denoising", "--quick", "--dir", str(tmp_path), "--image", str(tiny)]) == 1
    assert "11x11" in _last_line(capsys)
    colour = tmp_path / "colour.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (20, 24, 3), np.uint8)).save(colour)
    assert main(["reproduce", "denoising", "--quick", "--dir", str(tmp_path), "--image", str(colour)]) == 0
    assert "colour.png at 24x20 pixels" in (tmp_path / "denoising.md").read_text()


def test_an_image_is_refused_where_none_is_used(tmp_path, capsys):
    assert main(["reproduce", "toy", "--quick", "--dir", str(tmp_path), "--image", "a.png"]) == 1
    assert _last_line(capsys) == "denoise: toy looks at no picture; --image is for image-force, denoising"
