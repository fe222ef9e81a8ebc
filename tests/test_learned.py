"""The learned field: one pass in pieces, calibration, a target for samplers, and files that are no model."""

import json
import shutil
from dataclasses import replace

import naive
import numpy as np
import pytest

from denoiser import denoise, learned
from denoiser.calibration import Calibration
from denoiser.colour import to_channels, to_planes
from denoiser.data import data_folder
from denoiser.fields import load_field, noise_factors
from denoiser.images import read
from denoiser.learned import SIBLINGS, LearnedPosterior, load_model, predict, ties
from denoiser.metrics import coverage, joint_coverage, psnr
from denoiser.noise import add_noise, estimate_noise
from denoiser.samplers import make_sampler
from denoiser.threads import set_threads


@pytest.fixture(scope="module")
def cat():
    """A grey photograph, 176 x 208."""
    pixels = read(data_folder("sample_images") / "cat.png").pixels[:176, :208].astype(float)
    return pixels if pixels.ndim == 2 else pixels.mean(axis=2)


def noisy(picture, sigma, seed=0):
    return (picture + sigma * np.random.default_rng(seed).standard_normal(picture.shape)).astype(np.float32)


def sampled(posterior, method, options=None, seed=0):
    """Mean, std and samples that a sampler finds, as pictures."""
    *_, last = make_sampler(method, options or {}).estimates(posterior, np.random.default_rng(seed))
    return posterior.pictures(last.mean, last.std, last.samples)


# ------------------------------------------------------------------------------------------- one pass


def test_it_denoises_and_knows_how_well(cat):
    found = predict(noisy(cat, 20)[None], 20)
    assert psnr(cat, found.mean[0], data_range=255) > 29
    assert 0.85 < coverage(cat, found.mean[0], found.std[0]) < 0.95
    assert found.mean.dtype == np.float32


def test_best_is_at_least_as_good(cat):
    found = [predict(noisy(cat, 20)[None, :96, :96], 20, q).mean[0] for q in learned.QUALITIES]
    fast, normal, best = (psnr(cat[:96, :96], mean, data_range=255) for mean in found)
    assert best > normal - 0.02
    assert normal > fast - 0.02


def test_best_turns_with_the_picture():
    """All eight turns are averaged, each turned back the right way."""
    y = np.random.default_rng(0).normal(120, 40, (3, 24, 16)).astype(np.float32)
    straight = predict(y, 20, "best")
    turned = predict(np.ascontiguousarray(y.swapaxes(1, 2)[:, ::-1]), 20, "best")
    for name in ("mean", "std"):
        back = getattr(turned, name)[:, ::-1].swapaxes(1, 2)
        assert np.allclose(getattr(straight, name), back, atol=2e-3)


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 1, 1), (1, 1, 37), (3, 45, 2), (1, 23, 31), (3, 8, 8)])
def test_any_size(shape):
    y = np.random.default_rng(0).normal(120, 40, shape)
    found = predict(y, np.full(shape[1:], 15.0))
    for part in found:
        assert part.shape == shape
        assert np.isfinite(part).all()
    assert (found.std > 0).all()


def test_pieces_equal_the_whole(monkeypatch):
    """Cut where the network's halo must hold: odd sizes, several pieces each way, edges too."""
    y = np.random.default_rng(1).normal(120, 40, (1, 261, 203)).astype(np.float32)
    sigma = np.linspace(5, 40, 203)[None, None]
    whole = predict(y, sigma)
    monkeypatch.setattr(learned, "_SIDE", 96)
    for one, other in zip(whole, predict(y, sigma), strict=True):
        assert np.abs(one - other).max() < 1e-3  # of grey levels up to 255: a few units in the last place
    short = predict(y, sigma, model=replace(load_model().of(1), halo=8))
    assert np.abs(short.mean - whole.mean).max() > 1e-2  # which the test would see


def test_nothing_beyond_the_halo_counts():
    model = load_model()
    y = np.random.default_rng(2).normal(120, 40, (1, 24, 256)).astype(np.float32)
    other = y.copy()
    other[..., 0] += 500
    one, two = (predict(a, 20, model=model).mean for a in (y, other))
    assert np.array_equal(one[..., model.halo + 8 :], two[..., model.halo + 8 :])
    assert not np.array_equal(one[..., :16], two[..., :16])


def test_threads_do_not_change_bytes(monkeypatch):
    monkeypatch.setattr(learned, "_SIDE", 64)
    y = np.random.default_rng(3).normal(120, 40, (3, 100, 130)).astype(np.float32)
    found = []
    try:
        for threads in (1, 2):
            set_threads(threads)
            found.append(predict(y, 15))
    finally:
        set_threads(2)
    for one, two in zip(*found, strict=True):
        assert one.tobytes() == two.tobytes()


