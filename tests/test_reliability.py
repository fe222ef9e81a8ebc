"""The whole command under stress: damaged files, kills, full and forbidden disks, hundreds of pictures in one process.

docs/reliability.md names these tests. Short versions run always, the full ones with `make test-all`.
"""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time

import image_files as made
import numpy as np
import pytest

from denoiser import images
from denoiser.cli import main
from denoiser.noise import Noise

HERE = os.path.dirname(__file__)
QUICK = ["--method", "tv", "--sigma", "5"]  # the shell is what is tested


def python(code, *arguments, **options):
    command = [sys.executable, "-W", "error", "-c", code, HERE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **options)


DAMAGED = """
import contextlib, io, os, random, resource, signal, sys
sys.path.insert(0, sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
os.chdir(sys.argv[4])
from test_images_safety import mutated
from denoiser.cli import main
done = {0: 0, 1: 0}
for seed in range(int(sys.argv[2]), int(sys.argv[3])):
    name, data = mutated(random.Random(seed))
    with open("in", "wb") as file:
        file.write(data)
    print(seed, name, flush=True)
    signal.alarm(60)  # ends the process, whatever it is in the middle of
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        code = main(["in", "-o", "out", "-q", "--max-pixels", "1000000", "--method", "tv", "--sigma", "5"])
    words = said.getvalue()
    assert code in (0, 1), code
    assert words == "" if code == 0 else words.startswith("denoise: in: ") and len(words.splitlines()) == 1, words
    assert "unexpected" not in words, words
    assert sorted(os.listdir()) == (["in", "out"] if code == 0 else ["in"]), os.listdir()
    if code == 0:
        os.unlink("out")
    done[code] += 1
assert all(done.values()), done
print(done)
"""


def damaged(first, last, folder):
    done = python(DAMAGED, first, last, folder)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-200:] + done.stderr[-3000:]


def test_100_damaged_files_through_the_command(tmp_path):
    damaged(20_000, 20_100, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_10000_damaged_files_through_the_command(tmp_path, block):
    damaged(20_000 + 1000 * block, 21_000 + 1000 * block, tmp_path)


def batch(folder, count):
    """Pictures of several formats in a folder."""
    folder.mkdir()
    for number in range(count):
        pixels = made.noise((24, 30 + number, 3), seed=number)
        suffix = (".png", ".tif", ".bmp")[number % 3]
        picture = images.Picture(pixels)
        images.write(folder / f"{number}{suffix}", pixels, picture)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


def killed(folder, kills):
    """Batches with --resume, killed at random moments until `kills` have hit; then run to their end."""
    rng, hit = random.Random(kills), 0
    batch(folder / "in", 24)
    command = [sys.executable, "-m", "denoiser", "-r", "in", "-q", *QUICK]
    began = time.monotonic()
    subprocess.run([*command, "--dir", "truth"], cwd=folder, check=True)
    whole = time.monotonic() - began
    truth, number = contents(folder / "truth"), 0
    assert len(truth) == 24
    while hit < kills:
        out = folder / f"out{number}"
        child = subprocess.Popen([*command, "--dir", out.name, "--resume"], cwd=folder, stderr=subprocess.PIPE)
        try:
            _, words = child.communicate(timeout=rng.uniform(0.3, 1.1) * whole)
            assert (child.returncode, words) == (0, b"")
            assert contents(out) == truth
            number += 1  # this one is done: the next begins
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.communicate()
            hit += 1
            assert out.exists() is False or contents(out).items() <= truth.items()  # nothing half written, nothing else
    subprocess.run([*command, "--dir", f"out{number}", "--resume"], cwd=folder, check=True)
    assert contents(folder / f"out{number}") == truth


@pytest.mark.slow
def test_200_kills(tmp_path):
    killed(tmp_path, 200)


SOAK = """
import os, resource, sys
import numpy as np
from denoiser import images
from denoiser.cli import main
os.chdir(sys.argv[3])
rng = np.random.default_rng(0)
sizes = []
for number in range(int(sys.argv[2])):
    side = 40 + 8 * (number % 10)
    pixels = rng.integers(0, 256, (side, side + 9, 3)).astype(np.uint8)
    images.write("a.png", pixels, images.Picture(pixels))
    assert main(["a.png", "-o", "b.png", "--overwrite", "-q", *sys.argv[4:]]) == 0
    with open("/proc/self/statm") as file:
        sizes.append(int(file.read().split()[1]) * resource.getpagesize() >> 10)
share = len(sizes) // 5
first, last = (float(np.mean(part)) for part in (sizes[share // 2 : share], sizes[-share:]))
print(f"{len(sizes)} pictures: {first / 1024:.0f} MB, at the end {last / 1024:.0f} MB")
assert last < 1.05 * first, (first, last)
"""


def soak(folder, count, *options):
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("memory is read from /proc")
    done = python(SOAK, count, folder, *options)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    print(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("options", [["--sigma", "10"], ["--sigma", "10", "--method", "mp-svgd", "--iterations", "3"]])
def test_500_pictures_in_one_process(tmp_path, options):
    soak(tmp_path, 500, *options)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.ESTALE])
