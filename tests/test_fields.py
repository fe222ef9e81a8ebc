"""What measured noise means for a prior: how much of it is believed, and how wide the intervals are."""

from dataclasses import replace

import numpy as np
import pytest

from denoiser import add_noise, fields
from denoiser.api import make_request
from denoiser.noise import Noise, PlaneNoise

LEARNED, PAIRWISE, LARGE = (fields.load_field(name) for name in ("learned", "pairwise", "foe3x3"))
WHITE = Noise.flat(8.0)
GRAIN = ((1.0, 0.5, 0.2), (0.5, 0.25, 0.1), (0.2, 0.1, 0.04))


def grained(level, confidence=0.8):
    return Noise((PlaneNoise((0.0,), (level,), GRAIN),), confidence=confidence)


@pytest.mark.parametrize("prior", [LEARNED, PAIRWISE, LARGE], ids=lambda prior: prior.name)
def test_told_and_white_noise_leaves_intervals_alone(prior):
    assert fields.widening(prior, WHITE) == 1
    assert fields.widening(prior, replace(WHITE, confidence=0.7)) == 1
    assert fields.widening(prior, Noise.poisson(2.0, 5.0)) == 1


def test_grain_and_doubt_make_intervals_wider():
    sure, unsure = grained(8.0), grained(8.0, confidence=0.4)
    assert 1 < fields.widening(LEARNED, sure) < fields.widening(LEARNED, unsure) < 5
    assert fields.widening(LEARNED, replace(WHITE, confidence=0.4)) > 1
    assert fields.widening(PAIRWISE, sure) == fields.widening(PAIRWISE, unsure)  # it is told all of the level


def test_strong_grain_makes_the_markov_priors_wider():
    weak, strong = grained(2.0), grained(12.0)
    assert fields.widening(PAIRWISE, weak) == 1 < fields.widening(LARGE, weak) < fields.widening(PAIRWISE, strong) < 2
    assert fields.widening(PAIRWISE, strong.in_units(257.0)) == pytest.approx(fields.widening(PAIRWISE, strong))


@pytest.mark.parametrize(
    ("prior", "method", "options"), [("learned", "direct", {"particles": 6}), ("pairwise", "gibbs", {"samples": 6})]
)
def test_the_mean_stays_and_std_and_particles_widen_alike(prior, method, options, monkeypatch):
    noisy = add_noise(np.full((24, 32), 90.0), 12.0, seed=0)
    request = make_request(noisy, grained(12.0, 0.5), method=method, prior=prior, data_range=255, **options)
    factor = fields.widening(request.prior, request.noise)
    assert factor > 1.05
    wide = request.run()
    monkeypatch.setattr(fields, "widening", lambda prior, noise: 1.0)
    narrow = request.run()
    np.testing.assert_array_equal(wide.mean, narrow.mean)
    np.testing.assert_allclose(wide.std, factor * narrow.std, rtol=1e-5)
    assert len(wide.samples) > 2
    spreads = [(r.samples.astype(float) - r.mean).std(axis=0) for r in (wide, narrow)]
    np.testing.assert_allclose(spreads[0], factor * spreads[1], rtol=0.02, atol=0.05)


def test_strong_noise_is_believed_though_the_meter_is_unsure():
    """Texture looks like weak noise, seldom like strong noise; what is believed follows the level in grey levels."""
    unsure = [replace(Noise.flat(sigma), confidence=0.1) for sigma in (2.0, 7.0, 30.0)]
    told = [fields.noise_factors(LEARNED, noise, 1)[0] for noise in unsure]
    assert told == pytest.approx([0.3, 0.5, 0.9])
    assert fields.noise_factors(LEARNED, unsure[1].in_units(257.0), 1) == pytest.approx([0.5])
