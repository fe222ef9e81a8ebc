import numpy as np
import pytest

import denoiser
from denoiser import Region, Request, add_noise, denoise, images, iterate, load_prior, make_request, pieces, psnr
from denoiser.data import data_folder
from denoiser.pieces import Margins
from denoiser.samplers import make_sampler

PRIOR = load_prior("pairwise")
MARGINS = Margins(pieces.HALO, PRIOR.colours, PRIOR.padding)


def sample(name, height=96, width=128):
    """The middle of a bundled photograph."""
    pixels = images.read(data_folder("sample_images") / f"{name}.png").pixels.astype(float)
    top, left = (pixels.shape[0] - height) // 2, (pixels.shape[1] - width) // 2
    return pixels[top : top + height, left : left + width]


def request_for(image, sigma, most=None, *, method="mp-svgd", seed=0, axis=None, **options):
    """A Request whose tiles have at most `most` sites."""
    sampler = make_sampler(method, options)
    planes = 3 if image.ndim == 3 else 1
    memory = None if most is None else most * planes * sampler.bytes_per_pixel(PRIOR)
    return Request(image, sigma, sampler, PRIOR, seed, axis, white=255, memory=memory)


def tiled(image, sigma, most, **options):
    """Every Progress of a run in tiles."""
    return list(request_for(image, sigma, most, **options).iterate())


def rms(values):
    return float(np.sqrt(np.mean(np.square(values))))


# ---- geometry


@pytest.mark.parametrize("margins", [MARGINS, Margins(24, 9, 2), Margins(64, 8, 0)])
@pytest.mark.parametrize("shape", [(64, 65), (97, 200), (33, 1001)])
def test_weights_add_up_to_one(shape, margins):
    for most in (pieces.least(shape, margins), 300 * 300):
        total = np.zeros(shape)
        for piece in pieces.cut(shape, most, margins):
            rows, columns = piece.weights
            piece.outer.of(total)[:] += np.outer(rows, columns)
            assert piece.outer.top % margins.period == piece.outer.left % margins.period == 0
            assert margins.sites(*piece.outer.shape) <= most
            edge = margins.halo - pieces.RAMP // 2  # what feels the edge is thrown away
            assert piece.outer.top == 0 or not rows[:edge].any()
            assert piece.outer.bottom == shape[0] or not rows[-edge:].any()
            assert piece.outer.left == 0 or not columns[:edge].any()
            assert piece.outer.right == shape[1] or not columns[-edge:].any()
        assert np.allclose(total, 1, atol=1e-6)


@pytest.mark.parametrize("shape", [(96, 128), (33, 5000), (4000, 6000), (70, 70), (2, 1_000_000)])
def test_pieces_keep_to_the_budget(shape):
    for most in (120 * 120, 300 * 300, 10**6):
        assert max(MARGINS.sites(*piece.outer.shape) for piece in pieces.cut(shape, most, MARGINS)) <= most
    with pytest.raises(ValueError, match="too little"):
        pieces.cut((4000, 6000), 50, MARGINS)


def test_free_memory(monkeypatch):
    assert 2**20 < pieces.free_memory() < 2**50
    assert pieces.default_memory() <= pieces.DEFAULT_MEMORY
    monkeypatch.setattr("builtins.open", lambda *_a, **_k: (_ for _ in ()).throw(OSError))
    assert 2**20 < pieces.free_memory() < 2**50
    monkeypatch.delattr("os.sysconf")
    assert pieces.free_memory() == 4 << 30


# ---- what comes out


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("mp-svgd", {"particles": 6, "iterations": 10, "start": "noisy"}),
        ("gibbs", {"samples": 4, "burn_in": 0, "tolerance": 1e-6}),
    ],
)
def test_a_piece_does_what_the_whole_does(method, options):
    """Beginning from the noisy picture, tiles and regions equal the whole: nothing but the halo is between them."""
    noisy = add_noise(sample("camera"), 20)
    whole = denoise(noisy, 20, method=method, data_range=255, **options)
    last = tiled(noisy, 20, 100 * 100, method=method, **options)[-1]
    assert last.tiles >= 3
    worst = np.max if method == "mp-svgd" else rms  # a rounding error turns one of a thousand draws of a scale
    assert worst(np.abs(last.mean - whole.mean)) < 1e-3
    assert worst(np.abs(last.std - whole.std)) < 1e-3
    region = Region(41, 50, 60, 81)  # begins at an odd row
    part = denoise(noisy, 20, method=method, data_range=255, region=region, **options)
    assert part.mean.shape == part.std.shape == part.samples.shape[1:] == (19, 31)
    assert worst(np.abs(part.mean - region.of(whole.mean))) < 1e-3
    assert worst(np.abs(part.samples - whole.samples[:, 41:60, 50:81])) < 2e-3


