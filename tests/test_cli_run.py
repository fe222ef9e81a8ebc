"""The `denoise` command on real files: what goes in, what comes out, and what must never happen."""

import io
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time

import image_files as made
import numba
import numpy as np
import pytest
from PIL import Image
from test_images_safety import mutated

from conftest import ROOT
from denoiser import images, jit
from denoiser.cli import main
from denoiser.images import tiff_write
from denoiser.noise import Noise

QUICK = ["--method", "mp-svgd", "--particles", "2", "--iterations", "2"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def command(*arguments, **options):
    """The command as a process of its own."""
    call = [sys.executable, "-m", "denoiser", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(call, env=ENVIRONMENT, **{**pipes, **options})


def denoise(*arguments, quick=True):
    return main(["run", *(QUICK if quick else []), *map(str, arguments)])


def picture(seed=0, shape=(24, 32)):
    """A slope with noise: something to measure and something to remove."""
    rows, columns = np.indices(shape[:2])
    values = 60.0 + 3 * columns + 20 * (rows > 9)
    values = values if len(shape) == 2 else np.repeat(values[..., None], 3, axis=2)
    return np.clip(values + np.random.default_rng(seed).normal(0, 8, shape), 0, 255).round().astype(np.uint8)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Image.fromarray(picture()).save("a.png")
    Image.fromarray(picture(1, (24, 32, 3))).save("b.jpg", quality=95)
    return tmp_path


def tree(where):
    files = (p for p in where.rglob("*") if p.is_file())
    return {str(p.relative_to(where)): p.read_bytes() for p in files if p.name != ".denoise-journal"}


def wrong(capsys, *arguments):
    """The one line that wrong usage prints."""
    with pytest.raises(SystemExit) as stop:
        denoise(*arguments, quick=False)
    assert stop.value.code == 2
    return capsys.readouterr().err.strip().splitlines()[-1]


# ---- where results go


def test_beside_the_input(folder, capsys):
    before = tree(folder)
    assert denoise("a.png", "b.jpg") == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("a.png: noise 7")
    assert "(measured)" in out[0]
    assert out[1].endswith("-> b-denoised.jpg")
    after = tree(folder)
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"a-denoised.png", "b-denoised.jpg"}
    flat = lambda name: np.abs(np.diff(images.read(name).pixels.astype(float), axis=0)).mean()  # noqa: E731
    assert flat("a-denoised.png") < 0.8 * flat("a.png")


def test_run_is_the_default_command(folder):
    assert main(["a.png", "-o", "x.png", *QUICK]) == main(["run", "a.png", "-o", "y.png", *QUICK]) == 0
    assert (folder / "x.png").read_bytes() == (folder / "y.png").read_bytes()


def test_folders(folder):
    (folder / "in" / "deep").mkdir(parents=True)
    for name in ("a.png", "deep/a.png", "deep/a-denoised.png", "deep/.hidden.png", "deep/text.txt"):
        (folder / "in" / name).write_bytes((folder / "a.png").read_bytes())
    assert denoise("in") == 1
    assert denoise("-r", "in", "--dir", "in/out") == 0
    assert sorted(tree(folder / "in" / "out")) == ["a.png", "deep/a.png"]
    assert denoise("-r", "in", "--dir", "in/out", "--skip-existing") == 0  # the results are not taken for inputs
    assert sorted(tree(folder / "in" / "out")) == ["a.png", "deep/a.png"]


def test_patterns(folder, capsys):
    (folder / "c[1].png").write_bytes((folder / "a.png").read_bytes())
    assert denoise("*.png", "c[1].png", "--dir", "out") == 0
    assert sorted(tree(folder / "out")) == ["a.png", "c[1].png"]
    assert denoise("*.tif") == 1
    assert capsys.readouterr().err == "denoise: *.tif: no file matches\n"


def test_pipe(folder):
    for output in ([], ["-o", "x.jpg"]):
        process = command("-", *output, *QUICK, text=False, stdin=subprocess.PIPE)
        out, err = process.communicate((folder / "a.png").read_bytes())
        assert process.returncode == 0, err
        assert err.startswith(b"standard input: noise 7" if not output else b"")
        assert images.read(io.BytesIO(out) if not output else "x.jpg").pixels.shape == (24, 32)


def test_nothing_is_overwritten(folder, capsys):
    (folder / "a-denoised.png").write_bytes(b"mine")
    assert denoise("a.png") == 1
    assert "a-denoised.png: exists already" in capsys.readouterr().err
    assert denoise("a.png", "--skip-existing") == 0
    assert (folder / "a-denoised.png").read_bytes() == b"mine"
    assert denoise("a.png", "--overwrite") == 0
    assert images.read("a-denoised.png").pixels.shape == (24, 32)


def test_an_input_is_never_an_output(folder, capsys):
    os.link("a.png", "hard.png")
    os.symlink("a.png", "soft.png")
    (folder / "d").mkdir()
    before = tree(folder)
    for name in ("a.png", "hard.png", "soft.png", "d/../a.png"):
        for more in ([], ["--overwrite"], ["--skip-existing"]):
            assert denoise("a.png", "-o", name, *more) == 1
            assert "is an input" in capsys.readouterr().err
    assert denoise("a.png", "--dir", ".", "--overwrite") == 1
    assert denoise("a.png", "-o", "x.png", "--std", "a.png", "--overwrite") == 1
    assert denoise("a.png", "b.jpg", "soft.png", "--dir", "d", "--overwrite") == 0
    assert tree(folder) == {**before, **{f"d/{k}": v for k, v in tree(folder / "d").items()}}


def test_two_results_of_one_name(folder, capsys):
    (folder / "d").mkdir()
    (folder / "d" / "a.png").write_bytes((folder / "b.jpg").read_bytes())
    (folder / "d" / "b.jpg").write_bytes((folder / "b.jpg").read_bytes())
    assert denoise("b.jpg", "d/b.jpg", "--dir", "out", "--overwrite") == 1
    assert "out/b.jpg: is already the result of b.jpg" in capsys.readouterr().err
    assert denoise("a.png", "-o", "x.png", "--std", "x.png") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.png", "b.jpg", "-o", "x.png"], "-o is for one input, got 2; use --dir"),
        (["a.png", "b.jpg", "--std", "x.png"], "--std is for one input"),
        (["a.png", "--std", "x.jpg"], "must end in .png or .tif"),
        (["a.png", "--samples", "x.png"], "must end in .npz"),
        (["a.png", "-o", "x.gif"], ".gif cannot be written"),
        (["a.png", "--sigma", "-3"], "must be >= 0, got -3"),
        (["a.png", "--sigma", "much"], "must be a number, got 'much'"),
        (["a.png", "--strength", "nan"], "must be finite, got nan"),
        (["a.png", "--method", "mp-svgd", "--particles", "0"], "particles must be >= 2, got 0"),
        (["a.png", "--iterations", "9"], "--iterations is no option of the method direct"),
        (["a.png", "--method", "gibbs", "--particles", "5"], "--particles is no option of the method gibbs"),
        (["a.png", "--prior", "magic"], "prior must be one of"),
        (["a.png", "--threads", "0"], "must be >= 1, got 0"),
        (["a.png", "--memory", "lots"], "must be a size such as 500M"),
        (["a.png", "--seed", "-1"], "must be >= 0"),
        (["a.png", "--overwrite", "--skip-existing"], "do not go together"),
        (["-", "--json"], "--json would mix"),
        (["a.png", "--dir", "b.jpg"], "is not a folder"),
        (["a.png", "--magic"], "unrecognized arguments: --magic"),
        (["-q"], "the following arguments are required: INPUT"),
    ],
)
def test_wrong_usage(folder, capsys, arguments, message):
    before = tree(folder)
    assert message in wrong(capsys, *arguments)
    assert tree(folder) == before


