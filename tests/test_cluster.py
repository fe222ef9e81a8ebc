"""A real Dask cluster of two worker processes, one of which is killed."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from PIL import Image
from test_evaluate import _busy, images, numbers

from conftest import ROOT
from denoiser import evaluate, executors, read_rows, threads
from denoiser.cli import main

distributed = pytest.importorskip("distributed")
METHODS = ["mp-svgd:iterations=2", "gibbs:samples=4", "tv"]


class Machines:
    """A scheduler and its workers, each a process."""

    def __init__(self, folder):
        self.processes, self.workers, self.folder = [], [], folder
        self.start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", folder / "scheduler.json")
        until = time.monotonic() + 60
        while not (folder / "scheduler.json").exists() or not (folder / "scheduler.json").read_text():
            assert time.monotonic() < until, (folder / "log").read_text()
            time.sleep(0.05)
        self.address = json.loads((folder / "scheduler.json").read_text())["address"]

    def start(self, kind, *arguments):
        path = f"{ROOT}{os.pathsep}{ROOT / 'tests'}"
        with open(self.folder / "log", "ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", kind, "--no-dashboard", *map(str, arguments)], cwd=self.folder,
                env={**os.environ, "PYTHONPATH": path}, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self.processes.append(process)
        return process

    def worker(self, threads=1):
        return self.start("worker", self.address, "--no-nanny", "--nthreads", threads)

    def keep(self, count, threads):
        """Have so many live workers of so many threads each, and no others."""
        wanted = [p for p, n in self.workers if p.poll() is None and n == threads][:count]
        for process, _ in self.workers:
            if process not in wanted:
                process.kill()
                process.wait()
        self.workers = [(p, threads) for p in wanted]
        self.workers += [(self.worker(threads), threads) for _ in range(count - len(wanted))]
        with distributed.Client(self.address, set_as_default=False) as client:
            until = time.monotonic() + 60
            while list(client.nthreads().values()) != [threads] * count:
                assert time.monotonic() < until, (self.folder / "log").read_text()
                time.sleep(0.05)
        return [p for p, _ in self.workers]

    def stop(self):
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    made = Machines(tmp_path_factory.mktemp("cluster"))
    yield made
    made.stop()


@pytest.fixture
def two(machines):
    """Two workers that are alive: those that an earlier test has killed are replaced."""
    return machines.keep(2, threads=1)


def kill_half_way(machines, worker, count):
    """Evaluate on the cluster; when half of the rows are there, kill -9 a worker."""
    steps = []

    def watch(step):
        steps.append(step)
        if step.done == step.total // 2:
            os.kill(worker.pid, signal.SIGKILL)

    with executors.Cluster(machines.address) as cluster:
        assert cluster.capacity() == min(2, threads.get_threads())
        rows = evaluate(images(count), METHODS, [10], particles=4, executor=cluster, progress=watch)
        left = cluster._client.nthreads()
    assert worker.wait(timeout=5) == -signal.SIGKILL
    assert len(left) == 1
    assert len({step.row.key for step in steps}) == len(steps) == len(rows) == 3 * count
    return rows


def test_a_killed_worker_loses_no_row(machines, two):
    rows = kill_half_way(machines, two[0], 10)
    assert numbers(rows) == numbers(evaluate(images(10), METHODS, [10], particles=4))
    assert {row.threads for row in rows} == {1}


@pytest.mark.slow
def test_six_hundred_rows(machines, two):
    rows = kill_half_way(machines, two[1], 200)
    assert len(rows) == 600
    assert numbers(rows) == numbers(evaluate(images(200), METHODS, [10], particles=4))


def test_the_command(machines, two, tmp_path, capsys, monkeypatch):
    """The same rows as here, killed half-way too: `denoise evaluate`, then files by `denoise run`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for name, pixels in images(6).items():
        Image.fromarray(pixels).save(tmp_path / "in" / name)
    (tmp_path / "in" / "broken.tif").write_bytes(b"II*\0 and no more")
    ask = ["evaluate", "in", "--sigma", "10", "--method", *METHODS, "--particles", "4", "-q", "--csv"]
    assert main([*ask, "x.csv", "--scheduler", machines.address]) == 1  # the broken picture, before anything is done
    (tmp_path / "in" / "broken.tif").rename(tmp_path / "broken.tif")
    assert main([*ask, "x.csv", "--scheduler", machines.address]) == main([*ask, "y.csv"]) == 0
    assert sorted(numbers(read_rows("x.csv"))) == sorted(numbers(read_rows("y.csv")))
    (tmp_path / "broken.tif").rename(tmp_path / "in" / "broken.tif")
    (tmp_path / "twice").mkdir()
    (tmp_path / "twice" / "000.png").write_bytes((tmp_path / "in" / "005.png").read_bytes())

    threading.Timer(1.0, two[0].kill).start()
    capsys.readouterr()
    run = ["run", "-r", "in", "twice", "--method", "gibbs", "--gibbs-samples", "60", "--sigma", "10", "--json"]
    assert main([*run, "--dir", "there", "--scheduler", machines.address]) == 1
    there = capsys.readouterr()
    assert main([*run, "--dir", "here"]) == 1
    here = capsys.readouterr()
    made = {path.name: path.read_bytes() for path in (tmp_path / "there").glob("*.png")}
    assert made == {path.name: path.read_bytes() for path in (tmp_path / "here").glob("*.png")}
    assert sorted(made) == [f"00{n}.png" for n in range(6)]

    def reports(text):
        found = [{**json.loads(line), "seconds": 0} for line in text.out.splitlines()]
        return sorted(json.dumps(report).replace("there", "here") for report in found)

    assert reports(there) == reports(here)  # the second 000.png is refused in both, and the broken one named
    assert "2 of 8 inputs failed" in there.err
    assert main([*run, "--dir", "there", "--scheduler", machines.address, "--resume"]) == 1
    assert capsys.readouterr().out.count('"status": "kept"') == 6


