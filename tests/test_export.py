"""Samples for ArviZ."""

import sys
import warnings

import numpy as np
import pytest

from denoiser import denoise
from denoiser.samplers.chain_averages import _evenly

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    arviz = pytest.importorskip("arviz")


def test_chains_and_draws(picture):
    result = denoise(picture, 10, method="gibbs", samples=60, chains=3, keep=31)
    with pytest.warns(UserWarning, match="1 of 31 samples left out"):
        result.to_arviz()
    result = denoise(picture, 10, method="gibbs", samples=60, chains=3, keep=30)
    image = result.to_arviz().posterior["image"]
    assert image.dims == ("chain", "draw", "row", "column")
    assert image.shape == (3, 10, *picture.shape)
    for chain in range(3):
        assert np.array_equal(image[chain], result.samples[chain::3][:10])
    assert 0.9 < float(arviz.rhat(result.to_arviz()).image.median()) < 1.6
    assert result.to_arviz().posterior.attrs["method"] == "gibbs"


def test_a_chain_is_a_chain(picture):
    """Draws of one chain follow from its generator alone: with and without another chain beside it."""
    two = denoise(picture, 10, method="gibbs", samples=8, chains=2, keep=8, burn_in=0).to_arviz().posterior["image"]
    three = denoise(picture, 10, method="gibbs", samples=12, chains=3, keep=12, burn_in=0).to_arviz().posterior["image"]
    assert np.array_equal(two, three[:2])


def test_particles_have_no_order(picture):
    colours = np.stack([picture] * 3)
    result = denoise(colours, 10, method="mp-svgd", particles=4, iterations=2, channel_axis=0)
    image = result.to_arviz().posterior["image"]
    assert image.dims == ("sample", "channel", "row", "column")
    assert np.array_equal(image, result.samples)


@pytest.mark.parametrize("samples", [2, 7, 20, 21])
@pytest.mark.parametrize("chains", [1, 2, 3])
@pytest.mark.parametrize("keep", [1, 5, 20, 50])
def test_kept_draws_take_turns(samples, chains, keep):
    wanted = _evenly(samples, chains, min(keep, samples))
    assert len(wanted) == min(keep, samples)
    assert (np.diff(wanted) > 0).all()
    assert wanted[-1] < samples
    assert np.array_equal(wanted % chains, np.arange(len(wanted)) % chains)


def test_what_cannot_be_exported(picture, monkeypatch):
    with pytest.raises(ValueError, match="no samples"):
        denoise(picture, 10, method="tv").to_arviz()
    result = denoise(picture, 10, method="gibbs", samples=6, chains=3, keep=2)
    with pytest.raises(ValueError, match="too few for 3 chains"):
        result.to_arviz()
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ValueError, match=r"pip install '.\[arviz\]'"):
        result.to_arviz()
