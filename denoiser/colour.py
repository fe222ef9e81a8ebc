"""A picture in its own units and layout <-> decorrelated planes on the 0-255 scale whose noise stays white."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Orthonormal opponent transform: luminance, red-blue, green-magenta. Rows are planes, columns R, G, B.
OPPONENT = np.array([[1, 1, 1], [1, 0, -1], [1, -2, 1]]) / np.sqrt([[3], [2], [6]])

#: What each plane is multiplied by before it is denoised, because the prior was learned on grey photographs and colour
#: varies less than brightness. The same as a prior of smaller scale. Chosen on sample_images (tests/test_pieces.py).
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


@dataclass(frozen=True)
class Frame:
    """How a picture becomes planes on the 0-255 scale, and how planes become pictures again.

    channel_axis: where the picture has its channels, 1 or 3 of them; None for a grey picture of two axes.
    channels: how many there are. black, white: the picture's values that become 0 and 255.
    alike: three channels that hold the same picture: one plane, whose noise is that of a channel.
    opponent_gains: what the opponent planes are multiplied by.
    """

    channel_axis: int | None
    channels: int
    black: float
    white: float
    alike: bool = False
    opponent_gains: tuple[float, float, float] = GAINS

    @property
    def scale(self) -> float:
        """Grey levels of 255 in one unit of the picture."""
        return 255.0 / (self.white - self.black)

    @property
    def dtype(self) -> type[np.floating]:
        """In which pictures are kept: float32 where that tells a thousandth of a grey level, else float64."""
        most = max(abs(self.black), abs(self.white))
        fine = most < 1e30 and float(np.spacing(np.float32(most))) * self.scale < 1e-3 and self.scale < 1e30
        return np.float32 if fine else np.float64

    @property
    def colour(self) -> bool:
        """Whether there are three opponent planes."""
        return self.channels == 3 and not self.alike

    @property
    def gains(self) -> np.ndarray:
        """What each plane is multiplied by, shape (planes,)."""
        return np.array(self.opponent_gains if self.colour else (1.0,))

    def planes(self, picture: np.ndarray) -> np.ndarray:
        """A picture, or a part of one, channels last -> (planes, height, width), float64."""
        values = (picture.astype(np.float64) - self.black) * self.scale
        if self.colour:
            return to_planes(values) * self.gains[:, None, None]
        return (values if values.ndim == 2 else values.mean(axis=-1) if self.alike else values[..., 0])[None]

    def sigmas(self, sigma: float | np.ndarray, chroma: float = 1.0) -> list[float | np.ndarray]:
        """The noise of each plane on the 0-255 scale, from a number or a map of the picture's shape, channels last.

        chroma: multiplies the noise of the colour planes.
        """
        if np.ndim(sigma) == 3 and (sigma == sigma[..., :1]).all():  # type: ignore[index]
            sigma = sigma[..., 0]  # type: ignore[index]
        extra = [1.0, chroma, chroma] if self.colour else [1.0]
        if np.ndim(sigma) == 3 and self.colour:
            sigmas = np.sqrt(np.einsum("pc,hwc->phw", OPPONENT**2, np.square(sigma)))
            return [s * (self.scale * g * e) for s, g, e in zip(sigmas, self.gains, extra, strict=True)]
        if np.ndim(sigma) == 3:
            sigma = np.sqrt(np.mean(np.square(sigma), axis=-1))
        return [sigma * (self.scale * float(g) * e) for g, e in zip(self.gains, extra, strict=True)]

    def plane_sigmas(self, maps: np.ndarray, factors: list[float], chroma: float = 1.0) -> list[float | np.ndarray]:
        """The noise of each plane on the 0-255 scale, from maps of the planes in the picture's units, times factors.

        Where a map is constant, its number.
        """
        extra = [1.0, chroma, chroma]
        found: list[float | np.ndarray] = []
        for sigma, gain, factor, more in zip(maps, self.gains, factors, extra, strict=False):
            times = self.scale * float(gain) * factor * more
            first = float(sigma.flat[0])
            found.append(first * times if (sigma == first).all() else sigma * times)
        return found

    def image(self, planes: np.ndarray) -> np.ndarray:
        """(..., planes, height, width) on the 0-255 scale -> pictures in their own units and layout."""
        planes = planes.astype(np.result_type(planes, self.dtype), copy=False)
        values = to_channels(planes / self.gains[:, None, None]) if self.colour else np.moveaxis(planes, -3, -1)
        return self.layout(values / self.scale + self.black)

    def std(self, planes: np.ndarray) -> np.ndarray:
        """Like `image`, for standard deviations."""
        values = np.moveaxis(planes, -3, -1)
        if self.colour:
            values = std_to_channels(planes / self.gains[:, None, None])
        return self.layout(values / self.scale)

    def layout(self, values: np.ndarray) -> np.ndarray:
        """(..., height, width, channels) -> the picture's own order of axes."""
        if self.channel_axis is None:
            return values[..., 0]
        if values.shape[-1] != self.channels:
            values = np.repeat(values, self.channels, axis=-1)
        axis = self.channel_axis % 3
        return np.moveaxis(values, -1, axis - 3) if axis < 2 else values
