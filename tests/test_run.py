import numpy as np
import pytest

import denoiser
from denoiser import add_noise, denoise

IMAGE = np.random.default_rng(0).uniform(0, 255, (12, 14))
FAST = {"method": "gibbs", "samples": 4, "burn_in": 1}


@pytest.mark.parametrize(
    ("image", "sigma", "arguments", "message"),
    [
        (IMAGE, 0, {}, "sigma must be > 0, got 0"),
        (IMAGE, -5, {}, "sigma must be > 0, got -5"),
        (IMAGE, float("nan"), {}, "sigma must be > 0, got nan"),
        (IMAGE, "ten", {}, "sigma must be > 0, got 'ten'"),
        (np.where(IMAGE > 250, np.nan, IMAGE), 5, {}, "image must be finite, got"),
        (np.where(IMAGE > 250, np.inf, IMAGE), 5, {}, "image must be finite, got"),
        (np.zeros((0, 0)), 5, {}, r"image must be at least 2x2 pixels, got shape \(0, 0\)"),
        (np.zeros((1, 1)), 5, {}, r"image must be at least 2x2 pixels, got shape \(1, 1\)"),
        (np.zeros((1, 30)), 5, {}, r"image must be at least 2x2 pixels, got shape \(1, 30\)"),
        (np.zeros((9, 9, 3)), 5, {}, r"image must have 2 axes unless channel_axis is given, got shape \(9, 9, 3\)"),
        (np.zeros((9, 9, 4)), 5, {"channel_axis": -1}, "image must have 1 or 3 channels, got 4"),
        (np.zeros((9, 9)), 5, {"channel_axis": -1}, "channel_axis -1 does not fit"),
        (np.zeros((9, 9), complex), 5, {}, "image must hold whole or real numbers, got dtype complex128"),
        (np.zeros((9, 9), bool), 5, {}, "image must hold whole or real numbers, got dtype bool"),
        (IMAGE, 5, {"method": "magic"}, "method must be one of .*, got 'magic'"),
        (IMAGE, 5, {"colour": "red"}, "has no option 'colour'"),
        (IMAGE, 5, {"method": "gibbs", "samples": 0}, "samples must be >= 2, got 0"),
        (IMAGE, 5, {"prior": "magic"}, "prior must be one of .* got 'magic'"),
        (IMAGE, 5, {"seed": -1}, "seed must be a whole number >= 0, got -1"),
        (IMAGE, 5, {"seed": "x"}, "seed must be a whole number >= 0, got 'x'"),
        (IMAGE, 5, {"data_range": 0}, "data_range must be > 0, got 0"),
    ],
)
def test_bad_input_is_named(image, sigma, arguments, message):
    with pytest.raises(ValueError, match=message):
        denoise(image, sigma, **arguments)


def test_scales_are_equivalent():
    """uint8, uint16, 0-1 and 0-255 images give the same answer in their own units."""
    whole = IMAGE.astype(np.uint8)
    reference = denoise(whole, 10, **FAST)
    assert reference.mean.dtype == np.float64
    for image, factor in ((whole.astype(np.uint16) * 257, 257), (whole / 255.0, 1 / 255), (whole.astype(float), 1)):
        other = denoise(image, 10 * factor, **FAST)
        assert np.allclose(other.mean, reference.mean * factor, rtol=1e-3)
        assert np.allclose(other.std, reference.std * factor, rtol=1e-2, atol=1e-2 * factor)


def test_channel_axis():
    image = np.random.default_rng(1).uniform(0, 255, (13, 11, 3))
    last = denoise(image, 10, channel_axis=-1, **FAST)
    first = denoise(np.moveaxis(image, -1, 0), 10, channel_axis=0, **FAST)
    assert last.mean.shape == last.std.shape == (13, 11, 3)
    assert first.samples.shape == (4, 3, 13, 11)
    assert np.array_equal(np.moveaxis(first.mean, 0, -1), last.mean)
    assert np.array_equal(np.moveaxis(first.samples, 1, -1), last.samples)
    assert np.allclose(last.samples.mean(axis=0), last.mean, atol=1e-3)


def test_single_channel_equals_grey():
    assert np.array_equal(denoise(IMAGE, 9, **FAST).mean, denoise(IMAGE[None], 9, channel_axis=0, **FAST).mean[0])


