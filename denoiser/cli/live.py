"""How an evaluation goes: a table that is redrawn on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import shutil
import sys
import time

from denoiser.cli.progress import duration
from denoiser.evaluation import Row, Step
from denoiser.evaluation.averages import group_of, number
from denoiser.evaluation.rows import noise_words

_EVERY = 10.0  # seconds between two plain lines
_REDRAW = 0.2  # seconds between two tables


class Live:
    """Mean PSNR so far of every method and noise level, and when it will be over; on stderr."""

    def __init__(self, rows: list[Row], quiet: bool) -> None:
        self._rows, self._quiet = rows, quiet
        self._terminal = sys.stderr.isatty()
        self._told = time.monotonic() if not self._terminal else 0.0
        self._height = 0
        self._last: Step | None = None

    def show(self, step: Step) -> None:
        """One more row."""
        self._rows.append(step.row)
        self._last = step
        now = time.monotonic()
        if self._quiet or now - self._told < (_REDRAW if self._terminal else _EVERY):
            return
        self._told = now
        if self._terminal:
            self._draw([*self._table(), self._line(step)])
        else:
            print(self._line(step), file=sys.stderr, flush=True)

    def close(self) -> None:
        """Clear the table away: the final one is on standard output."""
        if self._height:
            self._draw([])

    def _line(self, step: Step) -> str:
        row = step.row
        last = f"{row.method} on {row.image} at {noise_words(row)}: {row.psnr:.2f} dB in {row.seconds:.1f} s"
        left = f"about {duration(step.eta)} to go" if step.done < step.total else f"took {duration(step.seconds)}"
        return f"{step.done} of {step.total} rows, {left}; {last}"

    def _table(self) -> list[str]:
        """A line a method, a column a noise level."""
        values: dict[str, dict[str, list[float]]] = {}
        for row in self._rows:
            values.setdefault(str(group_of(row)), {}).setdefault(noise_words(row), []).append(row.psnr)
        noises = sorted({noise_words(row): row.sigma for row in self._rows}.items(), key=lambda item: item[1])
        sigmas = [words for words, _ in noises]
        width = max(len(name) for name in values)
        lines = [f"{'PSNR, dB (rows)':{width}}" + "".join(f"{s:>16}" for s in sigmas)]
        for name, by_sigma in values.items():
            cells = (by_sigma.get(s, []) for s in sigmas)
            texts = (f"{number(sum(c) / len(c), 2)} ({len(c)})" if c else "" for c in cells)
            lines.append(f"{name:{width}}" + "".join(f"{text:>16}" for text in texts))
        return lines

    def _draw(self, lines: list[str]) -> None:
        columns, height = shutil.get_terminal_size()
        lines = [line[: columns - 1] for line in lines[-(height - 1) :]]
        up = f"\x1b[{self._height}A" if self._height else ""
        sys.stderr.write(up + "\x1b[J" + "".join(line + "\n" for line in lines))
        sys.stderr.flush()
        self._height = len(lines)
