"""Damaged files end in one line of error, and a save that dies leaves the old file or the new one, never half."""

import io
import os
import random
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib

import image_files as made
import numpy as np
import pytest
from PIL import Image

import denoiser.files
from denoiser import images

HERE = os.path.dirname(__file__)


def python(code, *arguments):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, HERE, *map(str, arguments)],
        capture_output=True,
        text=True,
    )


# ---- damaged files


def mutated(rng):
    """A file of any kind, cut, flipped or edited in some places; checksums of a PNG made right again half the time."""
    name = rng.choice(sorted(made.EVERY | made.STACKS))
    data = bytearray((made.EVERY | made.STACKS)[name])
    for _ in range(rng.choice((1, 1, 2, 8))):
        kind = rng.randrange(7)
        head = min(len(data), rng.choice((16, 64, 400, len(data))))
        place = rng.randrange(head) if kind else 0
        if kind == 0:
            del data[rng.randrange(1, len(data) + 1) :]
        elif kind == 1:
            data[place] ^= 1 << rng.randrange(8)
        elif kind == 2:
            data[place] = rng.choice((0, 1, 127, 128, 255))
        elif kind == 3:
            data[place : place + 4] = struct.pack(
                rng.choice("<>") + "I", rng.choice((0, 1, 2**16, 2**31 - 1, 2**32 - 1))
            )
        elif kind == 4:
            data[place : place + 2] = struct.pack(rng.choice("<>") + "H", rng.randrange(2**16))
        elif kind == 5:
            del data[place : place + rng.randrange(1, 20)]
        else:
            data[place:place] = rng.randbytes(rng.randrange(1, 20))
        if not data:
            break
    return name, repaired(bytes(data)) if rng.random() < 0.5 else bytes(data)


def repaired(data):
    out, place = data[:8], 8
    if not data.startswith(b"\x89PNG"):
        return data
    while place + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, place)
        body = data[place + 4 : place + 8 + length]
        out += data[place : place + 4] + body + struct.pack(">I", zlib.crc32(body))
        place += 12 + length
    return out


FUZZ = """
import collections, io, random, resource, signal, sys
sys.path.insert(0, sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
import numpy as np
from test_images_safety import mutated
import denoiser.files
from denoiser import images
seen = collections.Counter()
for seed in range(int(sys.argv[2]), int(sys.argv[3])):
    name, data = mutated(random.Random(seed))
    print(seed, name, end=" ", flush=True)
    signal.setitimer(signal.ITIMER_REAL, 2)  # ends the process, whatever it is in the middle of
    try:
        pictures = images.read_stack(io.BytesIO(data))
    except (ValueError, OSError) as error:
        assert str(error).startswith("the input: ") and len(str(error).splitlines()) == 1 and len(str(error)) < 300
        print("refused", error)
        seen["refused"] += 1
        continue
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    for picture in pictures:
        assert picture.pixels.dtype.kind in "uif"
        assert picture.pixels.ndim == 2 or picture.pixels.shape[2:] == (3,)
        assert picture.alpha is None or picture.alpha.shape == picture.pixels.shape[:2]
        try:
            assert picture.white > picture.black
        except ValueError as error:
            assert len(str(error).splitlines()) == 1 and "--white" in str(error)
    if sum(picture.pixels.size for picture in pictures) < 1e5:  # what can be read can be written, and read again
        out = io.BytesIO()
        images.write_stack(out, [picture.pixels for picture in pictures], pictures)
        others = images.read_stack(io.BytesIO(out.getvalue()))
        for one, other in zip(pictures, others, strict=True):
            assert one.format in ("JPEG", "AVIF", "HEIF") or np.array_equal(other.pixels, one.pixels)
    print("read")
    seen["read"] += 1
assert seen["read"] and seen["refused"], seen
"""


def fuzz(first, last):
    done = python(FUZZ, first, last)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout.splitlines()[-1] + done.stderr[-3000:]


def test_300_damaged_files():
    fuzz(0, 300)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_10000_damaged_files(block):
    fuzz(1000 * block, 1000 * (block + 1))


# ---- saving


def litter(folder):
    return [path.name for path in folder.iterdir() if path.name.endswith(".part")]


def nameless_files():
    return hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd")


@pytest.mark.parametrize("nameless", [False, True])
def test_with_and_without_nameless_files(tmp_path, monkeypatch, nameless):
    if not nameless:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    for value in (0, 1):
        images.write_png(tmp_path / "x.png", np.full((9, 9), value))
        assert images.read(tmp_path / "x.png").pixels[0, 0] == value
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(5, "Input/output error")))
    with pytest.raises(OSError, match="Input/output"):
        images.write_png(tmp_path / "x.png", np.zeros((9, 9)))
    assert [path.name for path in tmp_path.iterdir()] == ["x.png"]


