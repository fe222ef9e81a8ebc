"""A noise that was written to a file means the same wherever it is read: the same bytes as measuring it anew."""

import json

import image_files as made
import numpy as np
import pytest

import denoiser
from conftest import ROOT
from denoiser import images
from denoiser.cli import main
from denoiser.images import tiff_write
from denoiser.noise import Noise, estimate_noise, measure_noise

RNG = np.random.default_rng


def scene(seed=0, side=72):
    """Grey levels with noise of 12, and without."""
    clean = images.read(ROOT / "sample_images" / "coffee.png").pixels[:side, :side].mean(axis=2) * 0.7 + 30
    return clean + RNG(seed).normal(0, 12, clean.shape), clean


KINDS = {  # grey levels -> what a file holds, and its suffix
    "8 bits": (lambda g: np.clip(g, 0, 255).round().astype(np.uint8), ".png"),
    "16 bits": (lambda g: np.clip(g * 257, 0, 65535).round().astype(np.uint16), ".png"),
    "12 bits in 16": (lambda g: np.clip(g * 4095 / 255, 0, 4095).round().astype(np.uint16), ".tif"),
    "an offset": (lambda g: (1000 + 4 * g).round().astype(np.uint16), ".tif"),
    "reals to 1": (lambda g: (g / 255).astype(np.float32), ".tif"),
    "reals below 0": (lambda g: (-500 + 3 * g).astype(np.float32), ".tif"),
    "signed": (lambda g: (-1024 + 16 * g).round().astype(np.int16), ".tif"),
    "colour": (lambda g: np.stack([g, g * 0.9 + 5, 255 - g], -1).clip(0, 255).round().astype(np.uint8), ".png"),
    "a line": (lambda g: np.clip(g[:1] * 257, 0, 65535).round().astype(np.uint16), ".png"),
}


