"""What planes become for a sampler: posteriors of a Markov prior, or the field that a network reads off them.

Imports point down to both, so that a run asks here and knows neither by name.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from denoiser import colour
from denoiser.files import read_bytes
from denoiser.learned import ALIGNED, FIELD, LearnedPosterior, Model, load_model, predict
from denoiser.noise import Noise
from denoiser.pieces import HALO, Margins
from denoiser.posterior import Posterior
from denoiser.priors import Prior, available_priors, load_prior

_SURE, _UNSURE = 0.62, 0.2  # confidence with which noise is believed wholly; hardly
_LEAST, _MOST = 0.3, 0.9  # what is believed then, of weak noise and of strong: texture seldom looks like strong noise
_STRONG = 14.0  # grey levels of noise that would be believed wholly
# What makes 90 % intervals hold under measured noise (`widening`; docs/noise.md says what was fitted on what).
_GRAINED = (1.03, 1.15)  # the network's, under grain, in grey and in colour
_DOUBTED = (1.3, 0.1)  # power of the part of the level that it is told, in grey and in colour: in grey doubt is worse
_AT_FIVE, _POWER = 1.2, 0.35  # the Markov priors', under grain of 5 grey levels; and how that grows with the level
_LEAST_WIDE, _MOST_WIDE = (1.0, 1.25), 2.0  # with filters of two pixels, and with larger ones; with any
#: Names of the network that comes with the program -> how its passes are averaged (`learned.predict`).
LEARNED = {"learned": "normal", "learned-fast": "fast", "learned-best": "best"}


@dataclass(frozen=True, eq=False)
class LearnedPrior(Prior):
    """The structure of the learned field, and the network that fills in its potentials.

    path: of the network's ONNX file; the card lies beside it.
    passes: "fast" for one, "normal" for four, "best" for eight.
    """

    path: Path = Path()
    passes: str = "normal"

    @property
    def model(self) -> Model:
        """The network, loaded once a process."""
        return load_model(self.path)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the networks, their cards and how they are used."""
        parts = [*(read_bytes(file) for file in self.model.files), self.passes.encode()]
        return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def field_names() -> list[str]:
    """What users may call a prior."""
    return [*LEARNED, *available_priors()]


def load_field(name_or_path: str | Path | Prior) -> Prior:
    """A Markov prior or the learned one, by its name or from a model file.

    >>> load_field("pairwise").name
    'pairwise'
    """
    if isinstance(name_or_path, Prior):
        return name_or_path
    name = str(name_or_path)
    if name not in LEARNED and not name.endswith(".onnx"):
        if not Path(name).is_file() and name not in available_priors():
            raise ValueError(f"prior must be one of {', '.join(field_names())} or a model file, got {name!r}")
        return load_prior(name_or_path)
    model = load_model("learned" if name in LEARNED else name_or_path)
    passes = LEARNED.get(name, "normal")
    same = FIELD.filters, FIELD.experts, FIELD.padding, FIELD.epsilon
    return LearnedPrior(name, *same, path=model.path, passes=passes)


def margins(prior: Prior) -> Margins:
    """What pieces of a picture need under this prior."""
    if isinstance(prior, LearnedPrior):
        return Margins(prior.model.halo, ALIGNED, prior.padding)
    return Margins(HALO, prior.colours, prior.padding)


def gains(prior: Prior) -> tuple[float, float, float]:
    """What the opponent planes are multiplied by: the Markov priors were learned on grey photographs alone."""
    return (1.0, 1.0, 1.0) if isinstance(prior, LearnedPrior) else colour.GAINS


def noise_factors(prior: Prior, noise: Noise, planes: int) -> list[float]:
    """What the noise of each of so many planes is multiplied by for this prior.

    The Markov priors' likelihood takes the noise for white, so correlated noise counts as stronger than it is. The
    network knows grain when it sees it; where a measurement is unsure, it is told less than was measured, because to
    wipe out texture is the worse error. (The Markov priors' intervals would become too narrow by that.)
    """
    return [_believed(noise)] * planes if isinstance(prior, LearnedPrior) else noise.inflations(planes)


def _believed(noise: Noise) -> float:
    """The part of a measured level that the network is told."""
    least = np.clip(_grey_levels(noise) / _STRONG, _LEAST, _MOST)
    return float(np.clip((noise.confidence - _UNSURE) / (_SURE - _UNSURE), least, 1))


def _grey_levels(noise: Noise) -> float:
    """Its level in grey levels of 255."""
    return noise.level * 255 / (noise.white - noise.black)


def widening(prior: Prior, noise: Noise) -> float:
    """What standard deviations are multiplied by under this noise; 1 for noise that is white, and told or sure.

    The network's intervals follow the level that it is told, so they are too narrow where that is less than what was
    measured. The Markov priors know nothing of the slow part of a grain, which is left when much is averaged.
    """
    if isinstance(prior, LearnedPrior):
        colour = bool(noise.planes)
        return (_GRAINED[colour] if noise.grained else 1.0) * _believed(noise) ** -_DOUBTED[colour]
    if not noise.grained:
        return 1.0
    wide = _AT_FIVE * (_grey_levels(noise) / 5) ** _POWER
    return float(np.clip(wide, _LEAST_WIDE[not prior.pairwise], _MOST_WIDE))


def posteriors(
    prior: Prior,
    planes: np.ndarray,
    sigmas: list[float | np.ndarray],
    origin: tuple[int, int],
    noise: Noise | None = None,
) -> list[Posterior]:
    """A target for each plane (planes, height, width) whose noise is `sigmas`, numbers or maps, at `origin`.

    noise: what is known of it besides: its grain decides which network is asked, and how wide intervals are.
    """
    targets: list[Posterior]
    if isinstance(prior, LearnedPrior):
        maps = np.stack([np.broadcast_to(np.asarray(s, np.float32), planes.shape[1:]) for s in sigmas])
        grained = noise is not None and noise.grained
        found = predict(planes.astype(np.float32), maps, prior.passes, model=prior.model, grained=grained)
        targets = [LearnedPosterior(*plane, origin=origin) for plane in zip(*found, strict=True)]
    else:
        targets = [Posterior(prior, p, s, origin=origin) for p, s in zip(planes, sigmas, strict=True)]
    for target in targets:
        target.widen = 1.0 if noise is None else widening(prior, noise)
    return targets
