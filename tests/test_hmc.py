"""Hamiltonian Monte Carlo against closed forms; what it promises as a sampler is in test_samplers_contract.py."""

import naive
import numpy as np
import pytest

from denoiser.paper.grid import GridMRF, draw_y
from denoiser.posterior import Posterior
from denoiser.samplers.hmc import HMC, DualAveraging, Trajectories


def test_hmc_matches_the_closed_form(gaussian_prior):
    posterior = Posterior(gaussian_prior, np.random.default_rng(0).normal(120, 40, (5, 6)), 15.0, padding=0)
    constant = posterior.noise_precision + gaussian_prior.epsilon
    precisions = np.full((2, posterior.size), 0.01)
    covariance = np.linalg.inv(naive.precision_matrix(gaussian_prior, posterior.shape, precisions, constant))
    mean = (covariance @ (posterior.noisy * posterior.noise_precision).ravel()).reshape(posterior.shape)
    std = np.sqrt(np.diag(covariance)).reshape(posterior.shape)
    *_, last = HMC(samples=20_000, chains=50).estimates(posterior, np.random.default_rng(0))
    assert np.abs(last.mean - mean).max() < 0.05 * std.mean()
    assert np.abs(last.std / std - 1).max() < 0.03
    assert last.figures["rhat"] < 1.01
    assert last.figures["acceptance"] == pytest.approx(0.8, abs=0.12)
    assert len(last.samples) == 50


def test_a_transition_conserves_energy_with_short_steps():
    grid = GridMRF(draw_y((4, 4), np.random.default_rng(0)))
    first = grid.noisy + np.random.default_rng(1).normal(0, 1, (30, 4, 4))
    chains = Trajectories(grid, first, leapfrogs=5)
    assert chains.transition(1e-3, np.random.default_rng(2)) > 0.999
    assert np.abs(chains.x - first).max() > 1e-3
    assert np.allclose(chains.energy, grid.energy(chains.x))


def test_a_trajectory_that_flies_off_is_refused():
    grid = GridMRF(draw_y((4, 4), np.random.default_rng(0)))
    first = (grid.noisy + np.random.default_rng(1).normal(0, 1, (8, 4, 4))).astype(np.float32)
    chains = Trajectories(grid, first, leapfrogs=40)
    assert chains.transition(1e30, np.random.default_rng(2)) == 0
    assert np.array_equal(chains.x, first)


def test_the_step_size_finds_its_acceptance():
    adaptive = DualAveraging(1e-3, 0.8)
    for _ in range(500):
        adaptive.learn(np.exp(-adaptive.step))  # accepts 0.8 at a step of 0.223
    assert adaptive.settled == pytest.approx(-np.log(0.8), rel=0.1)