def write(path, pixels):
    """A file of exactly these numbers."""
    if path.suffix == ".tif":
        path.write_bytes(tiff_write.encode([(pixels, None, None)]))
    else:
        images.write(path, pixels, images.Picture(pixels))
    return str(path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_noise_from_a_file_gives_the_bytes_of_measuring_it(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    store, suffix = KINDS[kind]
    name = write(tmp_path / f"a{suffix}", store(scene()[0]))
    results = [tmp_path / f"{k}{suffix}" for k in range(3)]
    assert main([name, "-o", str(results[0]), "-q"]) == 0
    assert main(["noise", name, "--json", "n.json"]) == 0
    assert main([name, "-o", str(results[1]), "-q", "--noise", "n.json"]) == 0
    picture = images.read(name)
    noise = measure_noise(picture.pixels, picture.channel_axis, picture.units)
    (tmp_path / "python.json").write_text(noise.to_json())
    assert main([name, "-o", str(results[2]), "-q", "--noise", "python.json"]) == 0
    assert len({path.read_bytes() for path in results}) == 1
    assert results[0].read_bytes() != (tmp_path / name).read_bytes()
    # the same in Python, from the file's name and from its value
    axis, ends = picture.channel_axis, (picture.black, picture.white)
    expected = denoiser.denoise(picture.pixels, channel_axis=axis, data_range=ends).mean
    for given in ("n.json", tmp_path / "n.json", Noise.from_json((tmp_path / "n.json").read_text())):
        assert (denoiser.denoise(picture.pixels, given, channel_axis=axis, data_range=ends).mean == expected).all()


@pytest.mark.parametrize("kind", ["16 bits", "12 bits in 16", "an offset", "reals to 1", "signed"])
def test_a_noise_in_grey_levels_is_for_pictures_of_any_depth(tmp_path, monkeypatch, kind):
    """Told in Python, or measured in 8 bits, or by an earlier version, which knew no black."""
    monkeypatch.chdir(tmp_path)
    store, suffix = KINDS[kind]
    name = write(tmp_path / f"a{suffix}", store(scene()[0]))
    assert main([name, "-o", f"told{suffix}", "-q", "--noise", "poisson:0.5,10"]) == 0
    document = json.loads(Noise.from_text("poisson:0.5,10").to_json())
    for number, extra in enumerate(({}, {"numbers": "uint8"})):
        (tmp_path / "n.json").write_text(json.dumps({**document, **extra}))
        assert main([name, "-o", f"{number}{suffix}", "-q", "--noise", "n.json"]) == 0
        assert (tmp_path / f"{number}{suffix}").read_bytes() == (tmp_path / f"told{suffix}").read_bytes()
    old = {key: value for key, value in document.items() if key not in ("black", "numbers")}
    (tmp_path / "n.json").write_text(json.dumps(old))
    assert main([name, "-o", f"old{suffix}", "-q", "--noise", "n.json"]) == 0
    assert (tmp_path / f"old{suffix}").read_bytes() == (tmp_path / f"told{suffix}").read_bytes()


def test_the_same_camera_has_the_same_noise_in_a_frame_of_more_contrast(tmp_path, monkeypatch, capsys):
    """Black and white are measured frame by frame; the noise is in the camera's own numbers."""
    monkeypatch.chdir(tmp_path)
    rng, clean = RNG(3), scene()[1]
    low, high = (100 + k * clean + rng.normal(0, 20, clean.shape) for k in (2, 7))
    for name, values in (("low.tif", low), ("high.tif", high)):
        write(tmp_path / name, values.round().astype(np.uint16))
    assert main(["noise", "low.tif", "--json", "n.json"]) == 0
    scale = images.read("high.tif").units
    assert images.read("low.tif").grey < scale.grey / 2
    assert main(["high.tif", "--noise", "n.json", "--json", "-q"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["sigma"] * scale.grey == pytest.approx(20, rel=0.15)
    assert report["noise"].startswith(f"noise {report['sigma']:.1f} grey levels")
    # and with a white that somebody gives
    assert main(["low.tif", "--noise", "n.json", "--white", "65535", "--json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["sigma"] * 257 == pytest.approx(20, rel=0.15)


def test_what_python_measured_with_another_white_keeps_its_level(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pixels = KINDS["12 bits in 16"][0](scene()[0])
    name = write(tmp_path / "a.tif", pixels)
    noise = estimate_noise(pixels, white=4095.0)
    (tmp_path / "n.json").write_text(noise.to_json())
    assert main([name, "--noise", "n.json", "--white", "10000", "--json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["sigma"] * 10000 / 255 == pytest.approx(noise.level)


def test_reals_of_another_scale_are_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, values in (("a.tif", 2 * scene()[0]), ("b.tif", 2 * scene()[0] / 255)):
        write(tmp_path / name, values.astype(np.float32))
    assert main(["noise", "b.tif", "--json", "n.json"]) == 0
    assert main(["a.tif", "-o", "c.tif", "--noise", "n.json"]) == 1
    assert "n.json: is of real numbers from 0 to 1, the picture's go from 0 to 255" in capsys.readouterr().err
    assert not (tmp_path / "c.tif").exists()


@pytest.mark.parametrize("top", [100, 255, 1023, 4095, 65535])
def test_the_top_of_a_map_of_whole_numbers_is_that_of_its_file(tmp_path, monkeypatch, capsys, top):
    monkeypatch.chdir(tmp_path)
    images.write_png("a.png", scene()[0])
    levels = np.full((72, 72), 51.0)  # a fifth of the range
    values = (levels * top / 255).round().astype("u1" if top < 256 else ">u2")
    (tmp_path / "map.pgm").write_bytes(f"P5 72 72 {top} ".encode() + values.tobytes())
    assert main(["a.png", "--noise", "map.pgm", "--json", "-q", "--method", "tv"]) == 0
    assert json.loads(capsys.readouterr().out)["sigma"] == pytest.approx(51, rel=3e-3)


def test_the_noise_of_a_colour_picture_is_not_that_of_a_grey_one(tmp_path, monkeypatch, capsys):
    """Which of its three channels would it be? The report would tell the mean of them."""
    monkeypatch.chdir(tmp_path)
    grey = scene()[0]
    images.write_png("grey.png", grey)
    images.write_png("colour.png", np.stack([grey, 255 - grey, scene(1)[0]], axis=-1))
    assert main(["noise", "colour.png", "--json", "n.json"]) == 0
    assert main(["grey.png", "--noise", "n.json", "-o", "x.png", "-q"]) == 1
    assert (
        capsys.readouterr().err == "denoise: grey.png: the noise is that of three channels, and the picture has one\n"
    )
    with pytest.raises(ValueError, match="three channels"):
        denoiser.denoise(grey, Noise(Noise.flat(5).channels * 3))
    assert main(["noise", "grey.png", "--json", "m.json"]) == 0
    assert main(["colour.png", "--noise", "m.json", "-o", "y.png", "-q"]) == 0


def test_a_file_that_is_no_noise_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    images.write_png("a.png", made.noise((30, 30)))
    (tmp_path / "n.json").write_text("{}")
    assert main(["a.png", "--noise", "n.json"]) == 1
    assert capsys.readouterr().err.startswith("denoise: a.png: n.json: not a description of noise")
    with pytest.raises(ValueError, match=r"n\.json: not a description of noise"):
        denoiser.denoise(made.noise((30, 30)), "n.json")
