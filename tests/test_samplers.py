"""Gibbs and MAP against closed forms and exact probabilities."""

import subprocess
import sys
from dataclasses import replace

import naive
import numpy as np
import pytest

from conftest import ROOT
from denoiser import denoise, load_prior
from denoiser.gsm import GSM
from denoiser.posterior import Posterior
from denoiser.samplers import make_sampler
from denoiser.samplers.chain_averages import rhat
from denoiser.samplers.gaussian import _draw_precisions
from denoiser.samplers.gibbs import GibbsChain
from denoiser.samplers.local_forces import LocalForces
from denoiser.samplers.starts import start


@pytest.fixture
def gaussian(gaussian_prior):
    """A Gaussian posterior with its exact mean and standard deviation."""
    noisy = np.random.default_rng(0).normal(120, 40, (7, 9))
    posterior = Posterior(gaussian_prior, noisy, 15.0)
    constant = posterior.noise_precision + gaussian_prior.epsilon
    matrix = naive.precision_matrix(gaussian_prior, posterior.shape, np.full((2, posterior.size), 0.01), constant)
    covariance = np.linalg.inv(matrix)
    mean = covariance @ (posterior.noisy * posterior.noise_precision).ravel()
    return posterior, mean.reshape(posterior.shape), covariance


def _last(sampler, posterior, seed=0):
    for estimate in sampler.estimates(posterior, np.random.default_rng(seed)):
        last = estimate
    return last


@pytest.mark.parametrize("a", [0, 0.7])
def test_gibbs_matches_the_closed_form(gaussian, a):
    """With one component z says nothing: draws of a chain are correlated by overrelaxation alone, by -a.

    That leaves (1 - a) / (1 + a) of the mean's variance, and makes (1 + a^2) / (1 - a^2) times that of the variance.
    """
    posterior, mean, covariance = gaussian
    std = np.sqrt(np.diag(covariance)).reshape(posterior.shape)
    draws, less, more = 4000, np.sqrt((1 - a) / (1 + a)), np.sqrt((1 + a**2) / (1 - a**2))
    options = {"samples": draws, "burn_in": 2, "chains": 2, "keep": draws, "overrelaxation": a}
    last = _last(make_sampler("gibbs", options), posterior)
    z = (last.mean - mean) / (std / np.sqrt(draws)) / less
    assert np.abs(z).max() < 5
    assert 0.7 < z.std() < 1.3
    assert np.abs(last.std / std - 1).max() < 5 / np.sqrt(2 * draws) * more
    draws_flat = last.samples.reshape(draws, -1).astype(float)
    assert np.abs(np.cov(draws_flat.T) - covariance).max() < 0.06 * more * covariance.max()


def test_chains_with_opposite_numbers_err_in_opposite_directions(gaussian):
    """With one component z says nothing, and the errors of a pair of chains cancel in every sweep."""
    posterior, mean, _ = gaussian
    last = _last(make_sampler("gibbs", {"samples": 4, "burn_in": 0, "opposite": True, "tolerance": 1e-5}), posterior)
    assert np.abs(last.mean - mean).max() < 0.01
    apart = _last(make_sampler("gibbs", {"samples": 4, "burn_in": 0, "tolerance": 1e-5}), posterior)
    assert np.abs(apart.mean - mean).max() > 1


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


@pytest.mark.parametrize(("overrelaxation", "opposite"), [(0, False), (0.7, False), (0.7, True)])
def test_a_sweep_leaves_the_exact_posterior_alone(overrelaxation, opposite):
    """On a 2x1 pair of pixels: Gibbs moments against quadrature."""
    posterior = Posterior(load_prior("pairwise"), np.array([[100.0], [112.0]]), 10.0, padding=0)
    grid = np.linspace(40, 170, 651)
    a, b = np.meshgrid(grid, grid, indexing="ij")
    expert = posterior.prior.experts[1]
    log_density = expert.log_density(a - b) - ((a - 100) ** 2 + (b - 112) ** 2) / 200
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    mean, spread = (density * a).sum(), np.sqrt((density * (a - (density * a).sum()) ** 2).sum())
    chain = GibbsChain(posterior, np.random.default_rng(0), 1e-4, opposite)
    draws = np.empty(20_000)
    for i in range(len(draws)):
        chain.sweep(overrelaxation=overrelaxation)
        draws[i] = chain.x[0]
    assert draws.mean() == pytest.approx(mean, abs=0.4)
    assert draws.std() == pytest.approx(spread, rel=0.04)


def test_map_is_a_stationary_point_and_never_rises(prior, picture):
    posterior = Posterior(prior, picture + np.random.default_rng(0).normal(0, 15, picture.shape), 15.0)
    images = [e.mean for e in make_sampler("map", {}).estimates(posterior, np.random.default_rng(0))]
    energies = posterior.energy(np.stack(images))
    assert np.diff(energies).max() < 1e-6 * (energies[0] - energies[-1])
    start, end = posterior.score(np.stack([images[0], images[-1]]))
    assert np.abs(end).mean() < 0.1 * np.abs(start).mean()


