"""One input of a batch, in three steps: `prepare` reads and checks, its Requests are run, `finish` writes."""

from __future__ import annotations

import io
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from denoiser import images, metrics, outputs
from denoiser.cli import paths
from denoiser.cli.journal import Journal, made_from
from denoiser.cli.report import Report, Settings
from denoiser.files import label, read_bytes, write_bytes
from denoiser.noise import Noise, measure_noise, parse_noise
from denoiser.noise_files import read_noise
from denoiser.outcome import Result
from denoiser.run import Request

_NOTHING = 0.05  # grey levels of measured noise that nobody could see: such a picture is copied
_PAGES = 9  # of a stack that are looked at to measure its noise


class Batch:
    """What the inputs of one command share: the settings, the names in use, the journal."""

    def __init__(self, settings: Settings, inputs: list[str]) -> None:
        self.settings = settings
        self.inputs = paths.Names([*inputs, *(name for name in (settings.noise, settings.reference) if name)])
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
    """An input that has been read and checked: its pages, and a Request for each; none where nothing is to be removed.

    noisy, references: a page each; references are None, or in grey levels of 255.
    origin: digest for the journal.
    """

    report: Report
    target: str
    pages: list[images.Picture]
    noisy: list[np.ndarray]
    references: list[np.ndarray] | None
    origin: str
    requests: list[Request]


def prepare(batch: Batch, entry: paths.Input) -> Prepared | Report:
    """Read an input, check its output, measure its noise. A Report is an input that needs no more work."""
    report = Report(entry.path)
    try:
        return _prepare(batch, entry, report)
    except Exception as error:  # one bad file must not stop the others, not even by a mistake of ours
        return batch.failed(report, error)


def finish(batch: Batch, work: Prepared, results: list[Result]) -> Report:
    """Write what came out; without results the picture is copied."""
    try:
        _finish(batch, work, results)
    except Exception as error:
        return batch.failed(work.report, error)
    return work.report


def _prepare(batch: Batch, entry: paths.Input, report: Report) -> Prepared | Report:
    s = batch.settings
    if entry.error:
        raise ValueError(entry.error)
    data, source = _read(entry)
    origin = made_from(data, s.identity()) if batch.journal and entry.path != paths.STANDARD else ""
    pages = images.read_stack(source, max_pixels=s.max_pixels)
    if s.page is not None:
        if s.page > len(pages):
            raise ValueError(f"has no page {s.page}: it has {len(pages)}")
        pages = [pages[s.page - 1]]
    kinds, axes = sorted({str(page.pixels.dtype) for page in pages}), {page.pixels.ndim for page in pages}
    if len(kinds) > 1 or len(axes) > 1:  # they have no black and white in common
        what = f"numbers of the types {' and '.join(kinds)}" if len(kinds) > 1 else "grey and colour"
        raise ValueError(f"a stack of {what}; --page N takes one page")
    target = report.output = paths.output_for(entry, pages[0], s.output, s.folder)
    if _settled(batch, report, target, origin):
        return report
    _check(batch, entry, target)
    stream = sys.stdout.buffer if target == paths.STANDARD else target
    report.notes = images.lost(stream, pages[0])
    pages = images.with_units(pages, s.white, s.black)
    report.units, report.pages = str(pages[0].units), len(pages)
    if len(pages) > 1 and (s.std or s.residual or s.samples or s.reference):
        raise ValueError(f"a stack of {len(pages)}: --std, --residual, --samples and --reference need --page N")
    references = [_reference(s, pages[0])] if s.reference else None
    noisy = [page.pixels for page in pages]
    if s.add_noise is not None:
        references = [page.units.to_grey(page.pixels) for page in pages]
        model = parse_noise(s.add_noise)
        noisy = [pages[0].units.from_grey(model.add(clean, [s.seed, k])) for k, clean in enumerate(references)]
    requests = _requests(s, report, pages, noisy) if s.strength > 0 else []
    return Prepared(report, target, pages, noisy, references, origin, requests)


def _requests(s: Settings, report: Report, pages: list[images.Picture], noisy: list[np.ndarray]) -> list[Request]:
    """A Request for every page; none for a picture without noise. The report learns what noise that is."""
    first = pages[0]
    grey, axis = first.grey, first.channel_axis
    noise = _noise(s, report, first, noisy)
    if isinstance(noise, Noise):
        report.sigma, report.noise = noise.level / grey, str(noise)
    else:
        report.sigma = float(np.sqrt(np.mean(np.square(noise)))) / grey
        report.noise = f"a noise map of {report.sigma:.1f} grey levels"
    if report.sigma <= (_NOTHING if report.measured else 0):
        report.sigma, report.noise = 0.0, "noise level 0.0"
        return []
    found = [
        Request(
            picture, noise, s.sampler, s.prior, s.seed, axis, first.white, first.black, s.memory,
            chroma=s.strength_chroma,
        )
        for picture in noisy
    ]  # fmt: skip
    if s.samples and len(found[0].pieces()) > 1:
        raise ValueError("too large for --samples in this memory; allow more with --memory")
    return found


