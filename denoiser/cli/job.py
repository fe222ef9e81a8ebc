"""One picture of a batch, in three steps: `prepare` reads and checks, a Request is run, `finish` writes."""

from __future__ import annotations

import io
import math
import os
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from denoiser import images, metrics, noise, outputs
from denoiser.cli import paths
from denoiser.cli.journal import Journal, made_from
from denoiser.cli.progress import duration
from denoiser.files import label, read_bytes, write_bytes
from denoiser.outcome import Result
from denoiser.priors import Prior
from denoiser.run import Request, identity
from denoiser.samplers import Sampler

_NOTHING = 0.05  # grey levels of measured noise that nobody could see: such a picture is copied


@dataclass(frozen=True)
class Settings:
    """What the command line asks for, for every input alike."""

    sampler: Sampler
    prior: Prior
    folder: Path | None  # --dir
    output: str | None
    sigma: float | None  # None: measured
    strength: float
    seed: int
    memory: int | None
    max_pixels: int
    add_noise: float | None
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
        return identity(self.sampler, self.prior) | {
            "sigma": self.sigma, "strength": self.strength, "seed": self.seed, "memory": self.memory,
            "add_noise": self.add_noise,
        }  # fmt: skip


@dataclass
class Report:
    """What happened to one input."""

    input: str
    output: str | None = None
    status: str = "failed"  # done, copied, skipped, kept or failed
    error: str | None = None
    sigma: float | None = None  # the noise level used, in grey levels of 255
    measured: bool = False
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
        name = "standard input" if name == paths.STANDARD else name
        if self.status == "skipped":
            return f"{name}: skipped, {target} exists already"
        if self.status == "kept":
            return f"{name}: {target} was finished before"
        level = f"noise level {self.sigma:.1f}" + (" (measured)" if self.measured else "")
        done = f"copied, {level}" if self.status == "copied" else f"{level}, {duration(self.seconds)}"
        quality = ""
        if self.psnr is not None:
            quality = f", PSNR {self.psnr_before:.2f} -> {self.psnr:.2f} dB"
            if self.ssim is not None:
                quality += f", SSIM {self.ssim_before:.3f} -> {self.ssim:.3f}"
        notes = f" (not kept: {'; '.join(self.notes)})" if self.notes else ""
        return f"{name}: {done}{quality} -> {'standard output' if target == '-' else target}{notes}"


class Batch:
    """What the inputs of one command share: the settings, the names in use, the journal."""

    def __init__(self, settings: Settings, inputs: list[str]) -> None:
        self.settings, self.inputs = settings, paths.Names(inputs)
        self.taken: dict[str, str] = {}  # real path of every output so far -> its input
        self.journal = Journal(settings.folder) if len(inputs) > 1 or settings.resume else None

    def failed(self, report: Report, error: BaseException) -> Report:
        """The report of an input that could not be done: one line that names the file."""
        text = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, MemoryError):
            text = "not enough memory; a smaller --memory may help"
        elif not isinstance(error, ValueError | OSError | FloatingPointError):
            text = f"unexpected {type(error).__name__}: {text}"
        s = self.settings
        names = [report.input, report.output, s.std, s.residual, s.samples, s.reference]
        named = any(name and text.startswith(f"{label(name)}: ") for name in names)
        where = "standard input" if report.input == paths.STANDARD else label(report.input)
        report.status = "failed"
        report.error = text if named or text.startswith("<std") else f"{where}: {text}"
        return report


@dataclass
class Prepared:
    """An input that has been read and checked. `request` is None where there is nothing to denoise."""

    report: Report
    target: str
    picture: images.Picture
    noisy: np.ndarray
    reference: np.ndarray | None  # in grey levels of 255
    origin: str  # digest for the journal
    request: Request | None


def prepare(batch: Batch, entry: paths.Input) -> Prepared | Report:
    """Read an input, check its output, measure its noise. A Report is an input that needs no more work."""
    report = Report(entry.path)
    try:
        return _prepare(batch, entry, report)
    except Exception as error:  # one bad file must not stop the others, not even by a mistake of ours
        return batch.failed(report, error)


def finish(batch: Batch, work: Prepared, result: Result | None) -> Report:
    """Write what came out; without a result the picture is copied."""
    try:
        _finish(batch, work, result)
    except Exception as error:
        return batch.failed(work.report, error)
    return work.report


def _prepare(batch: Batch, entry: paths.Input, report: Report) -> Prepared | Report:
    s = batch.settings
    if entry.error:
        raise ValueError(entry.error)
    data, source = _read(entry)
    origin = made_from(data, s.identity()) if batch.journal and entry.path != paths.STANDARD else ""
    picture = images.read(source, max_pixels=s.max_pixels)
    target = report.output = paths.output_for(entry, picture, s.output, s.folder)
    if _settled(batch, report, target, origin):
        return report
    _check(batch, entry, target)
    stream = sys.stdout.buffer if target == paths.STANDARD else target
    report.notes = images.lost(stream, picture)
    reference = _reference(s, picture)
    noisy, grey, axis = picture.pixels, picture.grey, picture.channel_axis
    if s.add_noise is not None:
        reference = noisy / grey
        noisy = noise.add_noise(noisy, s.add_noise * grey, s.seed)
    report.measured = s.sigma is None and s.strength > 0
    level = _measured(noisy, axis) / grey if report.measured else s.sigma or 0.0
    level = 0.0 if report.measured and level < _NOTHING else level
    report.sigma = level * s.strength
    request = None
    if report.sigma > 0:
        request = Request(
            noisy, report.sigma * grey, s.sampler, s.prior, s.seed, axis, white=picture.white, memory=s.memory
        )
        if s.samples and len(request.pieces()) > 1:
            raise ValueError("too large for --samples in this memory; allow more with --memory")
    return Prepared(report, target, picture, noisy, reference, origin, request)