# ---- what the result is


@pytest.mark.parametrize("name", ["png16-grey", "png16-rgb", "png16-rgba", "tiff16-rgb", "tiff16-grey", "png-rgba"])
@pytest.mark.parametrize("how", [["--strength", "0"], ["--sigma", "0"]])
def test_strength_0_copies_every_bit(folder, name, how):
    data = made.EVERY.get(name) or pytest.skip(f"no {name}")
    (folder / "in").write_bytes(data)
    assert denoise("in", *how) == 0
    (result,) = folder.glob("in-denoised*")
    one, two = images.read("in"), images.read(result)
    assert np.array_equal(one.pixels, two.pixels)
    assert one.pixels.dtype == two.pixels.dtype
    assert (one.alpha is None) == (two.alpha is None)
    assert one.alpha is None or np.array_equal(one.alpha, two.alpha)


def test_a_flat_picture_has_no_noise(folder, capsys):
    Image.fromarray(np.full((24, 32), 99, np.uint8)).save("flat.png")
    assert denoise("flat.png") == 0
    assert capsys.readouterr().out == "flat.png: copied, noise level 0.0 (measured) -> flat-denoised.png\n"


@pytest.mark.parametrize("orientation", range(1, 9))
def test_upright_once(folder, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(picture(0, (24, 32, 3))).save("turned.jpg", exif=exif, icc_profile=made.ICC)
    assert denoise("turned.jpg", "--strength", "0") == 0
    with Image.open("turned-denoised.jpg") as result, Image.open("turned.jpg") as source:
        assert result.getexif().get(0x0112, 1) == 1
        assert result.info["icc_profile"] == made.ICC
        assert result.size == ((24, 32) if orientation >= 5 else (32, 24))
    from PIL import ImageOps

    with Image.open("turned.jpg") as source:
        wanted = np.asarray(ImageOps.exif_transpose(source), float)
    assert np.abs(images.read("turned-denoised.jpg").pixels - wanted).mean() < 2


def test_depth_does_not_matter(folder):
    """The noise level is in grey levels of 255 for 8 and for 16 bits."""
    images.write_uint16_png("deep.png", picture().astype(float) * 257)
    assert denoise("a.png", "deep.png", "--sigma", "8", "--dir", "out") == 0
    deep, plain = images.read("out/deep.png").pixels, images.read("out/a.png").pixels
    assert deep.dtype == np.uint16
    assert np.abs(deep / 257 - plain).max() <= 0.51


def test_other_outputs(folder, capsys):
    more = ["--std", "s.png", "--residual", "r.tif", "--samples", "p.npz", "--json", "--sigma", "8"]
    assert denoise("a.png", "-o", "x.tif", *more) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["status"], report["output"], report["sigma"], report["measured"]) == ("done", "x.tif", 8, False)
    numbers = np.load("p.npz", allow_pickle=False)
    assert numbers["samples"].shape == (2, 24, 32)
    std = images.read("s.png").pixels
    assert std.dtype == np.uint16
    assert np.allclose(std / 257, numbers["std"], atol=0.01)
    assert np.allclose(images.read("r.tif").pixels, images.read("a.png").pixels - numbers["mean"], atol=1e-3)
    assert images.read("s-map.png").pixels.shape[2] == 3
    assert np.abs(images.read("x.tif").pixels - numbers["mean"]).max() <= 0.51
    before = tree(folder)
    assert denoise("a.png", "-o", "y.tif", *more) == 1  # s.png is there already: nothing is computed or written
    assert tree(folder) == before


