"""Rows: what is in them, that they follow from their seeds on any executor, and that files keep them."""

import math
import os
import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from denoiser import Request, add_noise, coverage, denoise, evaluate, executors, psnr, read_rows, ssim, summary, threads
from denoiser import to_csv as write_csv
from denoiser import to_json as write_json
from denoiser.evaluation import averages, load_truths, loop, make_plan, parse_method, work
from denoiser.evaluation.rows import CSV, JSON, Results, Row
from denoiser.images import tiff_write, write_png

ROW = Row("a, \"b\".png", 3, "gibbs:chains=1", "pairwise", 50, 10.0, "white", 2, 31.123456789012345, 0.1 + 0.2,
          0.5, 0.9, 0.99, 6.5, 0.1, 101.5, 2, (1, 0, 7), (0.1, 0.0, 1 / 3), "k1")  # fmt: skip
POINT = replace(
    ROW, image="é\\n", particles=None, prior="", psnr=math.inf, ssim=math.nan, coverage50=math.nan, coverage90=math.nan,
    coverage99=math.nan, std=math.nan, memory=math.nan, bin_counts=(), bin_errors=(), key="k2",
)  # fmt: skip


def images(count, shape=(16, 20)):
    out = {}
    for k in range(count):
        blocks = np.random.default_rng(k).normal(120, 40, (shape[0] // 4, shape[1] // 4))
        out[f"{k:03}.png"] = np.clip(blocks.repeat(4, 0).repeat(4, 1), 0, 255).round().astype(np.uint8)
    return out


def numbers(rows):
    """What must be equal wherever rows are computed."""
    return [repr(replace(row, seconds=0, memory=0, threads=0)) for row in rows]


# ---- what a row says


def test_the_published_convention():
    """Seed 0 of image k is the noise of default_rng(k), and every number is that of a run by hand."""
    truths, short = images(3), "mp-svgd:iterations=4"
    rows = evaluate(truths, [short, "tv"], [10, 20], particles=5)
    assert [(r.image, r.sigma, r.method) for r in rows] == [
        (name, sigma, method) for name in truths for sigma in (10, 20) for method in (short, "tv")
    ]
    for row in rows:
        k, clean = row.number, truths[row.image].astype(float)
        noisy = clean + row.sigma * np.random.default_rng(k).standard_normal(clean.shape)
        options = {"particles": 5, "iterations": 4} if row.particles else {}
        result = denoise(noisy, row.sigma, method=row.method.partition(":")[0], **options)
        assert row.psnr == psnr(clean, result.mean, data_range=255)
        assert row.ssim == ssim(clean, result.mean, data_range=255)
        if row.particles:
            assert row.coverage90 == coverage(clean, result.mean, result.std, 0.9, count=5)
            assert row.coverage50 < row.coverage90 < row.coverage99
            assert sum(row.bin_counts) == clean.size
            rms = math.sqrt(np.dot(row.bin_counts, np.square(row.bin_errors)) / clean.size)
            assert rms == pytest.approx(255 / 10 ** (row.psnr / 20))
        else:
            assert math.isnan(row.coverage90)
            assert math.isnan(row.std)
            assert row.prior == ""
        assert 0 < row.seconds < 60
        assert math.isnan(row.memory) or 10 < row.memory < 100_000


def test_all_methods_see_the_same_noise(monkeypatch):
    seen = []

    def spy(noisy, *arguments, **options):
        seen.append(noisy)
        return Request(noisy, *arguments, **options)

    monkeypatch.setattr(work, "Request", spy)
    monkeypatch.setattr(work, "_warm_up", lambda case: None)
    evaluate(images(2), ["tv", "nlm"], [10], seeds=3)
    seen = np.array(seen).reshape(2, 3, 2, 16, 20)  # image, seed, method
    assert np.array_equal(seen[:, :, 0], seen[:, :, 1])
    assert len({noisy.tobytes() for noisy in seen[:, :, 0].reshape(6, -1)}) == 6
    clean = images(2)["001.png"].astype(float)
    assert np.array_equal(seen[1, 2, 0], add_noise(clean, 10, [1, 2]))
    assert np.array_equal(add_noise(clean, 10, [7, 0]), add_noise(clean, 10, 7))


def test_a_truth_is_scaled_by_its_own_black_and_white(tmp_path):
    """An offset is no brightness: the contents fill the range, whatever numbers the file uses."""
    levels = images(1, (64, 64))["000.png"].astype(float)
    for name, values in (
        ("deep.tif", (50000 + 20 * levels).astype(np.uint16)),
        ("byte.tif", (levels - 255).astype(np.float32)),  # white is near 0
    ):
        (tmp_path / name).write_bytes(tiff_write.encode([(values, None, None)]))
    high, low = (truth.pixels() for truth in load_truths([tmp_path / "deep.tif", tmp_path / "byte.tif"]))
    assert -20 < high.min() < 20
    assert 235 < high.max() < 275
    assert np.allclose(high, low, atol=1)


def test_colour_and_tiny_pictures():
    colour = np.stack([images(1)["000.png"]] * 3, axis=-1)
    rows = evaluate({"c": colour, "t": np.full((6, 6), 9.0)}, ["tv", "map"], [10])
    assert all(math.isfinite(r.psnr) for r in rows)
    assert [math.isnan(r.ssim) for r in rows] == [False, False, True, True]


def test_memory_is_of_the_row_alone():
    if math.isnan(evaluate(images(1), ["tv"], [10])[0].memory):
        pytest.skip("this system does not tell")
    before = evaluate(images(1), ["tv"], [10])[0].memory
    large = np.ones(40_000_000)  # 320 MB that come and go
    assert large.sum() > 0
    del large
    assert evaluate(images(1), ["tv"], [10])[0].memory < before + 100


# ---- the plan


def test_methods_and_particles():
    truths = load_truths(images(1))
    plan = make_plan(truths, ["mp-svgd", "gibbs", "gibbs:samples=9,chains=3", "map", "tv"], [10], [4, 8], 1, "pairwise")
    assert [(c.method, c.particles) for c in plan] == [
        ("mp-svgd", 4), ("mp-svgd", 8), ("gibbs", 4), ("gibbs", 8), ("gibbs:samples=9,chains=3", 9), ("map", None),
        ("tv", None),
    ]  # fmt: skip
    default = make_plan(truths, ["mp-svgd", "gibbs"], [10], None, 1, "pairwise")
    assert [c.particles for c in default] == [50, 200]
    again = make_plan(truths, ["tv", "tv"], [10, 10.0], [4, 4], [0, 0], "pairwise")
    assert len(again) == 1  # nothing twice


def test_a_key_is_of_everything_that_decides():
    truths = load_truths(images(1))

    def keys(truths=truths, method="mp-svgd", sigma=10, particles=4, seeds=1, prior="pairwise"):
        return {c.key for c in make_plan(truths, [method], [sigma], particles, seeds, prior)}

    others = [
        keys(), keys(method="svgd"), keys(method="mp-svgd:iterations=9"), keys(sigma=11), keys(particles=5),
        keys(seeds=[1]), keys(prior="foe3x3"), keys(load_truths({"000.png": images(1)["000.png"] + 1})),
        keys(load_truths({"other.png": images(1)["000.png"]})), keys(load_truths(images(2))[1:]),
    ]  # fmt: skip
    assert len(set.union(*others)) == len(others)
    assert keys() == others[0]
    assert keys(method="tv") == keys(method="tv", prior="foe3x3")  # a peer knows no prior


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("nothing", "must be one of"), ("gibbs:chains", "NAME:OPTION=VALUE"), ("gibbs:chains=x", "cannot be 'x'"),
        ("gibbs:what=1", "no option 'what'"), ("gibbs:chains=0", "chains must be >= 1"),
        ("gibbs:rao_blackwell=maybe", "cannot be 'maybe'"),
    ],
)  # fmt: skip
def test_bad_methods(method, message):
    with pytest.raises(ValueError, match=message):
        evaluate(images(1), [method], [10])


