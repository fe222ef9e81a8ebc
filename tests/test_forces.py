"""Forces against their naive twins on odd-sized images, for both priors, kernels and kinds of neighbourhood."""

from itertools import permutations

import naive
import numpy as np
import pytest

from denoiser import load_prior
from denoiser.posterior import Posterior
from denoiser.priors import Prior
from denoiser.samplers import local_forces, particles
from denoiser.samplers.diagnostics import diagnose
from denoiser.samplers.global_forces import global_forces
from denoiser.samplers.local_forces import LocalForces
from denoiser.samplers.mp_svgd import MPSVGD
from denoiser.samplers.shaking import shaking_numbers
from denoiser.samplers.svgd import _adagrad


@pytest.fixture(params=["rbf", "imq"])
def kernel(request):
    return request.param


@pytest.fixture
def posterior(prior):
    return Posterior(prior, np.random.default_rng(0).normal(100, 20, (5, 7)), 12.0, padding=0)


def _particles(posterior, count=6):
    spread = np.random.default_rng(1).normal(0, 8, (count, *posterior.shape))
    return (posterior.noisy + spread).astype(np.float32)


def _bandwidths(h, posterior, single_kernel):
    """h_of(sites) for the naive twin, read from the kernel's own array."""
    prior = posterior.prior
    windows = [prior.blanket] if single_kernel else list(prior.factors)

    def h_of(sites):
        (row, column), *others = sites
        window = tuple((r - row, c - column) for r, c in others)
        alone = not others and window not in windows
        number = 0 if single_kernel else len(windows) if alone else windows.index(window)
        return h[number, row * posterior.shape[1] + column]

    return h_of


def _compare_with_the_naive_twin(posterior, x, kernel, single_kernel, sites, order=None, batches=None, crowd=0):
    forces = LocalForces(posterior, single_kernel=single_kernel, kernel=kernel, bandwidth=0.5)
    h = forces.refresh_bandwidths(x.reshape(len(x), -1))
    measured = forces.measure(x.reshape(len(x), -1), len(batches or [0]), order, crowd)
    gradients, repulsions = (f.reshape(x.shape) for f in measured)
    scores = np.stack([naive.score(posterior.prior, p.astype(float), posterior.noisy, 12.0) for p in x])
    scale = np.abs(scores).mean()
    for site in sites:
        g, r = naive.mp_svgd_forces(
            posterior.prior, x.astype(float), scores, site, kernel,
            _bandwidths(h, posterior, single_kernel), single_kernel, batches, crowd,
        )  # fmt: skip
        assert np.allclose(gradients[(slice(None), *site)], g, rtol=1e-4, atol=1e-4 * scale)
        assert np.allclose(repulsions[(slice(None), *site)], r, rtol=1e-4, atol=1e-4 * scale)


@pytest.mark.parametrize("single_kernel", [False, True])
def test_local_forces(posterior, kernel, single_kernel):
    sites = np.ndindex(*posterior.shape)
    _compare_with_the_naive_twin(posterior, _particles(posterior), kernel, single_kernel, sites)


@pytest.mark.parametrize("field", ["pairwise", "foe3x3", "as many as pairwise", "diagonal", "wider than the picture"])
def test_forces_of_kernels_on_responses(field):
    """Bandwidths come from medians that are right to 1 %; three particles have three distances, and the middle one."""
    prior = ODD_FIELDS.get(field) or load_prior(field)
    shape = (11, 13) if prior.colours == 2 else (5, 7)
    posterior = Posterior(prior, np.random.default_rng(0).normal(100, 20, shape), 12.0, padding=0)
    x = _particles(posterior, 3)
    forces = LocalForces(posterior, single_kernel=False, kernel="rbf", bandwidth=0.5, responses=True)
    forces.refresh_bandwidths(x.reshape(3, -1))
    gradients, repulsions = (f.reshape(x.shape) for f in forces.measure(x.reshape(3, -1)))
    scores = np.stack([naive.score(prior, p.astype(float), posterior.noisy, 12.0) for p in x])

    def bandwidth(r):
        return 0.5 * sorted([(r[0] - r[1]) ** 2, (r[1] - r[2]) ** 2, (r[2] - r[0]) ** 2])[1]

    scale, push = np.abs(scores).mean(), np.abs(repulsions).mean()
    for site in np.ndindex(*shape):
        g, r = naive.response_forces(prior, x.astype(float), scores, site, bandwidth)
        assert np.allclose(gradients[(slice(None), *site)], g, rtol=0.03, atol=0.03 * scale)
        assert np.allclose(repulsions[(slice(None), *site)], r, rtol=0.03, atol=0.1 * push)


