"""Image priors: banks of linear filters, each with a Gaussian-scale-mixture expert on its response.

p(x) is proportional to exp(-epsilon |x|^2 / 2) * prod_cliques prod_i phi_i(J_i . x_clique)  (paper, Eq. 12).
The pairwise Markov random field is the bank of the two difference filters; the Fields of Experts have
larger filters. Samplers know no prior by name: they ask for its blanket, factors and colouring.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from denoiser.data import data_folder
from denoiser.gsm import GSM

Offset = tuple[int, int]
_LARGEST_LOG = 50  # of a scale, either way: far beyond what an expert can mean, well within float64
_LARGEST, _LARGEST_TAP = 1e6, 1e3  # products of them with scales and grey levels still fit float32


def _without_margin(taps: np.ndarray) -> np.ndarray:
    """The smallest window of a filter that holds all taps that are not zero."""
    if not np.any(taps):
        raise ValueError("a filter must have a tap that is not 0")
    rows, columns = (np.flatnonzero((taps != 0).any(axis=axis)) for axis in (1, 0))
    return taps[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


@dataclass(frozen=True, eq=False)
class FilterBank:
    """The structure of a Markov random field whose cliques are the windows of linear filters.

    name: what users call it.
    filters: 2-D arrays, applied by correlation to every clique that lies within the image. A clique is where the
    taps are: rows and columns of zeros around them are cut off.
    """

    name: str
    filters: tuple[np.ndarray, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "filters", tuple(_without_margin(f) for f in self.filters))

    @cached_property
    def supports(self) -> tuple[tuple[Offset, ...], ...]:
        """For each filter, the (row, column) of its taps that are not zero."""
        return tuple(tuple((int(r), int(c)) for r, c in np.argwhere(f != 0)) for f in self.filters)

    @property
    def pairwise(self) -> bool:
        """Whether no filter sees more than two sites."""
        return max(map(len, self.supports)) <= 2

    @cached_property
    def factors(self) -> tuple[tuple[Offset, ...], ...]:
        """The cliques that contain the site (0, 0), each as the offsets of its other sites.

        Filters with the same support make one factor together: four edges for the pairwise prior,
        nine 3x3 windows for a 3x3 Fields of Experts.
        """
        windows = {
            tuple(sorted((r - r0, c - c0) for r, c in support if (r, c) != (r0, c0)))
            for support in self.supports
            for r0, c0 in support
        }
        return tuple(sorted(windows))

    @cached_property
    def blanket(self) -> tuple[Offset, ...]:
        """The Markov blanket of the site (0, 0), as offsets."""
        return tuple(sorted({offset for factor in self.factors for offset in factor}))

    @cached_property
    def lattice(self) -> tuple[int, int, int]:
        """(n, a, b): pixel (row, column) has colour (a * row + b * column) mod n, n as small as can be.

        Sites of one colour are never in each other's blanket, so they are conditionally independent
        given the others. Pairwise: the checkerboard (2, 1, 1); 3x3: nine colours.
        """
        n = 1
        while True:
            for a in range(n):
                for b in range(n):
                    if all((a * r + b * c) % n for r, c in self.blanket):
                        return n, a, b
            n += 1

    @property
    def colours(self) -> int:
        """How many colours the colouring has."""
        return self.lattice[0]

    def colouring(self, shape: tuple[int, int]) -> np.ndarray:
        """The colour of every site of an image of that shape."""
        n, a, b = self.lattice
        rows, columns = np.indices(shape)
        return (a * rows + b * columns) % n


@dataclass(frozen=True, eq=False)
class Prior(FilterBank):
    """A filter-bank Markov random field for grey values 0-255.

    experts: one GSM a filter.
    padding: pixels of mirror padding that published results use.
    epsilon: precision of the weak Gaussian that makes the density proper.
    """

    experts: tuple[GSM, ...]
    padding: int = 0
    epsilon: float = 1e-8
    description: str = ""
    citation: str = ""

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the numbers that make it, whatever its name."""
        prior = [[f.tolist() for f in self.filters], self.epsilon, self.padding]
        experts = [[e.weights.tolist(), e.precisions.tolist()] for e in self.experts]
        return hashlib.sha256(repr((prior, experts)).encode()).hexdigest()


def available_priors() -> dict[str, Path]:
    """Names of the priors that come with the program, and their files."""
    files = sorted(data_folder("models").glob("*.json"))
    cards = {file.with_suffix(".json") for file in data_folder("models").glob("*.onnx")}  # of networks, not priors
    return {file.stem.split("-")[0]: file for file in files if file not in cards}


