"""Black and white of any picture: from the caller, the file, or the pixels; and results as good as those of 8 bits."""

import json

import numpy as np
import pytest
import tifffile

from conftest import ROOT
from denoiser import denoise, images, metrics
from denoiser.cli import main
from denoiser.noise import add_noise
from denoiser.units import FAR, Units, units

SIGMA = 15.0


@pytest.fixture(scope="module")
def clean():
    """A part of a photograph that fills 0 to 255, grey, float64."""
    return images.read(ROOT / "sample_images" / "camera.png").pixels[150:246, 180:276].astype(float)


@pytest.fixture(scope="module")
def noisy(clean):
    return np.clip(np.rint(add_noise(clean, SIGMA)), 0, 255)


def stretched(levels, low, high, dtype):
    values = low + levels * ((high - low) / 255)
    return (np.rint(values) if np.dtype(dtype).kind in "ui" else values).astype(dtype)


# name -> what 0 and 255 grey levels become
FORMATS = {
    "uint16": (0, 65535, np.uint16),
    "12 bits in uint16": (0, 4095, np.uint16),
    "10 bits in uint16": (0, 1023, np.uint16),
    "100 to 600 in uint16": (100, 600, np.uint16),
    "100 to 700 in uint16": (100, 700, np.uint16),
    "1000 to 30000 in uint16": (1000, 30000, np.uint16),
    "12 bits in int16": (0, 4095, np.int16),
    "negative in int16": (-1024, 3071, np.int16),
    "int32": (0, 65535, np.int32),
    "8 bits in uint32": (0, 255, np.uint32),
    "uint32": (0, 2**32 - 1, np.uint32),
    "8 bits in uint64": (0, 255, np.uint64),
    "16 bits in int64": (0, 65535, np.int64),
    "float16": (0, 1, np.float16),
    "0 to 1": (0, 1, np.float32),
    "0 to 255": (0, 255, np.float32),
    "0 to 4095": (0, 4095, np.float64),
    "0 to 65535": (0, 65535, np.float32),
    "-1 to 1": (-1, 1, np.float32),
    "a large offset": (1e9, 1e9 + 3, np.float64),
    "tiny": (0, 1e-12, np.float64),
}


def scored(mean, std, low, high, clean):
    """PSNR against the truth on the 8-bit scale, and how much of the truth the 90 % interval of 10 draws covers."""
    mean, std = (mean.astype(float) - low) * 255 / (high - low), std * (255 / (high - low))
    return metrics.psnr(clean, mean, data_range=255), metrics.coverage(clean, mean, std, count=10)


def quality(image, low, high, clean):
    """The same of what the library makes of an array."""
    result = denoise(image, SIGMA * (high - low) / 255, prior="pairwise", particles=10, iterations=15)
    return scored(result.mean, result.std, low, high, clean)


@pytest.fixture(scope="module")
def in_8_bits(clean, noisy):
    return quality(noisy.astype(np.uint8), 0, 255, clean)


@pytest.mark.parametrize("hot", [0, 4])
@pytest.mark.parametrize("name", FORMATS)
def test_as_good_as_8_bits(name, hot, clean, noisy, in_8_bits):
    low, high, dtype = FORMATS[name]
    image = stretched(noisy, low, high, dtype)
    if hot:  # one defective pixel, up to four times white
        value = high + hot * (high - low)
        image[5, 7] = value if image.dtype.kind == "f" else min(value, np.iinfo(dtype).max)
        clean = clean.copy()
        clean[5, 7] = (image[5, 7].astype(float) - low) * 255 / (high - low)
    decibels, covered = quality(image, low, high, clean)
    assert decibels > in_8_bits[0] - 0.1
    assert decibels < in_8_bits[0] + 0.3
    assert abs(covered - in_8_bits[1]) < 0.02