SAVE = """
import runpy, sys
write = runpy.run_path(sys.argv[1])["write_bytes"]  # without numba, which takes longer to load than all of this
old, new = (open(name, "rb").read() for name in sys.argv[3:])
print("ready", flush=True)
while True:
    write(sys.argv[2], new)
    write(sys.argv[2], old)
"""


def killed_while_saving(folder, times):
    """Nothing but saving, so that the blow falls while a file is being written and not while one is made."""
    files = [folder / "old.png", folder / "new.png"]
    for seed, file in enumerate(files):
        images.write_png(file, made.noise((1000, 1000), seed=seed))
    rng, seen = random.Random(times), set()
    for number in range(times):
        target = folder / f"{number % 3}.png"
        child = subprocess.Popen(
            [sys.executable, "-c", SAVE, denoiser.files.__file__, target, *files], stdout=subprocess.PIPE
        )
        child.stdout.readline()
        time.sleep(rng.uniform(0, 0.05))
        child.kill()
        child.communicate()
        if target.exists():
            seen.add(target.read_bytes())
    assert seen
    assert seen <= {file.read_bytes() for file in files}
    if nameless_files():
        assert len(litter(folder)) <= times // 5  # the moment between naming and renaming is short, but it exists


def test_kill_9_while_saving(tmp_path):
    killed_while_saving(tmp_path, 15)


@pytest.mark.slow
def test_kill_9_at_50_moments(tmp_path):
    killed_while_saving(tmp_path, 50)


FULL = """
import resource, signal, sys
import denoiser.files
from denoiser import images
import numpy as np
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
picture = images.read(sys.argv[2])
if sys.argv[4] != "0":
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[4]), int(sys.argv[4])))
try:
    images.write(sys.argv[3], np.random.default_rng(0).integers(0, 256, picture.pixels.shape), picture)
except OSError as error:
    print(error)
"""


@pytest.mark.parametrize("name", ["png-rgb", "jpeg-rgb", "tiff16-rgb", "webp-rgb", "bmp-rgb", "ppm"])
def test_a_write_that_fails_changes_nothing(tmp_path, name):
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(made.EVERY[name])
    target.write_bytes(b"the old file")
    done = python(FULL, source, target, 500)
    assert done.stderr == ""
    assert done.stdout.startswith(f"{target}: cannot be written: File too large")
    assert source.read_bytes() == made.EVERY[name]
    assert target.read_bytes() == b"the old file"
    assert litter(tmp_path) == []


def test_a_full_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small disk needs rights that this user lacks")
    try:
        (disk / "out.png").write_bytes(b"the old file")
        (disk / "filler").write_bytes(bytes(56 << 10))
        (tmp_path / "in.png").write_bytes(made.saved(made.noise((99, 99, 3)), "PNG"))
        done = python(FULL, tmp_path / "in.png", disk / "out.png", 0)
        assert "No space left" in done.stdout
        assert (disk / "out.png").read_bytes() == b"the old file"
        assert litter(disk) == []
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, MemoryError, OSError(5, "Input/output error")])
def test_an_interrupted_write_leaves_no_litter(tmp_path, monkeypatch, stop):
    def fail(_handle):
        raise stop

    target = tmp_path / "x.png"
    target.write_bytes(b"the old file")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(stop if isinstance(stop, type) else OSError):
        images.write_png(target, np.zeros((9, 9)))
    assert target.read_bytes() == b"the old file"
    assert litter(tmp_path) == []


def test_the_data_reach_the_disk_before_the_name_does(tmp_path, monkeypatch):
    calls = []
    fsync, rename = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda *a: (calls.append(("fsync", os.fstat(*a).st_size > 0)), fsync(*a))[1])
    monkeypatch.setattr(os, "replace", lambda *a: (calls.append(("replace", True)), rename(*a))[1])
    images.write_png(tmp_path / "x.png", np.zeros((9, 9)))
    assert calls == [("fsync", True), ("replace", True)]


def test_permissions(tmp_path):
    old_mask = os.umask(0o027)
    try:
        images.write_png(tmp_path / "new.png", np.zeros((9, 9)))
        assert (tmp_path / "new.png").stat().st_mode & 0o777 == 0o640
        (tmp_path / "new.png").chmod(0o604)
        images.write_png(tmp_path / "new.png", np.ones((9, 9)))
        assert (tmp_path / "new.png").stat().st_mode & 0o777 == 0o604
    finally:
        os.umask(old_mask)


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "x.png").symlink_to("far/y.png")
    for value in (0, 1):  # first the link dangles
        images.write_png(tmp_path / "x.png", np.full((9, 9), value))
        assert (tmp_path / "x.png").is_symlink()
        assert images.read(tmp_path / "far" / "y.png").pixels[0, 0] == value
    assert litter(tmp_path) == []


