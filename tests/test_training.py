"""Learning: the losses against their naive twins, the export against torch, and a run that is killed and goes on."""

import contextlib
import errno
import math
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from conftest import ROOT

torch = pytest.importorskip("torch")
pytest.importorskip("onnx")

from denoiser import images, learned  # noqa: E402
from denoiser.cli import main  # noqa: E402
from denoiser.learned import load_model, predict  # noqa: E402
from denoiser.training import export, losses, muon, noises, session  # noqa: E402
from denoiser.training.export import read_onnx  # noqa: E402
from denoiser.training.loop import Recipe, State, _step, read_checkpoint, train  # noqa: E402
from denoiser.training.meter import Meter, to_onnx  # noqa: E402
from denoiser.training.meter_samples import Squares, _square, _turned, correlations  # noqa: E402
from denoiser.training.network import Network, Potentials, Shape, multiplications, receptive_field  # noqa: E402
from denoiser.training.photographs import Photographs, find, turned  # noqa: E402
from denoiser.training.validate import Validation  # noqa: E402

SMALL = Shape(8, 8, 8, (1, 1, 1, 1, 1), 8)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A folder of four small pictures."""
    folder = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(0)
    for k in range(4):
        blobs = Image.fromarray(rng.integers(0, 256, (30, 26, 3), dtype=np.uint8))
        blobs.resize((240, 220), Image.Resampling.BICUBIC).save(folder / f"{k}.png")
    return folder


def random_network(shape=SMALL, seed=0):
    torch.manual_seed(seed)
    network = Network(shape)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    return network.eval()


# ------------------------------------------------------------------------------------------- the network


def test_receptive_field_by_derivatives():
    """With positive weights no path is lost: exactly what is inside the halo has a derivative."""
    network = Network(SMALL).double().eval()
    for parameter in network.parameters():
        torch.nn.init.uniform_(parameter, 0.1, 1.0)
    halo = receptive_field(SMALL)
    side = 2 * (halo + 24) // 8 * 8
    for y in range(side // 2, side // 2 + 8, 3):
        planes = torch.full((1, 3, side, side), 300.0, dtype=torch.double, requires_grad=True)
        sigma = torch.ones_like(planes)
        out = network(planes, sigma)
        scaled = out.mean[0, 0, y, y] / out.mean[0, 0, y, y].detach().abs()
        (slope,) = torch.autograd.grad(scaled, planes)
        reached = np.abs(np.argwhere(slope[0].abs().sum(0).numpy() > 0) - y).max()
        assert halo - 16 <= reached <= halo


def test_multiplications_are_counted():
    shape = Shape(8, 16, 24, (1, 2, 1, 0, 1), 8)
    network, counted = Network(shape), 0

    def count(layer, inputs, output):
        nonlocal counted
        counted += layer.weight.numel() * output.shape[2] * output.shape[3]

    for layer in network.modules():
        if isinstance(layer, torch.nn.Conv2d):
            layer.register_forward_hook(count)
    network(torch.zeros(1, 3, 32, 32), torch.zeros(1, 3, 32, 32))
    assert multiplications(shape) == counted / 32**2


def test_the_file_says_what_torch_says(tmp_path):
    network = random_network()
    (tmp_path / "a.onnx").write_bytes(export.to_onnx(network))
    rng = np.random.default_rng(0)
    planes = rng.normal(150, 40, (3, 40, 48)).astype(np.float32)
    sigma = rng.uniform(0, 40, (3, 40, 48)).astype(np.float32)
    with torch.no_grad():
        out = network(torch.from_numpy(planes)[None], torch.from_numpy(sigma)[None])
    found = predict(planes, sigma, model=load_model(tmp_path / "a.onnx"))
    std = out.log_std.exp()[0].numpy() * sigma
    for one, other in zip(found, (out.mean[0], std, out.right[0], out.down[0]), strict=True):
        assert np.allclose(one, np.asarray(other), rtol=2e-2, atol=2e-2 * np.abs(one).max())  # half floats


def test_weights_come_back(tmp_path):
    network = random_network()
    (tmp_path / "a.onnx").write_bytes(export.to_onnx(network))
    for name, values in read_onnx(tmp_path / "a.onnx").state_dict().items():
        assert torch.allclose(values, network.state_dict()[name], rtol=1e-3, atol=1e-4), name
    (tmp_path / "b.onnx").write_bytes(b"nothing")
    next(network.parameters()).data[0] = math.nan
    (tmp_path / "c.onnx").write_bytes(export.to_onnx(network))
    for name in ("b.onnx", "c.onnx"):
        with pytest.raises(ValueError, match="not a model"):
            read_onnx(tmp_path / name)


# ------------------------------------------------------------------------------------------- losses


def potentials(seed=0):
    """Potentials, clean planes and a noise map of 1 x 1 planes of 4 x 5 pixels."""
    rng = np.random.default_rng(seed)
    arrays = [rng.normal(0, s, (1, 1, 4, 5)) + m for m, s in ((100, 9), (-0.5, 0.3), (1, 1), (2, 1), (100, 5))]
    *out, clean = (torch.from_numpy(a) for a in arrays)
    return Potentials(*out), clean, torch.full((1, 1, 4, 5), 10.0, dtype=torch.double)


def test_std_loss():
    out, clean, sigma = potentials()
    total = 0.0
    for place in np.ndindex(1, 1, 4, 5):
        std = 10 * math.exp(out.log_std[place])
        total += 0.5 * float((out.mean[place] - clean[place]) / std) ** 2 + math.log(std)
    assert float(losses.std_loss(out, clean, sigma)) == pytest.approx(total / 20)


def test_edge_loss_is_the_pseudo_likelihood_of_the_field():
    """Of the very field that `LearnedPosterior` samples, site by site from its precision matrix without padding."""
    out, clean, sigma = potentials()
    v = ((out.mean - clean) / (10 * out.log_std.exp()))[0, 0].numpy()
    (t_right, own_right), (t_down, own_down) = (learned.ties(a[0, 0].numpy()) for a in (out.right, out.down))
    total = 0.0
    for r, c in np.ndindex(4, 5):
        ends = []
        if c < 4:
            ends.append((t_right[r, c], own_right[r, c], v[r, c + 1]))
        if c > 0:
            ends.append((t_right[r, c - 1], own_right[r, c - 1], v[r, c - 1]))
        if r < 3:
            ends.append((t_down[r, c], own_down[r, c], v[r + 1, c]))
        if r > 0:
            ends.append((t_down[r - 1, c], own_down[r - 1, c], v[r - 1, c]))
        precision = sum(t for t, _, _ in ends) + np.mean([own for _, own, _ in ends])
        middle = sum(t * other for t, _, other in ends) / precision
        total += 0.5 * precision * (v[r, c] - middle) ** 2 - 0.5 * math.log(precision)
    assert float(losses.edge_loss(out, clean, sigma)) == pytest.approx(total / 20, rel=1e-5)


def test_planes_without_noise_teach_nothing():
    out, clean, sigma = potentials()
    both = Potentials(*(torch.cat([a, a * 7], dim=1).requires_grad_() for a in out))
    quiet = torch.cat([sigma, 0 * sigma], dim=1)
    doubled = torch.cat([clean, clean], dim=1)
    loss = losses.std_loss(both, doubled, quiet) + losses.edge_loss(both, doubled, quiet)
    slopes = torch.autograd.grad(loss, [both.log_std, both.right, both.down])
    for slope in slopes:
        assert not slope[:, 1].any()
        assert slope[:, 0].any()


# ------------------------------------------------------------------------------------------- noise


def test_turns_are_eight():
    square = np.arange(9).reshape(3, 3)
    assert len({turned(square, k).tobytes() for k in range(8)}) == 8


@pytest.mark.parametrize("kind", list(noises.KINDS), ids="-".join)
def test_the_map_is_the_noise(photos, kind):
    maker = noises.Noises(Photographs(find([photos])), np.random.default_rng(0))
    for _ in range(12):
        maker._renew()
    samples = [maker._sample(*kind, size=80) for _ in range(60)]
    errors = np.array([((s.noisy - s.clean) ** 2).mean(axis=(1, 2)) for s in samples])
    promised = np.array([(s.sigma**2).mean(axis=(1, 2)) for s in samples])
    planes = slice(0, 1) if kind[1] == "grey" else slice(0, 3)
    ratio = np.median(errors[:, planes] / promised[:, planes])
    assert 0.85 < ratio < 1.15
    if kind[1] == "grey":
        assert not errors[:, 1:].any()
        assert not promised[:, 1:].any()


@pytest.mark.parametrize(("noise", "low", "high"), [("white", 0, 0), ("all", 0.2, 0.5), ("camera", 0.7, 0.9)])
def test_what_noise_is_to_be_learned(photos, noise, low, high):
    maker = noises.Noises(Photographs(find([photos])), np.random.default_rng(0), "colour", noise)
    odds = dict(zip(maker.kinds, maker.odds, strict=True))
    assert low <= odds["camera", "colour"] <= high
    maker.batch(2, 80)
    assert bool(maker.bank) == (noise != "white")


def test_colours_are_mostly_soft_and_seldom_vivid():
    crop = np.random.default_rng(0).uniform(80, 160, (96, 96, 3)).astype(np.float32)
    rng = np.random.default_rng(1)
    made = [noises.recoloured(crop, rng) for _ in range(200)]
    fine = np.array([np.diff(noises.planes_of_channels(m), axis=2).std(axis=(1, 2)) for m in made])
    whole = np.diff(noises.planes_of_channels(crop), axis=2).std(axis=(1, 2))
    assert 0.6 < np.mean(fine[:, 1] < 0.5 * whole[1]) < 0.85
    assert 0.01 < np.mean([m.mean(axis=(0, 1)).min() < 20 for m in made]) < 0.1
    assert np.median(fine[:, 0] / whole[0]) == pytest.approx(1, abs=1e-3)


def test_folders_without_pictures(tmp_path):
    with pytest.raises(ValueError, match="no such folder"):
        find([tmp_path / "none"])
    with pytest.raises(ValueError, match="no pictures"):
        find([tmp_path])
    Image.fromarray(np.zeros((9, 9, 3), np.uint8)).save(tmp_path / "tiny.png")
    (tmp_path / "broken.png").write_bytes(b"no picture")
    with pytest.raises(ValueError, match="no photograph of at least"):
        Photographs(find([tmp_path]))


# ------------------------------------------------------------------------------------------- the run


def test_it_learns(photos):
    photographs, validation = Photographs(find([photos])), Validation(find([photos]))
    state, recipe = State.fresh(SMALL), Recipe(rate=5e-3)
    before = validation.measure(state.network)
    maker = noises.Noises(photographs, np.random.default_rng(0))
    with ThreadPoolExecutor(2) as pool:
        for _ in range(250):
            _step(state, maker.batch(4, 48), recipe, 0.1, pool)
    after = validation.measure(state.network)
    assert after["grey 25"] > before["grey 25"] + 2
    assert after["colour 25"] > before["colour 25"] + 2


def test_it_resumes(photos, tmp_path):
    photographs, validation = Photographs(find([photos])), Validation(find([photos]))
    recipe = Recipe(minutes=0.05, batch=4, size=48, validate_every=3600)
    seen = []
    train(State.fresh(SMALL), photographs, validation, recipe, tmp_path / "a.pt", seen.append)
    state = State.load(tmp_path / "a.pt")
    assert state.step == seen[-1]["step"] > 0
    assert state.seconds >= 60 * recipe.minutes
    train(state, photographs, validation, replace(recipe, minutes=0.1), tmp_path / "a.pt", seen.append)
    assert state.step > seen[0]["step"]
    assert len(state.curve) == 2


def test_a_foreign_or_damaged_checkpoint(tmp_path):
    """One flipped bit of a weight too, which torch does not see."""
    (tmp_path / "a.pt").write_bytes(b"no checkpoint")
    torch.save({"weights": 1}, tmp_path / "b.pt")
    State.fresh(SMALL).save(tmp_path / "c.pt")
    data = bytearray((tmp_path / "c.pt").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "c.pt").write_bytes(data)
    for name in ("a", "b", "c"):
        with pytest.raises(ValueError, match="not a checkpoint"):
            read_checkpoint(tmp_path / f"{name}.pt")
    State.fresh(SMALL).save(tmp_path / "d.pt")
    torch.save({**read_checkpoint(tmp_path / "d.pt"), "network": {}}, tmp_path / "d.pt")
    with pytest.raises(ValueError, match="another version"):
        State.load(tmp_path / "d.pt")


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (["--minutes", "0"], 2, "--minutes must be > 0"),
        (["--minutes", "nan"], 2, "must be finite, got nan"),
        (["--rate", "0"], 2, "--rate must be > 0"),
        (["--out", "none/m.onnx"], 2, "there is no folder none"),
        (["--out", "m.png"], 1, "ends with .onnx"),
        (["--photos", "none"], 1, "no such folder"),
        (["--photos", "broken"], 1, "no photograph of at least"),
        (["--validate", "small"], 1, "to validate on: no photograph of at least 192"),
        (["--from", "pairwise"], 1, "pairwise: No such file"),
        (["--from", "broken/b.onnx"], 1, "not an ONNX model"),
        ([], 1, "m.pt: cannot be written: No space left on device"),
    ],
)
def test_what_cannot_be_learned_is_one_line(photos, tmp_path, monkeypatch, capsys, words, code, line):
    """Before the first step; the folder stays as it was."""
    monkeypatch.chdir(tmp_path)
    for name in ("small", "broken"):
        (tmp_path / name).mkdir()
    Image.fromarray(np.zeros((120, 120, 3), np.uint8)).save("small/a.png")
    whole = (photos / "0.png").read_bytes()
    Path("broken/a.png").write_bytes(whole[: len(whole) // 2])
    Path("broken/b.onnx").write_bytes(b"no network")
    os.mkfifo("broken/f.png")

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    usual = ["--photos", str(photos), "--minutes", "1", "--out", "m.onnx"]  # what comes later counts
    with contextlib.nullcontext() if code == 1 else pytest.raises(SystemExit, match="2"):
        assert main(["train", *usual, *words]) == code
    said = capsys.readouterr().err
    assert line in said
    assert len(said.splitlines()) == 1
    assert sorted(os.listdir()) == ["broken", "small"]


def test_photographs_of_16_bits(photos, tmp_path):
    """They are the same photographs, not white ones."""
    pixels = images.read(photos / "0.png").pixels
    images.write(tmp_path / "deep.png", pixels.astype(np.uint16) * 257, images.Picture(pixels.astype(np.uint16) * 257))
    assert np.array_equal(Photographs(find([tmp_path])).reduced[1.0][0], pixels)


def test_photographs_that_become_smaller_than_a_crop(tmp_path, monkeypatch):
    """A photograph of 200 pixels, halved, holds no crop of 104."""
    monkeypatch.setattr(Validation, "peers", lambda self: {})
    monkeypatch.setattr(session, "write_card", lambda *arguments: {})
    rng = np.random.default_rng(0)
    Image.fromarray(rng.integers(0, 256, (200, 200, 3), dtype=np.uint8)).save(tmp_path / "a.png")
    session.learn([tmp_path], tmp_path / "m.onnx", Recipe(minutes=0.02, batch=8))
    assert (tmp_path / "m.onnx").exists()


@pytest.mark.slow
def test_the_command_is_killed_and_goes_on(photos, tmp_path):
    out = tmp_path / "mine.onnx"
    command = [sys.executable, "-m", "denoiser", "train", "--photos", str(photos), "--out", str(out), "--batch", "4"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    first = subprocess.Popen([*command, "--minutes", "30"], env=environment, stderr=subprocess.DEVNULL)
    checkpoint = out.with_suffix(".pt")
    end = time.monotonic() + 400
    while time.monotonic() < end and not (checkpoint.exists() and read_checkpoint(checkpoint)["counts"][0]):
        time.sleep(1)
    first.send_signal(signal.SIGKILL)
    first.wait()
    spent = read_checkpoint(checkpoint)["counts"][1] / 60
    again = [*command, "--minutes", f"{spent + 0.05:.3f}"]
    done = subprocess.run(again, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "resumed after" in done.stderr
    assert load_model(out).calibration is not None
    for suffix in (".json", ".png"):
        assert out.with_suffix(suffix).stat().st_size > 100


def test_steps_of_muon_are_orthogonal():
    """Singular values near 1, singular vectors kept, tall or wide."""
    torch.manual_seed(0)
    for shape in ((24, 60), (60, 24)):
        matrix = torch.randn(shape)
        left, values, right = torch.linalg.svd(matrix, full_matrices=False)
        found = left.T @ muon.orthogonal(matrix) @ right.T
        assert values.max() / values.min() > 3
        assert ((found.diagonal() > 0.6) & (found.diagonal() < 1.3)).all()
        assert (found - found.diagonal().diag()).abs().max() < 1e-3


# ------------------------------------------------------------------------------------------- the noise meter


def test_the_meter_in_onnx_is_the_one_in_torch():
    onnxruntime = pytest.importorskip("onnxruntime")
    torch.manual_seed(0)
    meter = Meter().eval()
    planes = np.random.default_rng(0).normal(100, 30, (2, 3, 48, 64)).astype(np.float32)
    expected = meter(torch.from_numpy(planes)).detach().numpy()
    session = onnxruntime.InferenceSession(to_onnx(meter), providers=["CPUExecutionProvider"])
    found = session.run(["said"], {"planes": planes})[0]
    assert found.shape == (2, 30, 6, 8)
    assert found == pytest.approx(expected, abs=3e-3)  # weights are stored as half floats


def test_the_truth_about_a_square_is_that_of_its_noise():
    rng = np.random.default_rng(0)
    clean = np.full((64, 64, 3), 120, np.float32)
    spread = np.broadcast_to(np.array([2, 4, 8], np.float32), clean.shape)
    noisy = clean + spread * rng.standard_normal(clean.shape, dtype=np.float32)
    known, seen = _square(clean, noisy, spread, False), _square(clean, noisy, None, False)
    assert known.variance[3:, 0, 0] == pytest.approx([4, 16, 64])
    assert known.variance.mean(axis=(1, 2)) == pytest.approx(seen.variance.mean(axis=(1, 2)), rel=0.1)
    assert known.counts.all()
    assert np.abs(known.correlation).max() < 0.1


def test_rows_and_columns_of_a_square_are_told_apart_when_it_is_turned():
    field = np.repeat(np.random.default_rng(0).standard_normal((3, 64, 32), dtype=np.float32), 2, axis=2)
    along, down = correlations(field)[0, [0, 3]]
    assert along == pytest.approx(0.5, abs=0.1)
    assert down == pytest.approx(0, abs=0.1)
    noisy = field.transpose(1, 2, 0)
    square = _square(np.zeros_like(noisy), noisy, None, False)
    for which in range(8):
        again = _turned(square, which)
        assert correlations(again.noisy) == pytest.approx(again.correlation, abs=1e-4)


def test_squares_come_from_photographs(photos):
    squares = Squares(Photographs(find([photos]), smallest=96), np.random.default_rng(0), size=64)
    batch = squares.batch(6, fresh=12)
    assert [a.shape for a in batch] == [(6, 3, 64, 64), (6, 6, 8, 8), (6, 3, 6), (6, 6, 8, 8)]
    assert all(np.isfinite(a).all() for a in batch)