def test_progress_is_called_every_iteration():
    seen = []
    result = denoise(IMAGE, 9, progress=seen.append, **FAST)
    assert [p.step for p in seen] == list(range(1, seen[-1].total + 1))
    assert np.array_equal(seen[-1].mean, result.mean)
    assert result.history[-1]["std"] == pytest.approx(result.std.mean())


def test_input_is_not_touched():
    image = IMAGE.copy()
    denoise(image, 9, **FAST)
    assert np.array_equal(image, IMAGE)


def test_noise():
    noisy = add_noise(np.full((400, 400), 100, np.uint8), 12, seed=3)
    assert noisy.std() == pytest.approx(12, rel=0.02)
    assert np.array_equal(noisy, 100 + 12 * np.random.default_rng(3).standard_normal((400, 400)))
    assert denoiser.estimate_sigma(noisy) == pytest.approx(12, rel=0.05)
    with pytest.raises(ValueError, match="sigma must be >= 0, got -1"):
        add_noise(noisy, -1)


def test_noise_estimates_are_those_of_scikit_image():
    from skimage.restoration import estimate_sigma

    image = add_noise(np.tile(np.arange(0.0, 90), (71, 1))[..., None] * [1, 2, 0.5], 7, seed=1)
    for values, axis in ((image, -1), (np.moveaxis(image, -1, 0), 0), (image[..., 0], None)):
        expected = estimate_sigma(values, average_sigmas=True, channel_axis=axis)
        assert denoiser.estimate_sigma(values, channel_axis=axis) == pytest.approx(expected, rel=1e-12)
    assert denoiser.estimate_sigma(np.full((9, 9), 7, np.uint8)) == 0
    large = add_noise(np.zeros((4100, 3000)), 5)
    assert denoiser.estimate_sigma(large) == pytest.approx(5, rel=0.01)


def test_metrics():
    a = np.random.default_rng(0).uniform(0, 255, (32, 40))
    assert denoiser.psnr(a, a, data_range=255) == np.inf
    assert denoiser.psnr(a, a + 5, data_range=255) == pytest.approx(20 * np.log10(51))
    assert denoiser.ssim(a, a, data_range=255) == pytest.approx(1)
    assert denoiser.ssim(a, 255 - a, data_range=255) < 0.2
    with pytest.raises(ValueError, match="same shape"):
        denoiser.psnr(a, a[:-1], data_range=255)
    with pytest.raises(ValueError, match="at least 11x11"):
        denoiser.ssim(a[:5], a[:5], data_range=255)


def test_ssim_is_wangs():
    """Against the definition, by loops: 11x11 Gaussian window of sigma 1.5, K = 0.01 and 0.03."""
    rng = np.random.default_rng(0)
    a = rng.uniform(0, 255, (15, 14))
    b = a + rng.normal(0, 20, a.shape)
    at = np.arange(11) - 5
    window = np.exp(-(at[:, None] ** 2 + at[None] ** 2) / (2 * 1.5**2))
    window /= window.sum()
    values = []
    for r in range(a.shape[0] - 10):
        for c in range(a.shape[1] - 10):
            p, q = a[r : r + 11, c : c + 11], b[r : r + 11, c : c + 11]
            mp, mq = (window * p).sum(), (window * q).sum()
            vp, vq = (window * (p - mp) ** 2).sum(), (window * (q - mq) ** 2).sum()
            cov = (window * (p - mp) * (q - mq)).sum()
            c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
            values.append((2 * mp * mq + c1) * (2 * cov + c2) / ((mp**2 + mq**2 + c1) * (vp + vq + c2)))
    assert denoiser.ssim(a, b, data_range=255) == pytest.approx(np.mean(values), rel=1e-9)


def test_opponent_planes_keep_noise_white():
    from denoiser import colour

    assert np.allclose(colour.OPPONENT @ colour.OPPONENT.T, np.eye(3))
    image = np.random.default_rng(0).normal(size=(5, 4, 3))
    assert np.allclose(colour.to_channels(colour.to_planes(image)), image)
    assert np.allclose(colour.std_to_channels(np.full((3, 5, 4), 2.0)), 2.0)


def test_a_detached_report_does_not_change_any_more(picture):
    steps = denoiser.iterate(denoiser.add_noise(picture, 20), 20, method="mp-svgd", particles=4, iterations=3)
    first = next(steps)
    kept, before = first.detached(), first.samples
    next(steps)
    assert not np.array_equal(first.samples, before)  # the sampler moves its particles in place
    np.testing.assert_array_equal(kept.samples, before)
    np.testing.assert_array_equal(kept.sample(2), before[2])
    assert kept.particles == 4
