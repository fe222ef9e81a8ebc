"""Numba must never break a start: real processes with unusable, damaged and shared caches."""

import ast
import json
import os
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest

from conftest import ROOT
from denoiser import denoise, threads
from denoiser.exp2 import exp2, rough_exp2
from denoiser.jit import kernel
from denoiser.threads import parallel, set_threads

RUN = """
import numpy as np, denoiser
image = np.random.default_rng(0).uniform(0, 255, (12, 12))
result = denoiser.denoise(image, 10, method="gibbs", samples=4)
print(result.mean.sum().hex())
"""


def _python(code, cwd=ROOT, **environment):
    process = subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert process.returncode == 0, process.stderr
    return process


def _warnings(process):
    return [line for line in process.stderr.splitlines() if "Warning" in line]


def _copy_of_the_package(folder):
    """The package and its models, in a folder of their own."""
    for name in ("denoiser", "models"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.onnx"))
    return folder


def test_unwritable_cache(tmp_path):
    """No place of numba's is left: not the one asked for, not beside the sources, not in the user's home."""
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    package = _copy_of_the_package(tmp_path / "copy")
    folders = [package / "denoiser", *(p for p in (package / "denoiser").rglob("*") if p.is_dir())]
    for folder in folders:
        (folder / "__pycache__").write_text("not a folder either: this stops the superuser, too")
    nowhere = {name: str(blocked) for name in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA")}
    process = _python(
        RUN, cwd=package, PYTHONPATH=str(package), PYTHONDONTWRITEBYTECODE="1",
        NUMBA_CACHE_DIR=str(blocked / "cache"), **nowhere,
    )  # fmt: skip
    (warning,) = _warnings(process)
    assert "RuntimeWarning: no kernel cache (RuntimeError); kernels are compiled anew in this session" in warning
    assert process.stdout == _python(RUN).stdout
    assert not list(tmp_path.rglob("*.nb?"))


SCORE = """
import numpy as np
from denoiser.posterior import Posterior
from denoiser.priors import load_prior
y = np.random.default_rng(0).uniform(0, 255, (9, 11))
print(Posterior(load_prior("pairwise"), y, 10.0, padding=0).score(y[None]).astype(float).sum().hex())
"""


def test_a_cached_kernel_is_not_older_than_what_it_froze(tmp_path):
    """`target._scores` freezes the layout of the tables of gsm.py; numba itself looks at target.py only."""
    package = _copy_of_the_package(tmp_path / "copy")
    shared = {"cwd": package, "PYTHONPATH": str(package), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    before = _python(SCORE, **shared).stdout
    assert list((tmp_path / "cache").rglob("*.nbc"))
    source = package / "denoiser" / "gsm.py"
    edited = source.read_text().replace("TABLE_BITS = 8", "TABLE_BITS = 6")
    assert edited != source.read_text()
    source.write_text(edited)
    after = _python(SCORE, **shared).stdout
    assert after != before
    assert after == _python(SCORE, **{**shared, "NUMBA_CACHE_DIR": str(tmp_path / "fresh")}).stdout
    assert float.fromhex(after) == pytest.approx(float.fromhex(before), rel=1e-2)


def test_damaged_cache(tmp_path):
    first = _python(RUN, NUMBA_CACHE_DIR=str(tmp_path))
    assert not first.stderr
    files = sorted(path for path in tmp_path.rglob("*.nb?"))
    assert len(files) > 6
    for number, file in enumerate(files):
        content = bytearray(file.read_bytes())
        if number % 3 == 0:
            content = content[: len(content) // 2]
        elif number % 3 == 1:
            content[len(content) // 2] ^= 0xFF
        else:
            content = b"garbage" * 20
        file.write_bytes(content)
    second = _python(RUN, NUMBA_CACHE_DIR=str(tmp_path))
    assert second.stdout == first.stdout
    assert len(_warnings(second)) == 1
    third = _python(RUN, NUMBA_CACHE_DIR=str(tmp_path))  # mended by the second
    assert third.stdout == first.stdout
    assert not third.stderr


def test_kernels_call_only_what_is_put_into_them():
    """A kernel that is called and not inlined makes the bytes depend on whether the cache was warm."""
    defined, called = {}, set()
    for path in (ROOT / "denoiser").rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef):
                source = " ".join(ast.unparse(d) for d in node.decorator_list)
                if source.startswith(("kernel(", "compiled(", "inlined(", "njit(")):
                    defined[node.name] = source
                    names = (n for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name))
                    called |= {n.func.id for n in names}
    assert len(defined) > 20
    assert {"gather", "filter_responses", "exp2"} <= called & set(defined)
    for name in called & set(defined):
        assert "inline" in defined[name], f"{name} is called by a kernel: it must be `inlined`"


TWICE = """
import numpy as np, denoiser
image = np.random.default_rng(0).uniform(0, 255, (60, 70)).cumsum(1) % 255
for method, options in (("mp-svgd", {"iterations": 6}), ("mp-svgd-s", {"iterations": 6}), ("hmc", {"samples": 6})):
    result = denoiser.denoise(image, 12, method=method, prior="foe3x3", **options)
    print(result.samples.astype(float).sum().hex())
"""


@pytest.mark.slow
def test_a_cold_and_a_warm_cache_give_the_same_bytes(tmp_path):
    cold, warm = (_python(TWICE, NUMBA_CACHE_DIR=str(tmp_path)).stdout for _ in range(2))
    assert cold == warm


def test_two_threads_at_once():
    image = np.random.default_rng(0).uniform(0, 255, (40, 40))
    results = {}

    def work(seed):
        results[seed] = denoise(image, 10, method="gibbs", samples=10, seed=seed).mean

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in range(4):
        assert np.array_equal(results[seed], denoise(image, 10, method="gibbs", samples=10, seed=seed).mean)


def test_import_is_quick_and_compiles_nothing(tmp_path):
    code = """
import time; began = time.perf_counter()
import denoiser
print(time.perf_counter() - began)
from numba.core.dispatcher import Dispatcher
import gc
assert not any(d.signatures for d in gc.get_objects() if isinstance(d, Dispatcher)
               and d.py_func.__module__.startswith("denoiser")), "something was compiled"
"""
    _python(code)  # warms the disk cache
    assert min(float(_python(code).stdout) for _ in range(3)) < 1.0


def test_methods_without_kernels_compile_nothing(tmp_path):
    code = """
import numpy as np, denoiser
image = np.random.default_rng(0).uniform(0, 255, (16, 16))
for method in ("tv", "nlm", "wavelet"):
    denoiser.denoise(image, 10, method=method)
"""
    _python(code, NUMBA_CACHE_DIR=str(tmp_path))
    assert not list(tmp_path.rglob("*.nb?"))


TINY = """
import json, numpy as np
from denoiser.posterior import Posterior
from denoiser.priors import load_prior
from denoiser.samplers import make_sampler
y = np.random.default_rng(0).uniform(0, 255, (9, 15))
found = {}
for method, prior, options in (
    ("mp-svgd", "pairwise", {"particles": 3, "iterations": 2}),
    ("mp-svgd", "foe3x3", {"particles": 2, "iterations": 1, "start": "noisy"}),
    ("mp-svgd-s", "pairwise", {"particles": 3, "iterations": 2, "kernel": "imq"}),
    ("svgd", "pairwise", {"particles": 3, "iterations": 2}),
    ("gibbs", "foe3x3", {"samples": 2, "burn_in": 0}),
    ("hmc", "pairwise", {"samples": 2, "burn_in": 1, "chains": 2, "leapfrogs": 2}),
    ("map", "pairwise", {"iterations": 2}),
):
    posterior = Posterior(load_prior(prior), y, 10.0, padding=0)
    *_, last = make_sampler(method, options).estimates(posterior, np.random.default_rng(0))
    found[method, prior] = [last.mean.tolist(), last.std.tolist()]
print(json.dumps(list(found.values())))
"""


def test_every_sampler_without_the_compiler():
    """Two blocks of sites, whole runs: the kernels as Python are within rounding of the compiled ones."""
    python, compiled = (np.array(json.loads(_python(TINY, **e).stdout)) for e in ({"NUMBA_DISABLE_JIT": "1"}, {}))
    assert python.shape == (7, 2, 9, 15)
    assert np.abs(python - compiled).max() < 0.02  # of 255; a chain that took another turn is tens away


def test_without_the_compiler():
    """The kernels' Python is right by itself: tests against the naive twins pass with NUMBA_DISABLE_JIT=1."""
    files = ["tests/test_gsm.py", "tests/test_stencil.py"]
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", "not everywhere", *files],
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stdout


@kernel(fastmath=True)
def _exp2(x, out):
    for i in range(len(x)):
        out[i] = exp2(x[i])


@kernel(fastmath=True)
def _rough_exp2(x, out):
    for i in range(len(x)):
        out[i] = rough_exp2(x[i])


def test_exp2():
    x = -np.linspace(0, 99, 100_001).astype(np.float32)
    out = np.empty_like(x)
    _exp2(x, out)
    assert np.abs(out / 2.0 ** x.astype(float) - 1).max() < 3e-7
    _rough_exp2(x, out)
    assert np.abs(out / 2.0 ** x.astype(float) - 1).max() < 4e-6
    for function in (_exp2, _rough_exp2):
        function(np.array([-1e30], np.float32), out[:1])
        assert 0 <= out[0] < 1e-30


def test_parallel_keeps_order_and_nests():
    assert parallel(lambda i: sum(parallel(lambda j: i * j, range(5))), range(20)) == [10 * i for i in range(20)]
    with pytest.raises(ZeroDivisionError):
        parallel(lambda i: 1 / i, range(3))
    with pytest.raises(ValueError, match="threads must be a whole number >= 1, got 0"):
        set_threads(0)


def test_a_stop_ends_a_step_in_the_middle():
    done = []
    asked = threading.Event()

    def task(item):
        done.append(item)
        asked.set()

    def work():
        threads.stop_when(asked.is_set)
        try:
            threads.parallel(task, range(1000))
        except threads.Cancelled:
            done.append("cancelled")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done[-1] == "cancelled"
    assert len(done) < 1000
    assert threads.parallel(str, range(3)) == ["0", "1", "2"]  # other threads go on
