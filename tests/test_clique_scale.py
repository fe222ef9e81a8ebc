"""Cliques of different strength: every sampler on a field whose responses are scaled one by one."""

import naive
import numpy as np
import pytest

from denoiser.posterior import Posterior
from denoiser.samplers import make_sampler
from denoiser.samplers.local_forces import LocalForces
from denoiser.stencil import Stencil


def scaled(prior, shape=(5, 7), seed=0):
    """A posterior with a scale a clique, and its noisy picture."""
    rng = np.random.default_rng(seed)
    posterior = Posterior(prior, rng.normal(100, 20, shape), rng.uniform(5, 20, shape), padding=0)
    posterior.clique_scale = rng.uniform(0.2, 3, (len(prior.filters), posterior.size))
    return posterior


def test_energy_and_score(prior):
    posterior = scaled(prior)
    x = np.random.default_rng(1).normal(100, 10, posterior.shape)
    args = posterior.prior, x, posterior.noisy, posterior.noise_map, posterior.clique_scale
    assert posterior.energy(x) == pytest.approx(naive.energy(*args), rel=1e-12)
    assert np.allclose(posterior.score(x[None])[0], naive.score(*args), rtol=2e-3, atol=2e-3)


def test_site_scores(prior):
    """One particle follows the score, in the kernels of MP-SVGD too."""
    posterior = scaled(prior)
    x = np.random.default_rng(1).normal(100, 10, (1, posterior.size)).astype(np.float32)
    forces = LocalForces(posterior, single_kernel=False, kernel="rbf", bandwidth=1.0)
    gradients, _ = forces.measure(x)
    expected = posterior.score(x.reshape(1, *posterior.shape)).ravel()
    assert np.allclose(gradients[0], expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


def test_the_solver(prior):
    posterior = scaled(prior)
    scale = posterior.clique_scale
    stencil = Stencil(prior, posterior.shape, np.float64, scale)
    precisions = np.random.default_rng(2).uniform(0.01, 0.1, stencil.cliques)
    matrix = naive.precision_matrix(prior, posterior.shape, precisions * scale**2, 0.01)
    b = np.random.default_rng(3).normal(size=stencil.size)
    x = np.zeros(stencil.size)
    stencil.solve(precisions, 0.01, b, x, 1e-10)
    assert np.allclose(matrix @ x, b, atol=1e-7)
    values = np.random.default_rng(4).normal(size=stencil.cliques)
    inner = (stencil.responses(b) * values).sum()
    assert inner == pytest.approx((stencil.adjoint(values, np.zeros(stencil.size)) * b).sum())


@pytest.mark.parametrize("method", ["gibbs", "map", "hmc", "mp-svgd"])
def test_samplers_know_the_scale(gaussian_prior, method):
    posterior = scaled(gaussian_prior)
    constant = posterior.noise_map**-2.0 + gaussian_prior.epsilon
    precisions = 0.01 * posterior.clique_scale**2
    covariance = np.linalg.inv(naive.precision_matrix(gaussian_prior, posterior.shape, precisions, constant))
    mean = (covariance @ (posterior.noisy / posterior.noise_map**2).ravel()).reshape(posterior.shape)
    std = np.sqrt(np.diag(covariance)).reshape(posterior.shape)
    options = {
        "gibbs": {"samples": 4000, "burn_in": 2},
        "map": {},
        "hmc": {"samples": 8000, "chains": 40},
        "mp-svgd": {"iterations": 300, "bandwidth": 0.5},
    }
    *_, last = make_sampler(method, options[method]).estimates(posterior, np.random.default_rng(5))
    assert np.abs((last.mean - mean) / std).max() < {"map": 1e-3, "mp-svgd": 0.25}.get(method, 0.12)
    if method != "map":
        assert np.abs(last.std / std - 1).max() < {"gibbs": 0.06, "hmc": 0.08, "mp-svgd": 0.4}[method]
