"""One picture of a batch: read it, measure its noise, denoise it, write what was asked for."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Generator, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import denoiser
from denoiser import images, noise, outputs
from denoiser.cli import journal, paths
from denoiser.cli.compute import Answer, Request, answer
from denoiser.cli.progress import duration, patiently, steps
from denoiser.files import label, read_bytes, write_bytes
from denoiser.priors import Prior
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
        return {
            "version": denoiser.__version__, "method": self.sampler.name, "options": asdict(self.sampler),
            "prior": self.prior.fingerprint, "sigma": self.sigma,
            "strength": self.strength, "seed": self.seed, "memory": self.memory, "add_noise": self.add_noise,
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


class Job:
    """The work on the inputs of one command, one after the other."""

    def __init__(self, settings: Settings, inputs: list[str]) -> None:
        self.settings, self.inputs = settings, inputs
        self.taken: dict[str, str] = {}  # real path of every output so far -> its input
        self.journalled = len(inputs) > 1 or settings.resume

    def run(self, entry: paths.Input) -> Report:
        """Denoise one input. Whatever goes wrong is in the report."""
        work = self.start(entry)
        if work.request is not None:
            try:
                result = self._denoise(work.request, entry)
            except Exception as error:
                work.fail(error)
            else:
                work.finish(result)
        return work.report

    def start(self, entry: paths.Input) -> Work:
        """Read one input and check its output: what there is left to do. Whatever goes wrong is in its report."""
        return Work(self, entry)

    def words(self, error: Exception, entry: paths.Input, output: str | None) -> str:
        """An error in one line that names the file."""
        text = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, MemoryError):
            text = "not enough memory; a smaller --memory may help"
        elif not isinstance(error, ValueError | OSError | FloatingPointError):
            text = f"unexpected {type(error).__name__}: {text}"
        s = self.settings
        names = [entry.path, output, s.std, s.residual, s.samples, s.reference]
        named = any(name and text.startswith(f"{label(name)}: ") for name in names)
        where = "standard input" if entry.path == paths.STANDARD else label(entry.path)
        return text if named or text.startswith("<std") else f"{where}: {text}"

    def steps(self, entry: paths.Input, report: Report) -> Generator[Request, Answer, None]:
        """The work on one input: asks once for a picture to be denoised, unless there is nothing to denoise."""
        s = self.settings
        piped = entry.path == paths.STANDARD
        if piped and sys.stdin is None:
            raise ValueError("is closed")
        source = sys.stdin.buffer if piped else entry.path
        origin = ""
        if self.journalled and not piped:
            origin = journal.made_from(patiently(read_bytes_named, entry.path), s.identity())
        picture = patiently(lambda: images.read(source, max_pixels=s.max_pixels))
        target = report.output = paths.output_for(entry, picture, s.output, s.folder)
        stream = sys.stdout.buffer if target == paths.STANDARD else target
        if not piped and os.path.lexists(target) and not images.same_file(entry.path, target):
            if s.resume and journal.finished(target, s.folder, origin):
                report.status = "kept"
            elif s.skip_existing:
                report.status = "skipped"
            if report.status != "failed":
                self.taken[os.path.realpath(target)] = entry.path
                return
        self._check(entry, target)
        report.notes = images.lost(stream, picture)
        reference = self._reference(picture)

        clean = picture.pixels
        noisy = clean
        grey, axis = picture.grey, picture.channel_axis
        if s.add_noise is not None:
            noisy = noise.add_noise(clean, s.add_noise * grey, s.seed)
            reference = clean / grey
        report.measured = s.sigma is None and s.strength > 0
        if report.measured and min(clean.shape[:2]) < 2:
            raise ValueError("its noise cannot be measured: it must have at least 2x2 pixels")
        level = patiently(noise.estimate_sigma, noisy, axis) / grey if report.measured else s.sigma or 0.0
        if not math.isfinite(level):
            raise ValueError("its noise cannot be measured; give --sigma")
        if report.measured and level < _NOTHING:
            level = 0.0
        report.sigma = level * s.strength
        last = None
        mean: np.ndarray = noisy
        std: np.ndarray = np.zeros(noisy.shape, np.float32)
        if report.sigma > 0:
            last = yield Request(
                noisy, report.sigma * grey, axis, picture.white, s.sampler, s.prior, s.seed, s.memory, bool(s.samples)
            )
            mean, std = last.mean, last.std
            report.seconds = last.seconds
            report.method, report.prior = s.sampler.name, s.prior.name
            report.tiles = last.tiles
            report.uncertainty = float(std.mean()) / grey if s.sampler.uncertain else None
        if reference is not None:
            report.psnr_before, report.ssim_before = outputs.compare(reference, noisy / grey, axis)
            report.psnr, report.ssim = outputs.compare(reference, mean / grey, axis)
        self._write(target, mean, picture, origin)
        if s.std:
            outputs.write_std(s.std, std, grey)
        if s.residual:
            outputs.write_residual(s.residual, noisy - mean, grey)
        if s.samples:
            samples = np.empty((0, *mean.shape), np.float32) if last is None else last.samples
            outputs.write_samples(s.samples, mean, std, samples)
        report.status = "done" if last is not None else "copied"
        if target != paths.STANDARD:
            self.taken[os.path.realpath(target)] = entry.path

    def _check(self, entry: paths.Input, target: str) -> None:
        """Refuse what cannot be written, before anything is computed."""
        s = self.settings
        extras = [name for name in (s.std, s.std and outputs.map_name(s.std), s.residual, s.samples) if name]
        taken = dict(self.taken)
        for name in (target, *extras):
            paths.check_output(name, self.inputs, taken, s.overwrite)
            if name != paths.STANDARD:
                taken[os.path.realpath(name)] = entry.path
                folder = os.path.dirname(os.path.abspath(name))
                if not os.path.isdir(folder) and (name != target or s.folder is None):
                    raise ValueError(f"{label(name)}: cannot be written: there is no folder {label(folder)}")

    def _reference(self, picture: images.Picture) -> np.ndarray | None:
        name = self.settings.reference
        if name is None:
            return None
        other = images.read(name, max_pixels=self.settings.max_pixels)
        if other.pixels.shape != picture.pixels.shape:
            sizes = f"{other.pixels.shape}, the picture {picture.pixels.shape}"
            raise ValueError(f"{label(name)}: must have the shape of the picture; it has {sizes}")
        return np.asarray(other.pixels * (255 / other.white))

    def _denoise(self, request: Request, entry: paths.Input) -> Answer:
        s = self.settings
        result = answer(request, lambda run: steps(run, label(entry.path), s.quiet))
        if s.verbose:
            figure = ", ".join(f"{key} {value:.4g}" for key, value in result.figures.items())
            print(f"{label(entry.path)}: {s.sampler}, {s.prior.name}, tiles: {result.tiles}; {figure}", file=sys.stderr)
        return result

    def _write(self, target: str, mean: np.ndarray, picture: images.Picture, origin: str) -> None:
        """The result itself."""
        s = self.settings
        if target == paths.STANDARD:
            patiently(images.write, sys.stdout.buffer, mean, picture)
            return
        data = patiently(images.encode, target, mean, picture)
        if s.folder is not None:
            os.makedirs(os.path.dirname(os.path.abspath(target)), exist_ok=True)
        paths.check_output(target, self.inputs, self.taken, s.overwrite)  # a file may have come while we computed
        if origin:
            journal.announce(target, s.folder, origin, data)
        write_bytes(target, data)


class Work:
    """One input on its way: `request` is what is to be denoised, None when there is nothing left to do."""

    def __init__(self, job: Job, entry: paths.Input) -> None:
        self.entry, self.report = entry, Report(entry.path)
        self.request: Request | None = None
        self._job, self._steps = job, job.steps(entry, self.report)
        with self._guarded():
            if entry.error:
                raise ValueError(entry.error)
            self.request = next(self._steps, None)

    def finish(self, result: Answer) -> None:
        """Write the result."""
        with self._guarded(), contextlib.suppress(StopIteration):
            self._steps.send(result)

    def fail(self, error: BaseException) -> None:
        """It could not be denoised."""
        with self._guarded():
            raise error

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # one bad file must not stop the others, not even by a mistake of ours
            self.report.status = "failed"
            self.report.error = self._job.words(error, self.entry, self.report.output)


def read_bytes_named(path: str) -> bytes:
    """The bytes of a file; an error names it."""
    try:
        return read_bytes(path)
    except OSError as error:
        raise OSError(f"{label(path)}: {error.strerror or error}") from None