@pytest.mark.parametrize("kind", ["folder", "fifo", "no folder", "file as folder", "long"])
def test_targets_that_cannot_be_written(tmp_path, kind):
    target = tmp_path / "x.png"
    if kind == "folder":
        target.mkdir()
    elif kind == "fifo":
        os.mkfifo(target)
    elif kind == "no folder":
        target = tmp_path / "none" / "x.png"
    elif kind == "file as folder":
        target.write_bytes(b"")
        target = target / "x.png"
    else:
        target = tmp_path / ("x" * 300 + ".png")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(OSError, match="cannot be written") as error:
        images.write_png(target, np.zeros((9, 9)))
    assert str(target) in str(error.value)
    assert "\n" not in str(error.value)
    assert sorted(tmp_path.iterdir()) == before


READ_ONLY = """
import os, runpy, sys
write, folder = runpy.run_path(sys.argv[1])["write_bytes"], sys.argv[2]
if os.geteuid() == 0:  # whom nothing is read-only for
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
for name in ("shut/new.png", "open/old.png"):
    try:
        write(f"{folder}/{name}", b"new")
    except OSError as error:
        print(str(error).removeprefix(folder))
"""


def test_read_only():
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are closed to other users
        for name, mode in (("shut", 0o555), ("open", 0o777)):
            os.mkdir(f"{folder}/{name}")
            os.chmod(f"{folder}/{name}", mode)
        with open(f"{folder}/open/old.png", "wb") as file:
            file.write(b"the old file")
        os.chmod(f"{folder}/open/old.png", 0o444)
        os.chmod(folder, 0o755)
        command = [sys.executable, "-c", READ_ONLY, denoiser.files.__file__, folder]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.stdout.splitlines() == [
            "/shut/new.png: cannot be written: Permission denied",
            "/open/old.png: cannot be written: it is read-only",
        ], done.stderr
        assert os.listdir(f"{folder}/open") == ["old.png"]


def test_same_file(tmp_path):
    one = tmp_path / "x.png"
    one.write_bytes(b"")
    (tmp_path / "folder").mkdir()
    os.link(one, tmp_path / "hard")
    (tmp_path / "soft").symlink_to("x.png")
    for other in (one, tmp_path / "hard", tmp_path / "soft", tmp_path / "folder" / ".." / "x.png", str(one)):
        assert images.same_file(one, other)
    (tmp_path / "other.png").write_bytes(b"")
    assert not images.same_file(one, tmp_path / "other.png")
    assert not images.same_file(one, tmp_path / "none.png")
    assert images.same_file(tmp_path / "none.png", tmp_path / "folder" / ".." / "none.png")


def test_a_stream_gets_the_same_bytes_as_a_file(tmp_path):
    picture = images.read(io.BytesIO(made.EVERY["jpeg-metadata"]))
    images.write(tmp_path / "x.jpg", picture.pixels, picture)
    with open(tmp_path / "stream", "wb") as stream:
        images.write(stream, picture.pixels, picture)
    assert (tmp_path / "stream").read_bytes() == (tmp_path / "x.jpg").read_bytes()


def test_a_file_that_is_too_long_is_not_loaded(tmp_path):
    with open(tmp_path / "x.png", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ValueError, match="GB"):
        images.read(tmp_path / "x.png")


def test_pillow_may_open_one_format_only(monkeypatch):
    formats, real = [], Image.open

    def spy(*arguments, **options):
        formats.append(options.get("formats"))
        return real(*arguments, **options)

    monkeypatch.setattr(Image, "open", spy)
    for name in ("png-rgb", "jpeg-rgb", "webp-rgb", "bmp-rgb", "tiff-packbits"):
        images.read(io.BytesIO(made.EVERY[name]))
    assert formats == [("PNG",), ("JPEG",), ("WEBP",), ("BMP",), ("TIFF",)]


def test_what_nobody_foresaw_is_one_line_too(monkeypatch):
    def fail(*_arguments):
        raise KeyError("two\nlines")

    monkeypatch.setattr(images.png, "decode", fail)
    with pytest.raises(ValueError, match="the input: damaged: KeyError: ") as error:
        images.read(io.BytesIO(made.EVERY["png-rgb"]))
    assert "\n" not in str(error.value)


def test_reading_in_threads():
    before = Image.MAX_IMAGE_PIXELS
    wrong = []

    def work(name):
        data, pixels, _ = made.LOSSLESS[name]
        for _ in range(5):
            if not np.array_equal(images.read(io.BytesIO(data)).pixels, pixels):
                wrong.append(name)

    threads = [
        threading.Thread(target=work, args=(name,)) for name in ("png-rgb", "webp-rgb", "tiff-lzw", "bmp-rgb") * 2
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert before == Image.MAX_IMAGE_PIXELS
