import naive
import numpy as np
import pytest
from numba import njit

from denoiser.gsm import GSM, table_precision


@pytest.fixture(params=[0, 3, 6])
def expert(prior, request):
    return prior.experts[request.param % len(prior.experts)]


@njit
def _table_precisions(table, r, out):
    for i in range(len(r)):
        out[i] = table_precision(table, r[i])


def _table_score(expert, r):
    """The score as the compiled kernels compute it."""
    r = r.astype(np.float32)
    out = np.empty_like(r)
    _table_precisions(expert.table, r, out)
    return -r * out


R = np.array([0.0, 0.01, -0.2, 0.7, -3.0, 12.5, 90.0, -250.0])


def test_matches_the_equations(expert):
    assert np.allclose(expert.log_density(R), [np.log(naive.expert_density(expert, r)) for r in R], rtol=1e-12)
    assert np.allclose(expert.score(R), [naive.expert_score(expert, r) for r in R], rtol=1e-12)
    assert np.allclose(expert.responsibilities(R), [naive.expert_responsibilities(expert, r) for r in R], rtol=1e-10)


def test_score_is_the_slope_of_the_log_density(expert):
    r = np.linspace(-300, 300, 4001)
    step = 1e-5
    slope = (expert.log_density(r + step) - expert.log_density(r - step)) / (2 * step)
    assert np.allclose(expert.score(r), slope, atol=1e-5)


def test_table_is_exact_enough_everywhere(prior):
    r = np.concatenate([np.geomspace(1e-4, 3, 100_001), np.linspace(3, 600, 100_001)]).astype(np.float32)
    for expert in prior.experts:
        exact = expert.score(r)
        assert np.abs(_table_score(expert, r) / exact - 1).max() <= 1e-4
        assert np.array_equal(_table_score(expert, -r), -_table_score(expert, r))


def test_table_stays_finite_far_outside(expert):
    far = _table_score(expert, np.array([2e3, -1e6, 3e9]))
    assert np.isfinite(far).all()
    assert (np.sign(far) == [-1, 1, -1]).all()


def test_a_weight_of_zero_is_allowed():
    expert = GSM(np.array([0.0, 1.0]), np.array([5.0, 1.0]), 0.25)
    assert np.allclose(expert.score(np.array([2.0])), -0.5)


@pytest.mark.filterwarnings("ignore:overflow")
def test_whatever_is_looked_up_lies_in_the_table(expert):
    """NaN of either sign, infinities and what float32 makes of 1e200: the score may be NaN, the index is none."""
    with np.errstate(over="ignore"):
        strange = np.array([np.nan, -np.nan, np.inf, -np.inf, 1e200, -1e200, 3e38], np.float32)
    guarded = np.full(3 * len(expert.table), np.nan, np.float32)  # what is read around the table shows
    guarded[len(expert.table) : 2 * len(expert.table)] = expert.table
    out = np.empty_like(strange)
    _table_precisions(guarded[len(expert.table) : 2 * len(expert.table)], strange, out)
    assert np.isin(out, expert.table[[0, 1, -2, -1]]).all()