def test_a_grey_picture_is_a_colour_one_with_equal_channels(cat):
    y = noisy(cat[:64, :64], 15)
    grey = predict(y[None], 15)
    planes, sigma = to_planes(np.repeat(y[..., None], 3, axis=2)), np.array([15 * np.sqrt(3), 0, 0])[:, None, None]
    colour = predict(planes, sigma, model=load_model().of(1))
    assert np.allclose(colour.mean[0] / np.sqrt(3), grey.mean[0], atol=1e-3)
    assert not colour.std[1:].any()


def test_without_noise_nothing_changes():
    y = np.random.default_rng(4).normal(120, 40, (3, 16, 24)).astype(np.float32)
    found = predict(y, 0)
    assert np.array_equal(found.mean, y)
    assert not found.std.any()


def test_without_edges_there_are_none():
    found = predict(np.zeros((1, 16, 16)), 5, edges=False)
    assert found.right.size == found.down.size == 0


@pytest.mark.parametrize(
    ("planes", "sigma", "quality", "word"),
    [
        (np.zeros((2, 8, 8)), 5, "fast", "shape"),
        (np.zeros((8, 8)), 5, "fast", "shape"),
        (np.zeros((1, 0, 8)), 5, "fast", "shape"),
        (np.zeros((1, 8, 8)), -1, "fast", "finite numbers >= 0"),
        (np.zeros((1, 8, 8)), np.nan, "fast", "finite numbers >= 0"),
        (np.zeros((1, 8, 8)), 5, "great", "quality must be one of"),
    ],
)
def test_bad_input_is_one_line(planes, sigma, quality, word):
    with pytest.raises(ValueError, match=word):
        predict(planes, sigma, quality)


# ------------------------------------------------------------------------------------------- files


def test_files_that_are_no_model(tmp_path):
    whole = load_model().path.read_bytes()
    (tmp_path / "short.onnx").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.onnx").write_text("not a model\n")
    (tmp_path / "empty.onnx").write_bytes(b"")
    (tmp_path / "folder.onnx").mkdir()
    for name in ("short", "text", "empty", "folder", "missing"):
        with pytest.raises(ValueError, match=name) as caught:
            load_model(tmp_path / f"{name}.onnx")
        assert "\n" not in str(caught.value)


