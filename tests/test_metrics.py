"""Coverage: intervals that hold what they promise, on posteriors whose truth is known."""

import numpy as np
import pytest

from denoiser import coverage, denoise
from denoiser.metrics import credible_factor, errors_by_std


@pytest.mark.parametrize("count", [5, 50, 600])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_exact_for_a_gaussian(level, count):
    """Truth and draws from one Gaussian: the interval from the draws holds the truth as often as it says."""
    rng = np.random.default_rng(count)
    pixels = 6_000_000 // max(count, 50)
    draws = rng.standard_normal((count, pixels)) * 3 + 7
    truth = rng.standard_normal(pixels) * 3 + 7
    mean, std = draws.mean(axis=0), draws.std(axis=0, ddof=1)
    error = 5 * np.sqrt(level * (1 - level) / pixels)
    assert abs(coverage(truth, mean, std, level, count=count) - level) < error
    if count == 50 and level == 0.9:  # why it is not the simpler interval
        assert coverage(truth, mean, std, level) < 0.9 - error
        low, high = np.quantile(draws, (0.05, 0.95), axis=0)
        assert np.mean((low <= truth) & (truth <= high)) < 0.875


@pytest.mark.parametrize("options", [{"method": "gibbs", "samples": 300}, {"method": "mp-svgd", "particles": 50}])
def test_a_run_on_a_gaussian_posterior(gaussian_prior, picture, options):
    """Draws of a chain with other random numbers stand for the truth: they are exactly from the posterior."""
    truths = denoise(picture, 10, prior=gaussian_prior, method="gibbs", samples=40, keep=40, seed=1).samples
    result = denoise(picture, 10, prior=gaussian_prior, **options)
    count = options.get("samples") or options["particles"]
    for level in (0.5, 0.9, 0.99):
        got = np.mean([coverage(truth, result.mean, result.std, level, count=count) for truth in truths])
        assert abs(got - level) < 0.03


def test_no_opinion_no_coverage():
    assert np.isnan(coverage(np.ones((4, 4)), np.ones((4, 4)), np.zeros((4, 4))))
    assert coverage(np.zeros(4), np.zeros(4), np.ones(4)) == 1
    assert coverage(np.zeros(4), np.array([0, 1, 2, 3]), np.ones(4)) == 0.5


def test_bad_levels():
    for level, count in ((0, None), (1, None), (1.5, 50), (0.9, 1)):
        with pytest.raises(ValueError, match="must"):
            credible_factor(level, count)
    with pytest.raises(ValueError, match="same shape"):
        coverage(np.zeros(4), np.zeros(4), np.zeros(5))


def test_errors_by_std():
    truth = np.array([[0.0, 0, 0], [0, 0, 0]])
    mean = np.array([[1.0, 1, 3], [4, 5, 6]])
    std = np.array([[0.1, 0.1, 1.5], [1.5, 9, 2.0]])
    counts, errors = errors_by_std(truth, mean, std, np.array([0.0, 1, 2, 3]))
    assert counts.tolist() == [2, 2, 2]
    assert errors == pytest.approx([1, np.sqrt(12.5), np.sqrt(30.5)])
