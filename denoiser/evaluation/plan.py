"""What there is to do: images x noise levels x seeds x methods, each a Case with a key of its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from denoiser import images
from denoiser.evaluation.rows import noise_words
from denoiser.files import label
from denoiser.noise import parse_noise
from denoiser.presets import choose
from denoiser.priors import Prior
from denoiser.run import identity
from denoiser.samplers import METHODS, Sampler, make_sampler

Images = str | Path | Iterable[str | Path] | Mapping[str, np.ndarray]

_MOST = 1_000_000  # noisy pictures of one evaluation


@dataclass(frozen=True)
class Truth:
    """An image without noise: its name, its place among the images, and how to get its pixels when they are needed."""

    name: str
    number: int
    digest: str
    size: int
    _source: str | Path | np.ndarray

    def pixels(self) -> np.ndarray:
        """(height, width) or (height, width, 3) in grey levels of 255."""
        if isinstance(self._source, np.ndarray):
            return self._source
        return _grey_levels(self._source)


def _grey_levels(path: str | Path) -> np.ndarray:
    picture = images.read(path)
    if (picture.black, picture.white) == (0, 255):
        return picture.pixels  # as the file has it: an eighth of the bytes to send to a cluster
    return picture.units.to_grey(picture.pixels)


def load_truths(sources: Images) -> list[Truth]:
    """The images of an evaluation, in the order given: a folder, file names, or name -> array in grey levels of 255."""
    if isinstance(sources, str | Path):
        sources = find_images(sources)
    out: list[Truth] = []
    kept: str | Path | np.ndarray
    for number, source in enumerate(sources.items() if isinstance(sources, Mapping) else sources):
        if isinstance(source, tuple):
            name, kept = source[0], np.asarray(source[1])
        elif isinstance(source, str | Path):
            name, kept = Path(source).name, source
        else:
            raise ValueError(f"images must be file names, or a dict of names and arrays; got {type(source).__name__}")
        pixels = kept if isinstance(kept, np.ndarray) else _grey_levels(kept)
        if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] != 3):
            raise ValueError(f"{label(name)}: must be grey or have three channels last, got shape {pixels.shape}")
        digest = hashlib.sha256(repr((pixels.shape, str(pixels.dtype))).encode() + pixels.tobytes()).hexdigest()
        out.append(Truth(label(name), number, digest, pixels.size, kept))
    names = [truth.name for truth in out]
    if not names:
        raise ValueError("there are no images to evaluate on")
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"two images are called {min(twice)}; rows are told apart by names")
    return out


def find_images(folder: str | Path) -> list[Path]:
    """The image files in a folder, in the order of their names."""
    path = Path(folder)
    if not path.is_dir():
        raise ValueError(f"{label(folder)}: is not a folder")
    found = [p for p in path.iterdir() if p.suffix.lower() in images.SUFFIXES and not p.name.startswith(".")]
    if not found:
        raise ValueError(f"{label(folder)}: this folder holds no pictures")
    return sorted(found)


def parse_method(text: str) -> tuple[str, str | None, dict[str, Any]]:
    """A method as users write it, "NAME", "NAME@PRIOR" or "NAME@PRIOR:OPTION=VALUE,...", as name, prior and options.

    >>> parse_method("gibbs@foe3x3:samples=600,chains=2")
    ('gibbs', 'foe3x3', {'samples': 600, 'chains': 2})
    """
    whole, _, rest = text.partition(":")
    name, _, prior = whole.partition("@")
    options: dict[str, Any] = {}
    known = METHODS[name].options() if name in METHODS else {}
    for part in rest.split(",") if rest else ():
        option, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"method {text!r}: must be NAME, NAME@PRIOR or NAME:OPTION=VALUE,..., got {part!r}")
        kind = known[option][0] if option in known else str
        try:
            options[option] = {"true": True, "false": False}[value.lower()] if kind is bool else kind(value)
        except (ValueError, KeyError):
            raise ValueError(f"method {text!r}: {option} cannot be {value!r}") from None
    make_sampler(name, options)  # says what is wrong with the rest
    return name, prior or None, options


@dataclass(frozen=True)
class Case:
    """One row that is to be computed. It holds all that is needed but the pixels."""

    image: str
    number: int
    method: str
    sampler: Sampler
    prior: Prior
    particles: int | None
    sigma: float
    noise: str
    seed: int
    size: int
    key: str

    @property
    def prior_name(self) -> str:
        """The name for the row: a peer knows no prior."""
        return self.prior.name if self.sampler.uses_prior else ""

    @property
    def group(self) -> tuple[str, str, int | None, float, str]:
        """Rows of one group are averaged."""
        return self.method, self.prior_name, self.particles, self.sigma, self.noise

    def __str__(self) -> str:
        count = f" with {self.particles} particles" if self.particles else ""
        return f"{self.method}{count} on {self.image} at {noise_words(self)}, seed {self.seed}"


def _samplers(
    methods: Iterable[str], particles: Sequence[int], usual: str | Path | Prior
) -> list[tuple[str, Sampler, Prior, int | None]]:
    """(method, sampler, prior, draws) for every method and number of draws; once where the method has no number."""
    out = []
    for method in dict.fromkeys(methods):
        name, prior, options = parse_method(method)
        option = METHODS[name].draws_option
        counts = particles if option and option not in options else [None]
        for count in counts:
            more = options if count is None else {**options, option: count}
            field = prior or ("learned" if METHODS[name].needs_moments else usual)
            sampler, loaded = choose("normal", name, field, more)
            out.append((method, sampler, loaded, sampler.draws or None))
    return out


def make_plan(
    truths: Sequence[Truth],
    methods: Iterable[str],
    noises: Iterable[float | str],
    particles: int | Sequence[int] | None,
    seeds: int | Sequence[int],
    prior: str | Path | Prior,
) -> list[Case]:
    """All cases, image by image, so that comparisons are complete early. Bad arguments raise ValueError."""
    counts: Sequence[Any] = [particles] if particles is None or isinstance(particles, int) else list(particles)
    numbers = range(seeds) if isinstance(seeds, int) else list(seeds)
    models = [parse_noise(words) for words in noises]
    total = len(truths) * len(models) * len(numbers)
    if total > _MOST:
        raise ValueError(f"{total} noisy pictures are too many; {_MOST} is the most")
    if not numbers or any(not isinstance(s, int) or s < 0 for s in numbers):
        raise ValueError(f"seeds must be a number > 0, or whole numbers >= 0, got {seeds!r}")
    for model in models:
        if not model.numbers[0] > 0:
            raise ValueError(f"noise must be > 0, got {model}")
    samplers = _samplers(methods, list(dict.fromkeys(counts)), prior)
    cases: dict[str, Case] = {}
    for truth in truths:
        for model in dict.fromkeys(models):
            sigma, words = model.numbers[0], "white" if model.kind == "white" else str(model)
            for seed in dict.fromkeys(numbers):
                for method, sampler, loaded, count in samplers:
                    key = _key(truth, method, sampler, loaded, str(model), seed)
                    case = Case(
                        truth.name, truth.number, method, sampler, loaded, count, sigma, words, seed, truth.size, key
                    )  # fmt: skip
                    cases.setdefault(key, case)
    if not cases:
        raise ValueError("there is nothing to evaluate: no method or no noise level")
    return list(cases.values())


def _key(truth: Truth, method: str, sampler: Sampler, prior: Prior, noise: str, seed: int) -> str:
    """The same for the same numbers, on any machine; different when anything that decides them is different."""
    parts = identity(sampler, prior) | {
        "image": truth.name, "number": truth.number, "pixels": truth.digest, "as asked": method,
        "noise": noise, "seed": seed,
    }  # fmt: skip
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:20]
