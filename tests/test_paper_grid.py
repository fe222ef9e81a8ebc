"""The synthetic grid and the methods on it, against naive twins and exact summation on small grids."""

import naive
import numpy as np
import pytest

from denoiser.paper.ep import GRID, Sites, ep, laplace_message, neighbours
from denoiser.paper.epbp import epbp
from denoiser.paper.grid import ROUNDING, GridMRF, draw_y, log_node, node_slope
from denoiser.paper.methods import Marginals, infer, of_particles
from denoiser.paper.truth import HIGH, LOW, ground_truth
from denoiser.samplers.local_forces import LocalForces
from denoiser.samplers.particles import schedule
from denoiser.samplers.starts import start
from denoiser.target import SITE_END, table_slope

COARSE = np.arange(-6, 11, 0.02)


@pytest.fixture
def grid():
    return GridMRF(draw_y((3, 5), np.random.default_rng(0)))


def _particles(grid, count=6):
    return (grid.noisy + np.random.default_rng(1).normal(0, 2, (count, *grid.shape))).astype(np.float32)


def test_energy(grid):
    x = _particles(grid).astype(float)
    energies = grid.energy(x)
    expected = [naive.grid_energy(p, grid.noisy) for p in x]
    assert np.allclose(np.diff(energies), np.diff(expected), rtol=1e-9)


def test_score(grid):
    x = _particles(grid)
    for particle, score in zip(x.astype(float), grid.score(x), strict=True):
        allowed = np.full(grid.shape, 1e-3)
        for d, t in naive.grid_edges(grid.shape):  # the kink is rounded: 1 - r / sqrt(r^2 + ROUNDING^2)
            allowed[d] += min(0.5, 0.3 * (ROUNDING / (particle[d] - particle[t])) ** 2)
            allowed[t] += min(0.5, 0.3 * (ROUNDING / (particle[d] - particle[t])) ** 2)
        assert (np.abs(score - naive.grid_score(particle, grid.noisy)) < allowed).all()
        assert np.median(allowed) < 3e-3


def test_node_potential():
    u = np.linspace(-20, 25, 181)
    assert np.allclose(np.exp(log_node(u)), [naive.grid_node(v) for v in u], rtol=1e-9)
    fine = np.linspace(-40, 40, 80_001)
    assert np.exp(log_node(fine)).sum() * (fine[1] - fine[0]) == pytest.approx(1, abs=1e-6)  # both are densities
    assert np.allclose(node_slope(u), -(log_node(u + 1e-6) - log_node(u - 1e-6)) / 2e-6, rtol=1e-5, atol=1e-6)