@pytest.mark.parametrize("noise", [15.0, "map"])
def test_the_energy_of_a_chain_is_that_of_its_image(prior, picture, noise):
    """For Gibbs as for HMC: -log p(x | y) of the current state, up to a constant."""
    level = np.linspace(10, 20, picture.size).reshape(picture.shape) if noise == "map" else noise
    posterior = Posterior(prior, picture, level)
    chain = GibbsChain(posterior, np.random.default_rng(0), 1e-3)
    for _ in range(3):
        assert chain.energy == pytest.approx(posterior.energy(chain.x.reshape(posterior.shape)), rel=1e-5)
        chain.sweep()
    sampler = make_sampler("gibbs", {"samples": 2, "burn_in": 0, "chains": 2})
    last = _last(sampler, posterior)
    assert last.figures["energy"] == pytest.approx(posterior.energy(last.samples).mean(), rel=1e-5)


def test_experts_may_have_different_numbers_of_components(picture):
    """Components of weight 0 change nothing, wherever they stand; so mixtures of different lengths can be mixed."""
    prior = load_prior("pairwise")
    first, second = prior.experts
    dead = GSM(np.append(second.weights, 0.0), np.append(second.scales, 1.0), second.precision)
    longer = replace(prior, experts=(first, dead))
    images = [_last(make_sampler("gibbs", {"samples": 4}), Posterior(p, picture, 15.0)).mean for p in (prior, longer)]
    assert np.array_equal(*images)


def test_a_solver_that_fails_says_why(picture):
    posterior = Posterior(load_prior("pairwise"), picture, 15.0)
    posterior.stencil.solve = lambda *arguments: -1  # as after too many iterations
    with pytest.raises(FloatingPointError, match=r"did not reach a residual of 0\.001: the tolerance is"):
        _last(make_sampler("gibbs", {"samples": 2}), posterior)
    broken = Posterior(load_prior("pairwise"), np.where(picture > 200, 1e200, picture), 15.0)
    for method in ("map", "mp-svgd", "gibbs"):
        with pytest.raises(FloatingPointError, match="values are absurd"), np.errstate(all="ignore"):
            _last(make_sampler(method, {}), broken)


@pytest.mark.parametrize(("method", "tolerance"), [("gibbs", 2.5), ("map", 1e-3)])
def test_a_constant_image_stays_constant(prior, method, tolerance):
    posterior = Posterior(prior, np.full((9, 11), 80.0), 10.0)
    assert np.abs(_last(make_sampler(method, {}), posterior).mean - 80).max() < tolerance


@pytest.mark.parametrize("method", ["mp-svgd", "mp-svgd-s"])
@pytest.mark.parametrize("kernel", ["rbf", "imq"])
def test_mp_svgd_matches_the_closed_form(gaussian, method, kernel):
    """Particles of a Gaussian posterior have its mean, and its spread but for what 50 particles lack."""
    posterior, mean, covariance = gaussian
    std = np.sqrt(np.diag(covariance)).reshape(posterior.shape)
    options = {"iterations": 200, "kernel": kernel, "bandwidth": 0.5}
    last = _last(make_sampler(method, options), posterior)
    assert np.abs(last.mean - mean).max() < 0.15 * std.mean()
    assert (last.std / std).mean() == pytest.approx(1, abs=0.12)


def test_svgd_finds_the_mean_and_loses_the_spread(gaussian):
    posterior, mean, covariance = gaussian
    std = np.sqrt(np.diag(covariance)).reshape(posterior.shape)
    last = _last(make_sampler("svgd", {"iterations": 300}), posterior)
    assert np.abs(last.mean - mean).max() < 0.15 * std.mean()
    assert (last.std / std).mean() < 0.8


def test_mp_svgd_settles_at_its_fixed_point(picture):
    """The last sweeps make phi of the true posterior smaller than the start has it (Algorithm 1: phi = 0)."""
    posterior = Posterior(load_prior("pairwise"), picture + np.random.default_rng(0).normal(0, 10, picture.shape), 10.0)

    def size(particles):
        forces = LocalForces(posterior, single_kernel=False, kernel="rbf", bandwidth=0.25)
        flat = particles.reshape(len(particles), -1)
        forces.refresh_bandwidths(flat)
        gradients, repulsions = forces.measure(flat)
        return np.sqrt(np.mean((gradients + repulsions) ** 2))

    first = start(posterior, np.random.default_rng(0), 30, "smooth").reshape(-1, *posterior.shape)
    last = _last(make_sampler("mp-svgd", {"particles": 30}), posterior)
    assert size(last.samples) < 0.4 * size(first)


def test_mp_svgd_approaches_the_exact_mean(picture):
    clean = picture
    posterior = Posterior(load_prior("pairwise"), clean + np.random.default_rng(0).normal(0, 10, clean.shape), 10.0)
    exact = _last(make_sampler("gibbs", {"samples": 2000}), posterior)
    ours = _last(make_sampler("mp-svgd", {}), posterior)
    baseline = _last(make_sampler("svgd", {}), posterior)

    def distance(estimate):
        return np.sqrt(np.mean((posterior.crop(estimate.mean) - posterior.crop(exact.mean)) ** 2))

    assert distance(ours) < 0.2 * exact.std.mean()
    assert distance(ours) < 0.6 * distance(baseline)
    assert ours.std.mean() == pytest.approx(exact.std.mean(), rel=0.15)
    assert baseline.std.mean() < 0.8 * exact.std.mean()


