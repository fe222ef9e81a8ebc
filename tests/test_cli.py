import pytest
from PIL import Image

from denoiser.cli import main


def test_demo(tmp_path, capsys):
    assert main(["demo", "--dir", str(tmp_path / "a" / "b"), "--image", "colosseum", "--crop", "64"]) == 0
    out = capsys.readouterr()
    noisy, denoised = (line.split() for line in out.out.splitlines()[2:4])
    assert float(denoised[1]) > float(noisy[1]) + 4
    assert "method direct, prior learned" in out.out
    with Image.open(tmp_path / "a" / "b" / "side-by-side.png") as sides:
        assert sides.width > 3 * 64


def test_models(capsys):
    assert main(["models"]) == 0
    assert "CVPR 2010" in capsys.readouterr().out


@pytest.mark.parametrize("argv", [[], ["demo", "--image", "nothing"], ["demo", "--sigma", "x"]])
def test_wrong_usage(argv):
    with pytest.raises(SystemExit) as stop:
        main(argv)
    assert stop.value.code == 2


def test_bad_input_is_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["demo", "--dir", str(tmp_path / "file")]) == 1
    assert capsys.readouterr().err == f"denoise: {tmp_path / 'file'}: is not a folder\n"


def test_demo_overwrites_nothing_unasked(tmp_path, capsys):
    (tmp_path / "noisy.png").write_text("mine")
    call = ["demo", "--dir", str(tmp_path), "--crop", "32", "--method", "tv"]
    assert main(call) == 1
    assert "noisy.png exists already; --overwrite replaces it" in capsys.readouterr().err
    assert (tmp_path / "noisy.png").read_text() == "mine"
    assert main([*call, "--overwrite"]) == 0


def test_wrong_usage_is_one_line(capsys):
    for call in (["run", "--sigma", "nan", "x.png"], ["run", "--nosuch"], ["demo", "--crop", "1"]):
        with pytest.raises(SystemExit) as stop:
            main(call)
        assert stop.value.code == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("denoise: ")


def test_no_screen(monkeypatch, capsys):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    assert main(["gui"]) == 1
    assert capsys.readouterr().err.startswith("denoise: there is no screen")