def test_the_table_of_a_potential_goes_on_beyond_its_end(grid):
    table = grid.potentials.table
    u = np.array([-SITE_END - 3, -5.003, 0.0071, 2.2, SITE_END + 50], np.float32)
    assert np.allclose([table_slope(table, v) for v in u], node_slope(u), rtol=2e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore:(overflow|invalid value)")
def test_no_number_reads_outside_the_table_of_a_potential(grid):
    table = grid.potentials.table
    guarded = np.full(3 * len(table), np.nan, np.float32)
    guarded[len(table) : 2 * len(table)] = table
    inner = guarded[len(table) : 2 * len(table)]
    assert table_slope(inner, np.float32(1e30)) == pytest.approx(node_slope(np.array(1e3)), rel=1e-4)
    assert table_slope(inner, np.float32(-1e30)) == pytest.approx(-1e30, rel=1e-4)
    for strange in (np.nan, -np.nan, np.inf, -np.inf):
        table_slope(inner, np.float32(strange))  # NaN or infinite, and no crash


def test_observations_follow_the_mixture():
    y = draw_y((300, 300), np.random.default_rng(0)) - 2
    u = np.linspace(-12, 25, 3701)
    density = np.exp(log_node(u)) * 0.01
    assert y.mean() == pytest.approx((density * u).sum(), abs=0.03)
    assert (y**2).mean() == pytest.approx((density * u**2).sum(), rel=0.01)


@pytest.mark.parametrize("single_kernel", [False, True])
def test_forces_are_those_of_the_images(grid, single_kernel):
    """Eq. 10 with the grid's scores: the kernels of the images, with a table for the nodes."""
    x = _particles(grid)
    forces = LocalForces(grid, single_kernel=single_kernel, kernel="rbf", bandwidth=1.0)
    h = forces.refresh_bandwidths(x.reshape(len(x), -1))
    gradients, repulsions = (f.reshape(x.shape) for f in forces.measure(x.reshape(len(x), -1)))
    scores = grid.score(x).astype(float)
    windows = [grid.prior.blanket] if single_kernel else list(grid.prior.factors)

    def h_of(sites):
        (row, column), *others = sites
        window = tuple((r - row, c - column) for r, c in others)
        return h[0 if single_kernel else windows.index(window), row * grid.shape[1] + column]

    for site in np.ndindex(*grid.shape):
        g, r = naive.mp_svgd_forces(grid.prior, x.astype(float), scores, site, "rbf", h_of, single_kernel)
        assert np.allclose(gradients[(slice(None), *site)], g, rtol=1e-3, atol=1e-4)
        assert np.allclose(repulsions[(slice(None), *site)], r, rtol=1e-3, atol=1e-4)


def test_a_grid_has_no_expert_to_soften(grid):
    assert all(move.tables is None for move in schedule("continuation", 10, grid))
    noisy = start(grid, np.random.default_rng(0), 4, "smooth")  # no Gaussian approximation: y plus noise
    assert np.abs(noisy - grid.noisy.ravel()).max() < 5


# ------------------------------------------------------------------------------------------- messages


def test_laplace_message():
    rng = np.random.default_rng(0)
    grid, out = np.linspace(-3, 6, 91), np.empty(91)
    for points in (np.sort(rng.normal(2, 4, 40)), grid[10:50:3]):  # some beyond either end; some on the grid itself
        weights = rng.random(len(points))
        laplace_message(points, weights, grid, 2.0, out)
        assert np.allclose(out, naive.laplace_message(points, weights, grid, 2.0))


def test_neighbours():
    assert neighbours((2, 3))[4] == [1, 3, 5]
    assert sum(map(len, neighbours((4, 7)))) == 2 * (4 * 6 + 3 * 7)


def test_an_improper_update_is_skipped():
    sites = Sites(GridMRF(np.zeros((1, 2))))
    before = sites.q(1)
    two_ends = np.where(np.abs(GRID - before[1] / before[0]) > 4, 0.0, -50.0)  # wider than the node's own Gaussian
    sites.update_edge(0, 1, two_ends)
    assert np.array_equal(sites.q(1), before)
    sites.update_edge(0, 1, -0.5 * (GRID - 1) ** 2)  # a Gaussian message is taken as it is
    assert np.allclose(sites.q(1) - before, [1, 1], atol=1e-6)


def test_epbp_is_exact_on_a_chain_with_many_particles():
    y = np.array([[0.5, 3.0, 6.0]])
    exact = naive.grid_chain_marginals(y, GRID[::2])
    beliefs = epbp(GridMRF(y), 20_000, np.random.default_rng(0))
    for belief, true in zip(beliefs, exact, strict=True):
        assert belief @ GRID == pytest.approx(true @ GRID[::2], abs=0.03)
        assert belief @ GRID**2 == pytest.approx(true @ GRID[::2] ** 2, rel=0.02)


def test_ep_is_near_the_moments_on_a_chain():
    """EP would be exact for Gaussian factors; here the means are near, and the spread of the right size."""
    y = np.array([[0.5, 3.0, 6.0]])
    exact = naive.grid_chain_marginals(y, GRID[::2])
    for belief, true in zip(ep(GridMRF(y)), exact, strict=True):
        mean = true @ GRID[::2]
        assert belief @ GRID == pytest.approx(mean, abs=0.4)
        spread = np.sqrt(true @ (GRID[::2] - mean) ** 2)
        assert np.sqrt(belief @ (GRID - belief @ GRID) ** 2) == pytest.approx(spread, rel=0.4)


# ------------------------------------------------------------------------------------------- ground truth


@pytest.mark.parametrize("y", [1.0, 30.0])
def test_every_draw_is_counted(y):
    """All draws are kept here, so that they can be counted again; those beyond the histogram are in its last bin."""
    truth = ground_truth(GridMRF(np.full((2, 2), y)), 20, 50, np.random.default_rng(0))
    draws = truth.draws.reshape(len(truth.draws), -1).astype(float)
    assert (draws.max() > HIGH) == (y > HIGH)
    edges = np.linspace(LOW, HIGH, len(truth.marginals.points) + 1)
    for node, weights in enumerate(truth.marginals.weights.T):
        found = np.histogram(draws[:, node].clip(LOW, HIGH), edges)[0]
        assert np.abs(len(draws) * weights - found).sum() <= 2  # a border may go either way


def _worst(samples):
    y = np.array([[0.5, 3.0], [6.0, 1.0]])
    exact = naive.grid_2x2_marginals(y, COARSE)
    truth = ground_truth(GridMRF(y), samples, 500, np.random.default_rng(0))
    assert truth.draws.shape[1:] == (2, 2)
    pairs = [(truth.marginals.expect(f), exact @ f(COARSE)) for f in (lambda x: x, np.square, np.cos)]
    return max(np.abs(a - b).max() / max(np.abs(b).max(), 1) for a, b in pairs)


def test_the_truth_agrees_with_exact_summation():
    assert _worst(2500) < 5e-3


@pytest.mark.slow
def test_the_truth_agrees_with_exact_summation_to_three_digits():
    assert _worst(40_000) < 1e-3


def test_marginals():
    particles = np.array([[[1.0, 5.0]], [[3.0, 5.0]]])
    assert of_particles(particles).expect(lambda x: x).tolist() == [2, 5]
    beliefs = Marginals(np.array([[0.0], [1.0]]), np.array([[0.5, 0.0], [0.5, 1.0]]))
    assert beliefs.expect(lambda x: x * np.array([1.0, 10.0])).tolist() == [0.5, 10]


def test_hmc_as_a_method_takes_draws_at_random(grid):
    draws = np.random.default_rng(0).normal(size=(50, *grid.shape))
    found = infer(grid, "HMC", 20, 1, draws, np.random.default_rng(0))
    assert found.points.shape == (20, grid.size)
    assert np.isin(found.points, draws.reshape(50, -1)).all()
