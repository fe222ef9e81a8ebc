"""The learned conditional field: a network reads the potentials of a pairwise Markov random field off the picture.

With v = (x - mean) / std, standard deviations apart from the network's mean,

    p(x | y)  ~  prod_pixels exp(-alpha_d v_d^2 / 2)  *  prod_edges exp(-t_e (v_d - v_d')^2 / 2).

One pass gives mean and standard deviation of every pixel, and the edges' strengths t_e; alpha follows from them so that
every v_d has variance 1 (`ties`). The field is symmetric, so `mean` is its exact mean: nothing has to be sampled for
mean and standard deviation. Particles are drawn by any sampler from `LearnedPosterior`, which is a field of v.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from denoiser.calibration import QUALITIES, Calibration
from denoiser.data import data_folder
from denoiser.files import label, read_bytes
from denoiser.gsm import GSM
from denoiser.networks import open_network, run_network
from denoiser.posterior import Posterior
from denoiser.priors import Prior
from denoiser.threads import parallel

SIBLINGS = ("grey", "grain")  # pictures that may have a network of their own: see `load_model`
ALIGNED = 8  # pieces begin at multiples of this: the network's coarsest pixels
_SIDE = 768  # pixels of a piece at most, without its halo: a fifth of a gigabyte inside the network
_TURNS = {"fast": (), "normal": (3, 5, 6), "best": tuple(range(1, 8))}  # beside the picture as it stands
_PADDING = 8  # mirrored sites around the field, or its border would be less sure than the rest

# The length in which samplers measure their steps, in standard deviations. They begin with draws of the field itself:
# longer steps kick them away again, and means of 16x16 blocks then covered 80 % instead of 90 (MP-SVGD, sigma 20).
_STEP = 0.1

_DIFFERENCES = (np.array([[-1.0, 1.0]]), np.array([[-1.0], [1.0]]))
_UNIT = GSM(np.array([1.0]), np.array([1.0]), 1.0)
#: The structure of the field: four neighbours, Gaussian experts of unit precision, scaled edge by edge.
FIELD = Prior("learned", _DIFFERENCES, (_UNIT, _UNIT), padding=_PADDING, epsilon=0.0)


class Prediction(NamedTuple):
    """What the network says of every pixel, float32, shape (planes, height, width)."""

    mean: np.ndarray  # grey levels
    std: np.ndarray  # grey levels
    right: np.ndarray  # logit of the tie to the right neighbour; see `ties`
    down: np.ndarray  # logit of the tie to the lower neighbour


def ties(logit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(t, alpha) of an edge by the network's number for it: its strength, and what it asks of the sites at its ends.

    A stationary field with four edges t and precision alpha a site has unit variance if, with kappa = 4t / (alpha + 4t)
    and K the complete elliptic integral of modulus kappa, alpha + 4t = 2 K(kappa) / pi. The logit is kappa's.
    2 K / pi is one over the arithmetic-geometric mean of 1 and sqrt(1 - kappa^2).

    >>> t, alpha = ties(np.array([-20.0, 0.0, 5.0]))
    >>> t.round(3), alpha.round(3)
    (array([0.   , 0.134, 0.562]), array([1.   , 0.537, 0.015]))
    """
    kappa, rest = 1 / (1 + np.exp(-logit)), 1 / (1 + np.exp(logit))
    a, b = np.ones_like(kappa), np.sqrt(rest * (1 + kappa))
    for _ in range(5):
        a, b = 0.5 * (a + b), np.sqrt(a * b)
    return 0.25 * kappa / a, rest / a


@dataclass(frozen=True, eq=False)
class Model:
    """A network, ready to run, and what is known about it.

    halo: pixels around a piece that change it. card: the file beside it, with the calibration.
    siblings: other networks for some pictures, by what these have that others have not (`SIBLINGS`).
    """

    session: Any
    halo: int
    card: dict[str, Any]
    path: Path
    siblings: dict[str, Model] = field(default_factory=dict)

    def of(self, planes: int, grained: bool = False) -> Model:
        """The network for pictures of one plane or of three, whose noise is white or has grain."""
        return self.siblings.get("grey" if planes == 1 else "grain" if grained else "", self)

    @property
    def files(self) -> list[Path]:
        """All that decides what it says, as far as they exist."""
        mine = [self.path, self.path.with_suffix(".json")]
        return [*(f for f in mine if f.is_file()), *(f for model in self.siblings.values() for f in model.files)]

    def run(self, planes: np.ndarray, sigma: np.ndarray) -> list[np.ndarray]:
        """mean, log(std / sigma), right, down of (3, height, width), sides multiples of 8."""
        found = run_network(self.session, ["mean", "log_std", "right", "down"], planes=planes[None], sigma=sigma[None])
        return [out[0] for out in found]

    @cached_property
    def calibration(self) -> Calibration | None:
        """The table of the card, if it has one."""
        table = self.card.get("calibration")
        return None if table is None else Calibration.parse(table, self.path)


