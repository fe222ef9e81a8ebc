import naive
import numpy as np
import pytest

from denoiser.gsm import GSM


@pytest.fixture(params=[0, 3, 6])
def expert(prior, request):
    return prior.experts[request.param % len(prior.experts)]


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
        assert np.abs(expert.table_score(r) / exact - 1).max() <= 1e-4
        assert np.array_equal(expert.table_score(-r), -expert.table_score(r))


def test_table_stays_finite_far_outside(expert):
    far = expert.table_score(np.array([2e3, -1e6, 3e9]))
    assert np.isfinite(far).all()
    assert (np.sign(far) == [-1, 1, -1]).all()


def test_a_weight_of_zero_is_allowed():
    expert = GSM(np.array([0.0, 1.0]), np.array([5.0, 1.0]), 0.25)
    assert np.allclose(expert.score(np.array([2.0])), -0.5)
