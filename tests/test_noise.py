"""Noise as a value, measured, told and made."""

import json
import pickle

import numpy as np
import pytest
from PIL import Image

from conftest import ROOT
from denoiser import coverage, denoise, images, psnr
from denoiser.camera import camera_noise
from denoiser.cli import main
from denoiser.colour import to_planes
from denoiser.noise import Noise, PlaneNoise, add_noise, estimate_noise, estimate_sigma, measure_noise, parse_noise
from denoiser.noise_meter import squares
from denoiser.pieces import Region
from denoiser.units import Units

RNG = np.random.default_rng


def sample(name, side=None):
    pixels = images.read(ROOT / "sample_images" / f"{name}.png").pixels.astype(float)
    return pixels[:side, :side]


def grey(name, side=None):
    pixels = sample(name, side)
    return pixels if pixels.ndim == 2 else pixels.mean(axis=2)


def scene(side=256):
    """Flat areas of every brightness, a slope, some texture: a picture that can be measured."""
    rows, columns = np.mgrid[0:side, 0:side]
    picture = 30 + 24.0 * (columns // 32)
    picture = np.where(rows > 0.8 * side, rows * 0.6 + 0.2 * columns, picture)
    return np.where((rows < 40) & (columns < 120), 100 + 40 * np.sin(rows) * np.sin(0.7 * columns), picture)


# ------------------------------------------------------------------------------------------- measuring


@pytest.mark.parametrize("name", ["camera", "cat", "coffee", "colosseum", "lake"])
@pytest.mark.parametrize("sigma", [5, 20])
def test_white_noise_on_photographs(name, sigma):
    noise = estimate_noise(add_noise(grey(name), sigma, seed=1))
    assert noise.channels[0].white
    assert noise.level == pytest.approx(sigma, rel=0.12)


def test_white_noise_in_colour_is_as_strong_in_every_plane():
    noise = estimate_noise(add_noise(sample("cat"), 10, seed=1), -1)
    for plane in (*noise.channels, *noise.planes):
        assert plane.white
        assert plane.level == pytest.approx(10, rel=0.12)


@pytest.mark.parametrize(("gain", "read"), [(0.5, 3), (2, 5), (6, 1)])
def test_poisson_noise_follows_brightness(gain, read):
    clean = scene()
    noisy = add_noise(clean, f"poisson:{gain},{read}", seed=1)
    found = estimate_noise(noisy, white=255.0).map(clean)
    assert np.mean(np.abs(found / np.sqrt(gain * clean + read**2) - 1)) < 0.1


def test_a_sensor_whose_black_is_not_zero():
    clean = 20 + 0.5 * scene()
    noisy = clean + np.sqrt(4 * (clean - 15)) * RNG(0).standard_normal(clean.shape)
    found = estimate_noise(noisy, white=255.0).map(clean)
    assert np.mean(np.abs(found / np.sqrt(4 * (clean - 15)) - 1)) < 0.12


def test_camera_noise_is_correlated_and_measured():
    clean = np.repeat(scene()[..., None], 3, axis=2) * [1, 0.9, 0.8]
    noisy = camera_noise(clean, 12800, RNG(0))
    noise = estimate_noise(noisy, -1)
    truth = to_planes(noisy - clean)
    luminance = truth[0] - truth[0].mean()
    near = (luminance[:, 1:] * luminance[:, :-1]).mean() / luminance.var()
    assert noise.planes[0].correlation[0][1] == pytest.approx(near, abs=0.12)
    assert noise.planes[0].level == pytest.approx(luminance.std(), rel=0.35)
    assert noise.planes[1].area > noise.planes[0].area > 3
    assert noise.planes[0].inflation > 1.4
    assert noise.confidence > 0.5


def test_texture_is_not_taken_for_noise():
    """Clean photographs full of texture: what is measured is small or unsure, and the default leaves them alone."""
    for name in ("raccoon", "spices", "lake"):
        clean = sample(name)
        noise = estimate_noise(clean, -1)
        assert noise.level < 2 or noise.confidence < 0.4
        part = np.s_[:96, :96]
        result = denoise(clean[part], noise, channel_axis=-1, data_range=255)
        assert psnr(clean[part], result.mean, data_range=255) > 50


@pytest.mark.parametrize("sigma", [120, 400])
def test_noise_stronger_than_the_meter_has_seen(sigma):
    noise = estimate_noise(add_noise(grey("coffee", 256), sigma, seed=1), white=255.0)
    assert noise.level == pytest.approx(sigma, rel=0.1)


def test_squares_are_spread_over_a_large_picture():
    parts = squares(3000, 2000)
    assert 16 <= len(parts) <= 24
    assert all(p[0].stop - p[0].start == 256 == p[1].stop - p[1].start for p in parts)
    assert max(p[0].stop for p in parts) == 3000
    assert max(p[1].stop for p in parts) == 2000
    assert squares(40, 300) == [(slice(0, 40), slice(0, 256)), (slice(0, 40), slice(256, 300))]


def test_a_mostly_painted_picture_shows_its_noise():
    picture = np.full((200, 200), 255.0)
    picture[50:150, 50:150] = add_noise(np.full((100, 100), 90.0), 6, seed=2)
    assert estimate_noise(picture).level == pytest.approx(6, rel=0.12)


def test_saturated_pixels_are_left_out():
    """Blocks at white have lost their noise; the others tell."""
    clean = np.where(np.arange(300) < 200, 252, 120) * np.ones((300, 1))
    noisy = np.clip(add_noise(clean, 12, seed=3), 0, 255).round()
    noise = estimate_noise(noisy.astype(np.uint8))
    assert noise.map(np.full((9, 9), 120.0)).mean() == pytest.approx(12, rel=0.15)


def test_grey_stored_as_colour_is_measured_as_grey():
    noisy = add_noise(grey("camera", 200), 10, seed=1)
    once, thrice = estimate_noise(noisy), estimate_noise(np.repeat(noisy[..., None], 3, axis=2), -1)
    assert thrice == once


@pytest.mark.parametrize(
    "picture",
    [
        np.full((64, 64), 7, np.uint8),
        np.full((64, 64), 255, np.uint8),
        np.zeros((64, 64, 3)),
        np.zeros((1, 1)),
        np.zeros((5, 1)),
        np.full((4, 4, 3), 9, np.uint8),
    ],
)
def test_nothing_to_measure_is_no_noise(picture):
    noise = estimate_noise(picture, -1 if picture.ndim == 3 else None)
    assert noise.level == 0
    assert noise.confidence == 0
    assert "hardly a flat spot" in str(noise)


def test_small_pictures_give_a_guess():
    noise = estimate_noise(add_noise(np.full((7, 7), 100.0), 10, seed=4))
    assert 4 < noise.level < 20
    assert noise.confidence == 0
    assert 0 < estimate_noise(np.arange(16.0).reshape(4, 4) ** 2).level < 255


@pytest.mark.parametrize(("dtype", "factor"), [(np.uint16, 257), (np.float64, 1 / 255), (np.float64, 1)])
def test_units_do_not_matter(dtype, factor):
    levels = np.clip(add_noise(grey("camera", 200) * 0.8 + 20, 10, seed=1), 0, 255)
    expected = estimate_noise(levels, white=255.0).level
    found = estimate_noise((levels * factor).astype(dtype))
    assert found.level * 255 / found.white == pytest.approx(expected, rel=0.01)


def test_large_pictures_are_measured_quickly_and_in_part():
    rng = RNG(0)
    large = (128 + 6 * rng.standard_normal((3000, 3000), dtype=np.float32)).round().astype(np.uint8)
    assert estimate_sigma(large) == pytest.approx(6, rel=0.05)


# ------------------------------------------------------------------------------------------- the value


def test_a_noise_is_a_value():
    noise = estimate_noise(camera_noise(sample("cat", 128), 6400, RNG(0)), -1)
    assert pickle.loads(pickle.dumps(noise)) == noise
    assert Noise.from_json(noise.to_json()) == noise
    assert hash(noise) == hash(Noise.from_json(noise.to_json()))
    assert noise.key() == Noise.from_json(noise.to_json()).key() != noise.scaled(1.01).key()
    assert noise.scaled(2).level == pytest.approx(2 * noise.level)
    assert noise.scaled(2).planes[1].sigma[0] == pytest.approx(2 * noise.planes[1].sigma[0])


def test_the_map_follows_the_smoothed_picture():
    noise = Noise.poisson(2.0, 3.0)
    flat = np.full((12, 9), 100.0)
    assert noise.map(flat) == pytest.approx(np.full(flat.shape, np.sqrt(209)), rel=0.01)
    spike = flat.copy()
    spike[6, 4] = 200
    assert noise.map(spike).max() < 1.05 * noise.map(flat).max()  # one pixel does not decide
    colour = np.stack([flat, flat / 2, flat / 4], axis=0)
    assert noise.map(colour, 0).shape == colour.shape
    assert noise.map(colour, 0)[2] == pytest.approx(np.full(flat.shape, np.sqrt(59)), rel=0.02)


def test_a_curve_to_draw_and_its_grain_in_words():
    noise = Noise((PlaneNoise((50.0, 150.0), (2.0, 4.0)), PlaneNoise((0.0,), (3.0,)), PlaneNoise((0.0,), (1.0,))))
    assert np.array_equal(noise.curve(np.array([0, 100, 255])), [[2, 3, 4], [3, 3, 3], [1, 1, 1]])
    assert Noise.flat(5).curve(np.array([7.0])).tolist() == [[5.0]]
    assert noise.grain == ""
    fine, coarse = PlaneNoise((0.0,), (1.0,)), PlaneNoise((0.0,), (1.0,), ((1.0, 1.0), (1.0, 1.0)))
    assert Noise((fine,), (fine, coarse, coarse)).grain == "grain of about 1 pixel (3 in colour)"


def test_a_region_is_measured_alone():
    picture = np.full((120, 160), 100.0)
    picture[:, :80] = add_noise(picture[:, :80], 4, seed=1)
    picture[:, 80:] = add_noise(picture[:, 80:], 16, seed=2)
    assert estimate_noise(picture, region=Region(10, 0, 110, 80), white=255.0).level == pytest.approx(4, rel=0.15)
    assert estimate_noise(picture / 255, None, 1.0, Region(10, 80, 110, 160)).level * 255 == pytest.approx(16, rel=0.15)
    here = measure_noise(picture[10:110, 80:] / 255, None, Units(0.0, 1.0, "told"))
    assert here.level * 255 == pytest.approx(16, rel=0.15)
    for wrong in (Region(0, 0, 121, 10), Region(-1, 0, 10, 10), Region(5, 5, 5, 10)):
        with pytest.raises(ValueError, match="must lie in the picture of 120 x 160"):
            estimate_noise(picture, region=wrong)


def test_planes_of_independent_channels():
    noise = Noise((PlaneNoise((0.0,), (3.0,)), PlaneNoise((0.0,), (4.0,)), PlaneNoise((0.0,), (5.0,))))
    maps = noise.plane_maps(np.zeros((6, 5, 3)))
    rng = RNG(0)
    planes = to_planes(rng.standard_normal((400, 400, 3)) * [3, 4, 5])
    assert maps[:, 0, 0] == pytest.approx(planes.std(axis=(1, 2)), rel=0.01)
    assert noise.inflations(3) == [1, 1, 1]
    assert noise.plane_maps(np.zeros((6, 5))).shape == (1, 6, 5)


def test_words():
    assert str(Noise.flat(12)) == "noise 12.0 grey levels"
    assert str(Noise.flat(0.1, white=1.0)) == "noise 25.5 grey levels"
    grain = PlaneNoise((50.0, 200.0), (2.1, 5.0), ((1, 0.5, 0.1), (0.5, 0.25, 0), (0.1, 0, 0)))
    assert (
        str(Noise((grain,))) == "noise 3.8 grey levels, grows with brightness from 2.1 to 5.0, grain of about 2 pixels"
    )
    assert str(Noise.from_text("poisson:0.5,3")).startswith("noise 7.3 grey levels, grows with brightness from 3.1 to")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("much", "no such noise: 'much'"),
        ("white", "no such noise: 'white'"),
        ("white:1,2", "no such noise"),
        ("poisson:-1", "numbers >= 0"),
        ("poisson:0", "must not both be 0"),
        ("poisson:nan", "numbers >= 0"),
        ("camera:0", "ISO > 0"),
        ("camera:100,200", "quality from 1 to 100"),
        ("snow:3", "no such noise: 'snow:3'"),
        ("", "no such noise"),
        ("-3", "numbers >= 0"),
    ],
)
def test_bad_words_are_one_line(text, word):
    with pytest.raises(ValueError, match=word) as caught:
        parse_noise(text)
    assert "\n" not in str(caught.value)


