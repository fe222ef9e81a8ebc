"""Noise as a value: how strong it is at every brightness, how it is correlated; reading, measuring and making it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from denoiser import noise_estimate
from denoiser.camera import camera_noise, poisson_gaussian
from denoiser.colour import OPPONENT
from denoiser.pieces import Region
from denoiser.plane_noise import PlaneNoise, smoothed
from denoiser.units import Units, kind_of_numbers

_NODES = 17  # of a curve that is made from a formula
_LEAST = 0.01  # of the strongest plane or channel: what there is of noise where there is none, for the solver
_GRAINED = 1.3**2  # pixels over which noise is correlated, from which on it has grain
KINDS = ("white", "poisson", "camera")


@dataclass(frozen=True)
class Noise:
    """The noise of a picture, in its own units.

    channels: of every channel, by the brightness of that channel; a single one holds for all.
    planes: of the three opponent planes of a colour picture (denoiser.colour), by the mean of its channels. Empty: the
        channels are independent. Camera noise is not, and is coarser in colour than in brightness.
    black, white: the picture's values for them, to tell levels in grey levels of 255.
    confidence: 1 for noise that is given; for measured noise, from 0 (a guess) to 1.
    numbers: what kind the measured pixels were, such as "uint16", or "real"; empty for noise that is told.

    >>> print(Noise.from_text("poisson:0.5,3"))
    noise 7.3 grey levels, grows with brightness from 3.1 to 11.7
    """

    channels: tuple[PlaneNoise, ...]
    planes: tuple[PlaneNoise, ...] = ()
    white: float = 255.0
    confidence: float = 1.0
    black: float = 0.0
    numbers: str = ""

    @staticmethod
    def flat(sigma: float, white: float = 255.0) -> Noise:
        """White noise of one level."""
        if not math.isfinite(sigma) or sigma < 0:
            raise ValueError(f"sigma must be >= 0, got {sigma}")
        return Noise((PlaneNoise((0.0,), (float(sigma),)),), white=white)

    @staticmethod
    def poisson(gain: float, read: float = 0.0, white: float = 255.0) -> Noise:
        """Variance read^2 + gain * brightness, as photons make it."""
        for what, value in (("gain", gain), ("read noise", read)):
            if not math.isfinite(value) or value < 0:
                raise ValueError(f"the {what} must be >= 0, got {value:g}")
        if gain == read == 0:
            raise ValueError("gain and read noise must not both be 0")
        brightness = white * np.linspace(0, 1, _NODES) ** 2  # closer together where a square root is steep
        sigma = np.sqrt(read**2 + gain * np.maximum(brightness, 0.004 * white))
        return Noise((PlaneNoise(tuple(brightness.tolist()), tuple(sigma.tolist())),), white=white)

    @staticmethod
    def from_text(text: str) -> Noise:
        """From a number, white:SIGMA or poisson:GAIN[,READ], in grey levels of 255."""
        found = parse_noise(text).noise
        if found is None:
            raise ValueError(f"the noise of a camera is measured, not told by an ISO: {text!r}; leave the number out")
        return found

    @property
    def level(self) -> float:
        """The standard deviation as one number, RMS over brightness and channels."""
        return math.sqrt(sum(c.level**2 for c in self.channels) / len(self.channels))

    def scaled(self, strength: float) -> Noise:
        """The same with standard deviations multiplied by `strength`."""
        if not math.isfinite(strength) or strength < 0:
            raise ValueError(f"strength must be >= 0, got {strength}")

        def times(plane: PlaneNoise) -> PlaneNoise:
            return replace(plane, sigma=tuple(s * strength for s in plane.sigma))

        return replace(self, channels=tuple(map(times, self.channels)), planes=tuple(map(times, self.planes)))

    @property
    def grey(self) -> float:
        """One grey level of 255 in the picture's own units."""
        return (self.white - self.black) / 255

    def in_units(self, grey: float, black: float = 0.0) -> Noise:
        """As many grey levels, for a picture in which `grey` is one of them and `black` the level 0."""
        times = grey / self.grey

        def moved(plane: PlaneNoise) -> PlaneNoise:
            brightness = tuple((b - self.black) * times + black for b in plane.brightness)
            return replace(plane, brightness=brightness, sigma=tuple(s * times for s in plane.sigma))

        channels, planes = tuple(map(moved, self.channels)), tuple(map(moved, self.planes))
        return Noise(channels, planes, black + 255 * grey, self.confidence, black)

    def map(self, picture: np.ndarray, channel_axis: int | None = None) -> np.ndarray:
        """The standard deviation of every pixel, the shape of the picture.

        Brightness is read off the picture averaged over a few pixels: the noise of a pixel must not decide how strong
        it counts.
        """
        upright = _upright(picture, channel_axis)
        smooth = smoothed(upright)
        sigma = np.stack([self._channel(c).map(smooth[..., c]) for c in range(smooth.shape[-1])], axis=-1)
        return sigma[..., 0] if channel_axis is None else np.moveaxis(sigma, -1, channel_axis)

    def plane_maps(self, picture: np.ndarray) -> np.ndarray:
        """The standard deviation of every pixel of the planes of a picture (height, width[, channels]).

        Shape (3, height, width) for three channels, whose planes are the opponent ones, else (1, height, width).
        """
        upright = picture[..., None] if picture.ndim == 2 else picture
        smooth = smoothed(upright)
        least = _LEAST * max(plane.level for plane in self.planes or self.channels)
        if upright.shape[-1] != 3:
            return np.maximum(self._channel(0).map(smooth[..., 0]), least)[None]
        if self.planes:
            brightness = smooth.mean(axis=-1)
            return np.stack([np.maximum(plane.map(brightness), least) for plane in self.planes])
        if len(self.channels) == 1 and len(set(self.channels[0].sigma)) == 1:
            return np.full((3, *smooth.shape[:2]), self.channels[0].sigma[0])  # not by way of squares: exactly this
        variance = np.stack([self._channel(c).map(smooth[..., c]) ** 2 for c in range(3)])
        return np.maximum(np.sqrt(np.einsum("pc,chw->phw", OPPONENT**2, variance)), least)

    def curve(self, brightness: np.ndarray) -> np.ndarray:
        """Standard deviation at each value of brightness, a row a channel (one if all are alike): (channels, n)."""
        return np.stack([channel.map(np.asarray(brightness, np.float64)) for channel in self.channels])

    @property
    def grained(self) -> bool:
        """Whether it is correlated from pixel to pixel, as a camera's is."""
        return max(plane.area for plane in (self.planes or self.channels)) > _GRAINED

    @property
    def grain(self) -> str:
        """The correlation in words, such as "grain of about 2 pixels (5 in colour)"; empty for white noise."""
        if not self.grained:
            return ""
        sides = [plane.area**0.5 for plane in (self.planes or self.channels)]
        words = f"grain of about {max(sides[0], 1):.0f} pixel{'s' if round(sides[0]) > 1 else ''}"
        return words + (f" ({max(sides[1:]):.0f} in colour)" if len(sides) > 1 else "")

    def inflations(self, planes: int) -> list[float]:
        """`PlaneNoise.inflation` of each of 1 or 3 planes."""
        chosen = self.planes if planes == 3 and self.planes else [self._channel(0)] * planes
        return [plane.inflation for plane in chosen]

    def _channel(self, number: int) -> PlaneNoise:
        return self.channels[number] if len(self.channels) > 1 else self.channels[0]

    def __str__(self) -> str:
        grey = 255 / (self.white - self.black)
        words = f"noise {self.level * grey:.1f} grey levels"
        ends = [math.sqrt(np.mean([c.sigma[end] ** 2 for c in self.channels])) * grey for end in (0, -1)]
        if abs(ends[1] - ends[0]) > 0.15 * max(ends):
            verb = "grows" if ends[1] > ends[0] else "falls"
            words += f", {verb} with brightness from {ends[0]:.1f} to {ends[1]:.1f}"
        words += f", {self.grain}" if self.grain else ""
        if self.confidence < 0.3:
            words += "; hardly a flat spot to measure it in"
        return words

    def to_json(self) -> str:
        """As text that `from_json` reads back exactly."""
        return json.dumps({"format": "noise", "version": 1, **asdict(self)})

    @staticmethod
    def from_json(text: str) -> Noise:
        """The inverse of `to_json`."""
        try:
            document = json.loads(text)
            if document.pop("format") != "noise" or document.pop("version") != 1:
                raise ValueError
            channels, planes = (tuple(map(PlaneNoise.parse, document.pop(key))) for key in ("channels", "planes"))
            white, confidence = float(document.pop("white")), float(document.pop("confidence"))
            black, numbers = float(document.pop("black", 0)), str(document.pop("numbers", ""))
            counts = len(channels) in (1, 3) and len(planes) in (0, 3)
            spans = 1e-100 < white - black < 1e100 and abs(black) < 1e100
            if document or not counts or not (spans and 0 <= confidence <= 1):
                raise ValueError
            return Noise(channels, planes, white, confidence, black, numbers)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            raise ValueError(f"not a description of noise: {str(error) or 'a foreign JSON file'}") from None

    def key(self) -> str:
        """The same for the same noise, on any machine."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:20]


def _upright(picture: np.ndarray, channel_axis: int | None) -> np.ndarray:
    picture = np.asarray(picture)
    return picture[..., None] if channel_axis is None else np.moveaxis(picture, channel_axis, -1)


# ------------------------------------------------------------------------------------------- measuring


def estimate_noise(
    picture: np.ndarray, channel_axis: int | None = None, white: float | None = None, region: Region | None = None
) -> Noise:
    """The noise of a picture, measured; in its own units. How: denoiser.noise_estimate.

    white: the picture's value of white; default: the largest of an unsigned type, 1 for reals up to 2, else 255.
    region: the part to measure in, such as a flat spot that a person has drawn; default: the whole picture.
    Texture gives a low confidence; a picture of fewer than 8 pixels a side a guess, a constant one a level of 0.
    (A run that measures by itself takes the black and white of `units.units`: `measure_noise`.)

    >>> rng = np.random.default_rng(0)
    >>> round(estimate_noise(100 + rng.normal(0, 10, (200, 200))).level)
    10
    """
    upright = _upright(picture, channel_axis)
    if upright.ndim != 3 or not upright.size:
        raise ValueError(f"a picture of two axes, or three with a channel axis, is needed, got shape {picture.shape}")
    if white is None:
        kind, most = upright.dtype.kind, float(upright.max())
        white = float(np.iinfo(upright.dtype).max) if kind == "u" else 1.0 if kind == "f" and most <= 2 else 255.0
    if region is not None:
        height, width = upright.shape[:2]
        if not (0 <= region.top < region.bottom <= height and 0 <= region.left < region.right <= width):
            raise ValueError(f"a region must lie in the picture of {height} x {width} pixels, got {tuple(region)}")
        upright = region.of(upright)
    if upright.shape[-1] == 3 and (upright == upright[..., :1]).all():
        upright = upright[..., :1]  # a grey picture that is stored as colour
    channels, planes, confidence = noise_estimate.spectra(upright, white)
    ours, opponent = (tuple(PlaneNoise(*s.as_tuples(white)) for s in group) for group in (channels, planes))
    return Noise(ours, opponent, white, confidence, numbers=kind_of_numbers(upright))


def measure_noise(pixels: np.ndarray, channel_axis: int | None, scale: Units) -> Noise:
    """`estimate_noise` of a picture in its own units, whose black and white are those of `scale`."""
    upright = _upright(pixels, channel_axis)
    if min(upright.shape[:2]) < 2:  # a line of pixels: half of the squared differences of neighbours
        line = np.diff(upright.reshape(-1, upright.shape[-1]).astype(np.float64), axis=0)
        level = float(np.median(np.abs(line))) / (0.6745 * math.sqrt(2)) if line.size else 0.0
        found = replace(Noise.flat(level, scale.black + 255 * scale.grey), confidence=0.0, black=scale.black)
    else:
        plain = scale.black == 0 and scale.white == 255
        found = estimate_noise(upright if plain else scale.to_grey(upright), -1, 255)
        found = found.in_units(scale.grey, scale.black)
    return replace(found, numbers=kind_of_numbers(upright))


def estimate_sigma(image: np.ndarray, channel_axis: int | None = None) -> float:
    """The noise level in the image's own units as one number: `estimate_noise`, RMS over the pixels.

    >>> round(estimate_sigma(add_noise(np.full((200, 200), 100), 10)))
    10
    """
    image = np.asarray(image)
    noise = estimate_noise(image, channel_axis)
    upright = _upright(image, channel_axis)
    step = max(int(math.sqrt(upright.shape[0] * upright.shape[1] / 250_000)), 1)
    sample = upright[::step, ::step].astype(np.float64)
    variances = [noise._channel(c).map(sample[..., c]) ** 2 for c in range(sample.shape[-1])]
    return math.sqrt(float(np.mean(variances)))


@dataclass(frozen=True)
class NoiseModel:
    """Noise to be added to a clean picture: a kind and its numbers, in grey levels of 255.

    white: sigma. poisson: gain (grey levels a photon) and read noise. camera: ISO and the quality of the JPEG.
    """

    kind: str
    numbers: tuple[float, ...]

    def __str__(self) -> str:
        return f"{self.kind}:{','.join(f'{n:g}' for n in self.numbers)}"

    @property
    def noise(self) -> Noise | None:
        """What it is in grey levels of 255; None for a camera's, which depends on the picture and is measured."""
        if self.kind == "camera":
            return None
        return Noise.flat(*self.numbers) if self.kind == "white" else Noise.poisson(*self.numbers)

    def add(self, image: np.ndarray, seed: int | Sequence[int] = 0) -> np.ndarray:
        """The image, grey levels of 255, grey or with its channels last, with such noise on it; float64."""
        rng = np.random.default_rng(seed)
        image = np.asarray(image, dtype=np.float64)
        if self.kind == "camera":
            return camera_noise(image, self.numbers[0], rng, quality=int(self.numbers[1]))
        if self.kind == "poisson" and self.numbers[0] > 0:
            return poisson_gaussian(image, self.numbers[0], self.numbers[1], rng)
        return image + self.numbers[-1] * rng.standard_normal(image.shape)  # white, or read noise alone


