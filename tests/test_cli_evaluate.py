"""`denoise evaluate` and `denoise reproduce table1`: what they print, what they refuse, and what survives a kill."""

import csv
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from test_evaluate import images, numbers

from conftest import ROOT
from denoiser import evaluate, read_rows
from denoiser.cli import main
from denoiser.cli.live import Live
from denoiser.evaluation import Step, load_truths
from denoiser.evaluation import to_csv as write_csv
from denoiser.paper import table1

METHODS = ["mp-svgd:iterations=2", "gibbs:samples=4", "tv"]
ASK = ["--sigma", "10", "--method", *METHODS, "--particles", "4"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for name, pixels in images(5).items():
        Image.fromarray(pixels).save(tmp_path / "in" / name)
    (tmp_path / "in" / "notes.txt").write_text("not a picture")
    return tmp_path


def failure(capsys, code, *arguments):
    """The one line of a call that fails."""
    try:
        got = main(list(map(str, arguments)))
    except SystemExit as stop:
        got = stop.code
    assert got == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("denoise: ")
    return line.removeprefix("denoise: ")


def expected():
    return numbers(evaluate(images(5), METHODS, [10], particles=4))


def test_rows_and_tables(folder, capsys):
    assert main(["evaluate", "in", *ASK, "--csv", "r.csv", "--json", "r.json", "--against", "tv"]) == 0
    out = capsys.readouterr().out
    assert "| tv | sigma 10 | 5 |" in out
    assert "| mp-svgd:iterations=2, M = 4 | tv | sigma 10 | 5 |" in out
    assert numbers(read_rows("r.csv")) == numbers(read_rows("r.json")) == expected()
    with open("r.csv", newline="") as file:
        assert float(next(csv.DictReader(file))["psnr"]) > 20  # any program can read it


def test_resume_after_anything(folder, capsys):
    assert main(["evaluate", "in", *ASK, "--csv", "r.csv", "--json", "r.json", "-q"]) == 0
    whole = (folder / "r.csv").read_bytes()
    lines = whole.splitlines(keepends=True)
    (folder / "r.csv").write_bytes(b"".join(lines[:5]) + lines[5][:40])  # cut in the middle of a row
    (folder / "r.json").write_bytes(b"".join((folder / "r.json").read_bytes().splitlines(keepends=True)[:7]))
    capsys.readouterr()
    assert main(["evaluate", "in", *ASK, "--csv", "r.csv", "--json", "r.json", "--resume"]) == 0
    err = capsys.readouterr().err.splitlines()
    assert err[0] == "denoise: r.csv: its last line was half-written; removed, and that row is computed again"
    assert err[1] == "denoise: 7 of 15 rows were there already"
    for name in ("r.csv", "r.json"):
        assert sorted(numbers(read_rows(name))) == sorted(expected())
    more = ["evaluate", "in", "--sigma", "10", "15", "--method", *METHODS, "--particles", "4", "--csv", "r.csv"]
    assert main([*more, "--resume", "-q"]) == 0  # more of the same goes into the same file
    assert len(read_rows("r.csv")) == 30


def test_bad_input_is_one_line(folder, capsys):
    (folder / "empty").mkdir()
    assert failure(capsys, 1, "evaluate", "empty") == "empty: this folder holds no pictures"
    assert failure(capsys, 1, "evaluate", "nowhere") == "nowhere: is not a folder"
    assert "must be one of direct" in failure(capsys, 2, "evaluate", "in", "--method", "nothing")
    assert "no option 'x'" in failure(capsys, 2, "evaluate", "in", "--method", "gibbs:x=1")
    assert "--resume needs the file" in failure(capsys, 2, "evaluate", "in", "--resume")
    assert "two files" in failure(capsys, 2, "evaluate", "in", "--csv", "x", "--json", "./x")
    assert "not among the methods" in failure(capsys, 2, "evaluate", "in", "--against", "bm4d")
    assert failure(capsys, 1, "evaluate", "in", "--sigma", "0") == "noise must be > 0, got white:0"
    assert failure(capsys, 1, "evaluate", "in", "--prior", "x.json").startswith("prior must be one of")
    (folder / "r.csv").write_text("a diary\n")
    assert "exists already" in failure(capsys, 1, "evaluate", "in", *ASK, "--csv", "r.csv")
    assert "is no CSV file of results" in failure(capsys, 1, "evaluate", "in", *ASK, "--csv", "r.csv", "--resume")
    assert (folder / "r.csv").read_text() == "a diary\n"
    (folder / "in" / "broken.png").write_bytes((folder / "in" / "000.png").read_bytes()[:60])
    assert failure(capsys, 1, "evaluate", "in", *ASK, "--csv", "new.csv").startswith("in/broken.png: ")
    assert not (folder / "new.csv").exists()


def test_another_settings_file_is_refused(folder, capsys):
    assert main(["evaluate", "in", *ASK, "--csv", "r.csv", "-q"]) == 0
    before = (folder / "r.csv").read_bytes()
    capsys.readouterr()
    pixels = np.asarray(Image.open("in/003.png")) + 1  # one image is another
    Image.fromarray(pixels).save("in/003.png")
    line = failure(capsys, 1, "evaluate", "in", *ASK, "--csv", "r.csv", "--resume")
    assert line.startswith("r.csv: holds rows of other settings (mp-svgd:iterations=2 on 003.png at sigma 10, seed 0)")
    assert (folder / "r.csv").read_bytes() == before


def test_a_kill_loses_nothing(folder):
    """SIGKILL while two workers compute, then --resume: rows that were there stay, and the others come once."""
    slow = ["--sigma", "10", "--method", "mp-svgd:iterations=8", "gibbs:samples=4", "tv"]
    slow += ["--particles", "4", "--seeds", "4", "--csv", "r.csv", "-q"]
    process = subprocess.Popen(
        [sys.executable, "-m", "denoiser", "evaluate", "in", *slow, "--workers", "2"],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while not (folder / "r.csv").exists() or (folder / "r.csv").read_bytes().count(b"\n") < 8:
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < until
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stderr.close()
    saved = (folder / "r.csv").read_bytes()
    assert 8 <= saved.count(b"\n") < 60
    assert main(["evaluate", "in", *slow, "--resume"]) == 0
    after = (folder / "r.csv").read_bytes()
    assert after.startswith(saved[: saved.rfind(b"\n") + 1])
    rows = read_rows("r.csv")
    assert len({row.key for row in rows}) == len(rows) == 60
    until = time.monotonic() + 10
    while _alive(process.pid):  # the workers must notice that they are alone
        assert time.monotonic() < until
        time.sleep(0.1)


def _alive(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_live_table(monkeypatch, capsys):
    class Terminal:
        def __init__(self):
            self.text = ""

        def isatty(self):
            return True

        def write(self, text):
            self.text += text

        def flush(self):
            pass

    rows = evaluate(images(2), ["tv", "map"], [10, 20])
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("denoiser.cli.live._REDRAW", 0)
    live = Live([], quiet=False)
    for n, row in enumerate(rows, 1):
        live.show(Step(row, n, len(rows), 1.0, 90.0 - n))
    live.close()
    *_, last, empty = terminal.text.split("\x1b[J")
    assert empty == ""
    lines = last.splitlines()
    assert lines[0].split() == ["PSNR,", "dB", "(rows)", "sigma", "10", "sigma", "20"]
    assert lines[1].split()[0::2] == ["tv", "(2)", "(2)"]
    assert f"{(rows[0].psnr + rows[4].psnr) / 2:.2f} (2)" in lines[1]
    assert lines[3].startswith("8 of 8 rows, took 2 s; map on 001.png")
    assert "about 84 s to go" in terminal.text


def test_lines_when_there_is_no_terminal(monkeypatch, capsys):
    (row,) = evaluate(images(1), ["tv"], [10])
    monkeypatch.setattr("denoiser.cli.live._EVERY", 0)
    for quiet in (True, False):
        Live([], quiet).show(Step(row, 1, 3, 1.0, 200.0))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("1 of 3 rows, about 4 min to go; tv on 000.png at sigma 10: ")


# ---- table 1


def test_the_plan_is_the_papers():
    cases = table1.plan_table(load_truths(images(2)))
    ours = {(c.method, c.particles) for c in cases if c.prior.name == "pairwise"}
    assert set(table1.PUBLISHED) <= ours
    assert {("tv", None), ("nlm", None), ("wavelet", None)} <= ours
    assert len({c.key for c in cases}) == len(cases) == 2 * 2 * (len(ours) + 1 + len(table1.LEARNED))
    options = {(c.method, c.particles): c.sampler for c in cases}
    assert options[table1.ONE_CHAIN, 50].chains == 1
    assert options[table1.LONG, 600].chains == 2


def test_a_page_from_rows(folder, capsys):
    """All files from a file of rows: computed by few particles, and called what the table calls them."""
    pytest.importorskip("matplotlib")
    rows = []
    for method, count, name in (
        ("map", None, "map"), ("gibbs", 6, table1.LONG), ("gibbs:chains=1", 4, table1.ONE_CHAIN),
        ("mp-svgd:iterations=2", 4, "mp-svgd"), ("svgd:iterations=2", 4, "svgd"), ("tv", None, "tv"),
    ):  # fmt: skip
        m = {None: None, 6: 600, 4: 50}[count]
        made = evaluate(images(3), [method], [10, 20], particles=count)
        rows += [replace(row, method=name, particles=m) for row in made]
    write_csv(rows, "rows.csv")
    (folder / "out" / "results").mkdir(parents=True)
    (folder / "out" / "results" / "intervals.md").write_text("| of its own |\n")
    assert main(["reproduce", "table1", "--rows", "rows.csv", "--dir", "out"]) == 0
    printed = capsys.readouterr().out
    table = (folder / "out" / "results" / "table1.md").read_text()
    assert table in printed
    (line,) = [line for line in table.splitlines() if line.startswith("| MP-SVGD | 50 |")]
    mean = np.mean([r.psnr for r in rows if r.method == "mp-svgd" and r.sigma == 10])
    assert line.split(" | ")[2] == "32.09 (0.905)"
    assert line.split(" | ")[3].startswith(f"{mean:.2f} (")
    with open("out/results/table1.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 12
    ours = next(x for x in lines if x["method"] == "MP-SVGD" and x["sigma"] == "10")
    assert float(ours["psnr"]) == pytest.approx(mean, abs=1e-4)
    assert float(ours["published_psnr"]) == 32.09
    page = (folder / "out" / "results.md").read_text()
    assert "nan" not in page
    assert "{" not in page
    assert page.endswith("| of its own |\n")
    assert page.count("holds:") + page.count("FAILS:") == 9  # M = 100 is not there to be judged
    for name in ("calibration.png", "speed-quality.png"):
        with Image.open(folder / "out" / "results" / name) as picture:
            assert picture.width > 600


def test_verdicts_and_claims_can_fail():
    from denoiser.evaluation import summary
    from denoiser.paper.results_page import claims, thirds, verdict

    rows = evaluate(images(3), ["gibbs"], [10], particles=8)
    counts = (0,) * 9 + (900,) + (0,) * 14  # all predicted 0.475 sigma
    for covers, ratio, word in ((0.7, 3, "over-confident"), (0.9, 1, "about right"), (0.99, 0.5, "under-confident")):
        made = [
            replace(row, coverage90=covers, bin_counts=counts, bin_errors=tuple([4.75 * ratio] * 24), method="mp-svgd",
                    particles=50, psnr=30.0) for row in rows
        ]  # fmt: skip
        assert verdict(summary(made).averages[0]) == word
        assert thirds(made) == pytest.approx([ratio] * 3)
        long = [replace(row, method=table1.LONG, particles=600, coverage90=0.92, psnr=30.06) for row in made]
        judged = dict(claims(summary(made + long).averages))
        assert list(judged.values()) == [False, covers == 0.9]


def test_reproduce_needs_images(capsys, monkeypatch, tmp_path):
    monkeypatch.delenv("DENOISER_BSD10", raising=False)
    assert "--images FOLDER" in failure(capsys, 2, "reproduce", "table1", "--dir", tmp_path / "x")
    assert not (tmp_path / "x").exists()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "pip install '.[plots]'" in failure(capsys, 1, "reproduce", "table1", "--images", tmp_path)


@pytest.mark.parametrize("name", ["mine.json", "mine.csv"])
def test_somebody_elses_file_is_left_alone(folder, capsys, name):
    """Even without a line break at its end, which could be taken for half a row."""
    words = '{"my": "settings", "n": [1, 2, 3]}'
    with open(name, "w") as file:
        file.write(words)
    flag = f"--{name[5:]}"
    assert "nothing was changed" in failure(capsys, 1, "evaluate", "in", "--method", "tv", flag, name, "--resume")
    with open(name) as file:
        assert file.read() == words


def test_more_bad_input(folder, capsys, tmp_path):
    call = ["evaluate", "in", "--method", "tv"]
    assert "is no plain file" in failure(capsys, 1, *call, "--csv", "/dev/null")
    assert "too many" in failure(capsys, 1, *call, "--seeds", "99999999999")
    assert "must be <= 1e+06" in failure(capsys, 2, *call, "--sigma", "1e300")
    for address in ("nonsense", "tls://127.0.0.1:1", "tcp://127.0.0.1:99999999"):
        assert "must look like tcp://HOST:PORT" in failure(capsys, 1, *call, "--scheduler", address)
    (tmp_path / "results.md").write_text("my own notes")
    (tmp_path / "empty.csv").write_text("")
    call = ["reproduce", "table1", "--rows", tmp_path / "empty.csv"]
    assert "holds no rows" in failure(capsys, 1, *call)
    assert "left alone" in failure(capsys, 1, *call, "--dir", tmp_path)
    assert (tmp_path / "results.md").read_text() == "my own notes"