def test_experiments(folder, capsys):
    assert denoise("a.png", "--add-noise", "20", "--json", "-q") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["psnr"] > report["psnr_before"] + 2
    assert report["ssim"] > report["ssim_before"]
    assert report["measured"]
    assert denoise("a.png", "-o", "x.png", "--reference", "a.png", "--json", "-q") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["psnr_before"] is None  # infinite, which JSON cannot say
    assert report["psnr"] > 20
    assert denoise("a.png", "-o", "y.png", "--reference", "b.jpg") == 1
    assert "b.jpg: must have the shape of the picture" in capsys.readouterr().err


def test_quality_and_options(folder, capsys):
    few = ["--gibbs-samples", "4", "--burn-in", "1", "--json"]
    for words, found in {
        "--quality best --json": ("direct", "learned-best"),
        "--json": ("direct", "learned"),
        "--quality fast --json": ("direct", "learned-fast"),
        "--quality fast --prior pairwise --iterations 2 --json": ("mp-svgd", "pairwise"),
        " ".join(["--quality best --prior pairwise", *few]): ("gibbs", "pairwise"),
        " ".join(["--quality best --method gibbs", *few]): ("gibbs", "foe3x3"),
        " ".join(["--method gibbs", *few]): ("gibbs", "pairwise"),
    }.items():
        assert denoise("a.png", "-o", "x.png", "--overwrite", *words.split(), quick=False) == 0
        report = json.loads(capsys.readouterr().out)
        assert (report["method"], report["prior"]) == found, words
    assert denoise("b.jpg", "--quality", "fast", "--method", "map", "--json", quick=False) == 0
    assert json.loads(capsys.readouterr().out)["method"] == "map"


