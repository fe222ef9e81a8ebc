"""What every registered sampler promises, on an odd-sized picture with both priors."""

import inspect
from itertools import islice

import numpy as np
import pytest

from denoiser import METHODS, add_noise, denoise, iterate, psnr, set_threads, target, threads
from denoiser.samplers import gibbs, global_forces, local_forces, particles, starts

QUICK = {
    "mp-svgd": {"particles": 12, "iterations": 16},
    "mp-svgd-s": {"particles": 12, "iterations": 16},
    "mp-svgd-b": {"particles": 12, "iterations": 16, "batch": 4, "crowd": 8},
    "svgd": {"particles": 12, "iterations": 16},
    "gibbs": {"samples": 40, "burn_in": 5},
    "hmc": {"samples": 40, "burn_in": 20},
    "map": {},
}
DETERMINISTIC = {"map", "tv", "nlm", "wavelet", "bm3d"}


#: What samples, or answers by itself; a method that needs a field with moments is tested with that (test_learned.py).
@pytest.fixture(params=[name for name, sampler in METHODS.items() if not sampler.needs_moments])
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


#: Where the work of a method is cut into tasks, besides its start: their `parallel` must get more than one.
THREADED = {
    "mp-svgd": [local_forces, particles],
    "mp-svgd-s": [local_forces, particles],
    "mp-svgd-b": [local_forces, particles],
    "svgd": [global_forces, particles, target],
    "gibbs": [gibbs],
    "hmc": [target],
}


@pytest.fixture
def tasks(monkeypatch):
    """Pieces so small that the picture is many tasks; module -> how many tasks its `parallel` got at most."""
    for module, name, size in (
        (local_forces, "_CHUNK", local_forces.LANES),
        (global_forces, "_STRIP", 256),
        (particles, "_STRIP", 256),
        (target, "_BATCH", 2048),
    ):
        monkeypatch.setattr(module, name, size)
    most = {}

    def counted(module):
        def parallel(task, items):
            items = list(items)
            most[module] = max(most.get(module, 0), len(items))
            return threads.parallel(task, items)

        return parallel

    for module in (local_forces, global_forces, particles, target, gibbs, starts):
        monkeypatch.setattr(module, "parallel", counted(module))
    before = threads._threads
    yield most
    threads._threads = before
    threads._forget_pool()


def test_same_seed_same_bytes_on_any_number_of_threads(method, prior, picture, tasks):
    if method == "bm3d":
        return  # not ours to promise: its own threads round as they please
    noisy = add_noise(picture, 15, seed=1)
    results = []
    for count in (1, 2, 3, 2):
        set_threads(count)
        results.append(denoise(noisy, 15, method=method, prior=prior, seed=3, **QUICK.get(method, {})))
        assert (threads._pool is not None) == (count > 1 and method in THREADED)
    assert all(tasks[module] > 1 for module in THREADED.get(method, []))
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
    assert len(list(steps)) == 0 or len(kept) == 3  # the sampler has gone on, and moved its particles
    again = islice(iterate(add_noise(picture, 15, seed=1), 15, method=method, **QUICK.get(method, {})), 3)
    for late, early in zip(kept, again, strict=True):
        if method == "bm3d":
            continue  # its own threads round as they please
        assert np.array_equal(late.mean, early.mean)  # of the one nobody has looked at before
        assert np.array_equal(late.std, early.std)
    assert [p.step for p in kept] == list(range(1, min(3, kept[0].total) + 1))
    assert all(p.eta >= 0 and p.total >= p.step for p in kept)


@pytest.mark.parametrize("method", METHODS)
def test_options_are_described(method):
    assert inspect.getdoc(METHODS[method])
    for name, (kind, spec) in METHODS[method].options().items():
        assert kind in (int, float, bool, str), name
        assert len(spec.metadata["meaning"]) > 10, name


def test_options_have_bounds():
    with pytest.raises(ValueError, match=r"step must be <= 1000, got 1e\+30"):
        METHODS["mp-svgd"](step=1e30)
    with pytest.raises(ValueError, match=r"particles must be >= 2, got 1"):
        METHODS["mp-svgd"](particles=1)


@pytest.mark.parametrize("method", METHODS)
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