def test_smooth_starts_differ_by_the_solver_alone():
    """The default start solves linear systems over the whole piece: alike, and far closer than another seed."""
    noisy = add_noise(sample("camera"), 20)
    options = {"method": "mp-svgd", "particles": 16, "iterations": 12}
    one, two = (denoise(noisy, 20, seed=seed, data_range=255, **options) for seed in (0, 1))
    last = tiled(noisy, 20, 100 * 100, **options)[-1]
    assert last.tiles >= 3
    assert rms(last.mean - one.mean) < 0.7 * rms(two.mean - one.mean)
    assert rms(last.std - one.std) < 0.7 * rms(two.std - one.std)


def border_gradient(picture, rows, columns):
    """Mean absolute difference of neighbours across the cuts, and anywhere."""
    height, width = picture.shape
    down, across = np.abs(np.diff(picture, axis=0)), np.abs(np.diff(picture, axis=1))
    at = [down[round(height * k / rows) - 1] for k in range(1, rows)]
    at += [across[:, round(width * k / columns) - 1] for k in range(1, columns)]
    return np.concatenate(at).mean(), np.concatenate([down.ravel(), across.ravel()]).mean()


def seam(names, seeds, **options):
    """How much rougher borders are than elsewhere, against untiled runs, over several pictures and seeds."""
    figures = np.zeros((2, 2))
    for name in names:
        noisy = add_noise(sample(name, 150, 200).reshape(150, 200, -1).mean(axis=2), 20)
        rows, columns = pieces._grid(noisy.shape, 120 * 120, MARGINS)
        for seed in seeds:
            whole = denoise(noisy, 20, seed=seed, data_range=255, **options).mean
            parts = tiled(noisy, 20, 120 * 120, seed=seed, **options)[-1].mean
            figures += (border_gradient(whole, rows, columns), border_gradient(parts, rows, columns))
    (whole_at, whole_all), (tiled_at, tiled_all) = figures
    return (tiled_at / whole_at) / (tiled_all / whole_all)


def test_no_seams():
    pictures = ["camera", "cat", "lake", "coffee", "trees", "brick"]
    assert seam(pictures, [0, 1, 2], method="mp-svgd", particles=8, iterations=16) == pytest.approx(1, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"method": "mp-svgd"}, {"method": "gibbs", "samples": 40}])
def test_no_seams_with_other_settings(options):
    assert seam(["camera", "cat", "lake", "coffee"], [0], **options) == pytest.approx(1, abs=0.01)


def test_progress_over_all_tiles():
    image = sample("cat", 90, 120)
    noisy = add_noise(image, 20)
    run = tiled(noisy, 20, 100 * 100, method="mp-svgd", particles=4, iterations=3, axis=-1)
    count = run[-1].tiles
    assert [p.step for p in run] == list(range(1, 3 * count + 1))
    assert {p.total for p in run} == {3 * count}
    assert run[-1].eta == 0
    assert run[-1].mean.shape == run[-1].std.shape == image.shape
    assert run[-1].mean.dtype == np.float32
    assert run[-1].samples.shape == (0, *image.shape)
    assert psnr(image, run[-1].mean, data_range=255) > psnr(image, noisy, data_range=255) + 3
    assert run[-1].done.all()
    assert run[-1].uncertainty == pytest.approx(run[-1].std.mean())
    assert run[-1].draws == 4
    assert "tiles" in run[-1].without
    steps = request_for(noisy, 20, 100 * 100, particles=4, iterations=3, axis=-1).iterate()
    first = next(steps)
    assert np.allclose(first.mean, noisy, atol=1e-3)  # what is not done yet is the noisy picture
    assert np.isnan(first.std).all()  # and nobody is sure of it
    assert not first.done.any()
    for _ in range(2):
        part = next(steps)
    assert 0 < part.done.mean() < 1
    assert np.array_equal(np.isfinite(part.std[..., 0]), part.done)
    assert 0 < part.uncertainty < 20
    steps.close()
    first = tiled(np.moveaxis(noisy, -1, 0), 20, 100 * 100, method="mp-svgd", particles=4, iterations=3, axis=0)
    assert np.array_equal(np.moveaxis(first[-1].mean, 0, -1), run[-1].mean)


def test_samplers_that_stop_early():
    run = tiled(add_noise(np.full((90, 120), 100.0), 2), 2, 100 * 100, method="map", iterations=300)
    assert run[-1].step == run[-1].total == 300 * run[-1].tiles
    assert run[-1].tiles > 1
    assert len(run) < run[-1].total
    assert run[-1].mean.std() < 1


