"""Measurements from particles, against closed forms and by hand."""

import numpy as np
import pytest

from denoiser import measure
from denoiser.metrics import credible_factor
from denoiser.particles import mask_item, numbers


@pytest.fixture
def particles():
    return np.random.default_rng(3).normal(50, 4, (40, 20, 30))


def test_regions_by_hand(particles):
    mask = measure.rectangle((20, 30), 3, 5, 7, 4)
    assert np.array_equal(np.argwhere(mask)[[0, -1]], [[5, 3], [8, 9]])
    assert mask.sum() == 28
    found = measure.region(particles, mask, 0.8)
    by_hand = np.array([p[5:9, 3:10].mean() for p in particles])
    assert found["mean"].value == pytest.approx(by_hand.mean())
    reach = credible_factor(0.8, 40) * by_hand.std(ddof=1)
    assert found["mean"].low == pytest.approx(by_hand.mean() - reach)
    assert found["mean"].high == pytest.approx(by_hand.mean() + reach)
    assert found["sum"].std == pytest.approx(28 * found["mean"].std)
    assert found["std"].value == pytest.approx(np.mean([p[5:9, 3:10].std() for p in particles]))


def test_an_ellipse_is_round_and_inside_its_rectangle():
    mask, box = measure.ellipse((50, 60), 10, 5, 30, 20), measure.rectangle((50, 60), 10, 5, 30, 20)
    assert not (mask & ~box).any()
    assert mask.sum() == pytest.approx(np.pi * 15 * 10, rel=0.02)
    assert measure.bounds(mask) == (5, 10, 25, 40)


def test_a_difference_knows_that_particles_move_together(particles):
    """A common shift of a whole particle moves both means, and not their difference."""
    shifted = particles + np.random.default_rng(0).normal(0, 100, (40, 1, 1))
    one, two = measure.rectangle((20, 30), 0, 0, 5, 5), measure.rectangle((20, 30), 20, 10, 5, 5)

    def reaches(samples):
        items = [mask_item("one", one), mask_item("two", two)]
        found = numbers(lambda box: samples[:, box.top : box.bottom, box.left : box.right], items, 0.9)
        return {n.item: (n.high - n.low) / 2 for n in found if n.quantity == "mean"}

    plain, moved = reaches(particles), reaches(shifted)
    assert moved["one - two"] == pytest.approx(plain["one - two"])
    assert moved["one"] > 20 * plain["one - two"]


def test_colour_has_a_number_a_channel(particles):
    colour = np.stack([particles, particles + 7, particles * 2], axis=-1)
    found = measure.region(colour, measure.rectangle((20, 30), 0, 0, 9, 9))
    red, green, blue = found["mean"].value
    assert (green - red, blue / red) == pytest.approx((7, 2))


def test_a_profile_on_pixel_centres_is_the_pixels(particles):
    line = measure.profile(particles, (2.5, 7.5), (12.5, 7.5))
    np.testing.assert_allclose(line.distance, np.arange(11))
    np.testing.assert_allclose(line.values.value, particles[:, 7, 2:13].mean(axis=0))
    np.testing.assert_allclose(line.values.std, particles[:, 7, 2:13].std(axis=0, ddof=1))
    slope = np.broadcast_to(3.0 * np.arange(30) + 5 * np.arange(20)[:, None], (2, 20, 30))
    across = measure.profile(slope, (2, 3), (20, 15)).values.value
    np.testing.assert_allclose(
        across, 3 * np.linspace(1.5, 19.5, len(across)) + 5 * np.linspace(2.5, 14.5, len(across))
    )


def test_a_function_of_ones_own(particles):
    found = measure.measure(particles, lambda picture: (picture > 52).mean())
    assert 0.2 < found.low < found.value < found.high < 0.4


def test_bad_input_is_one_line(particles):
    bad = [
        lambda: measure.rectangle((20, 30), 40, 0, 5, 5),
        lambda: measure.ellipse((20, 30), 3, 3, 0.1, 0.1),
        lambda: measure.region(particles, np.ones((5, 5), bool)),
        lambda: measure.region(particles, np.zeros((20, 30), bool)),
        lambda: measure.region(particles[:1], np.ones((20, 30), bool)),
        lambda: measure.profile(particles, (0, 0), (99, 5)),
        lambda: measure.profile(particles, (4, 4), (4.2, 4)),
        lambda: measure.region(particles, np.ones((20, 30), bool), 1.5)["mean"].low,
    ]
    for call in bad:
        with pytest.raises(ValueError, match=r"^[^\n]+$"):
            call()
