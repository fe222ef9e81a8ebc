import pickle

import numpy as np
import pytest

import denoiser
from conftest import ROOT
from denoiser import add_noise, denoise, images

IMAGE = np.random.default_rng(0).uniform(0, 255, (12, 14))
FAST = {"method": "gibbs", "samples": 4, "burn_in": 1}


@pytest.mark.parametrize(
    ("image", "sigma", "arguments", "message"),
    [
        (IMAGE, 0, {}, "sigma must be > 0, got 0"),
        (IMAGE, -5, {}, "sigma must be > 0, got -5"),
        (IMAGE, float("nan"), {}, "sigma must be > 0, got nan"),
        (IMAGE, "ten", {}, "no such noise: 'ten'"),
        (np.where(IMAGE > 250, np.nan, IMAGE), 5, {}, "image must be finite, got"),
        (np.where(IMAGE > 250, np.inf, IMAGE), 5, {}, "image must be finite, got"),
        (np.zeros((0, 0)), 5, {}, r"image must have pixels, got shape \(0, 0\)"),
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
        (IMAGE, 5, {"data_range": 0}, "must be more than black, 0; got 0"),
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
    with pytest.raises(ValueError, match="has gone on"):  # the sampler moves its particles in place
        first.samples  # noqa: B018
    np.testing.assert_array_equal(kept.samples, before)
    np.testing.assert_array_equal(kept.sample(2), before[2])
    assert kept.particles == 4


# ---- a run is a value


def request(**changes):
    values = {"picture": IMAGE, "noise": 9.0, "sampler": denoiser.METHODS["gibbs"](samples=4, burn_in=1)}
    return denoiser.Request(**{**values, "prior": denoiser.load_prior("pairwise"), "white": 255, **changes})


def test_a_request_is_a_value():
    one = request()
    other = pickle.loads(pickle.dumps(one))
    assert one.key() == other.key()
    result, again = one.run(), other.run()
    assert np.array_equal(result.mean, again.mean)
    assert np.array_equal(result.samples, again.samples)
    assert np.array_equal(result.mean, denoise(IMAGE, 9, data_range=255, **FAST).mean)
    with pytest.raises(AttributeError):
        one.seed = 3


def test_every_field_of_a_request_is_in_its_key():
    changes = {
        "picture": IMAGE + 1, "noise": 9.5, "sampler": denoiser.METHODS["gibbs"](samples=6), "seed": 1, "white": 250,
        "prior": denoiser.load_prior("foe3x3"), "black": -1.0, "memory": 1 << 27, "chroma": 2.0,
        "region": denoiser.Region(0, 0, 5, 5),
    }  # fmt: skip
    keys = [request(**{name: value}).key() for name, value in changes.items()]
    assert len({request().key(), *keys}) == len(changes) + 1
    flat = request(noise=np.full(IMAGE.shape, 9.0))
    assert flat.key() != request().key()


@pytest.mark.parametrize("method", ["mp-svgd", "mp-svgd-s", "svgd", "gibbs", "hmc", "map"])
@pytest.mark.parametrize("colour", [False, True])
def test_a_constant_noise_map_gives_the_bytes_of_the_number(method, colour):
    few = {"particles": 4, "iterations": 2, "samples": 4, "burn_in": 1, "chains": 2}
    options = {k: v for k, v in few.items() if k in denoiser.METHODS[method].options()}
    sampler = denoiser.METHODS[method](**options)
    picture = np.stack([IMAGE, IMAGE[::-1], IMAGE[:, ::-1]], axis=-1) if colour else IMAGE
    axis = -1 if colour else None
    number, flat, wide = (
        request(picture=picture, sampler=sampler, channel_axis=axis, noise=noise).run()
        for noise in (9.0, np.full(IMAGE.shape, 9.0), np.full(picture.shape, 9.0))
    )
    for one in (flat, wide):
        assert np.array_equal(one.mean, number.mean)
        assert np.array_equal(one.std, number.std)
        assert np.array_equal(one.samples, number.samples)


def test_a_noise_map_says_where_to_smooth():
    rough = add_noise(np.full((40, 40), 100.0), 10)
    noise = np.where(np.arange(40) < 20, 1.0, 20.0) * np.ones((40, 1))
    result = request(picture=rough, noise=noise).run()
    change = np.abs(result.mean - rough)
    assert change[:, :18].mean() < 1
    assert change[:, 22:].mean() > 5
    assert result.std[:, :18].mean() < 1.2
    assert result.std[:, 22:].mean() > 1.5 * result.std[:, :18].mean()


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        (np.ones((3, 3)), "picture's shape"),
        (np.full(IMAGE.shape, np.nan), "finite numbers >= 0"),
        (np.full(IMAGE.shape, -1.0), "finite numbers >= 0"),
        (np.zeros(IMAGE.shape), "not zeros alone"),
        (True, "sigma must be > 0"),
        (1e300, "sigma must lie between"),
        (1e-300, "sigma must lie between"),
    ],
)
def test_bad_noise_is_named(noise, message):
    with pytest.raises(ValueError, match=message):
        request(noise=noise)