def test_threads_and_seed(folder):
    import denoiser

    threads = denoiser.get_threads()
    try:
        for name, more in (("1", ["--threads", "1"]), ("2", ["--threads", "2"]), ("3", ["--seed", "1"])):
            assert denoise("b.jpg", "-o", f"{name}.png", *more) == 0
    finally:
        denoiser.set_threads(threads)
    one, two, other = ((folder / f"{n}.png").read_bytes() for n in "123")
    assert one == two != other


# ---- names and files that are awkward


@pytest.mark.parametrize(
    "name", ["ü ñ 木.png", "two words.png", "-dash.png", "new\nline.png", "a[b]*.png", "x.PNG", "x"]
)
def test_awkward_names(folder, name, capsys):
    (folder / name).write_bytes((folder / "a.png").read_bytes())
    (folder / "a.png").unlink()
    assert main([*QUICK, "--json", "--", name]) == 0
    stem, suffix = os.path.splitext(name)
    assert json.loads(capsys.readouterr().out)["output"] == f"{stem}-denoised{suffix or '.png'}"
    assert images.read(f"{stem}-denoised{suffix or '.png'}").pixels.shape == (24, 32)
    assert main([*QUICK, "--", name]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_name_that_is_not_unicode(folder):
    os.rename(b"a.png", b"\xff\xfe.png")
    process = command(os.fsdecode(b"\xff\xfe.png"), *QUICK)
    _, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert os.path.exists(b"\xff\xfe-denoised.png")


def test_awkward_files(folder, capsys):
    os.symlink("nowhere.png", "dangling.png")
    os.mkfifo("fifo.png")
    (folder / "x.png").mkdir()
    (folder / "empty.png").write_bytes(b"")
    (folder / "page.png").write_text("<svg/>")
    reasons = {
        "dangling.png": "is a link to nowhere.png, which does not exist",
        "fifo.png": "is a pipe, not an image file",
        "x.png": "is a folder; -r takes the pictures in it",
        "empty.png": "the file is empty",
        "page.png": "not a PNG, JPEG",
        "none.png": "No such file or directory",
        "": "is not a name",
    }
    for name, reason in reasons.items():
        began = time.monotonic()
        assert denoise("--sigma", "5", "--", name) == 1
        assert time.monotonic() - began < 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"denoise: {name}: ")
        assert reason in line
    # the others are still done
    assert denoise("a.png", *filter(None, reasons), "b.jpg", "--json", "--sigma", "5") == 1
    reports = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [r["status"] for r in reports] == ["done", *["failed"] * 6, "done"]


def test_files_that_claim_too_much(folder, capsys):
    """Every nasty file: one line of error, exit 1, at most 2 s each, and the good one is still done."""
    nasty = {**made.NASTY, **{name: data for name, (data, _) in made.REFUSED.items()}}
    for name, data in nasty.items():
        (folder / f"nasty-{name}").write_bytes(data)
    names = [f"nasty-{name}" for name in nasty]
    began = time.monotonic()
    assert denoise("--sigma", "5", "--json", "-q", *names, "a.png") == 1
    assert time.monotonic() - began < 2 * len(names)
    captured = capsys.readouterr()
    states = [json.loads(line)["status"] for line in captured.out.splitlines()]
    lines = captured.err.splitlines()
    assert states[-1] == "done"
    assert states.count("failed") == len(lines) - 1  # the last one counts them
    assert states.count("failed") >= len(made.REFUSED) + 10  # some only look nasty
    assert all(line.startswith("denoise: nasty-") for line in lines[:-1])
    assert lines[-1] == f"denoise: {len(lines) - 1} of {len(names) + 1} inputs failed"


def batch_with_times(names):
    """Copy files by the command as a process: its reports, its errors, and the seconds that each file took."""
    call = ["a.png", *names, "--sigma", "0", "--dir", "out", "--overwrite", "--json", "-q"]
    with open("errors", "w+") as errors, command(*call, stderr=errors) as process:
        reports, times = [], []
        for line in process.stdout:
            reports.append(json.loads(line))
            times.append(time.monotonic())
        assert process.wait() == 1
        errors.seek(0)
        return reports[1:], errors.read().splitlines(), np.diff(times)


