"""The published figures on the ten BSD images: long, behind the `slow` marker."""

import numpy as np
import pytest

from denoiser import add_noise, denoise, images, psnr


def _average(files, sigma, **arguments):
    """Mean PSNR over the images; the k-th file gets the noise of seed k, unclipped."""
    values = []
    for k, file in enumerate(files):
        clean = images.read(file).pixels.astype(float)
        result = denoise(add_noise(clean, sigma, seed=k), sigma, **arguments)
        values.append(psnr(clean, result.mean, data_range=255))
    print(f"sigma {sigma} {arguments}: {np.mean(values):.3f} dB")
    return np.mean(values)


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "long_run", "one_chain"), [(10, 31.885, 31.62), (20, 28.210, 27.88)])
def test_pairwise_reference(bsd10, sigma, long_run, one_chain):
    reference = _average(bsd10, sigma, method="gibbs", samples=600, chains=2)
    assert abs(reference - long_run) < 0.05
    assert abs(_average(bsd10, sigma, method="gibbs", samples=50, burn_in=20, chains=1) - one_chain) < 0.08
    assert _average(bsd10, sigma, method="map") < reference - 0.8


@pytest.mark.slow
def test_the_3x3_prior_is_better(bsd10):
    arguments = {"method": "gibbs", "samples": 200, "chains": 2}
    gain = _average(bsd10, 10, prior="foe3x3", **arguments) - _average(bsd10, 10, **arguments)
    assert gain > 0.5