def test_a_number_without_axes_is_a_number():
    assert request(noise=np.array(9.0)).key() == request(noise=np.float32(9.0)).key() == request().key()


def test_absurd_pixels_and_masks_are_refused():
    for value in (1e38, 1e200, -1e9):
        with pytest.raises(ValueError, match="lies too far from black 0, white 255"):
            request(picture=np.where(IMAGE > 250, value, IMAGE))
    with pytest.raises(ValueError, match="masked"):
        request(picture=np.ma.masked_greater(IMAGE, 200))
    assert request(picture=np.ma.array(IMAGE)).key() == request().key()  # nothing masked in it


def test_options_beside_a_sampler_are_refused():
    with pytest.raises(ValueError, match=r"options \(particles, sead\)"):
        denoise(IMAGE, 9, method=denoiser.METHODS["mp-svgd"](), particles=9, sead=3)


def test_the_interval_is_the_one_of_metrics():
    result = request().run()
    low, high = result.interval(0.9)
    reach = denoiser.metrics.credible_factor(0.9, 4) * result.std
    assert np.array_equal(low, result.mean - reach)
    assert np.array_equal(high, result.mean + reach)
    with pytest.raises(ValueError, match="one picture, and no idea"):
        denoise(IMAGE, 9, method="map").interval()


def test_draws_so_far():
    steps = list(request(sampler=denoiser.METHODS["gibbs"](samples=8, burn_in=0, chains=2)).iterate())
    assert [step.draws for step in steps] == [2, 4, 6, 8]
    assert {step.draws for step in denoiser.iterate(IMAGE, 9, method="mp-svgd", particles=3, iterations=2)} == {3}
    assert denoise(IMAGE, 9, method="map").draws == 0


@pytest.mark.parametrize(
    "how",
    [
        {"method": "gibbs", "samples": 6, "keep": 2},
        {"prior": "pairwise", "quality": "fast", "particles": 4, "iterations": 2},
        *[{"prior": "foe3x3", "particles": 4, "iterations": 2, **more} for more in ({}, {"widen": 1.0}, {"narrow": 0})],
    ],
)
def test_a_command_makes_the_same_bytes(tmp_path, monkeypatch, how):
    """Also where the preset of the words that it says has options that this run has not."""
    import shlex

    from denoiser import cli, images

    monkeypatch.chdir(tmp_path)
    images.write_png("noisy.png", IMAGE)
    one = denoiser.make_request(images.read("noisy.png").pixels, 30, seed=3, **how)
    words = shlex.split(one.command("noisy.png"))
    assert cli.main([*words[1:], "-o", "out.tif", "--samples", "all.npz", "-q"]) == 0
    assert np.array_equal(np.load("all.npz")["samples"], one.run().samples)


def test_noise_that_is_left_out_is_measured(picture):
    wide = np.tile(picture, (4, 4))
    noisy = add_noise(wide, 12)
    measured = denoise(noisy, data_range=255)
    assert measured.sigma == pytest.approx(12, rel=0.15)
    assert np.array_equal(denoise(noisy, sigma=12, data_range=255).mean, denoise(noisy, 12, data_range=255).mean)
    told = denoise(noisy, "poisson:1,5", data_range=255)
    assert 5 < told.sigma < 20
    with pytest.raises(ValueError, match="two names of one thing"):
        denoise(noisy, 12, sigma=12)
    with pytest.raises(ValueError, match="no noise was found"):
        denoise(np.full((40, 40), 100.0), data_range=255)