@pytest.mark.parametrize(
    ("low", "high", "dtype"), [(0, 255, np.uint8), (1e9, 1e9 + 3, np.float64), (0, 1e-40, np.float64), (0, 1e90, float)]
)
def test_tiles_and_particles_keep_the_digits(low, high, dtype, noisy):
    """A picture far from 0, or in units that float32 does not know, in tiles and as particles."""
    image = stretched(np.tile(noisy, (4, 4)), low, high, dtype)
    options = {"quality": "fast", "data_range": (low, high)}
    sigma, grey = SIGMA * (high - low) / 255, (high - low) / 255
    whole = denoise(image, sigma, **options)
    tiles = denoise(image, sigma, memory=8 << 20, **options)
    assert tiles.tiles > 1
    assert np.abs(tiles.mean - whole.mean).max() < 0.01 * grey
    assert np.abs(tiles.std - whole.std).max() < 0.01 * grey
    drawn = denoise(image[:64, :64], sigma, particles=20, **options)
    assert drawn.samples.std(axis=0, ddof=1).mean() / grey == pytest.approx(drawn.std.mean() / grey, rel=0.1)


@pytest.mark.parametrize("name", [name for name, (_, _, dtype) in FORMATS.items() if np.dtype(dtype).itemsize < 8])
def test_the_command_is_as_good(name, clean, noisy, in_8_bits, tmp_path, monkeypatch, capsys):
    low, high, dtype = FORMATS[name]
    image = stretched(noisy, low, high, dtype)
    monkeypatch.chdir(tmp_path)
    tifffile.imwrite("a.tif", image)
    sigma = SIGMA * (high - low) / 255 / units(image).grey  # the command counts in grey levels
    options = ["--prior", "pairwise", "--particles", "10", "--iterations", "15", "--sigma", str(sigma)]
    assert main(["a.tif", "-o", "b.tif", "--std", "s.tif", "--json", *options]) == 0
    assert json.loads(capsys.readouterr().out)["units"] == str(units(image))
    mean, std = tifffile.imread("b.tif"), tifffile.imread("s.tif").astype(float)
    assert mean.dtype == image.dtype
    decibels, covered = scored(mean, std, low, high, clean)
    assert in_8_bits[0] - 0.1 < decibels < in_8_bits[0] + 0.3
    assert abs(covered - in_8_bits[1]) < 0.02


def test_the_window_is_as_good(clean, noisy, in_8_bits, tmp_path, monkeypatch, request):
    """All of them in one window, opened and run by a user's hands, and the file that is saved."""
    hands = pytest.importorskip("hands", reason="needs the gui extra", exc_type=ImportError)
    qtbot, window = (request.getfixturevalue(name) for name in ("qtbot", "window"))
    hands.press(qtbot, window, "Ctrl+2")
    for number, (name, (low, high, dtype)) in enumerate(FORMATS.items()):
        if np.dtype(dtype).itemsize == 8:
            continue  # no such TIFF
        image = stretched(noisy, low, high, dtype)
        tifffile.imwrite(tmp_path / f"{number}.tif", image)
        hands.open_(qtbot, window, monkeypatch, tmp_path / f"{number}.tif")
        hands.set_method(window, "mp-svgd", particles=10, iterations=15)
        window.controls.prior.setCurrentIndex(window.controls.prior.findData("pairwise"))
        window.controls.sigma.setValue(SIGMA * (high - low) / 255 / units(image).grey)
        hands.run(qtbot, window)
        decibels, covered = scored(window.a.snapshot.mean, window.a.snapshot.std, low, high, clean)
        assert in_8_bits[0] - 0.1 < decibels < in_8_bits[0] + 0.3, name
        assert abs(covered - in_8_bits[1]) < 0.02, name
        hands.save(qtbot, window, monkeypatch, "Ctrl+S", tmp_path / f"{number}-clean.tif")
        qtbot.waitUntil(lambda: window.a.saved, timeout=hands.LONG)
        mean = tifffile.imread(tmp_path / f"{number}-clean.tif")
        assert mean.dtype == dtype
        assert scored(mean, window.a.snapshot.std, low, high, clean)[0] == pytest.approx(decibels, abs=0.02), name