def _noise(s: Settings, report: Report, first: images.Picture, noisy: list[np.ndarray]) -> Noise | np.ndarray:
    """The noise in the picture's units: given, read from a file, or measured over all pages; times the strength."""
    scale = first.units
    if s.noise in ("auto", "camera"):
        report.measured = True
        chosen = noisy[:: max(len(noisy) // _PAGES, 1)]
        found = sorted((measure_noise(page, first.channel_axis, scale) for page in chosen), key=lambda n: n.level)
        return found[len(found) // 2].scaled(s.strength)
    if Path(s.noise).suffix.lower() == ".json":
        return read_noise(s.noise, first.pixels, scale).scaled(s.strength)
    if os.path.isfile(s.noise):
        return s.strength * _noise_map(s.noise, first)
    return Noise.from_text(s.noise).in_units(scale.grey, scale.black).scaled(s.strength)


def _noise_map(name: str, picture: images.Picture) -> np.ndarray:
    """A map from an image file: real numbers are in the picture's units; the most a whole one can be is 255."""
    other = images.read(name)
    values = other.pixels
    if values.shape not in (picture.pixels.shape, picture.pixels.shape[:2]):
        raise ValueError(f"{label(name)}: a noise map must have the picture's shape, {picture.pixels.shape[:2]}")
    return values if values.dtype.kind == "f" else values * (255 * picture.grey / other.top)


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


def _reference(s: Settings, picture: images.Picture) -> np.ndarray:
    assert s.reference is not None
    other = images.read(s.reference, max_pixels=s.max_pixels)
    if other.pixels.shape != picture.pixels.shape:
        sizes = f"{other.pixels.shape}, the picture {picture.pixels.shape}"
        raise ValueError(f"{label(s.reference)}: must have the shape of the picture; it has {sizes}")
    # measured by itself, the truth would have another black and white than its noisy version
    scale = picture.units if other.pixels.dtype == picture.pixels.dtype else other.units
    return scale.to_grey(other.pixels)


def _finish(batch: Batch, work: Prepared, results: list[Result]) -> None:
    s, report, scale = batch.settings, work.report, work.pages[0].units
    means = [result.mean for result in results] or work.noisy
    report.noise = report.noise or "noise level 0.0"
    report.sigma = report.sigma or 0.0
    if results:
        report.seconds, report.tiles = sum(r.seconds for r in results), max(r.tiles for r in results)
        report.method, report.prior = s.sampler.name, s.prior.name
        if s.sampler.uncertain:
            report.uncertainty = float(np.mean([r.uncertainty for r in results])) / scale.grey
    if work.references is not None:
        axis = work.pages[0].channel_axis
        pairs = list(zip(work.references, work.noisy, means, strict=True))
        report.psnr_before, report.ssim_before = _mean_quality([(r, scale.to_grey(n)) for r, n, _ in pairs], axis)
        report.psnr, report.ssim = _mean_quality([(r, scale.to_grey(m)) for r, _, m in pairs], axis)
    if _write(batch, work, means):
        return
    mean = means[0]
    std = results[0].std if results else np.zeros(mean.shape, np.float32)
    if s.std:
        outputs.write_std(s.std, std, scale.grey)
    if s.residual:
        outputs.write_residual(s.residual, work.noisy[0] - mean, scale.grey)
    if s.samples:
        samples = results[0].samples if results else np.empty((0, *mean.shape), np.float32)
        outputs.write_samples(s.samples, mean, std, samples)
    report.status = "done" if results else "copied"
    if work.target != paths.STANDARD:
        batch.taken[os.path.realpath(work.target)] = report.input


def _mean_quality(pairs: list[tuple[np.ndarray, np.ndarray]], axis: int | None) -> tuple[float, float | None]:
    """PSNR and SSIM, averaged over the pages."""
    found = [metrics.compare(truth, picture, axis) for truth, picture in pairs]
    similar = [ssim for _, ssim in found if ssim is not None]
    return float(np.mean([psnr for psnr, _ in found])), float(np.mean(similar)) if similar else None


def _write(batch: Batch, work: Prepared, means: list[np.ndarray]) -> bool:
    """Write the result itself; whether another run of the same batch has written it meanwhile."""
    s, target = batch.settings, work.target
    pages = (
        [images.remarked(page, f"{work.report.noise} removed") for page in work.pages] if work.requests else work.pages
    )
    if target == paths.STANDARD:
        images.write_stack(sys.stdout.buffer, means, pages)
        return False
    data = images.encode_stack(target, means, pages)
    if s.folder is not None:
        os.makedirs(os.path.dirname(os.path.abspath(target)), exist_ok=True)
    if s.resume and _settled(batch, work.report, target, work.origin):
        return True
    paths.check_output(target, batch.inputs, batch.taken, s.overwrite)  # a file may have come while we computed
    if batch.journal and work.origin:
        batch.journal.announce(target, work.origin, data)
    write_bytes(target, data)
    return False
