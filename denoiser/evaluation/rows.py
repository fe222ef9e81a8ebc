"""A row of results, and the files of rows: CSV or JSON lines, appended one by one, whole after any kill."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from denoiser.files import label, write_bytes


@dataclass(frozen=True)
class Row:
    """One method on one noisy image. Everything but seconds, memory and threads follows from the seed, to the digit.

    image, number: name of the image, and its place among the images, which is part of its noise's seed.
    method: as it was asked for, such as "gibbs" or "gibbs:chains=1". prior: "" where it plays no part.
    particles: draws behind mean and std; None where they are not made of draws: of one pass, and of a point estimate,
        which has no std and coverages either (nan).
    sigma, std: noise level and RMS of the predicted standard deviations, in grey levels of 255. Of noise that is not
        white, sigma is its first number.
    noise: "white", or the words of `noise.parse_noise`.
    coverage50, 90, 99: shares of pixels whose true value lies in the credible interval (`metrics.coverage`).
    seconds, threads: of one run, without compiling, on so many threads.
    memory: the most that the process held during the run, MB of 2^20 bytes; nan where the system does not tell.
    bin_counts, bin_errors: pixels by predicted std, in steps of sigma / 20, and their RMS error.
    key: digest of the program's version, the image's pixels and everything that decides the numbers.
    """

    image: str
    number: int
    method: str
    prior: str
    particles: int | None
    sigma: float
    noise: str
    seed: int
    psnr: float
    ssim: float
    coverage50: float
    coverage90: float
    coverage99: float
    std: float
    seconds: float
    memory: float
    threads: int
    bin_counts: tuple[int, ...]
    bin_errors: tuple[float, ...]
    key: str


def noise_words(row: Any) -> str:
    """The noise of a row, a case or a group of rows, for people."""
    return f"sigma {row.sigma:g}" if row.noise == "white" else str(row.noise)


COLUMNS = tuple(f.name for f in fields(Row))
_INTEGERS = ("number", "seed", "threads")
_WORDS = ("image", "method", "prior", "noise", "key")


def _row(values: dict[str, Any]) -> Row:
    """A Row from what a file holds; ValueError, TypeError or KeyError if it is none."""
    out: dict[str, Any] = {}
    for name in COLUMNS:
        value = values[name]
        if name in _WORDS:
            if not isinstance(value, str):
                raise TypeError(name)
            out[name] = value
        elif name in _INTEGERS:
            out[name] = int(value)
        elif name == "particles":
            out[name] = None if value in (None, "") else int(value)
        elif name.startswith("bin_"):
            kind: Callable[[Any], Any] = int if name == "bin_counts" else float
            out[name] = tuple(kind(v) for v in (value.split() if isinstance(value, str) else value))
        else:
            out[name] = math.nan if value in (None, "") else float(value)
    return Row(**out)


def _csv_line(values: Iterable[Any]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(values)
    return out.getvalue().encode()


def _csv_value(value: Any) -> Any:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return " ".join(map(repr, value)) if isinstance(value, tuple) else value


def _json_value(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)  # JSON knows no infinity
    return value


@dataclass(frozen=True)
class Format:
    """How rows become lines of bytes and lines rows again."""

    name: str
    header: bytes
    begins: bytes  # every line of it, so that half a line can be told from somebody's own words
    line: Callable[[Row], bytes]
    parse: Callable[[str], Row]


def _parse_csv(line: str) -> Row:
    (values,) = csv.reader([line], strict=True)
    return _row(dict(zip(COLUMNS, values, strict=True)))


CSV = Format(
    "CSV", _csv_line(COLUMNS), b"", lambda row: _csv_line(_csv_value(v) for v in asdict(row).values()), _parse_csv
)
JSON = Format(
    "JSON",
    b"",
    b'{"image": "',
    lambda row: json.dumps({k: _json_value(v) for k, v in asdict(row).items()}).encode() + b"\n",
    lambda line: _row(json.loads(line)),
)


def to_csv(rows: Iterable[Row], path: str | Path) -> None:
    """Write rows as CSV, one line each; nan is empty. The file is replaced as a whole."""
    write_bytes(path, CSV.header + b"".join(map(CSV.line, rows)))


def to_json(rows: Iterable[Row], path: str | Path) -> None:
    """Write rows as JSON lines, one object each; nan is null. The file is replaced as a whole."""
    write_bytes(path, b"".join(map(JSON.line, rows)))


def read_rows(path: str | Path) -> list[Row]:
    """The rows of a file by `to_csv`, `to_json` or `denoise evaluate`; a half-written last line is an error."""
    data = Path(path).read_bytes()
    rows, whole = _parse(data, CSV if data.startswith(CSV.header) else JSON, label(path))
    if whole < len(data):
        raise ValueError(f"{label(path)}: the last line is half-written; `denoise evaluate --resume` repairs it")
    if not rows:
        raise ValueError(f"{label(path)}: holds no rows of results")
    return rows


def _parse(data: bytes, form: Format, name: str) -> tuple[list[Row], int]:
    """The rows of a file, and how many bytes of it are whole lines: a kill may have cut the last one short."""
    whole = data.rfind(b"\n") + 1
    if not data[:whole].startswith(form.header):
        if whole == 0 and form.header.startswith(data):
            return [], 0  # the header itself was cut short
        raise ValueError(f"{name}: is no {form.name} file of results; nothing was changed")
    rows: list[Row] = []
    before = form.header.count(b"\n")
    for number, line in enumerate(data[len(form.header) : whole].split(b"\n")[:-1], before + 1):
        try:
            rows.append(form.parse(line.decode()))
        except (ValueError, TypeError, KeyError, csv.Error):
            raise ValueError(f"{name}: line {number} is no row of results; nothing was changed") from None
    tail = data[whole:]
    if not tail.startswith(form.begins[: len(tail)]):
        raise ValueError(f"{name}: its last line is no row of results; nothing was changed")
    return rows, whole


class Results:
    """A file of rows that is open to be appended to. Each row is on the disk when `append` returns."""

    def __init__(self, path: Path, form: Format, keys: set[str], resume: bool) -> None:
        """Open it; with `resume` its rows are taken over, if they are among `keys`. Refuses what could be a loss."""
        self.path, self.form, self.rows, self.repaired = path, form, list[Row](), ""
        name = label(path)
        if path.exists() and not path.is_file():
            raise ValueError(f"{name}: is no plain file")
        try:
            # not truncated, not even created before the checks of an existing file
            self._file = open(path, "r+b" if path.exists() else "x+b", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise OSError(f"{name}: cannot be written: {error.strerror or error}") from None
        try:
            _lock(self._file, name)
            data = self._file.read()
            if data and not resume:
                raise ValueError(f"{name}: exists already; --resume goes on with it")
            self.rows, whole = _parse(data, form, name)
            self._check(keys, name)
            if whole < len(data):
                self.repaired = f"{name}: its last line was half-written; removed, and that row is computed again"
                self._file.truncate(whole)
            self._file.seek(whole)
            if whole == 0:
                self._write(form.header)
        except BaseException:
            self.close()
            raise

    def _check(self, keys: set[str], name: str) -> None:
        found = [row.key for row in self.rows]
        if len(set(found)) < len(found):
            raise ValueError(f"{name}: holds a row twice; nothing was changed")
        for row in self.rows:
            if row.key not in keys:
                what = f"{row.method} on {row.image} at {noise_words(row)}, seed {row.seed}"
                raise ValueError(f"{name}: holds rows of other settings ({what}); give another file")

    def append(self, row: Row) -> None:
        """Add a row."""
        self._write(self.form.line(row))
        self.rows.append(row)

    def _write(self, line: bytes) -> None:
        begin = self._file.tell()
        try:
            if self._file.write(line) != len(line):
                raise OSError("the disk is full")
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(begin)  # half a line must not become part of the next
            self._file.seek(begin)
            raise OSError(f"{label(self.path)}: cannot be written: {error.strerror or error}") from None

    def close(self) -> None:
        """Let others open it."""
        self._file.close()


def _lock(file: Any, name: str) -> None:
    """Two processes that append to one file would compute everything twice."""
    with contextlib.suppress(ImportError):
        import fcntl  # not on Windows

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"{name}: another process is writing to it") from None
        except OSError:
            pass  # file systems without locks
