import naive
import numpy as np
import pytest

from denoiser import denoise
from denoiser.noise import Noise
from denoiser.plane_noise import PlaneNoise
from denoiser.posterior import Posterior
from denoiser.samplers import METHODS, make_sampler

MAP = np.geomspace(3, 40, 35).reshape(5, 7)  # of noise, for pictures of 5x7 pixels


@pytest.fixture(params=["number", "map"])
def posterior(prior, request):
    noisy = np.random.default_rng(0).normal(100, 30, (5, 7))
    return Posterior(prior, noisy, MAP if request.param == "map" else 12.0, padding=1)


def test_padding_is_a_mirror(prior):
    noisy = np.arange(12.0).reshape(3, 4)
    posterior = Posterior(prior, noisy, 1.0)
    pad = posterior.padding
    assert posterior.shape == (3 + 2 * pad, 4 + 2 * pad)
    assert np.array_equal(posterior.crop(posterior.noisy), noisy)
    assert np.array_equal(posterior.noisy[pad - 1], posterior.noisy[pad])
    assert np.array_equal(posterior.crop(np.zeros((6, *posterior.shape))), np.zeros((6, 3, 4)))


def test_energy_matches_the_equation(posterior):
    x = np.random.default_rng(1).normal(100, 30, (2, *posterior.shape))
    for image, energy in zip(x, posterior.energy(x), strict=True):
        assert energy == pytest.approx(
            naive.energy(posterior.prior, image, posterior.noisy, posterior.noise_map), rel=1e-12
        )


def test_score_matches_the_equation(posterior):
    x = np.random.default_rng(2).normal(100, 10, (3, *posterior.shape)).astype(np.float32)
    for image, score in zip(x, posterior.score(x), strict=True):
        expected = naive.score(posterior.prior, image.astype(float), posterior.noisy, posterior.noise_map)
        assert np.allclose(score, expected, rtol=1e-3, atol=1e-4)


def test_score_is_the_slope_of_the_energy(posterior):
    x = np.random.default_rng(3).normal(100, 10, posterior.shape)
    score = posterior.score(x[None])[0]
    step = 1e-4
    for site in np.ndindex(*posterior.shape):
        up, down = x.copy(), x.copy()
        up[site] += step
        down[site] -= step
        slope = -(posterior.energy(up) - posterior.energy(down)) / (2 * step)
        assert score[site] == pytest.approx(slope, rel=2e-3, abs=2e-4)


def test_a_sites_score_depends_on_its_blanket_only(posterior):
    """The conditional score given the Markov blanket is the site's entry of the full score."""
    x = np.random.default_rng(4).normal(100, 30, posterior.shape).astype(np.float32)
    site = (3, 4)
    inside = {site} | {(site[0] + r, site[1] + c) for r, c in posterior.prior.blanket}
    other = x.copy()
    for place in np.ndindex(*posterior.shape):
        if place not in inside:
            other[place] += 50
    before, after = posterior.score(np.stack([x, other]))
    assert before[site] == after[site]
    assert (before != after).any()


# ------------------------------------------------------------------------------------------- noise maps

QUICK = {
    "mp-svgd": {"particles": 6, "iterations": 6},
    "mp-svgd-s": {"particles": 6, "iterations": 6},
    "svgd": {"particles": 6, "iterations": 6},
    "gibbs": {"samples": 6, "burn_in": 2},
    "hmc": {"samples": 8, "burn_in": 4},
    "map": {"iterations": 6},
}


def _last(method, options, posterior):
    *_, last = make_sampler(method, options).estimates(posterior, np.random.default_rng(5))
    return last


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("start", ["smooth", "noisy"])
def test_a_constant_map_gives_the_bytes_of_the_number(prior, picture, method, start):
    options = QUICK.get(method, {})
    if "svgd" in method:
        options = {**options, "start": start}
    elif start == "noisy" or method in ("bm3d", "direct"):  # direct is for the learned field alone
        return
    noisy = picture + np.random.default_rng(0).normal(0, 13.7, picture.shape)
    number, flat = (
        _last(method, options, Posterior(prior, noisy, level)) for level in (13.7, np.full(noisy.shape, 13.7))
    )
    for name in ("mean", "std", "samples"):
        assert getattr(number, name).tobytes() == getattr(flat, name).tobytes()


def test_the_map_is_padded_like_the_picture(prior):
    noisy = np.random.default_rng(0).normal(100, 30, (5, 7))
    posterior = Posterior(prior, noisy, MAP)
    pad = posterior.padding
    assert np.array_equal(posterior.crop(posterior.noise_map), MAP)
    assert np.array_equal(posterior.noise_map[pad - 1], posterior.noise_map[pad])
    assert posterior.sigma == pytest.approx(np.sqrt((MAP**2).mean()))