@pytest.mark.parametrize("number", range(5))  # of the write that fails: result, uncertainty, its map, residual, samples
def test_a_disk_that_takes_no_more(tmp_path, monkeypatch, capsys, code, number):
    monkeypatch.chdir(tmp_path)
    images.write_png("a.png", made.noise((30, 30)))
    (tmp_path / "b.png").write_bytes(b"the old file")
    real, left = os.fsync, [number]

    def fsync(handle):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(code, os.strerror(code))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    extras = ["--std", "s.tif", "--residual", "r.png", "--samples", "p.npz"]
    options = ["--prior", "pairwise", "--sigma", "9", "--iterations", "1", "--particles", "2"]
    assert main(["a.png", "-o", "b.png", "--overwrite", "-q", *extras, *options]) == 1
    words = capsys.readouterr().err
    assert len(words.splitlines()) == 1
    assert f"cannot be written: {os.strerror(code)}" in words
    names = ["b.png", "s.tif", "s-map.png", "r.png", "p.npz"]
    assert {path.name for path in tmp_path.iterdir()} == {"a.png", "b.png", *names[:number]}
    assert ((tmp_path / "b.png").read_bytes() == b"the old file") == (number == 0)


def test_a_folder_that_vanishes(tmp_path):
    """A network drive that goes away between reading and writing: one line a picture, and the others are tried."""
    code = """
import os, shutil, sys
os.chdir(sys.argv[2])
from denoiser import images
from denoiser.cli import main
real = images.encode_stack
def vanish(*arguments):
    shutil.rmtree("out", ignore_errors=True)
    return real(*arguments)
images.encode_stack = vanish
sys.exit(main(["in/0.png", "-o", "out/x.png", "-q", "--method", "tv", "--sigma", "5"]))
"""
    batch(tmp_path / "in", 1)
    (tmp_path / "out").mkdir()
    done = python(code, tmp_path)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "out/x.png: cannot be written: No such file or directory" in done.stderr


@pytest.mark.slow
def test_100_megapixels_of_colour_below_4_gb(tmp_path):
    """Finishes, and the largest size of the process stays below 4 GB."""
    code = """
import resource, sys
from denoiser.cli import main
code = main([sys.argv[2], "-o", sys.argv[3], "-q", "--quality", "fast", "--sigma", "10"])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
sys.exit(code)
"""
    tile = made.noise((500, 500, 3))
    pixels = np.tile(tile, (20, 20, 1))
    images.write(tmp_path / "large.tif", pixels, images.Picture(pixels))
    del pixels
    done = python(code, tmp_path / "large.tif", tmp_path / "out.tif")
    assert done.returncode == 0, done.stderr
    print(f"{done.stdout.strip()} MB")
    assert int(done.stdout) < 4096