def load_prior(name_or_path: str | Path | Prior) -> Prior:
    """A prior by name (`available_priors()`) or from a model file.

    >>> load_prior("pairwise").blanket
    ((-1, 0), (0, -1), (0, 1), (1, 0))
    """
    if isinstance(name_or_path, Prior):
        return name_or_path
    known = available_priors()
    path = known.get(str(name_or_path), Path(name_or_path))
    if not path.is_file():
        raise ValueError(f"prior must be one of {', '.join(known)} or a model file, got {str(name_or_path)!r}")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path}: not a readable JSON model file ({error})") from None
    try:
        return _parse(document)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def save_prior(prior: Prior, path: str | Path) -> None:
    """Write a prior as a model file that `load_prior` reads back exactly: the copy has the same fingerprint."""
    document = {
        "format": "mpsvgd-prior",
        "version": 2,
        "name": prior.name,
        "description": prior.description,
        "citation": prior.citation,
        "grey_levels": 255,
        "padding": prior.padding,
        "epsilon": prior.epsilon,
        "filters": [
            {
                "taps": f.tolist(),
                "precision": e.precision,
                "scales": np.asarray(e.scales).tolist(),
                "weights": np.asarray(e.weights).tolist(),
            }
            for f, e in zip(prior.filters, prior.experts, strict=True)
        ],
    }
    Path(path).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _numbers(document: dict[str, Any], key: str, where: str, length: int | None = None) -> np.ndarray:
    """A list of finite numbers from a model file, or a ValueError that says which is wrong."""
    try:
        values = np.array(document.get(key), dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{where}{key} must be numbers in rows of equal length") from None
    if values.size == 0 or not np.isfinite(values).all():
        raise ValueError(f"{where}{key} must be finite numbers")
    if length is not None and values.shape != (length,):
        raise ValueError(f"{where}{key} must have {length} entries, got shape {values.shape}")
    return values


def _scales(document: dict[str, Any], key: str, where: str, bounds: str) -> np.ndarray:
    """The scales of experts, from a list of them or (`log_scales`, version 1) of their logarithms."""
    values = _numbers(document, key, where)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = values if key == "log_scales" else np.log(values)
    if values.ndim != 1 or not np.abs(logs).max() <= _LARGEST_LOG:  # NaN too
        raise ValueError(f"{where}{key} must be one list of numbers between {bounds}")
    return np.exp(values) if key == "log_scales" else values


def _number(document: dict[str, Any], key: str, where: str = "") -> float:
    value = document.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{where}{key} must be a finite number, got {value!r}")
    return float(value)


def _parse(document: Any) -> Prior:
    """Check a model file's contents and build the prior."""
    if not isinstance(document, dict) or document.get("format") != "mpsvgd-prior":
        raise ValueError('not a prior: "format" must be "mpsvgd-prior"')
    version = document.get("version")
    if version not in (1, 2):
        raise ValueError(f"version must be 1 or 2, got {version!r}: a newer program may read it")
    most = _LARGEST_LOG
    shared = _scales(document, "log_scales", "", f"-{most} and {most}") if version == 1 else None
    padding, epsilon = _number(document, "padding"), _number(document, "epsilon")
    if padding < 0 or padding != int(padding) or padding > 1000:
        raise ValueError(f"padding must be a whole number from 0 to 1000, got {padding}")
    if not 0 <= epsilon <= _LARGEST:
        raise ValueError(f"epsilon must be >= 0 and at most {_LARGEST:g}, got {epsilon}")
    entries = document.get("filters")
    if not isinstance(entries, list) or not entries or not all(isinstance(e, dict) for e in entries):
        raise ValueError("filters must be a list of at least one filter")
    filters, experts = [], []
    for number, entry in enumerate(entries):
        where = f"filters[{number}]."
        taps = _numbers(entry, "taps", where)
        if taps.ndim != 2 or max(taps.shape) > 15 or taps.size < 2:
            raise ValueError(f"{where}taps must be a matrix of 2 to 15x15 numbers, got shape {taps.shape}")
        if np.abs(taps).max() > _LARGEST_TAP:
            raise ValueError(f"{where}taps must be numbers between -{_LARGEST_TAP:g} and {_LARGEST_TAP:g}")
        if document.get("subtract_mean"):
            taps = taps - taps.mean()
        if document.get("convolution"):
            taps = np.ascontiguousarray(taps[::-1, ::-1])
        if not taps.any():
            raise ValueError(f"{where}taps must not all be equal to their mean")
        scales = _scales(entry, "scales", where, f"exp(-{most}) and exp({most})") if shared is None else shared
        weights = _numbers(entry, "weights", where, len(scales))
        if (weights < 0).any() or weights.sum() == 0 or weights.max() > _LARGEST:
            raise ValueError(f"{where}weights must be >= 0, at most {_LARGEST:g}, and not all 0")
        precision = _number(entry, "precision", where)
        if not 1 / _LARGEST <= precision <= _LARGEST:
            raise ValueError(f"{where}precision must be > 0, from {1 / _LARGEST:g} to {_LARGEST:g}, got {precision}")
        filters.append(taps)
        experts.append(GSM(weights, scales, precision))
    name, *about = (str(document.get(key, "")) for key in ("name", "description", "citation"))
    return Prior(name or "unnamed", tuple(filters), tuple(experts), int(padding), epsilon, *about)