def damaged_batch(folder, first, last):
    """Damaged files through the command: each is copied or refused in one line, within 2 s, and none stops it."""
    names = np.array([f"{seed}.png" for seed in range(first, last)])
    for seed, name in enumerate(names, first):
        (folder / name).write_bytes(mutated(random.Random(seed))[1])
    reports, lines, seconds = batch_with_times(names)
    assert [r["input"] for r in reports] == list(names)
    failed = [r["input"] for r in reports if r["status"] == "failed"]
    assert 0 < len(failed) < len(names)
    assert [line.split(": ")[1] for line in lines[:-1]] == failed
    assert lines[-1] == f"denoise: {len(failed)} of {len(names) + 1} inputs failed"
    late = names[seconds > 2]  # twice, because a disk may be busy
    assert not len(late) or batch_with_times([*late, "none.png"])[2].max() < 2, late


def test_300_damaged_files(folder):
    damaged_batch(folder, 10_000, 10_300)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_10000_damaged_files(folder, block):
    damaged_batch(folder, 1000 * block, 1000 * (block + 1))


def test_awkward_targets(folder, capsys, monkeypatch):
    (folder / "x.png").mkdir()
    os.mkfifo("fifo.png")
    (folder / "file").write_text("")
    os.symlink("nowhere.png", "dangling.png")
    for target, reason in {
        "x.png": "is a folder",
        "fifo.png": "exists already",
        "none/x.png": "there is no folder",
        "file/x.png": "is not a folder",
        "dangling.png": "exists already",
        "y" * 300 + ".png": "too long",
    }.items():
        monkeypatch.setattr("denoiser.run.Request.iterate", None)  # refused before anything is computed
        assert denoise("a.png", "-o", target) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"denoise: {target}: ")
        assert reason in line
    assert denoise("a.png", "-o", "fifo.png", "--overwrite") == 1
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # we may be root, whom nothing is read-only for
    assert denoise("a.png", "-o", "new.png") == 1
    assert "no permission to write in" in capsys.readouterr().err
    assert denoise("a.png", "-o", "b-16.jpg", "--samples", "none/x.npz") == 1


def test_formats_are_checked_before_anything_is_computed(folder, capsys, monkeypatch):
    images.write_uint16_png("deep.png", np.ones((9, 9)))
    monkeypatch.setattr("denoiser.run.Request.iterate", None)
    assert denoise("deep.png", "-o", "x.jpg") == 1
    assert capsys.readouterr().err == "denoise: x.jpg: JPEG cannot hold 16-bit pixels; use .png or .tif\n"
    assert denoise("a.png", "--max-pixels", "100") == 1
    assert "more than the limit of 100" in capsys.readouterr().err


def test_a_mistake_of_ours_is_one_line_too(folder, capsys, monkeypatch):
    def fail(*_arguments, **_options):
        raise KeyError("two\nlines")

    monkeypatch.setattr("denoiser.run.Request.iterate", fail)
    assert denoise("a.png", "b.jpg") == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == r"denoise: a.png: unexpected KeyError: 'two\nlines'"
    assert len(lines) == 3


# ---- killed and interrupted


def inputs(folder, count):
    (folder / "in").mkdir()
    for number in range(count):
        Image.fromarray(picture(number)).save(folder / "in" / f"{number:02}.png")
    (folder / "in" / "05.png").write_bytes(b"not a picture")  # one that fails must not disturb


