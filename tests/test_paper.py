"""What the paper claims, as assertions at quick settings; tolerances come from repeated runs with other seeds."""

import csv

import numpy as np
import pytest

from denoiser.images import write_float_tiff
from denoiser.paper import bandwidth, denoising, ep, epbp, force, image_force, marginals, particles, report, toy
from denoiser.paper.denoising import grey_photograph
from denoiser.paper.truth import TruthScale


@pytest.fixture
def setting():
    return report.Setting(quick=True)


def test_a_photograph_is_scaled_by_its_own_white(tmp_path):
    """Half of white is 127.5 grey levels, whether white is 1 or 1023."""
    write_float_tiff(tmp_path / "real.tif", np.tile([0.5, 1.0], (8, 4)))
    samples = np.tile([511.5, 1023], (8, 4)).astype(">u2")
    (tmp_path / "ten.pgm").write_bytes(b"P5 8 8 1023 " + samples.tobytes())
    for name in ("real.tif", "ten.pgm"):
        _, grey = grey_photograph(report.Setting(image=tmp_path / name))
        assert np.allclose(grey, np.tile([127.5, 255], (8, 4)), atol=0.2)


def test_a_photograph_is_scaled_by_its_own_black(tmp_path):
    levels = np.linspace(0, 240, 64).repeat(64).reshape(64, 64)
    for name, values in (("near.tif", levels), ("far.tif", 50000 + 20 * levels)):
        write_float_tiff(tmp_path / name, values)
    near, far = (grey_photograph(report.Setting(image=tmp_path / name))[1] for name in ("near.tif", "far.tif"))
    assert -20 < far.min() < 20
    assert 235 < far.max() < 275
    assert np.allclose(near, far, atol=20)


def test_toy_svgd_loses_its_spread():
    rows = [toy.measure("rbf", d, 50, 800, 0) for d in (1, 10, 50, 100)]
    variances = [row["variance"] for row in rows]
    assert (np.diff(variances) < 0).all()
    assert variances[0] > 0.9
    assert variances[-1] < 0.5
    assert max(abs(row["mean"]) for row in rows) < 0.05
    assert (np.diff([row["PAMRF begin"] for row in rows]) < 0).all()
    for row in rows:  # phi = 0 at the end: the two forces balance
        assert row["PAMRF end"] == pytest.approx(row["PAKSG end"], rel=0.15)


def test_a_larger_bandwidth_keeps_more_variance_and_takes_longer():
    small, median = (bandwidth.traces(alpha, 50, 400, 0) for alpha in (0.75, 1.0))
    assert small[-1]["variance"] < 0.9 * median[-1]["variance"]
    at_20 = [next(r["variance"] for r in rows if r["iteration"] >= 20) for rows in (small, median)]
    assert at_20[0] < 0.5 * at_20[1]


@pytest.fixture(scope="module")
def errors():
    """Mean squared errors of a method at M = 100, and of SVGD at M = 200."""
    runs = {"HMC": 10, "EP": 1}
    cases = [(name, 100, run) for name in particles.METHODS for run in range(runs.get(name, 2))]
    cases += [("SVGD", 200, 0), ("SVGD", 200, 1)]
    rows = particles.experiment(report.Setting(quick=True), cases, TruthScale(400, 200, 400))
    return {row["method"] if row["M"] == 100 else "SVGD 200": row for row in rows}


@pytest.mark.parametrize("function", particles.FUNCTIONS)
def test_grid_svgd_has_the_largest_error_of_the_particle_methods(errors, function):
    """HMC's draws are as bad on E[x] alone, within the error of a few runs."""
    svgd = errors["SVGD"]
    for method in ("MP-SVGD-s", "MP-SVGD-m", "HMC", "EPBP"):
        bar = np.hypot(svgd[f"{function} +-"], errors[method][f"{function} +-"])
        assert errors[method][function] < svgd[function] + bar
    for method in ("MP-SVGD-s", "MP-SVGD-m"):
        assert errors[method][function] < 0.8 * svgd[function]


@pytest.mark.parametrize("function", particles.FUNCTIONS)
def test_grid_the_multi_kernel_is_no_worse_than_the_single_kernel(errors, function):
    m, s = errors["MP-SVGD-m"], errors["MP-SVGD-s"]
    assert m[function] <= s[function] + np.hypot(m[f"{function} +-"], s[f"{function} +-"])


