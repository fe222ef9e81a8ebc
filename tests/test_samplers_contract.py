"""What every registered sampler promises, on an odd-sized picture with both priors."""

import inspect
from itertools import islice

import numpy as np
import pytest

from denoiser import METHODS, add_noise, denoise, iterate, psnr, set_threads

QUICK = {
    "mp-svgd": {"particles": 12, "iterations": 16},
    "mp-svgd-s": {"particles": 12, "iterations": 16},
    "svgd": {"particles": 12, "iterations": 16},
    "gibbs": {"samples": 40, "burn_in": 5},
    "hmc": {"samples": 40, "burn_in": 20},
    "map": {},
}
DETERMINISTIC = {"map", "tv", "nlm", "wavelet", "bm3d"}


@pytest.fixture(params=METHODS)
def method(request):
    return request.param


def test_denoises(method, prior, picture):
    noisy = add_noise(picture, 15, seed=1)
    result = denoise(noisy, 15, method=method, prior=prior, **QUICK.get(method, {}))
    assert result.mean.shape == result.std.shape == picture.shape
    assert result.samples.shape[1:] == picture.shape
    assert psnr(picture, result.mean, data_range=255) > psnr(picture, noisy, data_range=255) + 2
    assert np.isfinite(result.mean).all()
    assert (result.std >= 0).all()
    assert 1 <= len(result.history) <= METHODS[method](**QUICK.get(method, {})).total
    assert (result.method, result.sigma) == (method, 15.0)


def test_same_seed_same_bytes_on_one_and_two_threads(method, prior, picture):
    if method == "bm3d":
        return  # not ours to promise: its own threads round as they please
    noisy = add_noise(picture, 15, seed=1)
    results = []
    try:
        for threads in (1, 2, 2):
            set_threads(threads)
            results.append(denoise(noisy, 15, method=method, prior=prior, seed=3, **QUICK.get(method, {})))
    finally:
        set_threads(2)
    for other in results[1:]:
        for name in ("mean", "std", "samples"):
            assert getattr(results[0], name).tobytes() == getattr(other, name).tobytes()


def test_another_seed_gives_other_particles(method, picture):
    if method in DETERMINISTIC:
        return
    noisy = add_noise(picture, 15, seed=1)
    a, b = (denoise(noisy, 15, method=method, seed=seed, **QUICK.get(method, {})) for seed in (1, 2))
    assert not np.array_equal(a.mean, b.mean)


def test_stopping_early_keeps_the_last_estimate(method, picture):
    steps = iterate(add_noise(picture, 15, seed=1), 15, method=method, **QUICK.get(method, {}))
    kept = list(islice(steps, 3))
    copy = kept[-1].mean.copy()
    steps.close()
    assert np.array_equal(kept[-1].mean, copy)
    assert [p.step for p in kept] == list(range(1, min(3, kept[0].total) + 1))
    assert all(p.eta >= 0 and p.total >= p.step for p in kept)


def test_options_are_described(method):
    assert inspect.getdoc(METHODS[method])
    for name, (kind, spec) in METHODS[method].options().items():
        assert kind in (int, float, bool, str), name
        assert len(spec.metadata["meaning"]) > 10, name


def test_options_are_checked(method):
    for name, (kind, _) in METHODS[method].options().items():
        wrong = {int: 1.5, float: "high", bool: 3, str: "none"}[kind]
        with pytest.raises(ValueError, match=rf"{name} must be .*got"):
            METHODS[method](**{name: wrong})


def test_point_estimates_claim_no_uncertainty(method, picture):
    result = denoise(add_noise(picture, 15, seed=1), 15, method=method, **QUICK.get(method, {}))
    if method in DETERMINISTIC:
        assert len(result.samples) == 0
        assert not result.std.any()
    else:
        assert len(result.samples) >= 2
        assert result.std.min() > 0


def test_a_sampler_says_what_it_gives_and_needs(method, prior, picture):
    sampler = METHODS[method](**QUICK.get(method, {}))
    result = denoise(add_noise(picture, 15, seed=1), 15, method=sampler, prior=prior)
    assert len(result.samples) == sampler.kept <= sampler.draws
    assert (sampler.draws > 0) == (method not in DETERMINISTIC) == sampler.uncertain
    assert sampler.chains == result.chains
    assert sampler.bytes_per_pixel(prior) >= 4 * sampler.kept
    assert sampler.uses_prior == (method not in {"tv", "nlm", "wavelet", "bm3d"})
    if sampler.draws_option:
        assert METHODS[method](**{sampler.draws_option: 7}).draws == 7
