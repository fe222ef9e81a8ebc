"""What a command asks for, of every input alike, and what happened to each of them."""

from __future__ import annotations

import hashlib
import math
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from denoiser.cli.paths import STANDARD
from denoiser.cli.progress import duration
from denoiser.files import label, read_bytes
from denoiser.priors import Prior
from denoiser.run import identity
from denoiser.samplers import Sampler


@dataclass(frozen=True)
class Settings:
    """What the command line asks for, for every input alike."""

    sampler: Sampler
    prior: Prior
    folder: Path | None  # --dir
    output: str | None
    noise: str  # auto, words of `Noise.from_text`, or a file
    strength: float
    strength_chroma: float
    seed: int
    memory: int | None
    white: float | None
    black: float | None
    page: int | None  # of a stack, from 1; None for all
    max_pixels: int
    add_noise: str | None
    reference: str | None
    overwrite: bool
    skip_existing: bool
    resume: bool
    std: str | None
    residual: str | None
    samples: str | None
    quiet: bool
    verbose: bool

    def identity(self) -> dict[str, Any]:
        """All that decides what bytes become of an input."""
        names = "noise strength strength_chroma seed memory white black page add_noise"
        found = identity(self.sampler, self.prior) | {name: getattr(self, name) for name in names.split()}
        if os.path.isfile(self.noise):
            found["noise"] = [self.noise, hashlib.sha256(read_bytes(self.noise)).hexdigest()]
        return found


@dataclass
class Report:
    """What happened to one input."""

    input: str
    output: str | None = None
    status: str = "failed"  # done, copied, skipped, kept or failed
    error: str | None = None
    sigma: float | None = None  # the noise level used, in grey levels of 255
    noise: str | None = None  # the noise in words
    measured: bool = False
    units: str | None = None  # black and white, and who says so
    pages: int = 1
    method: str | None = None
    prior: str | None = None
    tiles: int = 1
    seconds: float = 0.0
    uncertainty: float | None = None  # mean standard deviation of a pixel, in grey levels of 255
    psnr: float | None = None
    ssim: float | None = None
    psnr_before: float | None = None
    ssim_before: float | None = None
    notes: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Only numbers that JSON knows: infinity and nan become null."""
        values = asdict(self)
        return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()}

    def line(self) -> str:
        """For people."""
        name, target = label(self.input), label(self.output or "")
        name = "standard input" if name == STANDARD else name
        if self.status == "skipped":
            return f"{name}: skipped, {target} exists already"
        if self.status == "kept":
            return f"{name}: {target} was finished before"
        words = [f"{self.noise}{' (measured)' if self.measured else ''}"]
        if self.status == "copied":
            words.insert(0, "copied")
        if self.units and ("measured" in self.units or "seen in" in self.units):
            words.append(self.units)
        if self.pages > 1:
            words.append(f"{self.pages} pages")
        if self.status == "done":
            words.append(duration(self.seconds))
        if self.psnr is not None:
            words.append(f"PSNR {self.psnr_before:.2f} -> {self.psnr:.2f} dB")
        if self.psnr is not None and self.ssim is not None:
            words.append(f"SSIM {self.ssim_before:.3f} -> {self.ssim:.3f}")
        notes = f" (not kept: {'; '.join(self.notes)})" if self.notes else ""
        return f"{name}: {', '.join(words)} -> {'standard output' if target == '-' else target}{notes}"