def test_bad_arguments():
    assert parse_method("gibbs:rao_blackwell=true") == ("gibbs", None, {"rao_blackwell": True})
    good = images(1)
    for arguments, options in (
        (({}, ["tv"], [10]), {}), ((good, [], [10]), {}), ((good, ["tv"], []), {}), ((good, ["tv"], [0]), {}),
        ((good, ["tv"], [math.nan]), {}), ((good, ["tv"], [10]), {"seeds": 0}), ((good, ["tv"], [10]), {"seeds": [-1]}),
        (({"a": np.zeros((4, 4, 4))}, ["tv"], [10]), {}), ((["x/a.png", "y/a.png"], ["tv"], [10]), {}),
        ((good, ["mp-svgd"], [10]), {"particles": 1}),
    ):  # fmt: skip
        with pytest.raises((ValueError, OSError)):
            evaluate(*arguments, **options)


# ---- executors


class Odd(Executor):
    """An executor that nobody has heard of, and that finishes the last first."""

    def __init__(self):
        self.waiting = []

    def submit(self, task, /, *arguments, **options):
        future = Future()
        self.waiting.append((future, lambda: task(*arguments, **options)))
        threading.Timer(0.05, self.work).start()
        return future

    def work(self):
        while self.waiting:
            future, call = self.waiting.pop()
            future.set_result(call())


