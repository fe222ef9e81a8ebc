import naive
import numpy as np
import pytest

from denoiser.stencil import Stencil

SHAPES = [(5, 7), (3, 3), (2, 9), (9, 2)]


def _random(stencil, seed=0):
    rng = np.random.default_rng(seed)
    precisions = np.zeros(stencil.cliques)
    for f, (rows, columns) in enumerate(stencil.extents):
        window = precisions[f].reshape(stencil.shape)
        window[:rows, :columns] = np.exp(rng.normal(size=(rows, columns)))
    return rng, precisions


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_responses_and_adjoint(prior, shape, dtype):
    stencil = Stencil(prior, shape, dtype)
    rng, _ = _random(stencil)
    x = rng.normal(size=stencil.size).astype(dtype)
    values = rng.normal(size=stencil.cliques).astype(dtype)
    responses = stencil.responses(x)
    expected = np.zeros(stencil.cliques)
    back = np.zeros(stencil.size)
    for f, _, sites in naive.cliques(prior, shape):
        first = sites[0][0] * shape[1] + sites[0][1]
        expected[f, first] = sum(tap * x[r * shape[1] + c] for r, c, tap in sites)
        for r, c, tap in sites:
            back[r * shape[1] + c] += tap * values[f, first]
    assert np.allclose(responses, expected, atol=1e-5)
    assert np.allclose(stencil.adjoint(values, np.zeros(stencil.size, dtype)), back, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-3), (np.float64, 1e-9)])
def test_solve_matches_the_dense_matrix(prior, shape, dtype, tolerance):
    stencil = Stencil(prior, shape, dtype)
    rng, precisions = _random(stencil, 1)
    b = rng.normal(size=stencil.size)
    expected = np.linalg.solve(naive.precision_matrix(prior, shape, precisions, 0.01), b)
    x = np.zeros(stencil.size, dtype)
    iterations = stencil.solve(precisions.astype(dtype), 0.01, b.astype(dtype), x, tolerance / 100)
    assert iterations > 0
    assert np.allclose(x, expected, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("shape", [(40, 61), (61, 40), (7, 400)])
def test_solve_on_more_than_one_block(prior, shape):
    """Blocks of 1024 pixels, rows of odd and even length, and a start that is not zero."""
    stencil = Stencil(prior, shape, np.float64)
    rng, precisions = _random(stencil, 3)
    b = rng.normal(size=stencil.size)
    scratch = stencil.workspace()
    for _ in range(2):  # scratch space that has been used is as good as new
        x = rng.normal(size=stencil.size)
        assert stencil.solve(precisions, 0.1, b, x, 1e-10, scratch) > 0
        assert np.allclose(stencil.adjoint(precisions * stencil.responses(x), 0.1 * x), b, atol=1e-7)


def test_a_good_start_needs_no_iterations(prior):
    stencil = Stencil(prior, (6, 5), np.float64)
    rng, precisions = _random(stencil, 2)
    b = rng.normal(size=30)
    x = np.linalg.solve(naive.precision_matrix(prior, (6, 5), precisions, 0.5), b)
    solution = x.copy()
    assert stencil.solve(precisions, 0.5, b, x, 1e-6) == 0
    assert np.allclose(x, solution, rtol=1e-12)
    x[7] += 1e-3
    assert stencil.solve(precisions, 0.5, b, x, 1e-6) > 0
    assert np.allclose(x, solution, rtol=1e-4)


def test_a_system_without_a_solution_is_minus_one(prior):
    """Numbers that overflow, and a matrix that is not positive, end at once and say so."""
    stencil = Stencil(prior, (6, 5), np.float64)
    _, precisions = _random(stencil, 2)
    for b, sign in ((np.full(30, 1e200), 1), (np.full(30, np.nan), 1), (np.ones(30), -1)):
        with np.errstate(all="ignore"):
            assert stencil.solve(precisions, sign * 0.5 - 1000 * (sign < 0), b, np.zeros(30), 1e-6) == -1
