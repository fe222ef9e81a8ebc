"""Reading a JPEG's steps off its pixels, and what the correlation of the noise makes of them."""

import io

import numpy as np
import pytest
from PIL import Image
from scipy.fft import dctn

from conftest import ROOT
from denoiser import add_noise, images
from denoiser.colour import to_planes
from denoiser.jpeg_marks import coefficients, damage, step
from denoiser.noise import estimate_noise


@pytest.fixture(scope="module")
def noisy():
    clean = images.read(ROOT / "sample_images" / "coffee.png").pixels.astype(float)
    return np.clip(np.round(add_noise(clean, 4.0, seed=1)), 0, 255)


def saved(pixels, quality):
    """As a JPEG shows it, and the JPEG's table of steps for brightness, (8, 8)."""
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, "JPEG", quality=quality)
    picture = Image.open(file)
    return np.asarray(picture, float), np.array(picture.quantization[0]).reshape(8, 8)


def test_coefficients_are_those_of_the_cosine_transform(noisy):
    luma = noisy[:64, :64] @ [0.299, 0.587, 0.114]
    expected = [dctn(luma[y : y + 8, x : x + 8], norm="ortho") for y in range(0, 64, 8) for x in range(0, 64, 8)]
    np.testing.assert_allclose(coefficients([noisy[:66, :71]]), expected, atol=1e-9)


@pytest.mark.parametrize("quality", [75, 85, 90])
def test_steps_are_those_of_the_file(noisy, quality):
    pixels, table = saved(noisy, quality)
    found = np.abs(coefficients([pixels]))
    for u, v in ((1, 1), (2, 2), (0, 3), (3, 1)):
        assert table[u, v] < 3 or step(found[:, u, v]) == table[u, v]


def test_damage_grows_with_the_steps_and_needs_a_jpeg(noisy):
    assert damage([noisy]) == 0
    found = [damage([saved(noisy, quality)[0]]) for quality in (95, 85, 75)]
    assert 0 < found[0] < found[1] < found[2]
    assert damage([saved(noisy, 75)[0][3:, 5:]]) == 0  # the grid lies elsewhere, and nothing is made up
    assert damage([noisy[:8, :8]]) == 0


@pytest.mark.parametrize("name", ["cat", "coffee", "lake"])
def test_a_jpeg_of_texture_leaves_noise_that_is_less_correlated(name):
    clean = images.read(ROOT / "sample_images" / f"{name}.png").pixels.astype(float)
    for quality in (95, 85):
        noisy = add_noise(clean, f"camera:6400,{quality}", seed=1)
        residual = to_planes(noisy - clean)[0]
        truth = np.mean([(residual[:, 1:] * residual[:, :-1]).mean(), (residual[1:] * residual[:-1]).mean()])
        table = estimate_noise(noisy, -1).planes[0].correlation
        assert (table[0][1] + table[1][0]) / 2 == pytest.approx(truth / residual.var(), abs=0.15)