def test_faithful_mode(picture):
    """AdaGrad on the true posterior from y plus noise with h = med^2, as in the paper: slower, but it gets better."""
    posterior = Posterior(load_prior("pairwise"), picture + np.random.default_rng(0).normal(0, 15, picture.shape), 15.0)
    options = {"optimiser": "adagrad", "start": "noisy", "bandwidth": 1.0, "particles": 20, "iterations": 40}
    errors = [
        np.sqrt(np.mean((posterior.crop(e.mean) - picture) ** 2))
        for e in make_sampler("mp-svgd", options).estimates(posterior, np.random.default_rng(0))
    ]
    assert errors[-1] < 0.8 * errors[0]


def test_tolerance_stops_early(picture):
    posterior = Posterior(load_prior("pairwise"), picture, 5.0)
    for method in ("mp-svgd", "svgd"):
        sampler = make_sampler(method, {"particles": 4, "iterations": 40, "tolerance": 1e9})
        assert 20 <= len(list(sampler.estimates(posterior, np.random.default_rng(0)))) < 40  # not on the capped expert


RECIPE = {"batch": 17, "step": 0.6, "first_stage": 0.7, "shaking": 1.0}  # benchmarks/README.md


@pytest.mark.parametrize("options", [{"batch": 10}, {"view": "responses", "bandwidth": 1.0}, RECIPE])
def test_other_ways_of_mp_svgd_find_the_posterior(gaussian, options):
    """Batches, and kernels on responses, on the closed form: as far from it as the default is."""
    posterior, mean, covariance = gaussian
    std = np.sqrt(np.diag(covariance)).reshape(posterior.shape)
    last = _last(make_sampler("mp-svgd", {"iterations": 200, "bandwidth": 0.5, **options}), posterior)
    assert np.abs(last.mean - mean).max() < 0.15 * std.mean()
    assert (last.std / std).mean() == pytest.approx(1, abs=0.12)


def test_batches_change_with_the_seed_and_leave_no_particle_out(picture):
    posterior = Posterior(load_prior("pairwise"), picture, 15.0)
    sampler = make_sampler("mp-svgd", {"particles": 7, "iterations": 3, "batch": 2})
    a, b, c = (_last(sampler, posterior, seed) for seed in (0, 0, 1))
    assert np.array_equal(a.samples, b.samples)
    assert not np.array_equal(a.samples, c.samples)
    for wrong in ({"view": "responses", "kernel": "imq"}, {"view": "nothing"}, {"batch": -1}, {"crowd": 1}):
        with pytest.raises(ValueError, match=r"(view|batch|crowd) must be .*got"):
            make_sampler("mp-svgd", wrong)


@pytest.mark.parametrize("field", ["pairwise", "foe3x3", "learned"])
@pytest.mark.parametrize("particles", [2, 3, 4, 20])
def test_few_particles_in_batches_know_no_more_than_the_noise(picture, field, particles):
    """No pixel is less sure than its noise says, within what so few draws can tell; on any field."""
    noisy = np.tile(picture, (3, 3)) + np.random.default_rng(1).normal(0, 12, (69, 93))
    options = {"particles": particles, "method": "mp-svgd-b", "prior": field, "data_range": 255}
    result = denoise(noisy, 12.0, **options)
    assert np.sqrt(np.mean(result.std**2)) < 12
    assert result.std.max() < 6 * 12


def test_odd_number_of_particles(picture):
    posterior = Posterior(load_prior("pairwise"), picture, 5.0)
    assert start(posterior, np.random.default_rng(0), 5, "smooth").shape == (5, posterior.size)
    last = _last(make_sampler("mp-svgd", {"particles": 3, "iterations": 4}), posterior)
    assert last.samples.shape == (3, *posterior.shape)


def test_rhat():
    rng = np.random.default_rng(0)
    same = rng.normal(size=(4, 500))
    assert rhat(list(same)) == pytest.approx(1, abs=0.02)
    assert rhat(list(same + np.arange(4)[:, None])) > 1.3
    assert np.isnan(rhat([[1.0, 2.0, 3.0, 4.0]]))


MEMORY = """
import resource, numpy as np
from denoiser import load_prior
from denoiser.posterior import Posterior
from denoiser.samplers import make_sampler

def run(side):
    posterior = Posterior(load_prior("pairwise"), np.full((side, side), 100.0), 10.0)
    sampler = make_sampler("mp-svgd", {"particles": 80, "iterations": 2, "refresh": 1})
    for _ in sampler.estimates(posterior, np.random.default_rng(0)):
        pass
    return 80 * posterior.size * 4

run(20)  # compiles
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
array = run(400)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before) / array)
"""


def test_mp_svgd_holds_at_most_three_copies_of_its_particles():
    process = subprocess.run([sys.executable, "-c", MEMORY], cwd=ROOT, capture_output=True, text=True, check=True)
    assert float(process.stdout) < 3