def killed_batch(folder, count, kills, seed):
    """A batch killed while a random one of its pictures is at work, again and again, then left to finish."""
    inputs(folder, count)
    base = ["-r", folder / "in", *QUICK, "--sigma", "8", "--json", "-q"]
    whole = command(*base, "--dir", folder / "whole")
    whole.communicate()
    assert whole.returncode == 1  # of the bad one
    rng, done = random.Random(seed), 0
    for _ in range(kills):
        process = command(*base, "--dir", folder / "parts", "--resume")
        for _ in range(done + rng.randrange(1, max(2, count // kills))):
            process.stdout.readline()
        time.sleep(rng.uniform(0, 0.05))
        process.kill()
        process.communicate()
        done = len(tree(folder / "parts"))
        assert tree(folder / "parts").items() <= tree(folder / "whole").items()
    stamps = {p.name: p.stat().st_mtime_ns for p in (folder / "parts").glob("*.png")}
    process = command(*base, "--dir", folder / "parts", "--resume")
    out, _ = process.communicate()
    states = [json.loads(line)["status"] for line in out.splitlines()]
    assert states.count("kept") == len(stamps) > 0
    assert states.count("failed") == 1
    assert tree(folder / "parts") == tree(folder / "whole")
    assert len(tree(folder / "whole")) == count - 1
    assert stamps.items() <= {p.name: p.stat().st_mtime_ns for p in (folder / "parts").glob("*.png")}.items()


def test_a_killed_batch_goes_on(tmp_path):
    killed_batch(tmp_path, 7, 2, seed=0)


@pytest.mark.slow
def test_30_pictures_killed_5_times(tmp_path):
    killed_batch(tmp_path, 30, 5, seed=1)


def test_resume_trusts_only_its_own(folder, capsys):
    base = ["a.png", "b.jpg", "--dir", "out", "--sigma", "8"]

    def states(*more):
        code = denoise(*base, "--resume", "--json", "-q", *more)
        captured = capsys.readouterr()
        return code, [json.loads(line)["status"] for line in captured.out.splitlines()]

    assert denoise(*base, "-q") == 0
    assert states() == (0, ["kept", "kept"])
    assert states("--strength", "2") == (1, ["failed", "failed"])  # not what this command would make
    old = (folder / "out" / "a.png").read_bytes()
    (folder / "out" / "a.png").write_bytes(b"mine")
    assert states() == (1, ["failed", "kept"])
    assert (folder / "out" / "a.png").read_bytes() == b"mine"
    (folder / "out" / "a.png").unlink()
    assert states() == (0, ["done", "kept"])
    assert (folder / "out" / "a.png").read_bytes() == old
    Image.fromarray(picture(9)).save("a.png")
    assert states() == (1, ["failed", "kept"])
    assert states("--overwrite") == (0, ["done", "kept"])
    with open("out/.denoise-journal", "ab") as journal:
        journal.write(b'{"output": "b.j')  # cut short by a kill
    assert states() == (0, ["kept", "kept"])


@pytest.mark.parametrize("kind", ["a map", "a description"])
def test_resume_knows_what_a_noise_file_held(folder, capsys, kind):
    def write(level):
        if kind == "a map":
            images.write_float_tiff("noise.tif", np.full((24, 32), level))
        else:
            (folder / "noise.json").write_text(Noise.flat(level).to_json())

    name = "noise.tif" if kind == "a map" else "noise.json"
    base = ["a.png", "--dir", "out", "--noise", name, "--resume", "--json", "-q"]
    for level, more, status in (
        (8.0, [], "done"),
        (8.0, [], "kept"),
        (20.0, [], "failed"),
        (20.0, ["--overwrite"], "done"),
    ):
        write(level)
        denoise(*base, *more)
        assert json.loads(capsys.readouterr().out)["status"] == status


def test_other_files_that_are_read_are_never_an_output(folder, capsys):
    images.write_float_tiff("map.tif", np.full((24, 32), 8.0))
    (folder / "noise.json").write_text(Noise.flat(8.0).to_json())
    before = tree(folder)
    for words in (
        ["a.png", "--noise", "map.tif", "-o", "map.tif"],
        ["a.png", "--noise", "map.tif", "-o", "x.png", "--std", "map.tif"],
        ["a.png", "--reference", "b.jpg", "-o", "b.jpg"],
    ):
        assert denoise(*words, "--overwrite") == 1
        assert "is an input" in capsys.readouterr().err
    assert tree(folder) == before


def test_kill_9_while_saving(tmp_path):
    """The target is absent or whole; nothing else is left behind."""
    large = picture(0, (600, 800, 3))
    Image.fromarray(large).save(tmp_path / "a.png", compress_level=1)
    rng = random.Random(0)
    for number in range(4):
        out = tmp_path / f"out{number}"
        process = command(tmp_path / "a.png", "--strength", "0", "--dir", out)
        while not out.exists() and process.poll() is None:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.02))
        process.kill()
        process.communicate()
        for path in out.iterdir():
            assert path.name == "a.png"
            assert np.array_equal(images.read(path).pixels, large)


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c(tmp_path, threads):
    Image.fromarray(picture(0, (700, 900))).save(tmp_path / "a.png")
    process = command("a.png", "--particles", "50", "--threads", threads, "-v", "--sigma", "20", cwd=tmp_path)
    time.sleep(2.5)  # within the first sweep, in compiled code
    assert process.poll() is None
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert time.monotonic() - began < 1
    assert process.returncode == 130
    assert err.splitlines()[-1] == "denoise: interrupted"
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"]


BUSY = """
import hashlib, sys
import denoiser.cli, denoiser.noise_estimate
def busy(*_arguments):
    print("busy", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 1 << 26)  # half a minute of compiled code
denoiser.noise_estimate.spectra = busy
sys.exit(denoiser.cli.main())
"""


def test_ctrl_c_in_compiled_code(folder):
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY, "a.png"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
    )
    assert process.stdout.readline() == b"busy\n"
    time.sleep(0.2)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert time.monotonic() - began < 1
    assert process.returncode == 130
    assert sorted(os.listdir()) == ["a.png", "b.jpg"]