def parse_noise(text: str | float) -> NoiseModel:
    """Noise to be made, from its words: SIGMA, white:SIGMA, poisson:GAIN[,READ] or camera:ISO[,QUALITY].

    >>> str(parse_noise("poisson:0.5")), str(parse_noise(20)), str(parse_noise("camera:3200"))
    ('poisson:0.5,0', 'white:20', 'camera:3200,95')
    """
    words = str(text).strip().lower()
    kind, colon, rest = words.partition(":")
    if not colon:
        kind, rest = ("white", words) if kind not in KINDS else (kind, "")
    usage = "say SIGMA, white:SIGMA, poisson:GAIN[,READ] or camera:ISO[,QUALITY]"
    try:
        numbers = tuple(float(number) for number in rest.split(",")) if rest else ()
    except ValueError:
        raise ValueError(f"no such noise: {text!r}; {usage}") from None
    defaults: dict[str, tuple[float, ...]] = {"white": (), "poisson": (0.0,), "camera": (95.0,)}
    if kind not in defaults or not 1 <= len(numbers) <= 1 + len(defaults[kind]):
        raise ValueError(f"no such noise: {text!r}; {usage}")
    numbers += defaults[kind][len(numbers) - 1 :]
    if not all(math.isfinite(n) and n >= 0 for n in numbers):
        raise ValueError(f"noise must have numbers >= 0, got {text!r}")
    if kind == "poisson" and not any(numbers):
        raise ValueError(f"gain and read noise must not both be 0, got {text!r}")
    if kind == "camera" and (numbers[0] == 0 or not 1 <= numbers[1] <= 100):
        raise ValueError(f"a camera needs an ISO > 0 and a JPEG quality from 1 to 100, got {text!r}")
    return NoiseModel(kind, numbers)


def add_noise(image: np.ndarray, noise: float | str | NoiseModel, seed: int | Sequence[int] = 0) -> np.ndarray:
    """The image with noise on it, float64; white and Poisson noise are neither clipped nor rounded.

    noise: a standard deviation in the image's units, for white Gaussian noise; or words of `parse_noise`, for an image
        in grey levels of 255 with its channels, if any, last.
    seed: of `numpy.random.default_rng`, for which 7 and [7, 0] are the same.

    >>> add_noise(np.zeros((2, 2)), 1.0, seed=0).round(3)
    array([[ 0.126, -0.132],
           [ 0.64 ,  0.105]])
    >>> float(add_noise(np.full((200, 200), 100.0), "poisson:2,5").std().round())  # sqrt(2 * 100 + 5^2)
    15.0
    """
    if isinstance(noise, str):
        noise = parse_noise(noise)
    if isinstance(noise, NoiseModel):
        return noise.add(image, seed)
    if not np.isfinite(noise) or noise < 0:
        raise ValueError(f"sigma must be >= 0, got {noise}")
    return NoiseModel("white", (float(noise),)).add(image, seed)