MODELS = """
import contextlib, io, os, random, resource, signal, sys
sys.path.insert(0, sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
os.chdir(sys.argv[4])
import numpy as np
from denoiser.cli import main
from denoiser.data import data_folder
from denoiser import images
images.write_png("a.png", np.random.default_rng(0).integers(0, 256, (24, 31)))
suffix = sys.argv[5]
whole = next(path.read_bytes() for path in sorted(data_folder("models").iterdir()) if path.suffix == suffix)
quick = ["--particles", "2", "--iterations", "1"] if suffix == ".json" else []
done = {0: 0, 1: 0, 2: 0}
for seed in range(int(sys.argv[2]), int(sys.argv[3])):
    rng = random.Random(seed)
    data = bytearray(whole)
    for _ in range(rng.choice((1, 1, 3, 20))):
        if len(data) < 50:
            break
        end = rng.choice((len(data), min(3000, len(data))))  # the beginning of a network says what it is
        place = rng.randrange(end)
        kind = rng.randrange(4)
        if kind == 0:
            data[place] = rng.randrange(256) if suffix != ".json" else rng.choice(b"0123456789-eE.[]{}\\"")
        elif kind == 1:
            del data[place : place + rng.randrange(1, 40)]
        elif kind == 2:
            data[place:place] = bytes(data[place : place + 9])
        else:
            del data[rng.randrange(1, len(data)) if rng.random() < 0.2 else len(data) - 1 :]
    name = f"m{seed}{suffix}"
    with open(name, "wb") as file:
        file.write(data)
    print(seed, flush=True)
    signal.alarm(60)
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        try:
            code = main(["a.png", "-o", "out.png", "-q", "--prior", name, "--sigma", "9", "--overwrite", *quick])
        except SystemExit as stop:
            code = stop.code
    words = said.getvalue()
    assert code in (0, 1, 2), code
    assert words == "" if code == 0 else words.startswith("denoise: ") and len(words.splitlines()) == 1, words
    assert "unexpected" not in words, words
    os.unlink(name)
    done[code] += 1
print(done)
"""


def models(first, last, folder, suffix):
    done = python(MODELS, first, last, folder, suffix)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-200:] + done.stderr[-3000:]
    print(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("suffix", [".json", ".onnx"])
def test_20_damaged_models(tmp_path, suffix):
    models(0, 20, tmp_path, suffix)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".json", ".onnx"])
def test_1000_damaged_models(tmp_path, suffix):
    models(1000, 2000, tmp_path, suffix)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *[(key, value) for key in ("white", "confidence") for value in ("x", [], None, 1e300, -1, float("nan"))],
        *[("black", value) for value in ("x", [], None, 1e300, 255, float("nan"))],
        *[("channels", value) for value in ([], 3, [[]], "abc")],
        *[(key, value) for key in ("sigma", "brightness") for value in ([], [10**400], [1e200], ["x"], 5)],
        *[("correlation", value) for value in ([], [[]], [[1, 0.5], [0.2]], [[1e9]], [[None]], 1)],
        ("more", 1),
    ],
)
def test_a_damaged_description_of_noise_is_one_line(tmp_path, monkeypatch, capsys, key, value):
    monkeypatch.chdir(tmp_path)
    images.write_png("a.png", made.noise((30, 30)))
    document = json.loads(Noise.flat(9.0).to_json())
    (document if key not in document["channels"][0] else document["channels"][0])[key] = value
    (tmp_path / "n.json").write_text(json.dumps(document))
    assert main(["a.png", "-o", "b.png", "-q", "--method", "tv", "--noise", "n.json"]) == 1
    assert capsys.readouterr().err.startswith("denoise: a.png: n.json: not a description of noise: ")
    assert not (tmp_path / "b.png").exists()