def test_more_threads_than_cores(machines):
    """Two workers that each claim all cores do not get more tasks at a time than there are cores."""
    cores = threads.default_threads()
    machines.keep(2, threads=cores)
    with executors.Cluster(machines.address) as cluster:
        assert sum(cluster._client.nthreads().values()) == 2 * cores
        assert cluster.capacity() == cores
        for _, future in executors.completed(cluster, _busy, [(n, (n,)) for n in range(6)]):
            process, own, used, count = future.result()
            assert process != os.getpid()
            assert used == {own}
            assert count == 1
        ((_, future),) = executors.completed(cluster, np.size, [("large", (np.zeros(20_000_000, np.uint8),))])
        assert future.result() == 20_000_000
        ((_, future),) = executors.completed(cluster, len, [("a number has no length", (5,))])
        assert isinstance(future.exception(), TypeError)


def failure(capsys, address, code=1):
    """The one line when `denoise evaluate` and `denoise run` cannot use a cluster."""
    picture = str(ROOT / "sample_images" / "cat.png")
    lines = set()
    for call in (["evaluate", str(ROOT / "sample_images"), "--csv", "r.csv"], ["run", picture, "-o", "x.png"]):
        assert main([*call, "--scheduler", address]) == code
        lines |= set(capsys.readouterr().err.splitlines())
    (line,) = lines
    return line


def test_a_scheduler_that_does_not_answer(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert executors.PATIENCE == 10
    monkeypatch.setattr(executors, "PATIENCE", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for port in (silent.getsockname()[1], 1):
            line = failure(capsys, f"tcp://127.0.0.1:{port}")
            assert line == f"denoise: tcp://127.0.0.1:{port}: no Dask scheduler answered within 1 s"
    assert "must look like tcp://HOST:PORT" in failure(capsys, "somewhere")
    assert list(tmp_path.iterdir()) == []  # no file was begun


def test_a_scheduler_without_workers(machines, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    machines.keep(0, threads=1)
    monkeypatch.setattr(executors, "PATIENCE", 2)
    assert failure(capsys, machines.address) == f"denoise: {machines.address}: this Dask scheduler has no workers"


def test_dask_is_an_extra(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert "pip install '.[dask]'" in failure(capsys, "tcp://127.0.0.1:1")