def _read(entry: paths.Input) -> tuple[bytes, io.BytesIO]:
    """The bytes of an input, once, and the same as a stream that knows its name."""
    if entry.path == paths.STANDARD:
        if sys.stdin is None:
            raise ValueError("is closed")
        data, name = read_bytes(sys.stdin.buffer), "standard input"
    else:
        name = entry.path
        try:
            data = read_bytes(name)
        except OSError as error:
            raise OSError(f"{label(name)}: {error.strerror or error}") from None
    stream = io.BytesIO(data)
    stream.name = name
    return data, stream


def _settled(batch: Batch, report: Report, target: str, origin: str) -> bool:
    """Whether the result is there already and is to stay; the report then says so."""
    s = batch.settings
    if report.input == paths.STANDARD or not os.path.lexists(target) or images.same_file(report.input, target):
        return False
    if s.resume and batch.journal and batch.journal.finished(target, origin):
        report.status = "kept"
    elif s.skip_existing:
        report.status = "skipped"
    else:
        return False
    batch.taken[os.path.realpath(target)] = report.input
    return True


def _measured(noisy: np.ndarray, axis: int | None) -> float:
    """The noise level in the picture's units."""
    if min(noisy.shape[:2]) < 2:
        raise ValueError("its noise cannot be measured: it must have at least 2x2 pixels")
    level = noise.estimate_sigma(noisy, axis)
    if not math.isfinite(level):
        raise ValueError("its noise cannot be measured; give --sigma")
    return level


def _check(batch: Batch, entry: paths.Input, target: str) -> None:
    """Refuse what cannot be written, before anything is computed."""
    s = batch.settings
    extras = [name for name in (s.std, s.std and outputs.map_name(s.std), s.residual, s.samples) if name]
    taken = dict(batch.taken) if extras else batch.taken
    for name in (target, *extras):
        paths.check_output(name, batch.inputs, taken, s.overwrite)
        if name != paths.STANDARD:
            if extras:
                taken[os.path.realpath(name)] = entry.path
            folder = os.path.dirname(os.path.abspath(name))
            if not os.path.isdir(folder) and (name != target or s.folder is None):
                raise ValueError(f"{label(name)}: cannot be written: there is no folder {label(folder)}")


def _reference(s: Settings, picture: images.Picture) -> np.ndarray | None:
    if s.reference is None:
        return None
    other = images.read(s.reference, max_pixels=s.max_pixels)
    if other.pixels.shape != picture.pixels.shape:
        sizes = f"{other.pixels.shape}, the picture {picture.pixels.shape}"
        raise ValueError(f"{label(s.reference)}: must have the shape of the picture; it has {sizes}")
    return np.asarray(other.pixels / other.grey)


def _finish(batch: Batch, work: Prepared, result: Result | None) -> None:
    s, report, picture = batch.settings, work.report, work.picture
    grey, axis = picture.grey, picture.channel_axis
    mean = work.noisy if result is None else result.mean
    std = np.zeros(mean.shape, np.float32) if result is None else result.std
    samples = np.empty((0, *mean.shape), np.float32) if result is None else result.samples
    if result is not None:
        report.seconds, report.tiles = result.seconds, result.tiles
        report.method, report.prior = s.sampler.name, s.prior.name
        report.uncertainty = result.uncertainty / grey if s.sampler.uncertain else None
    if work.reference is not None:
        report.psnr_before, report.ssim_before = metrics.compare(work.reference, work.noisy / grey, axis)
        report.psnr, report.ssim = metrics.compare(work.reference, mean / grey, axis)
    if _write(batch, work, mean):
        return
    if s.std:
        outputs.write_std(s.std, std, grey)
    if s.residual:
        outputs.write_residual(s.residual, work.noisy - mean, grey)
    if s.samples:
        outputs.write_samples(s.samples, mean, std, samples)
    report.status = "done" if result is not None else "copied"
    if work.target != paths.STANDARD:
        batch.taken[os.path.realpath(work.target)] = report.input


def _write(batch: Batch, work: Prepared, mean: np.ndarray) -> bool:
    """Write the result itself; whether another run of the same batch has written it meanwhile."""
    s, target = batch.settings, work.target
    if target == paths.STANDARD:
        images.write(sys.stdout.buffer, mean, work.picture)
        return False
    data = images.encode(target, mean, work.picture)
    if s.folder is not None:
        os.makedirs(os.path.dirname(os.path.abspath(target)), exist_ok=True)
    if s.resume and _settled(batch, work.report, target, work.origin):
        return True
    paths.check_output(target, batch.inputs, batch.taken, s.overwrite)  # a file may have come while we computed
    if batch.journal and work.origin:
        batch.journal.announce(target, work.origin, data)
    write_bytes(target, data)
    return False