@pytest.mark.parametrize("crowd", [0, 4])
def test_local_forces_in_batches(posterior, kernel, crowd):
    """Seven particles in a shuffled order, cut into parts of two, two and three; also as if they were four."""
    order = np.array([3, 0, 6, 2, 5, 1, 4])
    batches = [[3, 0], [6, 2], [5, 1, 4]]
    sites = list(np.ndindex(*posterior.shape))[::3]
    _compare_with_the_naive_twin(posterior, _particles(posterior, 7), kernel, False, sites, order, batches, crowd)


def test_batches_are_unbiased(posterior):
    """The average over all ways to cut six particles into pairs is what all of them feel together."""
    x = _particles(posterior).reshape(6, -1)
    forces = LocalForces(posterior, single_kernel=False, kernel="rbf", bandwidth=0.5)
    forces.refresh_bandwidths(x)
    together = np.stack(forces.measure(x))
    orders = [np.array(p) for p in permutations(range(6)) if p[0] < p[1] and p[2] < p[3] and p[4] < p[5]]
    apart = np.mean([forces.measure(x, 3, order) for order in orders], axis=0)
    assert np.allclose(apart, together, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("single_kernel", [False, True])
def test_local_forces_of_several_blocks_and_tasks(prior, kernel, single_kernel, monkeypatch):
    """More sites of a colour than one block has lanes, and more blocks than one task takes; the last ones half full."""
    monkeypatch.setattr(local_forces, "_CHUNK", local_forces.LANES)
    shape = (9, 31) if prior.colours == 2 else (25, 27)
    posterior = Posterior(prior, np.random.default_rng(0).normal(100, 20, shape), 12.0, padding=0)
    per_colour = np.bincount(prior.colouring(shape).ravel())
    assert per_colour.min() > local_forces.LANES
    assert (per_colour % local_forces.LANES).all()
    sites = [*list(np.ndindex(*shape))[::7], (shape[0] - 1, shape[1] - 1)]
    _compare_with_the_naive_twin(posterior, _particles(posterior, 3), kernel, single_kernel, sites)


def _field(*filters):
    """A Fields of Experts with these filters, and the expert of the pairwise prior for each."""
    expert = load_prior("pairwise").experts[0]
    return Prior("test", tuple(np.array(f, float) for f in filters), (expert,) * len(filters))


ODD_FIELDS = {
    # four factors and four members, as the pairwise prior has, but of another shape
    "as many as pairwise": _field([[1, -2, 1]], [[1, 0]]),
    "diagonal": _field([[1, 0], [0, -1]]),  # two corners of a picture are in no clique
    "wider than the picture": _field([[1, 0, 0, 0, 0, 0, 0, -1]]),  # no site is in a clique
}


@pytest.mark.parametrize("name", ODD_FIELDS)
@pytest.mark.parametrize("single_kernel", [False, True])
def test_local_forces_of_odd_fields(name, kernel, single_kernel):
    posterior = Posterior(ODD_FIELDS[name], np.random.default_rng(0).normal(100, 20, (5, 7)), 12.0, padding=0)
    sites = np.ndindex(*posterior.shape)
    _compare_with_the_naive_twin(posterior, _particles(posterior), kernel, single_kernel, sites)


def test_a_site_in_no_factor_follows_its_own_density():
    """Without a clique the posterior of a pixel is N(y, sigma^2); it must be neither NaN nor a point."""
    posterior = Posterior(ODD_FIELDS["diagonal"], np.full((5, 7), 100.0), 12.0, padding=0)
    *_, last = MPSVGD().estimates(posterior, np.random.default_rng(0))
    for corner in ((0, 6), (4, 0)):
        assert last.mean[corner] == pytest.approx(100, abs=3)
        assert last.std[corner] == pytest.approx(12, rel=0.15)


@pytest.mark.parametrize("single_kernel", [False, True])
def test_bandwidths_are_medians(posterior, single_kernel):
    x = _particles(posterior)
    forces = LocalForces(posterior, single_kernel=single_kernel, kernel="rbf", bandwidth=0.25)
    h_of = _bandwidths(forces.refresh_bandwidths(x.reshape(len(x), -1)), posterior, single_kernel)
    for site in np.ndindex(*posterior.shape):
        for sites in naive.factors_at(posterior.prior, posterior.shape, site, single_kernel):
            squares = sorted(
                sum((x[(i, *s)] - x[(j, *s)]) ** 2 for s in sites)
                for shift in range(1, 4)
                for i in range(6)
                for j in [(i + shift) % 6]
            )
            middle = len(squares) // 2
            assert 0.99 * squares[middle - 1] <= h_of(sites) / 0.25 <= 1.01 * squares[middle]


def test_global_forces(posterior, kernel):
    x = _particles(posterior, 7).reshape(7, -1)
    scores = np.random.default_rng(2).normal(size=x.shape).astype(np.float32)
    gradients, repulsions = global_forces(x, scores, kernel=kernel, bandwidth=0.7)
    g, r = naive.svgd_forces(x.astype(float), scores.astype(float), kernel, 0.7)
    assert np.allclose(gradients, g, rtol=1e-4, atol=1e-5)
    assert np.allclose(repulsions, r, rtol=1e-4, atol=1e-5 * np.abs(r).max())


def test_repulsion_sums_to_zero(posterior):
    """k is symmetric, so every push has its equal and opposite."""
    x = _particles(posterior, 9).reshape(9, -1)
    forces = LocalForces(posterior, single_kernel=False, kernel="rbf", bandwidth=1.0)
    forces.refresh_bandwidths(x)
    _, repulsions = forces.measure(x)
    assert np.abs(repulsions.sum(axis=0)).max() < 1e-5


def test_one_particle_follows_the_score(posterior):
    """M = 1: SVGD and MP-SVGD are gradient ascent (paper, end of section 2)."""
    x = _particles(posterior, 1)
    score = posterior.score(x)[0].ravel()
    forces = LocalForces(posterior, single_kernel=False, kernel="rbf", bandwidth=1.0)
    flat = x.reshape(1, -1)
    forces.refresh_bandwidths(flat)
    gradients, repulsions = forces.measure(flat)
    assert np.allclose(gradients[0], score, rtol=1e-4, atol=1e-5)
    assert not repulsions.any()
    gradients, repulsions = global_forces(flat, score[None])
    assert np.allclose(gradients[0], score)
    assert not repulsions.any()


@pytest.mark.parametrize("inertia", [1, 9])
def test_a_sweep_moves_along_phi(posterior, inertia):
    x = _particles(posterior).reshape(6, -1)
    forces = LocalForces(posterior, single_kernel=False, kernel="rbf", bandwidth=0.5)
    forces.refresh_bandwidths(x)
    gradients, repulsions = forces.measure(x)
    colour = posterior.prior.colouring(posterior.shape).ravel() == 0  # the first colour sees the others unmoved
    phi = (gradients + repulsions)[:, colour]
    moved = x.copy()
    forces.sweep(moved, 3.0, np.zeros(posterior.size, np.float32), inertia=inertia)
    expected = 3.0 * phi / np.sqrt(inertia * (phi**2).mean(axis=0))
    assert np.allclose((moved - x)[:, colour], expected, rtol=1e-3, atol=1e-3)


def test_moments_of_particles(posterior, monkeypatch):
    """In strips, as numpy has them."""
    monkeypatch.setattr(particles, "_STRIP", 7)
    x = _particles(posterior).reshape(6, -1)
    found = particles.estimate(x, posterior, np.zeros(posterior.shape))
    assert np.allclose(found.mean.ravel(), x.mean(axis=0, dtype=np.float64), rtol=1e-12)
    assert np.allclose(found.std.ravel(), x.std(axis=0, ddof=1, dtype=np.float64), rtol=1e-12)


def _shaken(forces, x, step, noise, seed):
    """How much farther a sweep moves the particles with noise than without, and the steps eps of all sites."""
    plain, moved, power = x.copy(), x.copy(), np.zeros(x.shape[1], np.float32)
    forces.sweep(plain, step, power)
    forces.sweep(moved, step, np.zeros_like(power), noise=noise, rng=np.random.default_rng(seed))
    return moved - plain, step / np.sqrt(power)


@pytest.mark.parametrize("single_kernel", [False, True])
def test_shaking(posterior, kernel, single_kernel):
    """The noise of a sweep, at every site of the first colour, is that of the naive twin."""
    x = _particles(posterior)
    forces = LocalForces(posterior, single_kernel=single_kernel, kernel=kernel, bandwidth=0.5)
    h_of = _bandwidths(forces.refresh_bandwidths(x.reshape(6, -1)), posterior, single_kernel)
    added, eps = _shaken(forces, x.reshape(6, -1), 0.5, 3.0, 7)
    drawn = shaking_numbers(posterior, forces._hood, np.random.default_rng(7)).reshape(-1, *posterior.shape)
    members = [*posterior.prior.blanket, (0, 0)]
    for site in np.argwhere(posterior.prior.colouring(posterior.shape) == 0):
        row, column = site

        def numbers(what, row=row, column=column):
            rows = {"n": len(members), "phase": len(members) + 1, "choice": len(members) + 2}
            at = rows[what] if what in rows else members.index((what[0] - row, what[1] - column))
            return float(drawn[at, row, column])

        twin = naive.shaking(posterior.prior, x.astype(float), (row, column), kernel, h_of, single_kernel, numbers)
        flat = row * posterior.shape[1] + column
        assert np.allclose(added[:, flat], np.sqrt(2 * 3.0 * eps[flat] / 6) * twin, atol=2e-3 * np.sqrt(eps[flat]))


@pytest.mark.slow  # half a minute; the twin above checks every number of one sweep
def test_the_covariance_of_shaking_is_the_kernel_matrix(posterior, kernel):
    """2 eps K / M, but for what is common to all particles; at two sites that move first, over 4000 sweeps."""
    x = _particles(posterior, 4)
    forces = LocalForces(posterior, single_kernel=False, kernel=kernel, bandwidth=0.5)
    h_of = _bandwidths(forces.refresh_bandwidths(x.reshape(4, -1)), posterior, False)
    draws = [_shaken(forces, x.reshape(4, -1), 0.5, 1.0, seed) for seed in range(4000)]
    centre = np.eye(4) - 1 / 4
    for site in map(tuple, np.argwhere(posterior.prior.colouring(posterior.shape) == 0)[[0, -1]]):
        flat = site[0] * posterior.shape[1] + site[1]
        factors = naive.factors_at(posterior.prior, posterior.shape, site, False)
        squares = [[[sum((a[s] - b[s]) ** 2 for s in f) / (2 * h_of(f)) for b in x] for a in x] for f in factors]
        matrix = np.mean([[[naive.kernel_value(kernel, z) for z in row] for row in f] for f in squares], axis=0)
        got = np.mean([np.outer(d[:, flat], d[:, flat]) for d, _ in draws], axis=0)
        assert np.allclose(got / (2 * draws[0][1][flat] / 4), centre @ matrix @ centre, atol=0.06)


def test_svgd_scales_its_steps_as_the_paper_or_in_two_parts():
    phi = np.random.default_rng(0).normal(3, 0.1, (40, 5)).astype(np.float32)
    powers = np.zeros((2, 5), np.float32)
    assert np.allclose(_adagrad(phi, powers, split=False), phi / np.sqrt((phi**2).mean(axis=0)), rtol=1e-4)
    assert np.allclose(powers[1], (phi**2).mean(axis=0))
    moved = _adagrad(phi, np.zeros((2, 5), np.float32), split=True)
    assert np.allclose(moved.mean(axis=0), 1, atol=1e-3)  # all together a full step
    assert np.allclose(moved.std(axis=0), 1, atol=1e-3)  # and apart a full step, though 30 times smaller


def test_diagnostics_are_norms(posterior):
    x = _particles(posterior, 5)
    scores = posterior.score(x).reshape(5, -1)
    g, r = naive.svgd_forces(x.reshape(5, -1).astype(float), scores.astype(float), "rbf", 1.0)
    measured = diagnose(posterior, x, "svgd")
    assert measured.pamrf[0] == pytest.approx(np.abs(r).max(axis=1).mean(), rel=1e-3)
    assert measured.pamrf[1] == pytest.approx(np.linalg.norm(r, axis=1).mean(), rel=1e-3)
    assert measured.paksg[0] == pytest.approx(np.abs(g).max(axis=1).mean(), rel=1e-3)
    with pytest.raises(ValueError, match="method must be"):
        diagnose(posterior, x, "gibbs")
    with pytest.raises(ValueError, match="padded field"):
        diagnose(posterior, x[:, 1:], "svgd")