# ---- starting


def test_help_is_quick():
    def once(*arguments):
        began = time.monotonic()
        out, err = command(*arguments).communicate()
        return time.monotonic() - began, out, err

    seconds = min(once("--help")[0] for _ in range(3))
    _, out, err = once("--help")
    assert err == ""
    assert "denoise -r pictures --dir clean" in out
    assert seconds < 0.5
    assert once("--version")[1].startswith("denoise 0.")


def processor_seconds(*call):
    """Of Python with these arguments: those of the clock, on a machine with nothing else to do."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, *map(str, call)], env=ENVIRONMENT, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (done.returncode, done.stderr) == (0, "")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_a_run_starts_quickly(folder):
    call = ["-m", "denoiser", "a.png", "--overwrite", "--quality", "fast"]
    processor_seconds(*call)  # fills the cache
    assert min(processor_seconds(*call) for _ in range(4)) < 1.5


@pytest.mark.parametrize("call", [["-c", "import denoiser"], ["-m", "denoiser", "--version"]])
def test_a_start_takes_a_fraction_of_numpy(call):
    times = [(processor_seconds(*call), processor_seconds("-c", "import numpy")) for _ in range(5)]
    ours, numpy = map(min, zip(*times, strict=True))
    print(f"{' '.join(call)}: {ours / numpy:.2f} of import numpy")
    assert ours < 0.4 * numpy


@pytest.mark.slow
def test_a_picture_of_a_large_batch_costs_what_one_of_a_small_batch_does(folder):
    each = {}
    for count in (200, 2000):
        (folder / str(count)).mkdir()
        for number in range(count):
            Image.fromarray(picture(number, (8, 8))).save(folder / str(count) / f"{number}.png")
        call = ["-m", "denoiser", "-r", count, "--dir", f"out{count}", "--method", "tv", "--sigma", "15", "-q"]
        each[count] = processor_seconds(*call) / count
    print(f"{1000 * each[200]:.2f} ms a picture of 200, {1000 * each[2000]:.2f} ms of 2,000")
    assert each[2000] <= 1.2 * each[200]


def test_help_imports_nothing_heavy():
    code = "import sys, denoiser.cli; print([m for m in ('numpy', 'numba', 'PIL', 'tqdm') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_run_help_lists_every_option(capsys):
    from denoiser.samplers import METHODS

    with pytest.raises(SystemExit) as stop:
        main(["run", "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    for sampler in METHODS.values():
        for name in sampler.options():
            assert name.replace("_", "-") in out


def test_compiling_is_announced_once():
    told = []
    jit.on_compile(lambda: told.append(1))

    @numba.njit
    def fresh(x):
        return x + 1

    assert (fresh(1), fresh(1.5)) == (2, 2.5)  # two compilations
    assert told == [1]


@pytest.mark.slow
def test_the_first_run_says_that_it_compiles(folder):
    environment = {**ENVIRONMENT, "NUMBA_CACHE_DIR": str(folder / "cache")}
    call = [sys.executable, "-m", "denoiser", "a.png", "--method", "map", "--iterations", "1"]
    for expected in (1, 0):
        done = subprocess.run([*call, "--overwrite"], env=environment, capture_output=True, text=True)
        assert done.returncode == 0
        assert done.stderr.count("compiling") == expected


def test_completion(capsys):
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    ask = """
COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _shtab_denoise; echo "${COMPREPLY[*]}"
"""

    def complete(*words):
        done = subprocess.run(["bash", "-c", script + ask, "bash", *words], capture_output=True, text=True)
        assert done.stderr == ""
        return done.stdout.split()

    assert complete("denoise", "de") == ["demo"]
    assert complete("denoise", "a.png", "--quality", "") == ["fast", "normal", "best"]
    assert complete("denoise", "a.png", "--gib") == ["--gibbs-samples"]
    assert complete("denoise", "completion", "z") == ["zsh"]
    assert complete("denoise", "a") == []  # then the shell completes names of files
    assert main(["completion", "zsh"]) == 0
    assert "bashcompinit" in capsys.readouterr().out


def test_point_estimates_have_no_uncertainty_to_write(folder, capsys):
    assert "tv gives one picture" in wrong(capsys, "a.png", "--method", "tv", "--std", "s.png")
    assert main(["a.png", "--method", "tv", "--json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["uncertainty"] is None


def test_more_chains_than_samples(folder):
    assert main(["a.png", "--method", "gibbs", "--gibbs-samples", "2", "--chains", "5", "--burn-in", "1"]) == 0


def test_pages_of_several_kinds_have_no_common_white(folder, capsys):
    byte, deep, colour = picture(), picture().astype(np.uint16) * 16, picture(1, (24, 32, 3))
    for pages, kinds in (((byte, deep), "uint16 and uint8"), ((deep, byte), "uint16 and uint8"), ((byte, colour), "")):
        (folder / "s.tif").write_bytes(tiff_write.encode([(page, None, None) for page in pages]))
        for more in ([], ["--sigma", "8"], ["--white", "4095"]):
            assert denoise("s.tif", "-o", "x.tif", "-q", *more) == 1
            said = capsys.readouterr().err
            assert (
                said
                == f"denoise: s.tif: a stack of {f'numbers of the types {kinds}' if kinds else 'grey and colour'}; "
                "--page N takes one page\n"
            )
        assert denoise("s.tif", "-o", "x.tif", "--page", "2", "--sigma", "8", "-q") == 0
        assert images.read("x.tif").pixels.dtype == pages[1].dtype
        (folder / "x.tif").unlink()


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (2, 3), (1, 5, 3), (7, 7)])
@pytest.mark.parametrize("method", ["tv", "nlm", "wavelet", "map"])
def test_methods_on_lines_of_pixels(folder, shape, method):
    Image.fromarray(picture(2, (24, 32, 3)[: len(shape)])[tuple(map(slice, shape))]).save("line.png")
    assert denoise("line.png", "-o", "x.png", "--sigma", "8", "--method", method, quick=False) == 0
    assert images.read("x.png").pixels.shape == shape


def test_one_pixel_wide(folder, capsys):
    Image.fromarray(picture()[:, :1]).save("thin.png")
    assert denoise("thin.png") == 0
    assert denoise("thin.png", "--sigma", "9", "-o", "x.png", quick=False) == 0
    assert images.read("x.png").pixels.shape == (24, 1)


def test_a_reader_that_has_seen_enough(folder):
    call = f"{sys.executable} -m denoiser models | head -1"
    done = subprocess.run(["bash", "-c", call], env=ENVIRONMENT, capture_output=True, text=True)
    assert (done.stderr, len(done.stdout.splitlines())) == ("", 1)


def test_closed_streams(folder):
    """Whoever starts us may have closed them: cron, a daemon."""
    call = f"{sys.executable} -m denoiser a.png {' '.join(QUICK)}"
    quiet = subprocess.run(["sh", "-c", f"{call} -o x.png 2>&-"], env=ENVIRONMENT, capture_output=True, check=False)
    assert quiet.returncode == 0
    assert (folder / "x.png").exists()
    gone = subprocess.run(
        ["sh", "-c", f"{call} -o - >&-"], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert (gone.returncode, gone.stderr) == (2, "denoise: standard output is closed; give -o FILE\n")
    said = subprocess.run(["sh", "-c", f"{call} -o y.png >&-"], env=ENVIRONMENT, capture_output=True, check=False)
    assert (said.returncode, said.stderr) == (0, b"")


def test_samples_are_never_empty(folder):
    assert denoise("a.png", "-o", "x.png", "--samples", "x.npz", quick=False) == 0
    assert np.load("x.npz")["samples"].shape == (50, 24, 32)