def test_the_same_rows_on_any_executor():
    ask = (images(3), ["mp-svgd:iterations=2", "gibbs:samples=6", "tv"], [10])
    steps = []
    here = evaluate(*ask, particles=4, seeds=2, progress=steps.append)
    assert [s.done for s in steps] == list(range(1, 19))
    assert steps[-1].eta == 0
    assert steps[5].eta > 0
    with ThreadPoolExecutor(2) as pool:
        assert numbers(evaluate(*ask, particles=4, seeds=2, executor=pool)) == numbers(here)
    assert numbers(evaluate(*ask, particles=4, seeds=2, executor=Odd())) == numbers(here)
    with executors.opened(executors.local_processes(2)) as processes:
        there = evaluate(*ask, particles=4, seeds=2, executor=processes)
    assert numbers(there) == numbers(here)
    assert {row.threads for row in there} == {max(threads.get_threads() // 2, 1)}


def _busy(_):
    """Which threads a run uses."""
    names = set()
    threads.parallel(lambda _: names.add(threading.get_ident()), range(50))
    return os.getpid(), threading.get_ident(), names, threads.get_threads()


def test_threads_are_not_oversubscribed():
    with ThreadPoolExecutor(2) as pool:
        for _, future in executors.completed(pool, _busy, [(n, (n,)) for n in range(8)]):
            _, own, used, count = future.result()
            assert used == {own}
            assert count == 1
    before = threads.get_threads()
    with executors.opened(executors.local_processes(2)) as pool:
        for _, future in executors.completed(pool, _busy, [(n, (n,)) for n in range(8)]):
            process, _, used, count = future.result()
            assert process != os.getpid()
            assert len(used) <= count == max(before // 2, 1)
    assert threads.get_threads() == before


def test_tasks_are_submitted_late():
    made = []

    def calls():
        for n in range(50):
            made.append(n)
            yield n, (n,)

    with ThreadPoolExecutor(1) as pool:
        for done, _ in enumerate(executors.completed(pool, abs, calls()), 1):
            assert len(made) <= done + 2


def test_one_failure_does_not_stop_the_others(monkeypatch):
    def fragile(noisy, sigma, sampler, *arguments, **options):
        if sigma == 20 and sampler.name == "tv":
            raise FloatingPointError("diverged")
        return Request(noisy, sigma, sampler, *arguments, **options)

    monkeypatch.setattr(work, "Request", fragile)
    monkeypatch.setattr(work, "_warm_up", lambda case: None)
    steps = []
    with pytest.raises(ValueError, match=r"2 of 8 rows failed; the first, tv on 000.png at sigma 20, seed 0: diverged"):
        evaluate(images(2), ["tv", "nlm"], [10, 20], progress=steps.append)
    assert len(steps) == 6


def test_a_dead_process_is_named(tmp_path):
    with executors.opened(executors.local_processes(2)) as pool:
        pool.submit(os._exit, 1)
        with pytest.raises(ValueError, match="2 of 2 rows failed"):
            evaluate(images(2), ["tv"], [10], executor=pool)


# ---- files


@pytest.mark.parametrize(("form", "write"), [(CSV, write_csv), (JSON, write_json)])
def test_files_keep_every_digit(tmp_path, form, write):
    write([ROW, POINT], tmp_path / "x")
    assert repr(read_rows(tmp_path / "x")) == repr([ROW, POINT])
    file = Results(tmp_path / "y", form, {"k1", "k2"}, resume=False)
    file.append(ROW)
    file.append(POINT)
    file.close()
    assert (tmp_path / "y").read_bytes() == (tmp_path / "x").read_bytes()


@pytest.mark.parametrize("form", [CSV, JSON])
def test_any_kill_leaves_a_file_to_go_on_with(tmp_path, form):
    """Cut at every byte: whole rows stay, the rest is said and redone, and the file ends up the same."""
    path, rows = tmp_path / "x", [ROW, POINT, replace(ROW, key="k3")]
    whole = form.header + b"".join(map(form.line, rows))
    for length in range(0, len(whole) + 1, 3):
        path.write_bytes(whole[:length])
        file = Results(path, form, {"k1", "k2", "k3"}, resume=True)
        complete = whole[:length].rfind(b"\n") + 1
        assert path.read_bytes() == (whole[:complete] or form.header)
        assert repr(file.rows) == repr(rows[: len(file.rows)])
        assert bool(file.repaired) == (complete < length)
        for row in rows[len(file.rows) :]:
            file.append(row)
        file.close()
        assert path.read_bytes() == whole


def test_what_is_refused_stays_as_it_is(tmp_path):
    path, line = tmp_path / "x", CSV.header + CSV.line(ROW)
    for data, form, keys, resume, message in (
        (line, CSV, {"k1"}, False, "exists already"),
        (line, CSV, {"k9"}, True, "holds rows of other settings"),
        (line + CSV.line(ROW), CSV, {"k1"}, True, "holds a row twice"),
        (line + b"nonsense\n" + CSV.line(POINT), CSV, {"k1", "k2"}, True, "line 3 is no row"),
        (line, JSON, {"k1"}, True, "line 1 is no row"),
        (b"diary\nof a person\n", CSV, {"k1"}, True, "is no CSV file of results"),
        (b"diary", CSV, {"k1"}, True, "is no CSV file of results"),
        (b"\x89PNG\n\x00\xff", JSON, {"k1"}, True, "line 1 is no row"),
        (b"diary", JSON, {"k1"}, True, "last line is no row"),
    ):
        path.write_bytes(data)
        with pytest.raises(ValueError, match=message):
            Results(path, form, keys, resume)
        assert path.read_bytes() == data
    with pytest.raises(OSError, match="cannot be written"):
        Results(tmp_path / "no" / "x", CSV, set(), True)
    path.write_bytes(line[:-5])
    with pytest.raises(ValueError, match="half-written"):
        read_rows(path)


def test_two_processes_do_not_share_a_file(tmp_path):
    pytest.importorskip("fcntl")
    file = Results(tmp_path / "x", CSV, {"k1"}, True)
    with pytest.raises(ValueError, match="another process"):
        Results(tmp_path / "x", CSV, {"k1"}, True)
    file.close()
    Results(tmp_path / "x", CSV, {"k1"}, True).close()


def test_a_full_disk_leaves_whole_rows(tmp_path):
    resource = pytest.importorskip("resource")
    signal = pytest.importorskip("signal")
    file = Results(tmp_path / "x", CSV, {"k1", "k2"}, False)
    file.append(ROW)
    size = os.path.getsize(tmp_path / "x")
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, before[1]))
    try:
        with pytest.raises(OSError, match="cannot be written"):
            file.append(POINT)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert os.path.getsize(tmp_path / "x") == size
    file.append(POINT)
    file.close()
    assert repr(read_rows(tmp_path / "x")) == repr([ROW, POINT])


# ---- averages


def rows_of(method, values, sigma=10.0):
    """values[image][seed] -> rows."""
    return [
        replace(ROW, image=f"i{i}", method=method, sigma=sigma, seed=s, psnr=v, ssim=v / 100, key=f"{method}{i}{s}")
        for i, seeds in enumerate(values) for s, v in enumerate(seeds)
    ]  # fmt: skip


def test_averages_and_their_errors():
    (average,) = summary(rows_of("tv", [[30, 32], [33, 35], [28, 28]])).averages
    assert average.images == 3
    assert average.rows == 6
    assert average.mean["psnr"] == pytest.approx(31)  # of 31, 34, 28
    assert average.error["psnr"] == pytest.approx(3 / math.sqrt(3))
    assert math.isnan(summary(rows_of("tv", [[30]])).averages[0].error["psnr"])


def test_paired_differences():
    """Images differ a lot, methods little: only the pairs show it. Noisy images that one side lacks are left out."""
    base = np.random.default_rng(0).normal(30, 5, (10, 2))
    gain = np.random.default_rng(1).normal(0.3, 0.1, (10, 2))
    rows = rows_of("map", base.tolist()) + rows_of("tv", (base + gain).tolist())
    (difference,) = summary(rows).differences
    assert difference.psnr == pytest.approx(gain.mean())
    assert difference.psnr_low < difference.psnr < difference.psnr_high
    means = gain.mean(axis=1)
    spread = means.std(ddof=1) / math.sqrt(10)
    assert difference.psnr_high - difference.psnr_low == pytest.approx(2 * 1.96 * spread, rel=0.2)
    assert summary(rows).differences == summary(rows).differences  # a fixed seed
    assert summary(rows, "tv").differences[0].psnr == pytest.approx(-gain.mean())
    lacking = [r for r in rows if r.method == "map" or r.image != "i3" or r.seed != 1]
    without = np.delete(gain.ravel(), 7)
    (difference,) = summary(lacking).differences
    assert difference.psnr == pytest.approx(np.mean([*np.delete(means, 3), without[6]]))
    with pytest.raises(ValueError, match="no rows of nlm"):
        summary(rows, "nlm")


def test_the_interval_holds():
    """The bootstrap covers the true mean about as often as it says (a little less, with ten images)."""
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        low, high = averages.bootstrap(rng.normal(1, 1, 10))
        hits += low <= 1 <= high
    assert 165 <= hits <= 198


def test_markdown():
    rows = rows_of("map", [[30], [31]]) + [
        replace(POINT, image=f"i{i}", method="tv", psnr=29.0, seed=0) for i in (0, 1)
    ]
    text = summary(rows).markdown()
    assert "| map, M = 50 | sigma 10 | 2 | 30.50 ± 0.50 |" in text
    assert "| tv | map, M = 50 | sigma 10 | 2 | -1.500 (-2.000 to -1.000) |" in text
    assert "nan" not in text


def test_eta_knows_that_methods_differ():
    truths = load_truths(images(10))
    cases = make_plan(truths, ["tv", "map"], [10], None, 1, "pairwise")
    clock = loop._Clock(cases)
    for case in cases[:4]:
        clock.finished(case, 1.0 if case.method == "tv" else 9.0)
    clock._first -= clock._since_first  # as if the seconds had passed
    assert clock.eta() == pytest.approx(8 * 1 + 8 * 9, rel=0.01)


def test_one_of_a_kind_needs_no_list(tmp_path):
    for name, pixels in images(1).items():
        write_png(tmp_path / name, pixels)
    assert [row.method for row in evaluate(tmp_path, "tv", 10)] == ["tv"]
    with pytest.raises(ValueError, match="a dict of names and arrays; got ndarray"):
        evaluate([np.zeros((16, 16))], "tv", 10)