def test_a_foreign_model(tmp_path):
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    info = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1]) for n in ("a", "b")]
    graph = helper.make_graph([helper.make_node("Relu", ["a"], ["b"])], "foreign", info[:1], info[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "f.onnx")
    with pytest.raises(ValueError, match="not one of `denoise train`"):
        load_model(tmp_path / "f.onnx")


@pytest.mark.parametrize(
    ("card", "word"),
    [
        ("{", "not a readable card"),
        ("[]", "not a card"),
        (json.dumps({"calibration": {"levels": [1, 2]}}), "calibration of its card is damaged"),
        (json.dumps({"calibration": 3}), "calibration of its card is damaged"),
    ],
)
def test_a_damaged_card(tmp_path, card, word):
    shutil.copy(load_model().path, tmp_path / "mine.onnx")
    (tmp_path / "mine.json").write_text(card)
    with pytest.raises(ValueError, match=word):
        predict(np.zeros((1, 8, 8)), 5, model=load_model(tmp_path / "mine.onnx"))


def test_a_model_without_a_card_works(tmp_path):
    shutil.copy(load_model().path, tmp_path / "mine.onnx")
    assert predict(np.zeros((1, 8, 8)), 5, model=load_model(tmp_path / "mine.onnx")).std.all()


# ------------------------------------------------------------------------------------------- calibration


def test_the_table_is_interpolated():
    rng = np.random.default_rng(0)
    levels, ratios = np.array([1.0, 4, 16]), np.array([0.1, 0.3, 0.9])
    factors = dict.fromkeys(learned.QUALITIES, rng.uniform(0.5, 2, (3, 3, 3)))
    table = Calibration(levels, ratios, factors, np.array([0.0, -1, -3]))
    log_std = np.log(rng.uniform(0.05, 1.2, (3, 4, 5)))
    sigma = rng.uniform(0, 30, (3, 4, 5))
    found = table.log_factors("fast", log_std, sigma)
    for place in np.ndindex(3, 4, 5):
        rows = np.log(factors["fast"][place[0]])
        level = np.log(np.clip(sigma[place], 1, 16))
        by_level = [np.interp(level, np.log(levels), rows[:, r]) for r in range(3)]
        assert found[place] == pytest.approx(np.interp(log_std[place], np.log(ratios), by_level), abs=1e-6)
    assert table.shift(np.array([4.0, 100, 0])).tolist() == [-1, -3, 0]


# ------------------------------------------------------------------------------------------- the field


@pytest.mark.parametrize("logit", [-4.0, 0.0, 2.0, 4.0])
def test_a_stationary_field_has_unit_variance(logit):
    """The mean of the inverse spectrum of a large torus, which has no border."""
    t, alpha = ties(np.array(logit))
    waves = 2 - 2 * np.cos(2 * np.pi * np.arange(600) / 600)
    assert (1 / (alpha + t * (waves[:, None] + waves))).mean() == pytest.approx(1, abs=2e-3)


@pytest.fixture
def field():
    """A small field with edges that differ, and its exact covariance."""
    rng = np.random.default_rng(0)
    mean, std = rng.normal(120, 30, (5, 7)), rng.uniform(1, 20, (5, 7))
    posterior = LearnedPosterior(mean, std, rng.normal(2, 1, (5, 7)), rng.normal(3, 1, (5, 7)))
    precisions = posterior.clique_scale**2
    matrix = naive.precision_matrix(posterior.prior, posterior.shape, precisions, posterior.noise_precision)
    return posterior, np.linalg.inv(matrix)


def test_variances_come_out_as_predicted(field):
    posterior, covariance = field
    spread = posterior.crop(np.sqrt(np.diag(covariance)).reshape(posterior.shape))
    assert np.abs(spread - 1).max() < 0.15
    assert spread.mean() == pytest.approx(1, abs=0.04)


@pytest.mark.parametrize("method", ["direct", "mp-svgd", "mp-svgd-s", "svgd", "gibbs", "hmc", "map"])
def test_every_sampler_samples_it(field, method):
    posterior, covariance = field
    options = {
        "direct": {"particles": 50},
        "gibbs": {"samples": 3000, "burn_in": 0},
        "hmc": {"samples": 6000, "chains": 40},
        "mp-svgd": {"iterations": 200},
        "mp-svgd-s": {"iterations": 200},
    }.get(method, {})
    mean, std, samples = sampled(posterior, method, options, seed=1)
    assert mean.shape == (5, 7)
    assert np.abs((mean - posterior.plane_mean) / posterior.plane_std).max() < 0.2
    ratio = std / posterior.plane_std / posterior.crop(np.sqrt(np.diag(covariance)).reshape(posterior.shape))
    if method in ("gibbs", "hmc", "direct"):
        assert np.abs(ratio - 1).max() < (0.15 if method == "direct" else 0.09)  # direct: as predicted
        drawn = np.corrcoef(samples[:, 2, 3], samples[:, 2, 4])[0, 1]
        at = [r * posterior.shape[1] + c for r, c in ((10, 11), (10, 12))]
        exact = covariance[at[0], at[1]] / np.sqrt(covariance[at[0], at[0]] * covariance[at[1], at[1]])
        assert drawn == pytest.approx(exact, abs=0.4)  # of 50 kept draws
    elif method == "map":
        assert not std.any()
    elif method != "svgd":  # whose spread collapses
        assert ratio.mean() == pytest.approx(1, abs=0.15)


def test_particles_hold_means_of_blocks(cat):
    found = predict(noisy(cat, 20)[None], 20)
    posterior = LearnedPosterior(*(part[0] for part in found))
    shares = joint_coverage(cat, sampled(posterior, "direct", {"particles": 50})[2])
    assert min(shares["differences"], shares["2x2"], shares["4x4"]) > 0.82
    independent = found.mean[0] + found.std[0] * np.random.default_rng(0).standard_normal((50, *cat.shape))
    assert joint_coverage(cat, independent)["4x4"] < 0.8  # what fails without the edges


@pytest.mark.parametrize("kind", SIBLINGS)
def test_a_network_of_their_own_for_some_pictures(tmp_path, kind):
    """Here the same one without a card: other deviations for its pictures, the same for others, another key."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for ending in (".onnx", ".json"):
            shutil.copy(load_model().path.with_suffix(ending), tmp_path / folder / f"mine{ending}")
    shutil.copy(load_model().path, tmp_path / "two" / f"mine-{kind}.onnx")
    planes = np.random.default_rng(0).normal(120, 20, (3, 16, 16)).astype(np.float32)
    one, two = (tmp_path / folder / "mine.onnx" for folder in ("one", "two"))
    for count, grained in ((1, False), (3, False), (1, True), (3, True)):
        found = [predict(planes[:count], 20, model=load_model(path), grained=grained).std for path in (one, two)]
        assert np.array_equal(*found) == (count == 3 if kind == "grey" else count == 1 or not grained)
    assert load_field(one).fingerprint != load_field(two).fingerprint


def test_noise_with_grain_goes_to_the_network_for_it():
    """The same levels, once as they were measured and once as the map of them: the network is another."""
    clean = read(data_folder("sample_images") / "coffee.png").pixels[:96, :96].astype(float)
    picture = add_noise(clean, "camera:12800", np.random.default_rng(0))
    measured = estimate_noise(picture, channel_axis=-1)
    white = replace(measured, planes=tuple(replace(plane, correlation=((1.0,),)) for plane in measured.planes))
    assert (measured.grained, white.grained) == (True, False)
    means = [denoise(picture, noise=noise, channel_axis=-1).mean for noise in (measured, white)]
    model = load_model()
    planes = to_planes(picture)
    for mean, network in zip(means, (model.siblings["grain"], replace(model, siblings={})), strict=True):
        factors = noise_factors(load_field("learned"), measured, 3)
        sigma = measured.plane_maps(picture) * np.array(factors)[:, None, None]
        expected = to_channels(predict(planes, sigma, "normal", model=network).mean)
        np.testing.assert_allclose(mean, expected, atol=1e-3)
