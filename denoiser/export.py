"""Samples for other programs."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np


def to_arviz(samples: np.ndarray, names: list[str], chains: int, attributes: dict[str, Any]) -> Any:
    """`arviz.InferenceData` of samples (M, ...) whose other axes have these names; sample i is of chain i % chains."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # that a later version will be different
            import arviz
            import xarray
    except ImportError:
        raise ValueError("ArviZ is not installed: pip install 'mpsvgd[arviz]'") from None
    if not len(samples):
        raise ValueError(f"a point estimate ({attributes['method']}) has no samples to export")
    if chains:
        draws = len(samples) // chains  # all chains must be of one length: at most chains - 1 samples are left out
        if not draws:
            raise ValueError(f"{len(samples)} samples are too few for {chains} chains; keep more")
        samples = samples[: draws * chains].reshape(draws, chains, *samples.shape[1:]).swapaxes(0, 1)
    first = ["chain", "draw"] if chains else ["sample"]
    coordinates = {name: np.arange(size) for name, size in zip(first, samples.shape, strict=False)}
    dataset = xarray.Dataset({"image": ([*first, *names], samples)}, coordinates, attributes)
    return arviz.InferenceData(posterior=dataset)
