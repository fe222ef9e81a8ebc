"""The page of results: the paper's table beside ours, calibration and speed, all from one file of rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from denoiser.evaluation import plots, table1
from denoiser.evaluation.averages import Average, averages_table, summary
from denoiser.evaluation.rows import Row
from denoiser.evaluation.work import EDGES
from denoiser.images.files import write_bytes

COMMAND = "denoise reproduce table1 --images BSD10 --dir docs"


def write_report(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write results.md and the folder `results` beside it: table1.md, table1.csv and two plots."""
    inside = folder / "results"
    os.makedirs(inside, exist_ok=True)
    lines = table1.lines(rows)
    table = table1.markdown(lines)
    files = {
        inside / "table1.md": f"{table}\n{table1.WHY}\n".encode(),
        inside / "table1.csv": table1.to_csv(lines).encode(),
        inside / "calibration.png": plots.calibration(rows),
        inside / "speed-quality.png": plots.speed_quality(rows),
        folder / "results.md": _page(rows, table).encode(),
    }
    for path, data in files.items():
        write_bytes(path, data)
    return list(files)


def _page(rows: Sequence[Row], table: str) -> str:
    averages = summary(rows).averages
    images = len({row.image for row in rows})
    threads = sorted({row.threads for row in rows})
    return _PAGE.format(
        command=COMMAND,
        images=images,
        threads=" or ".join(map(str, threads)),
        table=table,
        why=table1.WHY,
        claims="".join(f"- {'holds' if holds else 'FAILS'}: {claim}\n" for claim, holds in claims(averages)),
        averages=averages_table(averages),
        verdicts="".join(f"- {verdict}\n" for verdict in _verdicts(averages)),
        ratios=_ratios(rows),
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
        if sigma == 20:
            claim("sigma 20, SSIM: MP-SVGD minus SVGD", ours, _find(averages, "svgd", 50, sigma), "ssim", 0.01)
        if ours is not None and long is not None:
            gap = 100 * (ours.mean["coverage90"] - long.mean["coverage90"])
            text = f"sigma {sigma:g}: the 90 % interval of MP-SVGD covers {gap:+.1f} points against the long run"
            out.append((f"{text} (within 5)", abs(gap) <= 5))
    return out


def _verdicts(averages: Sequence[Average]) -> list[str]:
    """Over- or under-confident: a sentence for each method that has an opinion."""
    out = []
    for a in averages:
        if a.group.particles is not None:
            off, error = 100 * (a.mean["coverage90"] - 0.9), 100 * a.error["coverage90"]
            word = "about right" if abs(off) <= 1 else "over-confident" if off < 0 else "under-confident"
            out.append(
                f"{plots.name(a.group)}, sigma {a.group.sigma:g}: {word}; "
                f"the 90 % interval covers {90 + off:.1f} ± {error:.1f} %"
            )
    return out


def _ratios(rows: Sequence[Row]) -> str:
    """Real error over predicted standard deviation, for the third of the pixels that is surest, and so on."""
    out = ["| method | sigma | surest third | middle third | least sure third |", "|---|---|---|---|---|"]
    predicted = (EDGES[:-1] + EDGES[1:]) / 2
    for average in summary(rows).averages:
        members = [r for r in rows if plots.group_of(r) == average.group]
        if average.group.particles is not None:
            counts, errors = plots.pooled_bins(members)
            # each bin's pixels, shared out to thirds
            ends = np.cumsum(counts) / counts.sum() * 3
            begins = np.concatenate([[0.0], ends[:-1]])
            cells = []
            for third in range(3):
                weights = np.clip(np.minimum(ends, third + 1) - np.maximum(begins, third), 0, None)
                cells.append(f"{np.sqrt((weights @ errors**2) / (weights @ predicted**2)):.2f}")
            out.append(f"| {plots.name(average.group)} | {average.group.sigma:g} | {' | '.join(cells)} |")
    return "\n".join(out) + "\n"


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
bootstrap over the images. The same as [CSV](results/table1.csv).

{table}
{why}

{claims}
## Calibration

How often the true pixel lies in the 50 %, 90 % and 99 % credible intervals; means over the images with their standard
errors. The interval is mean ± t std, with Student's t for the number of draws: exact for a Gaussian posterior, where
empirical quantiles of 50 draws could not even state a 99 % interval. Point estimates have none.

{averages}
Plainly (a point counts as right):

{verdicts}
![RMS error against predicted standard deviation](results/calibration.png)

Above the dashed line errors are larger than predicted: over-confident. Pixels of all images together, sorted by their
predicted standard deviation. The same in three numbers, RMS error over predicted standard deviation (1 is honest):

{ratios}
## Speed and quality

![PSNR against seconds](results/speed-quality.png)

Seconds an image on {threads} threads, compilation not counted; memory is the most that the process held meanwhile. Both
are of the machine that made this page: compare them with each other only.
"""