def test_a_reference_is_in_the_units_of_the_picture(clean, noisy, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    image, truth = (stretched(levels, 100, 600, np.uint16) for levels in (noisy, clean))
    tifffile.imwrite("a.tif", image)
    tifffile.imwrite("truth.tif", truth)
    assert main(["a.tif", "-o", "b.tif", "--method", "tv", "--sigma", "15", "--reference", "truth.tif", "--json"]) == 0
    expected = metrics.psnr(truth, image, data_range=255 * units(image).grey)
    assert json.loads(capsys.readouterr().out)["psnr_before"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("image", "white"),
    {
        "uint16": 65535,
        "12 bits in uint16": 4095,
        "12 bits in int16": 4095,
        "8 bits in uint64": 255,
        "0 to 1": 1,
        "0 to 255": 255,
        "0 to 4095": 4095,
        "uint32": 2**32 - 1,
    }.items(),
)
def test_a_range_that_everybody_uses_is_found_exactly(image, white, noisy):
    found = units(stretched(noisy, *FORMATS[image]))
    assert (found.black, found.white) == (0, white)
    assert "measured" not in found.how


@pytest.mark.parametrize("sigma", [0, 5, 30])
@pytest.mark.parametrize("name", ["camera", "astronaut", "coffee", "lake", "spices", "raccoon", "trees"])
def test_a_measured_range_is_close_to_the_real_one(name, sigma):
    pixels = images.read(ROOT / "sample_images" / f"{name}.png").pixels[:240, :240]
    levels = np.clip(add_noise(pixels, sigma), 0, 255)
    found = units(stretched(levels, 100, 600, np.uint16))
    assert found.how.startswith("measured")
    assert 0.9 < 500 / (found.white - found.black) < 1.4  # a scale of 0.85 costs a tenth of a decibel


def test_8_bits_are_what_they_are():
    dark = np.full((9, 9), 3, np.uint8)
    dark[4, 4] = 9
    assert units(dark) == Units(0, 255, "8 bits")
    assert units(dark, claim=Units(0, 99, "its header")) == Units(0, 99, "its header")


def test_what_is_given_goes_before_everything(noisy):
    image = stretched(noisy, 100, 600, np.uint16)
    claim = Units(0, 4095, "MaxSampleValue")
    assert units(image, white=700, claim=claim) == Units(0, 700, "given")
    assert units(image, white=700, black=50) == Units(50, 700, "given")
    only_black = units(image, black=50)
    assert only_black.black == 50
    assert only_black.white == units(image).white
    assert "black given" in only_black.how
    assert units(noisy.astype(np.uint8), white=99, black=-3) == Units(-3, 99, "given")


def test_a_claim_is_believed_unless_the_pixels_say_otherwise(noisy):
    image = stretched(noisy, 0, 2000, np.uint16)
    assert units(image, claim=Units(0, 4095, "12 bits")) == Units(0, 4095, "12 bits")
    for white in (1, 1000, 60000):  # left by the pixels, or all but empty
        assert units(image, claim=Units(0, white, "MaxSampleValue")).how.startswith("measured")
    flat = np.full((9, 9), 7, np.uint16)
    assert units(flat, claim=Units(0, 4095, "12 bits")).white == 4095


@pytest.mark.parametrize("dtype", [np.uint16, np.int16, np.int64, np.float32])
@pytest.mark.parametrize("value", [0, 1, 200])
def test_flat_pictures_have_a_range(dtype, value):
    found = units(np.full((5, 4), value, dtype))
    assert found.black <= value <= found.white
    assert "flat" in found.how


def test_a_flat_picture_with_a_few_bright_pixels():
    image = np.zeros((200, 200), np.float32)
    image[50:52, 50:53] = 3000
    assert units(image).white >= 3000


def test_pure_noise_is_not_stretched_without_end():
    found = units(add_noise(np.full((200, 200), 100.0), 2.0) * 7)
    assert 30 < 14 / found.grey <= 51


@pytest.mark.parametrize("prior", ["learned", "pairwise", "foe3x3"])
def test_what_lies_far_beyond_white_stays_and_spoils_nothing(clean, prior):
    rows, columns = np.mgrid[-9:10, -9:10]
    far = clean.copy()
    far[20:39, 20:39] += 50 * 255 * np.exp(-(rows**2 + columns**2) / 4.5)  # a star
    far[70, 60] = 50 * 255  # a hot pixel
    rest = np.ones(clean.shape, bool)
    rest[15:44, 15:44] = rest[65:76, 55:66] = False
    options = {} if prior == "learned" else {"particles": 10, "iterations": 15}

    def error(truth):
        mean = denoise(add_noise(truth, SIGMA), SIGMA, prior=prior, data_range=255, **options).mean
        return mean - truth

    assert np.sqrt(np.mean(error(far)[rest] ** 2)) < 1.05 * np.sqrt(np.mean(error(clean)[rest] ** 2))
    assert np.abs(error(far)).max() < 0.02 * 50 * 255


def test_many_pages_and_thin_and_large_pictures(noisy):
    image = stretched(noisy, 100, 600, np.uint16)
    assert units([image, image // 3]).white == pytest.approx(units(image).white, abs=40)
    colour = np.repeat(image[..., None], 3, axis=2)
    for same in (colour, [colour] * 4, [colour, image]):
        assert units(same).white == pytest.approx(units(image).white, abs=1)
    for shape in ((1, 1), (1, 900), (900, 1), (2, 2), (2, 5000)):
        assert units(np.resize(image, shape)).white > 100
    large = np.tile(image, (40, 41))
    assert units(large).white == pytest.approx(units(image).white, abs=20)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_numbers(value):
    image = np.zeros((9, 9))
    image[2, 3] = value
    with pytest.raises(ValueError, match="not numbers"):
        units(image, white=1)


@pytest.mark.parametrize("value", [1e38, -1e38, 1e90, 1.01 * FAR + 1])
def test_absurd_pixels_are_refused_with_the_options_that_help(noisy, value):
    image = noisy / 255
    image[2, 3] = value
    with pytest.raises(ValueError, match="--white and --black, or data_range=") as error:
        units(image)
    assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="too far"):
        units(image, white=1)
    assert units(image, white=abs(value), black=-abs(value)).white == abs(value)


@pytest.mark.parametrize(("low", "high"), [(0, 1e300), (-1e200, 1e200), (0, 1e-120), (1e15, 1e15 + 100)])
def test_numbers_that_no_arithmetic_can_tell_apart_are_refused(low, high, noisy):
    """Their squares overflow, or their last digits are all there is."""
    image = low + noisy / 255 * (high - low)
    for options in ({}, {"white": high, "black": low}):
        with pytest.raises(ValueError, match="beyond what numbers can tell; subtract an offset, or divide, first"):
            units(image, **options)


def test_masked_arrays_wrong_types_and_wrong_ranges():
    for pixels in (np.zeros((3, 3), bool), np.zeros((3, 3), complex), np.array([["a"]])):
        with pytest.raises(ValueError, match="numbers"):
            units(pixels)
    with pytest.raises(ValueError, match="empty"):
        units(np.zeros((0, 3)))
    with pytest.raises(ValueError, match="axes"):
        units(np.zeros(3))
    with pytest.raises(ValueError, match="masked"):
        units(np.ma.masked_less(np.arange(9.0).reshape(3, 3), 4))
    for white, black in ((0, None), (1, 1), (1, 2), (np.nan, None), (np.inf, 0), (1, np.nan), (1e300, 1e300)):
        with pytest.raises(ValueError, match=r"white|black"):
            units(np.zeros((3, 3)), white=white, black=black)


@pytest.mark.parametrize("dtype", [np.uint16, np.int16, np.uint32, np.float32])
def test_there_and_back(dtype):
    rng = np.random.default_rng(0)
    info = np.iinfo(dtype) if np.dtype(dtype).kind in "ui" else None
    values = rng.integers(info.min, info.max, (50, 50)) if info else rng.normal(5, 3, (50, 50))
    values = values.astype(dtype)
    scale = units(values)
    back = scale.from_grey(scale.to_grey(values))
    assert back.dtype == np.float64
    assert np.array_equal((np.rint(back) if info else back).astype(dtype), values)
    assert Units(0, 255, "").to_grey(values).tolist() == values.tolist()