@pytest.fixture
def closed_form(gaussian_prior):
    """A Gaussian posterior under a noise map that rises sevenfold, with its exact mean and covariance."""
    noisy = np.random.default_rng(0).normal(120, 40, (7, 9))
    noise_map = np.random.default_rng(1).permutation(np.geomspace(5, 35, 63)).reshape(7, 9)
    posterior = Posterior(gaussian_prior, noisy, noise_map)
    constant = posterior.noise_map**-2.0 + gaussian_prior.epsilon
    precisions = np.full((2, posterior.size), 0.01)
    covariance = np.linalg.inv(naive.precision_matrix(gaussian_prior, posterior.shape, precisions, constant))
    mean = covariance @ (posterior.noisy / posterior.noise_map**2).ravel()
    return posterior, mean.reshape(posterior.shape), np.sqrt(np.diag(covariance)).reshape(posterior.shape)


def test_gibbs_samples_the_map(closed_form):
    posterior, mean, std = closed_form
    draws = 4000
    last = _last("gibbs", {"samples": draws, "burn_in": 2}, posterior)
    assert np.abs((last.mean - mean) / (std / np.sqrt(draws))).max() < 5
    assert np.abs(last.std / std - 1).max() < 5 / np.sqrt(2 * draws)


def test_the_mode_knows_the_map(closed_form):
    posterior, mean, _ = closed_form
    assert np.abs(_last("map", {}, posterior).mean - mean).max() < 1e-3


@pytest.mark.parametrize("method", ["mp-svgd", "mp-svgd-s", "svgd"])
def test_particles_know_the_map(closed_form, method):
    posterior, mean, std = closed_form
    options = {"iterations": 300, **({} if method == "svgd" else {"bandwidth": 0.5})}
    last = _last(method, options, posterior)
    assert np.abs((last.mean - mean) / std).max() < 0.25
    if method != "svgd":  # whose spread collapses under any noise
        ratio = last.std / std
        assert ratio.mean() == pytest.approx(1, abs=0.12)
        assert np.corrcoef(last.std.ravel(), std.ravel())[0, 1] > 0.9


def test_hmc_samples_the_map(closed_form):
    posterior, mean, std = closed_form
    last = _last("hmc", {"samples": 10_000, "chains": 50}, posterior)
    assert np.abs((last.mean - mean) / std).max() < 0.12
    assert np.abs(last.std / std - 1).max() < 0.06


def test_a_pixel_without_noise_stays(gaussian_prior):
    noise_map = np.full((7, 9), 20.0)
    noise_map[3, 4] = 0
    noisy = np.random.default_rng(0).normal(120, 40, (7, 9))
    posterior = Posterior(gaussian_prior, noisy, noise_map)
    assert posterior.crop(_last("map", {}, posterior).mean)[3, 4] == pytest.approx(noisy[3, 4], abs=1e-3)


@pytest.mark.parametrize(
    ("sigma", "word"),
    [
        (0.0, "must be > 0, got 0"),
        (-1, "must be > 0, got -1"),
        (float("nan"), "must be > 0, got nan"),
        ("much", "must be > 0, got 'much'"),
        (np.ones((4, 5)), r"shape, \(5, 7\); got \(4, 5\)"),
        (np.ones(7), r"shape, \(5, 7\); got \(7,\)"),
        (np.where(np.eye(5, 7) > 0, np.nan, 2), "finite"),
        (np.where(np.eye(5, 7) > 0, -1, 2), "finite numbers >= 0"),
        (np.zeros((5, 7)), "zeros alone"),
    ],
)
def test_a_bad_noise_level_is_one_line(prior, sigma, word):
    with pytest.raises(ValueError, match=word) as caught:
        Posterior(prior, np.zeros((5, 7)), sigma)
    assert "\n" not in str(caught.value)


# ------------------------------------------------------------------------------------------- absurd numbers


@pytest.mark.filterwarnings("ignore:(overflow|invalid value)")
@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf, 1e200, -1e200, 1e30])
def test_no_number_reads_outside_the_score_table(posterior, value):
    """Far and foreign sites keep their hands off: what does not touch them has the score it had."""
    x = np.full((1, *posterior.shape), 100, np.float32)
    before = posterior.score(x)[0]
    x[0, 0, 0] = value
    after = posterior.score(x)[0]
    assert np.array_equal(after[4:, 4:], before[4:, 4:])


@pytest.mark.parametrize("colour", [False, True])
def test_a_tile_without_noise(colour):
    """No noise in the dark, and tiles that are nothing but dark: by a curve, by a map."""
    picture = np.random.default_rng(0).uniform(100, 200, (400, 400, 3) if colour else (400, 400))
    picture[:, :300] = 0
    curve = Noise((PlaneNoise((0.0, 255.0), (0.0, 20.0)),))
    shape = {"channel_axis": -1 if colour else None, "data_range": 255, "memory": 10 << 20 << 2 * colour}
    for noise in (curve, np.where(picture.reshape(400, 400, -1)[..., 0] > 0, 10.0, 0)):
        result = denoise(picture, noise, method="map", iterations=2, **shape)
        assert result.tiles > 4
        assert np.abs(result.mean[:, :250]).max() < 0.1
