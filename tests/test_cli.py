import pytest
from PIL import Image

from denoiser.cli import main


def test_demo(tmp_path, capsys):
    assert main(["demo", "--dir", str(tmp_path / "a" / "b"), "--image", "colosseum", "--crop", "64"]) == 0
    out = capsys.readouterr()
    noisy, denoised = (line.split() for line in out.out.splitlines()[2:4])
    assert float(denoised[1]) > float(noisy[1]) + 4
    assert "sweep" in out.err  # the progress bar
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
    assert main(["demo", "--sigma", "-3", "--dir", str(tmp_path)]) == 1
    error = capsys.readouterr().err.strip().splitlines()
    assert error[-1] == "denoise: sigma must be >= 0, got -3.0"
    (tmp_path / "file").write_text("")
    assert main(["demo", "--dir", str(tmp_path / "file")]) == 1
