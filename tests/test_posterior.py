import naive
import numpy as np
import pytest

from denoiser.posterior import Posterior


@pytest.fixture
def posterior(prior):
    noisy = np.random.default_rng(0).normal(100, 30, (5, 7))
    return Posterior(prior, noisy, 12.0, padding=1)


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
        assert energy == pytest.approx(naive.energy(posterior.prior, image, posterior.noisy, 12.0), rel=1e-12)


def test_score_matches_the_equation(posterior):
    x = np.random.default_rng(2).normal(100, 10, (3, *posterior.shape)).astype(np.float32)
    for image, score in zip(x, posterior.score(x), strict=True):
        expected = naive.score(posterior.prior, image.astype(float), posterior.noisy, 12.0)
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