def test_threads_do_not_matter():
    noisy = add_noise(sample("camera"), 20)
    threads, found = denoiser.get_threads(), []
    try:
        for count in (1, 2, 3):
            denoiser.set_threads(count)
            found.append(tiled(noisy, 20, 100 * 100, method="mp-svgd", particles=4, iterations=2)[-1].mean)
    finally:
        denoiser.set_threads(threads)
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


@pytest.mark.parametrize(
    ("image", "sigma", "options", "message"),
    [
        (np.zeros((200, 200)), 0, {}, "sigma must be > 0, got 0"),
        (np.zeros((200, 200, 4)), 5, {"channel_axis": -1}, "1 or 3 channels, got 4"),
        (np.zeros((200, 200, 3)), 5, {}, "2 axes unless channel_axis"),
        (np.full((200, 200), np.nan), 5, {}, "image must be finite"),
        (np.zeros((200, 200)), 5, {"memory": 1000}, "too little for even the smallest tile; allow "),
        (np.zeros((200, 200)), 5, {"method": "magic"}, "method must be one of"),
        (np.zeros((200, 200)), 5, {"seed": -1}, "seed must be a whole number"),
        (np.full((200, 200), 1e200), 5, {}, "lies too far from black 0, white 255"),
    ],
)
def test_bad_input_is_named_at_once(image, sigma, options, message):
    with pytest.raises(ValueError, match=message):
        iterate(image, sigma, **{"memory": 6 << 20, "data_range": 255, **options})


@pytest.mark.parametrize("shape", [(200, 200), (31, 3000), (500, 700)])
@pytest.mark.parametrize("options", [{}, {"prior": "pairwise"}, {"prior": "foe3x3", "quality": "best"}])
def test_memory_advice_is_what_it_takes(shape, options):
    image = np.zeros(shape)
    with pytest.raises(ValueError, match="allow") as error:
        iterate(image, 5, memory=1000, data_range=255, **options)
    advised = int(str(error.value).split("allow ")[1].split(" MB")[0])
    iterate(image, 5, memory=advised << 20, data_range=255, **options)
    with pytest.raises(ValueError, match=f"allow {advised} MB"):
        iterate(image, 5, memory=(advised - 1) << 20, data_range=255, **options)


# ---- colour


def test_opponent_planes_beat_channels():
    """By 0.3 dB at sigma 20, on crops of the sample images; measured: about 2 dB."""
    gains = []
    options = {"method": "gibbs", "samples": 16, "burn_in": 4}
    for name in ("cat", "colosseum", "lake"):
        clean = sample(name, 64, 64)
        noisy = add_noise(clean, 20, seed=1)
        separate = [denoise(noisy[..., c], 20, seed=c, data_range=255, **options).mean for c in range(3)]
        together = denoise(noisy, 20, channel_axis=-1, data_range=255, **options).mean
        gains.append(psnr(clean, together, data_range=255) - psnr(clean, np.stack(separate, -1), data_range=255))
    assert min(gains) > 0.3, gains
    assert np.mean(gains) > 1, gains


def test_colour_planes_have_their_own_scale():
    """Gains of 1 would be the same prior for all planes: worse."""
    clean = sample("cat", 64, 64)
    noisy = add_noise(clean, 20, seed=1)
    found = []
    with pytest.MonkeyPatch.context() as patch:
        for gains in ((1.0, 1.0, 1.0), denoiser.colour.GAINS):
            patch.setattr(denoiser.colour, "GAINS", gains)
            result = denoise(noisy, 20, channel_axis=-1, data_range=255, method="gibbs", samples=16, burn_in=4)
            found.append(psnr(clean, result.mean, data_range=255))
            error = result.mean - clean
            assert 0.5 < np.sqrt(np.mean(error**2)) / np.sqrt(np.mean(result.std**2)) < 2  # the scale is taken back
    assert found[1] > found[0] + 0.3


def test_a_brief_run_in_tiles_knows_its_mean_uncertainty():
    image = np.random.default_rng(0).integers(0, 256, (150, 170, 3)).astype(np.uint8)
    request = make_request(image, 10.0, channel_axis=-1, prior="pairwise", particles=4, iterations=2, memory=20 << 20)
    assert len(request.pieces()) > 1
    whole, brief = request.run(), request.run(brief=True)
    assert np.array_equal(whole.mean, brief.mean)
    assert brief.uncertainty == pytest.approx(whole.uncertainty, rel=1e-5)
