"""What a sampler is: a frozen dataclass of options with one generator method."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import Field, dataclass, field, fields
from typing import Any, ClassVar, get_type_hints

import numpy as np

from denoiser.posterior import Posterior
from denoiser.priors import FilterBank


def option(
    default: Any, meaning: str, *, low: float | None = None, high: float | None = None, choices: tuple[str, ...] = ()
) -> Any:
    """A sampler option: its default, one line for the user, and what values make sense: low <= value <= high."""
    return field(default=default, metadata={"meaning": meaning, "low": low, "high": high, "choices": choices})


def another_default(sampler: type[Sampler], name: str, default: Any) -> Any:
    """The option `name` of a sampler with another default, for one that is made from it."""
    return field(default=default, metadata=sampler.__dataclass_fields__[name].metadata)


@dataclass(frozen=True, eq=False)
class Estimate:
    """What a sampler knows after an iteration, on the posterior's padded field.

    mean: the MMSE image (for MAP: the mode), shape (height, width).
    std: posterior standard deviation of each pixel; zero for a point estimate.
    samples: particles, shape (M, height, width); M = 0 for a point estimate. Read it before the next iteration.
    figures: numbers worth a curve, such as change, energy, rhat.
    draws: how many stand behind mean and std so far; None for all that the sampler is going to make.
    """

    mean: np.ndarray
    std: np.ndarray
    samples: np.ndarray
    figures: dict[str, float]
    draws: int | None = None


@dataclass(frozen=True)
class Sampler:
    """Base of all samplers: checks the options once, when the sampler is made, and says what it will give and need."""

    name: ClassVar[str]  # what users type
    title: ClassVar[str]  # what users read
    uses_prior: ClassVar[bool] = True  # whether the prior changes the answer
    draws_option: ClassVar[str] = ""  # the option that sets `draws`; "" for a point estimate
    needs_moments: ClassVar[bool] = False  # whether it works only on a field that knows its own mean and std
    uncertain: ClassVar[bool] = True  # whether it says how sure it is: a point estimate does not

    @classmethod
    def options(cls) -> dict[str, tuple[type, Field]]:
        """Option name -> (type, dataclass field); command line and window are generated from it."""
        hints = get_type_hints(cls)
        return {f.name: (hints[f.name], f) for f in fields(cls)}

    def __post_init__(self) -> None:
        for name, (kind, spec) in self.options().items():
            value, choices = getattr(self, name), spec.metadata["choices"]
            low, high = spec.metadata["low"], spec.metadata["high"]
            if choices and value not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
            if kind in (int, float):
                whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
                real = whole or (kind is float and isinstance(value, float | np.floating))
                if not real or not math.isfinite(value):
                    raise ValueError(f"{name} must be a {'whole ' if kind is int else ''}number, got {value!r}")
                if low is not None and value < low:
                    raise ValueError(f"{name} must be >= {low}, got {value!r}")
                if high is not None and value > high:
                    raise ValueError(f"{name} must be <= {high}, got {value!r}")
            elif kind is bool and not isinstance(value, bool | np.bool_):
                raise ValueError(f"{name} must be True or False, got {value!r}")

    @property
    def draws(self) -> int:
        """How many draws or particles stand behind mean and std at the end; 0 for a point estimate."""
        return int(getattr(self, self.draws_option)) if self.draws_option else 0

    @property
    def kept(self) -> int:
        """How many particles exist at the end, as `Estimate.samples`; at most `draws`."""
        return self.draws

    @property
    def chains(self) -> int:
        """How many Markov chains it runs; particle i comes from chain i % chains. 0 if it runs none."""
        return 0

    def bytes_per_pixel(self, prior: FilterBank) -> int:
        """Working memory for each pixel of one grey plane, in bytes; fitted to `ru_maxrss` from above.

        The same on any number of threads, because the size of tiles follows from it.
        """
        return solver_bytes(prior)

    @property
    def total(self) -> int:
        """How many Estimates it yields at most."""
        raise NotImplementedError

    def estimates(self, posterior: Posterior, rng: np.random.Generator) -> Iterator[Estimate]:
        """Yield an Estimate after each iteration. To cancel is to stop iterating."""
        raise NotImplementedError


def solver_bytes(prior: FilterBank, copies: int = 2) -> int:
    """Bytes a pixel of a posterior, and of `copies` linear solvers with their scratch arrays side by side."""
    return 160 + 20 * max(copies, 2) * (len(prior.filters) + len(prior.blanket))
