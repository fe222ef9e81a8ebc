"""Gibbs and MAP against closed forms and exact probabilities."""

import naive
import numpy as np
import pytest

from denoiser.posterior import Posterior
from denoiser.samplers import make_sampler
from denoiser.samplers.gibbs import Chain, _draw_precisions, rhat


@pytest.fixture
def gaussian(gaussian_prior):
    """A Gaussian posterior with its exact mean and standard deviation."""
    noisy = np.random.default_rng(0).normal(120, 40, (7, 9))
    posterior = Posterior(gaussian_prior, noisy, 15.0)
    constant = posterior.noise_precision + gaussian_prior.epsilon
    matrix = naive.precision_matrix(gaussian_prior, posterior.shape, np.full((2, posterior.size), 0.01), constant)
    covariance = np.linalg.inv(matrix)
    mean = covariance @ posterior.noisy.ravel() * posterior.noise_precision
    return posterior, mean.reshape(posterior.shape), covariance


def _last(sampler, posterior, seed=0):
    for estimate in sampler.estimates(posterior, np.random.default_rng(seed)):
        last = estimate
    return last


def test_gibbs_matches_the_closed_form(gaussian):
    posterior, mean, covariance = gaussian
    std = np.sqrt(np.diag(covariance)).reshape(posterior.shape)
    draws = 4000  # independent here: with one component, z says nothing
    last = _last(make_sampler("gibbs", {"samples": draws, "burn_in": 2, "chains": 2, "keep": draws}), posterior)
    z = (last.mean - mean) / (std / np.sqrt(draws))
    assert np.abs(z).max() < 5
    assert 0.7 < z.std() < 1.3
    assert np.abs(last.std / std - 1).max() < 5 / np.sqrt(2 * draws)
    draws_flat = last.samples.reshape(draws, -1).astype(float)
    assert np.abs(np.cov(draws_flat.T) - covariance).max() < 0.06 * covariance.max()


def test_rao_blackwell_is_exact_when_z_is_known(gaussian):
    posterior, mean, _ = gaussian
    last = _last(make_sampler("gibbs", {"samples": 4, "rao_blackwell": True}), posterior)
    assert np.abs(last.mean - mean).max() < 0.05


def test_map_matches_the_closed_form(gaussian):
    posterior, mean, _ = gaussian
    assert np.abs(_last(make_sampler("map", {}), posterior).mean - mean).max() < 1e-3


def test_scales_are_drawn_from_their_conditional(prior):
    count = 40_000
    expert = prior.experts[0]
    weights = (expert.weights * np.sqrt(expert.precisions / (2 * np.pi))).astype(np.float32)[None]
    precisions = expert.precisions.astype(np.float32)[None]
    uniforms = np.random.default_rng(0).random((1, count), dtype=np.float32)
    for r in (0.05, 2.0, 40.0):
        out = np.empty((1, count), np.float32)
        responses = np.full((1, count), r, np.float32)
        energy = _draw_precisions(responses, count, np.array([[1, count]]), weights, precisions, uniforms, out)
        assert energy == pytest.approx(-count * np.log(naive.expert_density(expert, r)), rel=1e-4)
        for precision, probability in zip(precisions[0], naive.expert_responsibilities(expert, r), strict=True):
            error = np.sqrt(probability * (1 - probability) / count) + 1e-5
            assert abs((out == precision).mean() - probability) < 5 * error


def test_a_sweep_leaves_the_exact_posterior_alone():
    """On a 2x1 pair of pixels: Gibbs moments against quadrature."""
    from denoiser import load_prior

    posterior = Posterior(load_prior("pairwise"), np.array([[100.0], [112.0]]), 10.0, padding=0)
    grid = np.linspace(40, 170, 651)
    a, b = np.meshgrid(grid, grid, indexing="ij")
    expert = posterior.prior.experts[1]
    log_density = expert.log_density(a - b) - ((a - 100) ** 2 + (b - 112) ** 2) / 200
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    mean, spread = (density * a).sum(), np.sqrt((density * (a - (density * a).sum()) ** 2).sum())
    chain = Chain(posterior, np.random.default_rng(0), 1e-4)
    draws = np.empty(20_000)
    for i in range(len(draws)):
        chain.sweep()
        draws[i] = chain.x[0]
    assert draws.mean() == pytest.approx(mean, abs=0.4)
    assert draws.std() == pytest.approx(spread, rel=0.04)


def test_map_is_a_stationary_point_and_never_rises(prior, picture):
    posterior = Posterior(prior, picture + np.random.default_rng(0).normal(0, 15, picture.shape), 15.0)
    images = [e.mean for e in make_sampler("map", {}).estimates(posterior, np.random.default_rng(0))]
    energies = posterior.energy(np.stack(images))
    assert (np.diff(energies) < 1e-3 * abs(energies[0])).all()
    start, end = posterior.score(np.stack([images[0], images[-1]]))
    assert np.abs(end).mean() < 0.1 * np.abs(start).mean()


@pytest.mark.parametrize(("method", "tolerance"), [("gibbs", 2.5), ("map", 1e-3)])
def test_a_constant_image_stays_constant(prior, method, tolerance):
    posterior = Posterior(prior, np.full((9, 11), 80.0), 10.0)
    assert np.abs(_last(make_sampler(method, {}), posterior).mean - 80).max() < tolerance


def test_rhat():
    rng = np.random.default_rng(0)
    same = rng.normal(size=(4, 500))
    assert rhat(list(same)) == pytest.approx(1, abs=0.02)
    assert rhat(list(same + np.arange(4)[:, None])) > 1.3
    assert np.isnan(rhat([[1.0, 2.0, 3.0, 4.0]]))
