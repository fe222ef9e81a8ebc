"""What an experiment is given and what it hands back, and the three files that this becomes: CSV, PNG, Markdown."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from denoiser import threads
from denoiser.panels import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_T = TypeVar("_T")
#: One colour a method in all figures; they can be told apart without colour vision, and the lines have markers.
COLOURS = {
    "truth": "#999999",
    "SVGD": "#d55e00",
    "MP-SVGD-s": "#56b4e9",
    "MP-SVGD-m": "#0072b2",
    "HMC": "#009e73",
    "EPBP": "#cc79a7",
    "EP": "#e69f00",
}
MARKERS = {"SVGD": "o", "MP-SVGD-s": "v", "MP-SVGD-m": "^", "HMC": "s", "EPBP": "D", "EP": "x"}


@dataclass(frozen=True)
class Setting:
    """How to run an experiment.

    quick: a smaller setting that takes less than two minutes; otherwise the paper's.
    tell: hears what is being done and the share of all that is done.
    image: a picture to use instead of the bundled one, where an experiment uses one.
    """

    quick: bool = False
    seed: int = 0
    tell: Callable[[str, float], None] = lambda what, share: None
    image: Path | None = None

    def share(self, begin: float, end: float) -> Setting:
        """The same for a part of the work, from the share `begin` to `end`."""
        return replace(self, tell=lambda what, share: self.tell(what, begin + share * (end - begin)))

    def parallel(self, task: Callable[..., _T], cases: Sequence[tuple], words: str, cost: Sequence[float]) -> list[_T]:
        """`task(*case)` of every case, on all threads; `words`, filled in by the case, say what is done."""
        done: list[float] = []

        def one(number: int) -> _T:
            found = task(*cases[number])
            done.append(cost[number])
            self.tell(words.format(*cases[number]), sum(done) / sum(cost))
            return found

        return threads.parallel(one, range(len(cases)))


@dataclass(frozen=True)
class Report:
    """What came out of an experiment.

    title: of the figure's page. paper: what the paper shows. setting: what was run. found: what we see, a line each.
    rows: the numbers, one dict a line of the CSV. draw: paints the figure; size: its inches.
    """

    title: str
    paper: str
    setting: str
    found: Sequence[str]
    rows: Sequence[dict[str, Any]]
    draw: Callable[[Figure], None] | None = None
    size: tuple[float, float] = (12, 4)
    tables: Sequence[str] = field(default=())


def check_drawing(otherwise: str = "") -> None:
    """Say now, not after an hour of computing, that there can be no figures."""
    try:
        new_figure((1, 1))
    except ValueError as error:
        raise ValueError(f"{error}{otherwise}") from None


def paths(folder: Path, name: str, picture: bool) -> list[Path]:
    """The files that `write` makes."""
    return [folder / f"{name}{suffix}" for suffix in (".csv", ".md", *([".png"] if picture else []))]


def write(report: Report, folder: Path, name: str, command: str, picture: bool) -> list[Path]:
    """Write NAME.csv, NAME.md and, with `picture`, NAME.png into the folder; returns them."""
    files = paths(folder, name, picture and report.draw is not None)
    with open(files[0], "w", newline="", encoding="utf-8") as stream:
        columns = list(dict.fromkeys(key for row in report.rows for key in row))
        table = csv.DictWriter(stream, columns, lineterminator="\n")
        table.writeheader()
        six = ({key: f"{v:.6g}" if isinstance(v, float) else v for key, v in row.items()} for row in report.rows)
        table.writerows(six)
    lines = [f"# {report.title}", "", f"Made by `{command}`. {report.setting}", ""]
    if len(files) > 2:
        lines += [f"![{report.title}]({name}.png)", ""]
        assert report.draw is not None
        figure = new_figure(report.size)
        report.draw(figure)
        figure.savefig(files[2], dpi=100, metadata={"Software": None})
    lines += [f"The paper: {report.paper}", "", "What we see:", ""]
    lines += [f"- {line}" for line in report.found]
    for table_lines in report.tables:
        lines += ["", table_lines]
    files[1].write_text("\n".join(lines) + "\n", encoding="utf-8")
    return files


def by(rows: Sequence[dict[str, Any]], *columns: str) -> dict[tuple, list[dict[str, Any]]]:
    """The rows that have the same values in these columns, in the order in which they come."""
    found: dict[tuple, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(tuple(row[column] for column in columns), []).append(row)
    return found


def curve(axes: Axes, rows: Sequence[dict[str, Any]], x: str, y: str, **style: Any) -> None:
    """The line of one method with markers, and with error bars from the column `y +-`."""
    name = rows[0]["method"]
    columns = [row[x] for row in rows], [row[y] for row in rows], [row.get(f"{y} +-", 0) for row in rows]
    look = {"label": name, "color": COLOURS.get(name), "marker": MARKERS.get(name, "o"), "ms": 4, "capsize": 2}
    axes.errorbar(*columns, **{**look, **style})


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """The exponent of y as a power of x, by least squares on logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
