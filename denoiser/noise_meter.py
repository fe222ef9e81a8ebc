"""The noise meter: a small network that says of every 8x8 block how strong its noise is, and how sure that is.

`denoiser.training.meter` teaches it; models/noise-1.onnx comes with the program. `noise_estimate` makes a curve of what
it says.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from denoiser.colour import OPPONENT
from denoiser.data import data_folder
from denoiser.files import read_bytes
from denoiser.networks import open_network, run_network
from denoiser.threads import parallel

BLOCK = 8  # pixels a side of what is spoken about
LAGS = (1, 2, 4)  # pixels apart at which the correlation is told
LEAST = 0.2  # grey levels: noise s is told as sqrt(s^2 + LEAST^2)
_ENDS = np.array([(-1.6, 5.5)] * 6 + [(-3.5, 2.0)] * 6 + [(-1.0, 1.0)] * 18).T[..., None]  # of what it may say
_SIDE = 256  # pixels of a square that the network sees at once
_MOST = 24  # squares that are looked at, spread over a large picture


class Readings(NamedTuple):
    """What the meter says of the blocks of a picture of n channels, in grey levels.

    brightness: mean of every channel, shape (channels, blocks).
    level: standard deviation of the noise with `LEAST`, of the opponent planes and then of the channels if there are
        three, else of each channel; shape (6 or channels, blocks).
    doubt: standard deviation of the error of the logarithm of the level, the same shape.
    correlation: at `LAGS` along rows, then along columns, shape (3 or channels, 6, blocks).
    """

    brightness: np.ndarray
    level: np.ndarray
    doubt: np.ndarray
    correlation: np.ndarray


def squares(height: int, width: int) -> list[tuple[slice, slice]]:
    """Where the network looks: everywhere, or in squares spread evenly over a large picture."""
    rows, columns = (range(0, max(n - BLOCK + 1, 1), _SIDE) for n in (height, width))
    down, across = len(rows), len(columns)
    if down * across > _MOST:
        shape = (height / width) ** 0.5
        down = min(max(int(_MOST**0.5 * shape), 1), down)
        across = min(max(_MOST // down, 1), across)
        places = ((height, down), (width, across))
        starts = [np.linspace(0, n - _SIDE, k).astype(int) // BLOCK * BLOCK for n, k in places]  # a JPEG's grid
        return [(slice(y, y + _SIDE), slice(x, x + _SIDE)) for y in starts[0] for x in starts[1]]
    return [(slice(y, min(y + _SIDE, height)), slice(x, min(x + _SIDE, width))) for y in rows for x in columns]


def read(parts: list[np.ndarray]) -> Readings:
    """Of parts of a picture (height, width, channels) in grey levels, float32, at least a block in size."""
    found = parallel(_read, parts)
    return Readings(*(np.concatenate(arrays, axis=-1) for arrays in zip(*found, strict=True)))


def _read(part: np.ndarray) -> Readings:
    height, width = (n // BLOCK * BLOCK for n in part.shape[:2])
    part = part[:height, :width]
    channels = part.shape[2]
    rows, columns = height // BLOCK, width // BLOCK
    brightness = part.reshape(rows, BLOCK, columns, BLOCK, channels).mean(axis=(1, 3)).reshape(-1, channels).T
    if channels == 3:
        planes = np.ascontiguousarray((part @ OPPONENT.T.astype(np.float32)).transpose(2, 0, 1))
        said = _run(planes[None])[0]
        return Readings(brightness, np.exp(said[:6]), np.exp(said[6:12]), said[12:].reshape(3, 2 * len(LAGS), -1))
    planes = np.zeros((channels, 3, height, width), np.float32)  # each of them a grey picture
    planes[:, 0] = np.sqrt(np.float32(3)) * part.transpose(2, 0, 1)
    said = _run(planes)
    # what the network says of red, of three equal channels
    return Readings(brightness, np.exp(said[:, 3]), np.exp(said[:, 9]), said[:, 12 : 12 + 2 * len(LAGS)])


def _run(planes: np.ndarray) -> np.ndarray:
    """(n, 3, height, width) -> (n, 30, blocks), as `training.meter.Meter` has it."""
    (said,) = run_network(_session(), ["said"], planes=planes)
    return np.clip(said.reshape(*said.shape[:2], -1).astype(np.float64), *_ENDS)


@cache
def _session() -> Any:
    return open_network(read_bytes(data_folder("models") / "noise-1.onnx"))