def load_model(name_or_path: str | Path = "learned") -> Model:
    """The network that comes with the program, or that of an ONNX file of `denoise train`, with the card beside it.

    NAME-grey.onnx beside NAME.onnx is what grey pictures are given to, NAME-grain.onnx colour pictures whose noise is
    correlated, as a camera's is.
    """
    if str(name_or_path) == "learned":
        name_or_path = data_folder("models") / "learned-2.onnx"
    return _load(Path(name_or_path))


@cache
def _load(path: Path) -> Model:
    try:
        data = read_bytes(path)
    except OSError as error:
        raise ValueError(f"{label(path)}: {error.strerror or 'cannot be read'}") from None
    try:
        session = open_network(data)
        properties = session.get_modelmeta().custom_metadata_map
    except Exception:  # onnxruntime has an exception of its own for every kind of damage
        raise ValueError(f"{label(path)}: not an ONNX model, or a damaged one") from None
    halo = properties.get("halo", "")
    if properties.get("format") != "denoiser-learned" or not halo.isdecimal() or int(halo) > 1024:
        raise ValueError(f"{label(path)}: an ONNX model, but not one of `denoise train`")
    beside = {kind: path.with_name(f"{path.stem}-{kind}.onnx") for kind in SIBLINGS}
    siblings = {kind: _load(file) for kind, file in beside.items() if file.is_file()}
    reach = -(-int(halo) // ALIGNED) * ALIGNED
    reach = max([reach, *(sibling.halo for sibling in siblings.values())])
    return Model(session, reach, _card(path.with_suffix(".json")), path, siblings)


def _card(path: Path) -> dict[str, Any]:
    """The card beside a model; empty if there is none."""
    if not path.is_file():
        return {}
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{label(path)}: not a readable card of a model ({error})") from None
    if not isinstance(card, dict):
        raise ValueError(f"{label(path)}: not a card of a model")
    return card


# What the network sees of the planes: black to white and twice as much beyond. A star or hot pixel farther out would
# spoil the picture around it (python benchmarks/units.py), and stronger colours it has never met; what is cut off comes
# back afterwards.
_SEEN = tuple(np.array(ends, np.float32)[:, None, None] for ends in ((-884, -400, -400), (1325, 400, 400)))


def predict(
    planes: np.ndarray,
    sigma: float | np.ndarray,
    quality: str = "fast",
    *,
    model: Model | None = None,
    grained: bool = False,
    edges: bool = True,
) -> Prediction:
    """Mean, standard deviation and edges of every pixel, float32.

    planes: shape (1, height, width), a grey picture, or (3, height, width), the opponent planes of a colour one
    (`denoiser.colour`), grey levels 0..255 before they became planes.
    sigma: standard deviation of the noise: one number, or an array that broadcasts to the planes' shape.
    quality: "fast" is one pass, "normal" the average of four, "best" of all eight flips and turns of the picture.
    grained: whether the noise is correlated from pixel to pixel, as a camera's is.
    edges: without them `right` and `down` are empty, and memory is half.
    The picture is cut into pieces that do not depend on the number of threads; they overlap by what the network sees,
    so that they equal the whole to rounding.
    """
    if quality not in QUALITIES:
        raise ValueError(f"quality must be one of {', '.join(QUALITIES)}, got {quality!r}")
    if planes.ndim != 3 or planes.shape[0] not in (1, 3) or 0 in planes.shape:
        raise ValueError(f"planes must have the shape (1 or 3, height, width), got {planes.shape}")
    noise = np.broadcast_to(np.asarray(sigma, np.float32), planes.shape)
    if not np.isfinite(noise).all() or (noise < 0).any():
        raise ValueError("sigma must be finite numbers >= 0")
    model = (model or load_model()).of(len(planes), grained)
    out = Prediction(*(np.empty(planes.shape if edges or k < 2 else (0, 0, 0), np.float32) for k in range(4)))

    def piece(corner: tuple[int, int]) -> None:
        inner, outer = _windows(corner, sides, planes.shape[1:], model.halo)
        found = _piece(model, planes[:, outer[0], outer[1]], noise[:, outer[0], outer[1]], quality)
        cut = tuple(slice(i.start - o.start, i.stop - o.start) for i, o in zip(inner, outer, strict=True))
        for whole, part in zip(out[: 4 if edges else 2], found, strict=False):
            whole[:, inner[0], inner[1]] = part[: len(planes), cut[0], cut[1]]

    height, width = planes.shape[1:]
    sides = _side(height), _side(width)
    parallel(piece, [(y, x) for y in range(0, height, sides[0]) for x in range(0, width, sides[1])])
    return out


def _side(length: int) -> int:
    """Into what a length is cut: equal parts of at most _SIDE pixels, multiples of 8."""
    parts = -(-length // _SIDE)
    return -(-length // (parts * ALIGNED)) * ALIGNED


def _windows(
    corner: tuple[int, int], sides: tuple[int, int], shape: tuple[int, ...], halo: int
) -> tuple[list[slice], list[slice]]:
    """Rows and columns of a piece, without and with its halo, which begins at a multiple of 8 like the piece."""
    inner = [slice(c, min(c + side, n)) for c, side, n in zip(corner, sides, shape, strict=True)]
    outer = [slice(max(i.start - halo, 0), min(i.stop + halo, n)) for i, n in zip(inner, shape, strict=True)]
    return inner, outer


def _piece(model: Model, planes: np.ndarray, sigma: np.ndarray, quality: str) -> list[np.ndarray]:
    """mean, std, right, down of a piece, three planes."""
    height, width = planes.shape[1:]
    grey = len(planes) == 1
    unit = np.float32(np.sqrt(3) if grey else 1)  # a grey picture is a colour one with equal channels
    full, noise = (np.zeros((3, -(-height // 8) * 8, -(-width // 8) * 8), np.float32) for _ in range(2))
    for whole, part in ((full, planes), (noise, sigma)):
        whole[: len(part)] = unit * _mirrored(part, whole.shape[1:])
    seen = np.clip(full, *_SEEN)
    mean, log_std, right, down = _passes(model, seen, noise, quality)
    mean = mean + (full - seen)
    if model.calibration is not None:
        log_std = log_std + model.calibration.log_factors(quality, log_std, noise)
        shift = model.calibration.shift(noise)
        right, down = right + shift, down + shift
    found = [mean / unit, np.exp(log_std) * noise / unit, right, down]
    return [part[:, :height, :width] for part in found]


def _passes(model: Model, planes: np.ndarray, sigma: np.ndarray, quality: str) -> list[np.ndarray]:
    """One pass, or the average over some or all turns; the edges are those of the picture as it stands."""
    first = model.run(planes, sigma)
    if not _TURNS[quality]:
        return first
    mean, log_std = first[0].copy(), first[1].copy()
    for turn in _TURNS[quality]:
        turned = model.run(_turned(planes, turn), _turned(sigma, turn))
        mean += _turned(turned[0], turn, back=True)
        log_std += _turned(turned[1], turn, back=True)
    count = np.float32(1 + len(_TURNS[quality]))
    return [mean / count, log_std / count, *first[2:]]


def _turned(planes: np.ndarray, turn: int, back: bool = False) -> np.ndarray:
    """One of the eight flips and turns of the last two axes, or its inverse; contiguous."""
    rows, columns = (slice(None, None, -1 if turn & bit else 1) for bit in (1, 2))
    if back:
        planes = planes[:, rows, columns]
        return planes.swapaxes(1, 2) if turn & 4 else planes
    planes = planes.swapaxes(1, 2) if turn & 4 else planes
    return np.ascontiguousarray(planes[:, rows, columns])


def _mirrored(planes: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Mirrored at the lower and right end up to a shape that is at most 7 pixels larger; any size, also 1 pixel."""
    pads = [(0, 0), *((0, n - m) for n, m in zip(shape, planes.shape[1:], strict=True))]
    return np.pad(planes, pads, mode="symmetric")


class LearnedPosterior(Posterior):
    """The field of one plane as a target for samplers: of v = (x - mean) / std, with mean 0 and variance 1.

    mean, std, right, down: of a plane, shape (height, width), as in `Prediction`.
    """

    def __init__(
        self,
        mean: np.ndarray,
        std: np.ndarray,
        right: np.ndarray,
        down: np.ndarray,
        origin: tuple[int, int] = (0, 0),
    ) -> None:
        self.plane_mean, self.plane_std = mean, std
        logits = [np.pad(a.astype(np.float64), _PADDING, mode="symmetric") for a in (right, down)]
        (tie_right, own_right), (tie_down, own_down) = (ties(a) for a in logits)
        alpha, count = np.zeros_like(tie_right), np.zeros_like(tie_right)
        for own, first, second in (
            (own_right[:, :-1], np.s_[:, :-1], np.s_[:, 1:]),
            (own_down[:-1], np.s_[:-1], np.s_[1:]),
        ):
            for end in (first, second):
                alpha[end] += own
                count[end] += 1
        alpha /= count
        super().__init__(FIELD, np.zeros(mean.shape), 1.0, origin=origin)
        self.sigma = _STEP
        self.noise_map = alpha**-0.5
        self.noise_precision = alpha
        self.clique_scale = np.sqrt(np.stack([tie_right.ravel(), tie_down.ravel()]))

    @property
    def spread(self) -> np.ndarray:
        """First particles are as far apart as they will be."""
        return np.ones(self.shape, np.float32)

    @cached_property
    def sharpest(self) -> float:  # type: ignore[override]
        """Nothing to soften: the field is Gaussian."""
        return 0.0

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Of v: 0 and 1."""
        return np.zeros(self.shape), np.ones(self.shape)

    def pictures(self, mean: np.ndarray, std: np.ndarray, samples: np.ndarray) -> tuple[np.ndarray, ...]:
        """What a sampler found, as pictures: cropped, in grey levels, around the mean."""
        mean, std, samples = super().pictures(mean, std, samples)
        drawn = self.plane_mean + samples.astype(np.float32) * self.plane_std
        return self.plane_mean + mean * self.plane_std, std * self.plane_std, drawn
