"""Colour channels <-> decorrelated planes whose noise stays white and of equal strength."""

from __future__ import annotations

import numpy as np

#: Orthonormal opponent transform: luminance, red-blue, green-magenta. Rows are planes, columns R, G, B.
OPPONENT = np.array([[1, 1, 1], [1, 0, -1], [1, -2, 1]]) / np.sqrt([[3], [2], [6]])

#: What each plane is multiplied by before it is denoised, because the prior was learned on grey photographs and colour
#: varies less than brightness. The same as a prior of smaller scale. Chosen on sample_images (tests/test_tiles.py).
GAINS = (1.0, 3.0, 5.0)


def to_planes(image: np.ndarray) -> np.ndarray:
    """(height, width, 3) -> (3, height, width)."""
    return np.einsum("pc,hwc->phw", OPPONENT, image)


def to_channels(planes: np.ndarray) -> np.ndarray:
    """(..., 3, height, width) -> (..., height, width, 3), the inverse of `to_planes`."""
    return np.einsum("pc,...phw->...hwc", OPPONENT, planes)


def std_to_channels(planes: np.ndarray) -> np.ndarray:
    """Standard deviations of the planes -> of the channels; planes count as independent."""
    return np.sqrt(np.einsum("pc,phw->hwc", OPPONENT**2, planes**2))
