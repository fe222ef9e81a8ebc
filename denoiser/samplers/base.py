"""What a sampler is: a frozen dataclass of options with one generator method."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import Field, dataclass, field, fields
from typing import Any, ClassVar, get_type_hints

import numpy as np

from denoiser.posterior import Posterior


def option(default: Any, meaning: str, *, low: float | None = None, choices: tuple[str, ...] = ()) -> Any:
    """A sampler option: its default, one line for the user, and what values make sense."""
    return field(default=default, metadata={"meaning": meaning, "low": low, "choices": choices})


@dataclass(frozen=True, eq=False)
class Estimate:
    """What a sampler knows after an iteration, on the posterior's padded field.

    mean: the MMSE image (for MAP: the mode), shape (height, width).
    std: posterior standard deviation of each pixel; zero for a point estimate.
    samples: particles, shape (M, height, width); M = 0 for a point estimate. Read it before the next iteration.
    figures: numbers worth a curve, such as change, energy, rhat.
    """

    mean: np.ndarray
    std: np.ndarray
    samples: np.ndarray
    figures: dict[str, float]


@dataclass(frozen=True)
class Sampler:
    """Base of all samplers: checks the options once, when the sampler is made."""

    name: ClassVar[str]  # what users type
    title: ClassVar[str]  # what users read
    uncertain: ClassVar[bool] = True  # whether it says how sure it is: a point estimate does not

    @classmethod
    def options(cls) -> dict[str, tuple[type, Field]]:
        """Option name -> (type, dataclass field); command line and window are generated from it."""
        hints = get_type_hints(cls)
        return {f.name: (hints[f.name], f) for f in fields(cls)}

    def __post_init__(self) -> None:
        for name, (kind, spec) in self.options().items():
            value, low, choices = getattr(self, name), spec.metadata["low"], spec.metadata["choices"]
            if choices and value not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
            if kind in (int, float):
                whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
                real = whole or (kind is float and isinstance(value, float | np.floating))
                if not real or not math.isfinite(value):
                    raise ValueError(f"{name} must be a {'whole ' if kind is int else ''}number, got {value!r}")
                if low is not None and value < low:
                    raise ValueError(f"{name} must be >= {low}, got {value!r}")
            elif kind is bool and not isinstance(value, bool | np.bool_):
                raise ValueError(f"{name} must be True or False, got {value!r}")

    @property
    def total(self) -> int:
        """How many Estimates it yields at most."""
        raise NotImplementedError

    def estimates(self, posterior: Posterior, rng: np.random.Generator) -> Iterator[Estimate]:
        """Yield an Estimate after each iteration. To cancel is to stop iterating."""
        raise NotImplementedError
