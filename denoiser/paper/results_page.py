"""The page of results: the paper's table beside ours, calibration and speed, all from one file of rows."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from denoiser.evaluation.averages import Average, covers, grouped, number, summary, table, with_error
from denoiser.evaluation.rows import Row
from denoiser.evaluation.work import EDGES
from denoiser.files import write_bytes
from denoiser.paper import results_plots as plots
from denoiser.paper import table1

COMMAND = "denoise reproduce table1 --images BSD10 --dir docs"


def check_page(folder: Path) -> None:
    """Refuse a folder whose results.md is somebody's own."""
    page = folder / "results.md"
    if page.exists() and not page.read_bytes().startswith(_PAGE.partition("\n")[0].encode()):
        raise ValueError(f"{page}: is not a page of results of ours, and is left alone; give another --dir")


def write_report(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write results.md and the folder `results` beside it: table1.md, table1.csv and two plots."""
    inside = folder / "results"
    os.makedirs(inside, exist_ok=True)
    lines = table1.lines(rows)
    files = {
        inside / "table1.md": f"{table1.markdown(lines)}\n{table1.WHY}\n".encode(),
        inside / "table1.csv": table1.to_csv(lines).encode(),
        inside / "calibration.png": plots.calibration(rows),
        inside / "speed-quality.png": plots.speed_quality(rows),
        folder / "results.md": (_page(rows, lines) + _measured(inside)).encode(),
    }
    for path, data in files.items():
        write_bytes(path, data)
    return list(files)


def _measured(folder: Path) -> str:
    """The sections on what benchmarks have printed into files of the folder, as far as there are any."""
    files = ((folder / f"{name}.md", section) for name, section in _SECTIONS.items())
    return "".join(section.format(table=file.read_text("utf-8")) for file, section in files if file.is_file())


def _page(rows: Sequence[Row], lines: Sequence[table1.Line]) -> str:
    averages = summary(rows).averages
    images = len({row.image for row in rows})
    threads = sorted({row.threads for row in rows})
    return _PAGE.format(
        command=COMMAND,
        images=images,
        threads=" or ".join(map(str, threads)),
        table=table1.markdown(lines),
        why=table1.WHY,
        claims="".join(f"- {'holds' if holds else 'FAILS'}: {claim}\n" for claim, holds in claims(averages)),
        calibration=_calibration_table(rows, lines),
        plainly=_plainly(rows, averages),
        speed=_speed_table(lines),
    )


def _find(averages: Iterable[Average], method: str, particles: int | None, sigma: float) -> Average | None:
    wanted = (method, particles, sigma)
    return next((a for a in averages if (a.group.method, a.group.particles, a.group.sigma) == wanted), None)


def claims(averages: Sequence[Average]) -> list[tuple[str, bool]]:
    """What we say of MP-SVGD, and whether these rows bear it out; claims that the rows cannot judge are left out."""
    out: list[tuple[str, bool]] = []

    def claim(text: str, ours: Average | None, other: Average | None, figure: str, least: float) -> None:
        if ours is not None and other is not None:
            gain = ours.mean[figure] - other.mean[figure]
            digits = 2 if figure == "psnr" else 4
            out.append((f"{text}: {gain:+.{digits}f} (at least {least:+g})", gain >= least))

    for sigma, above_chain, above_long in ((10.0, 0.15, -0.05), (20.0, 0.10, -0.12)):
        ours, hundred = (_find(averages, "mp-svgd", m, sigma) for m in (50, 100))
        long = _find(averages, table1.LONG, 600, sigma)
        head = f"sigma {sigma:g}, PSNR: MP-SVGD, M = 50, minus"
        claim(f"{head} 50 draws of one chain", ours, _find(averages, table1.ONE_CHAIN, 50, sigma), "psnr", above_chain)
        claim(f"{head} the long run", ours, long, "psnr", above_long)
        claim(f"{head} SVGD", ours, _find(averages, "svgd", 50, sigma), "psnr", 0.25)
        claim(f"sigma {sigma:g}, PSNR: MP-SVGD, M = 100 minus M = 50", hundred, ours, "psnr", -0.02)
        batches, more = (_find(averages, "mp-svgd-b", m, sigma) for m in (50, 100))
        claim(f"sigma {sigma:g}, PSNR: MP-SVGD-b, M = 50, minus the long run", batches, long, "psnr", -0.05)
        claim(f"sigma {sigma:g}, PSNR: MP-SVGD-b, M = 100 minus M = 50", more, batches, "psnr", 0.0)
        if sigma == 20:
            claim("sigma 20, SSIM: MP-SVGD minus SVGD", ours, _find(averages, "svgd", 50, sigma), "ssim", 0.01)
        if ours is not None and long is not None:
            gap = 100 * (ours.mean["coverage90"] - long.mean["coverage90"])
            text = f"sigma {sigma:g}: the 90 % interval of MP-SVGD covers {gap:+.1f} points against the long run"
            out.append((f"{text} (within 5)", abs(gap) <= 5))
    return out


def verdict(average: Average) -> str:
    """Whether its 90 % interval holds too little or too much; a point, or two standard errors, count as right."""
    off, error = average.mean["coverage90"] - 0.9, average.error["coverage90"]
    if not abs(off) > max(0.01, 2 * error):  # the error of a single image is nan
        return "about right"
    return "over-confident" if off < 0 else "under-confident"


def thirds(rows: Sequence[Row]) -> list[float]:
    """RMS error over predicted std (1 is honest), of the third of all pixels that is surest, the middle, the last."""
    counts, errors = plots.pooled_bins(rows)
    predicted = (EDGES[:-1] + EDGES[1:]) / 2
    ends = np.cumsum(counts) / counts.sum() * 3
    begins = np.concatenate([[0.0], ends[:-1]])
    out = []
    for third in range(3):
        share = np.clip(np.minimum(ends, third + 1) - np.maximum(begins, third), 0, None)  # of each bin's pixels
        out.append(float(np.sqrt((share @ errors**2) / (share @ predicted**2))))
    return out


def _calibration_table(rows: Sequence[Row], lines: Sequence[table1.Line]) -> str:
    heads = ["method", "M", "sigma", "50 % covers", "90 % covers", "99 % covers", "verdict", "surest", "middle", "last"]
    groups = grouped(rows)
    out = []
    for line in lines:
        for sigma, average in line.ours.items():
            if not math.isnan(average.mean["coverage90"]):
                ratios = [f"{ratio:.2f}" for ratio in thirds(groups[average.group])]
                out.append(
                    [line.title, line.particles or "", f"{sigma:g}", *covers(average), verdict(average), *ratios]
                )
    return table(heads, out) + "\n"


def _plainly(rows: Sequence[Row], averages: Sequence[Average]) -> str:
    """The table in sentences, for the methods that matter."""
    groups = grouped(rows)
    out = []
    for method, prior, count, words in (
        (table1.LONG, "pairwise", 600, "The pairwise model itself (long Gibbs run)"),
        ("mp-svgd", "pairwise", 50, "MP-SVGD, M = 50"),
        ("svgd", "pairwise", 50, "SVGD, M = 50"),
        ("gibbs", "foe3x3", 200, "The 3x3 model (Gibbs)"),
        ("direct", "learned", None, "The learned field, four passes"),
    ):
        for sigma in table1.SIGMAS:
            average = next((a for a in averages if a.group[:4] == (method, prior, count, sigma)), None)
            if average is not None:
                surest, _, last = thirds(groups[average.group])
                _, most, _ = covers(average)
                out.append(
                    f"- {words}, sigma {sigma:g}: {verdict(average)}. The 90 % interval covers {most} %. Errors are "
                    f"{surest:.2f} times the prediction where it is surest, {last:.2f} times where it is least sure.\n"
                )
    return "".join(out)


def _speed_table(lines: Sequence[table1.Line]) -> str:
    out = []
    for line in lines:
        for sigma, average in line.ours.items():
            psnr, memory = with_error(average, "psnr", 2), number(average.mean["memory"], 0)
            out.append([line.title, line.particles or "", f"{sigma:g}", psnr, f"{average.mean['seconds']:.3g}", memory])
    return table(["method", "M", "sigma", "PSNR, dB", "seconds", "memory, MB"], out) + "\n"


_PAGE = """\
# Results

Everything on this page, tables and plots, is written by one command from the rows in `results/rows.csv`:

    {command}

BSD10 is a folder with the first ten images of BSD68, reduced to 240x160. It computes the rows that `rows.csv` lacks,
or with `--rows docs/results/rows.csv` none. {images} images; image k (from 0, by name) has the noise of
`numpy.random.default_rng(k)`, neither clipped nor rounded, the same for every method. Everything but the seconds and
the memory follows from the seeds to the last digit, on any number of workers.

## Table 1 of the paper

PSNR in dB (SSIM). "Minus long run": the mean paired difference in PSNR to 600 Gibbs draws, with the 95 % interval of a
bootstrap over the images. The same as [CSV](results/table1.csv). Made by `{command}`.

{table}
{why}

{claims}
## Calibration

How often the true pixel lies in the 50 %, 90 % and 99 % credible intervals: means over the images with their standard
errors. The interval is mean ± t std, with Student's t for the number of draws: exact for a Gaussian posterior, where
empirical quantiles of 50 draws could not even state a 99 % interval. A point, or two standard errors, count as right.
The last three columns are RMS error over predicted standard deviation (1 is honest, more is over-confident) for the
third of all pixels that the method is surest of, the middle third, and the last. Point estimates have no opinion.

{calibration}
Plainly:

{plainly}
![RMS error against predicted standard deviation](results/calibration.png)

Pixels of all images together, sorted by their predicted standard deviation. Above the dashed line errors are larger
than predicted: over-confident. Made by `{command}`.

## Speed and quality

![PSNR against seconds](results/speed-quality.png)

{speed}
Seconds an image on {threads} threads, one image at a time, compilation not counted. Memory is the most that the whole
process, Python and libraries included, held during the run. Both are of the machine that made this page, and on a
shared machine they wander: compare them with each other only. Made by `{command}`.
"""

_SECTIONS = {
    "colour": """
## In colour

The middle of five colour pictures of BSD68 (240 x 160 pixels), white noise of sigma 25 in every channel. The
posterior of every sampler is the learned field. Made by `python benchmarks/learned.py FOLDER --only colour`.

{table}""",
    "intervals": """
## The 90 % interval of every preset

How often the 90 % interval holds the true pixel, in per cent: the mean over the pictures, and the worst and best one.
Grey pictures; promised is 90 ± 3 for the means. The learned field never saw them. Made by
`python benchmarks/intervals.py BSD10`; other rows with `--images`, `--side`, `--sigma` and `--only`.

{table}""",
}