def test_a_grey_picture_in_colour_is_one_plane():
    grey = add_noise(np.tile(np.linspace(20, 220, 60), (40, 1)), 10)
    alone = denoise(grey, 10, data_range=255, **FAST)
    three = denoise(np.stack([grey] * 3, axis=-1), 10, channel_axis=-1, data_range=255, **FAST)
    assert np.allclose(three.mean, alone.mean[..., None], atol=1e-9)
    assert np.allclose(three.std, alone.std[..., None])
    assert three.samples.shape == (4, 40, 60, 3)


def test_a_result_measures_itself(picture):
    result = denoise(add_noise(picture, 10), 10, data_range=255, particles=20)
    mask = np.zeros(picture.shape, bool)
    mask[3:9, 4:12] = True
    found = result.region(mask)
    assert found["mean"].low < picture[mask].mean() + 5
    same = result.measure(lambda image: image[mask].mean())
    assert same.value == pytest.approx(found["mean"].value)
    with pytest.raises(ValueError, match="ask for particles"):
        denoise(picture, 10, data_range=255).region(mask)


@pytest.mark.parametrize("shape", [(1, 1), (1, 30), (30, 1), (2, 3), (7, 5)])
@pytest.mark.parametrize("how", [{}, {"method": "mp-svgd", "particles": 3, "iterations": 2}, FAST, {"method": "map"}])
def test_pictures_of_any_size(shape, how):
    noisy = add_noise(np.full(shape, 100.0), 10)
    result = denoise(noisy, 10, data_range=255, **how)
    assert result.mean.shape == result.std.shape == shape
    assert np.abs(result.mean - 100).max() < 60


def test_widened_particles_and_their_std_agree():
    """Mean as it was, particles and std twice as far from it; the option is in the key and in the command."""
    options = {"method": "mp-svgd", "particles": 6, "iterations": 2}
    plain, wide = (denoise(IMAGE, 9, widen=widen, **options) for widen in (1.0, 2.0))
    assert np.array_equal(plain.mean, wide.mean)
    assert np.allclose(2 * plain.std, wide.std)
    assert np.allclose(wide.samples.std(axis=0, ddof=1), wide.std, rtol=1e-3, atol=1e-3)
    assert "--widen 2.0" in denoiser.make_request(IMAGE, 9, widen=2.0, **options).command("a.png")


def test_strong_noise_is_widened_less():
    """By (noise / 20) to the power of `narrow`, pixel by pixel; a map that is constant is the number."""
    options = {"method": "mp-svgd", "particles": 6, "iterations": 2, "data_range": 255}
    noise = np.full(IMAGE.shape, 5.0)
    noise[:, IMAGE.shape[1] // 2 :] = 80
    plain, narrow = (denoise(IMAGE, noise, widen=1.5, narrow=narrow, **options).std for narrow in (0.0, 0.5))
    assert np.allclose(narrow, np.where(noise == 5, plain, plain / 2))
    number, constant = (denoise(IMAGE, n, narrow=0.5, **options) for n in (40, np.full(IMAGE.shape, 40.0)))
    assert np.array_equal(number.std, constant.std)


@pytest.mark.parametrize("prior", ["pairwise", "foe3x3"])
def test_the_fast_preset_keeps_its_promise(prior):
    """90 % intervals of 8 particles, on parts of six photographs: 73 to 85 % before they were widened."""
    shares = []
    for number, name in enumerate(("astronaut", "brick", "camera", "coffee", "lake", "spices")):
        pixels = images.read(ROOT / "sample_images" / f"{name}.png").pixels.astype(float)
        clean = (pixels if pixels.ndim == 2 else pixels.mean(axis=-1))[-120:-24, -120:-24]
        result = denoise(add_noise(clean, 15, seed=number), 15, prior=prior, quality="fast", data_range=255)
        low, high = result.interval(0.9)
        shares.append(np.mean((low <= clean) & (clean <= high)))
    assert 0.87 < np.mean(shares) < 0.93
