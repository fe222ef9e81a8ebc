"""The photograph that an experiment looks at: a bundled one, or one that the user names."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from denoiser import images
from denoiser.data import data_folder
from denoiser.paper.report import Setting

BUNDLED = "camera"  # the cameraman, public domain, in the place of Lena
_LUMA = np.array([0.299, 0.587, 0.114])


def grey_photograph(setting: Setting) -> tuple[str, np.ndarray]:
    """(name, grey picture on the 0-255 scale) of the picture that the setting names."""
    path = Path(setting.image) if setting.image else data_folder("sample_images") / f"{BUNDLED}.png"
    picture = images.read(path)
    values = picture.pixels / picture.grey
    if values.ndim == 3:
        values = values[..., :3] @ _LUMA if values.shape[2] >= 3 else values[..., 0]
    return path.name, values


def rescaled(picture: np.ndarray, height: int, width: int) -> np.ndarray:
    """The picture at another size, smoothed first."""
    from skimage.transform import resize  # slow to import

    return np.asarray(resize(picture, (height, width), anti_aliasing=True))