@pytest.mark.parametrize("function", particles.FUNCTIONS)
@pytest.mark.parametrize("rival", ["HMC", "EPBP"])
def test_grid_mp_svgd_is_comparable_with_hmc_and_epbp(errors, function, rival):
    assert errors["MP-SVGD-m"][function] < 1.5 * errors[rival][function]


def test_grid_ep_is_worst_on_the_square(errors):
    """With 100 particles SVGD is still worse than EP, with 200 it no longer is: EP does not improve (docs/paper.md)."""
    others = [errors[m]["x^2"] for m in ("MP-SVGD-s", "MP-SVGD-m", "HMC", "EPBP", "SVGD 200")]
    assert errors["EP"]["x^2"] > max(others)


def test_force_falls_with_the_grid_for_svgd_alone():
    sides = (2, 5, 10)
    found = {
        name: np.mean([[force.measure(name, side, 50, 200, [run, side]) for side in sides] for run in range(2)], axis=0)
        for name in ("SVGD", "MP-SVGD-s", "MP-SVGD-m")
    }
    for norm in (0, 1):
        assert (np.diff(found["SVGD"][:, norm]) < 0).all()
        for name in ("MP-SVGD-s", "MP-SVGD-m"):
            assert found[name][-1, norm] > found[name][0, norm]
        assert (found["MP-SVGD-m"][:, norm] > found["MP-SVGD-s"][:, norm]).all()
    assert report.slope([s * s for s in sides], found["SVGD"][:, 0]) < -0.2


def test_image_force_falls_with_the_size_for_svgd_alone(monkeypatch, setting):
    monkeypatch.setattr(image_force, "QUICK_SIDES", (8, 32))
    rows = image_force.run(setting).rows
    pamrf = {(row["method"], row["side"]): row["PAMRF inf"] for row in rows}
    assert pamrf["SVGD", 32] < 0.5 * pamrf["SVGD", 8]
    for method in ("MP-SVGD-s", "MP-SVGD-m"):
        assert pamrf[method, 32] > 0.9 * pamrf[method, 8]


def test_denoising_figure(monkeypatch, setting, tmp_path):
    monkeypatch.setattr(denoising, "QUICK_SIDE", 40)
    made = denoising.run(setting)
    by = {row["method"]: row["PSNR"] for row in made.rows}
    assert by["MP-SVGD"] > by["MAP"] > by["noisy"]
    files = report.write(made, tmp_path, "denoising", "a command", picture=True)
    assert [f.suffix for f in files] == [".csv", ".md", ".png"]
    text = files[1].read_text()
    assert "Made by `a command`" in text
    assert "(denoising.png)" in text


def test_marginals_report(monkeypatch, setting, tmp_path):
    monkeypatch.setattr(marginals, "scale_of", lambda _: TruthScale(100, 100, 30))
    monkeypatch.setattr(marginals, "PARTICLES", 30)
    for module in (ep, epbp):
        monkeypatch.setattr(module, "SWEEPS", 2)
    made = marginals.run(setting)
    files = report.write(made, tmp_path, "marginals", "a command", picture=True)
    rows = list(csv.DictReader(files[0].read_text().splitlines()))
    assert len({row["node"] for row in rows}) == 3
    for method in ("truth", "SVGD", "EP", "EPBP"):
        for node in {row["node"] for row in rows}:
            density = [float(row[method]) for row in rows if row["node"] == node]
            assert sum(density) * 0.05 == pytest.approx(1, abs=0.03)


def test_a_report_without_a_picture(tmp_path):
    plain = report.Report("Title", "shows it.", "Setting.", ["A line."], [{"a": 1, "b": 0.123456789}, {"a": 2}])
    files = report.write(plain, tmp_path, "x", "denoise reproduce x", picture=True)
    assert [f.name for f in files] == ["x.csv", "x.md"]
    assert files[0].read_text() == "a,b\n1,0.123457\n2,\n"
    assert "png" not in files[1].read_text()


def test_parts_of_the_work_are_told_as_shares():
    told = []
    setting = report.Setting(tell=lambda what, share: told.append((what, share)))
    setting.share(0.2, 1).tell("half", 0.5)
    assert told == [("half", pytest.approx(0.6))]