def test_bad_values_are_refused():
    with pytest.raises(ValueError, match="gain must be >= 0, got -1"):
        Noise.poisson(-1)
    with pytest.raises(ValueError, match="sigma must be >= 0"):
        Noise.flat(float("nan"))
    with pytest.raises(ValueError, match="strength must be >= 0"):
        Noise.flat(3).scaled(-1)
    with pytest.raises(ValueError, match="rising"):
        PlaneNoise((3.0, 2.0), (1.0, 1.0))
    with pytest.raises(ValueError, match="standard deviations >= 0"):
        PlaneNoise((3.0,), (-1.0,))
    with pytest.raises(ValueError, match="is measured, not told by an ISO"):
        Noise.from_text("camera:3200")
    for text in (
        "",
        "[]",
        "{}",
        '{"format": "noise", "version": 2}',
        '{"format": "noise", "version": 1, "channels": 3}',
    ):
        with pytest.raises(ValueError, match="not a description of noise"):
            Noise.from_json(text)


# ------------------------------------------------------------------------------------------- making


def test_words_make_noise():
    flat = np.full((200, 200), 100.0)
    assert add_noise(flat, "white:12").std() == pytest.approx(12, rel=0.02)
    assert np.array_equal(add_noise(flat, "white:12", 5), add_noise(flat, 12, 5))
    assert add_noise(flat, "poisson:2,5").std() == pytest.approx(15, rel=0.03)
    assert add_noise(flat, "poisson:0,5").std() == pytest.approx(5, rel=0.03)
    camera = add_noise(flat, "camera:6400")
    assert 1 < camera.std() < 10
    assert np.array_equal(camera, add_noise(flat, "camera:6400,95"))
    assert not np.array_equal(camera, add_noise(flat, "camera:6400", 1))
    assert [str(parse_noise(w)) for w in ("20", "poisson:0.5", "camera:3200,85")] == [
        "white:20", "poisson:0.5,0", "camera:3200,85",
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------- runs under it


@pytest.mark.parametrize("colour", [False, True])
def test_flat_noise_makes_the_bytes_of_the_number(colour):
    clean = sample("cat", 24) if colour else grey("cat", 24)
    noisy, axis = add_noise(clean, 10), -1 if colour else None
    number, value = (
        denoise(noisy, noise, method="map", prior="pairwise", channel_axis=axis, data_range=255)
        for noise in (10.0, Noise.flat(10.0))
    )
    assert number.mean.tobytes() == value.mean.tobytes()


@pytest.mark.parametrize("words", ["poisson:2,4", "camera:12800"])
def test_measured_noise_is_removed_and_the_interval_is_honest(words):
    """Fully automatic: nothing is told but the picture."""
    poisson = words.startswith("poisson")
    clean = grey("camera") if poisson else sample("coffee")
    noisy = add_noise(clean, words, seed=1)
    axis = -1 if noisy.ndim == 3 else None
    noise = estimate_noise(noisy, axis, 255.0)
    part = np.s_[40:120, 120:200] if poisson else np.s_[:80, :80]
    result = denoise(
        noisy[part], noise, method="gibbs", prior="pairwise", samples=40, channel_axis=axis, data_range=255
    )  # fmt: skip
    gain = psnr(clean[part], result.mean, data_range=255) - psnr(clean[part], noisy[part], data_range=255)
    assert gain > 1.5
    assert coverage(clean[part], result.mean, result.std, count=40) == pytest.approx(0.9, abs=0.08)


# ------------------------------------------------------------------------------------------- the command


@pytest.fixture
def noisy_file(tmp_path):
    path = tmp_path / "noisy.png"
    images.write_png(path, add_noise(grey("camera", 200) * 0.8 + 20, 10, seed=1))
    return path


def test_the_command_prints_a_table(noisy_file, capsys):
    assert main(["noise", str(noisy_file)]) == 0
    title, row, words = capsys.readouterr().out.splitlines()
    assert title.split() == ["level", "dark", "bright", "next", "grain", "colour", "sure", "file"]
    assert float(row.split()[0]) == pytest.approx(10, rel=0.12)
    assert "grey levels" in words


def test_json_goes_out_and_comes_back(noisy_file, tmp_path, capsys):
    target = tmp_path / "noise.json"
    assert main(["noise", str(noisy_file), "--json", str(target)]) == 0
    noise = Noise.from_json(target.read_text())
    assert noise.level == pytest.approx(10, rel=0.12)
    assert main(["noise", str(noisy_file), "--json"]) == 0
    documents = json.loads(capsys.readouterr().out)
    assert [Noise.from_json(json.dumps({k: v for k, v in d.items() if k != "file"})) for d in documents] == [noise]
    assert main(["noise", str(noisy_file), "--json", str(target)]) == 1
    assert "exists already" in capsys.readouterr().err


def test_a_picture_is_never_written_over(noisy_file, capsys):
    before = noisy_file.read_bytes()
    assert main(["noise", str(noisy_file), "--overwrite", "--plot", str(noisy_file)]) == 1
    assert "is an input" in capsys.readouterr().err
    assert noisy_file.read_bytes() == before


def test_plot(noisy_file, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert main(["noise", str(noisy_file), "--plot", str(tmp_path / "curve.png")]) == 0
    assert images.read(tmp_path / "curve.png").pixels.shape[2] == 3
    capsys.readouterr()
    assert main(["noise", str(noisy_file), "--plot", str(tmp_path / "curve.xyz")]) == 1
    assert "cannot draw a plot as 'xyz'" in capsys.readouterr().err


def test_files_that_cannot_be_read_are_one_line_each(noisy_file, tmp_path, capsys):
    (tmp_path / "broken.png").write_bytes(b"no picture")
    assert main(["noise", str(tmp_path / "none.png"), str(tmp_path / "broken.png"), str(noisy_file)]) == 1
    captured = capsys.readouterr()
    assert len(captured.err.splitlines()) == 2
    assert str(noisy_file) in captured.out


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif"])
def test_the_written_file_says_which_noise_was_removed(noisy_file, tmp_path, suffix):
    source, target, again = (tmp_path / f"{name}{suffix}" for name in ("source", "target", "again"))
    Image.open(noisy_file).save(source)
    for before, after in ((source, target), (target, again)):
        assert (
            main(["-q", str(before), "-o", str(after), "--method", "map", "--prior", "pairwise", "--sigma", "9"]) == 0
        )
        assert after.read_bytes().count(b"Denoised") == 1
    with Image.open(again) as picture:
        words = picture.info.get("Denoised") or picture.info.get("comment") or picture.tag_v2[270]
    assert "noise 9.0 grey levels removed" in (words.decode() if isinstance(words, bytes) else words)


def test_the_command_on_lines_and_on_a_single_pixel(tmp_path, capsys):
    """A line is measured as the library does; in one pixel there is nothing to measure, which is not a level of 0."""
    line = add_noise(np.full((1, 500), 100.0), 10).round().astype(np.uint8)
    images.write_png(tmp_path / "line.png", line)
    assert main(["noise", str(tmp_path / "line.png")]) == 0
    assert 8 < float(capsys.readouterr().out.splitlines()[1].split()[0]) < 12
    images.write_png(tmp_path / "pixel.png", line[:, :1])
    assert main(["noise", str(tmp_path / "pixel.png")]) == 1
    assert "noise cannot be measured in a single pixel" in capsys.readouterr().err
