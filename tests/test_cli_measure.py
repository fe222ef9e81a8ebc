"""`denoise measure`, on files."""

import csv
import re

import numpy as np
import pytest
from PIL import Image

from denoiser import add_noise, images, make_request, measure
from denoiser.cli import main
from denoiser.images import tiff_write
from denoiser.particles import draw_particles

FAST = ["--method", "gibbs", "--sigma", "20"]


@pytest.fixture
def scan(tmp_path, clean):
    path = tmp_path / "scan.png"
    Image.fromarray(np.clip(add_noise(clean, 20), 0, 255).astype(np.uint8)).save(path)
    return str(path)


def test_regions_differences_and_profiles(scan, tmp_path, capsys, clean):
    mask = np.zeros((64, 64), np.uint8)
    mask[40:50, 5:25] = 255
    Image.fromarray(mask).save(tmp_path / "mask.png")
    out = str(tmp_path / "out.csv")
    words = ["--region", "10,20,12,9", "--mask", str(tmp_path / "mask.png"), "--line", "5,30,50,40", "--csv", out]
    assert main(["measure", scan, *words, *FAST]) == 0
    with open(out) as file:
        rows = list(csv.DictReader(file))
    table = {(r["item"], r["quantity"]): r for r in rows if not r["distance"]}
    mean = table["region 1", "mean"]
    truth = clean[20:29, 10:22].mean()
    assert float(mean["low"]) < float(mean["value"]) < float(mean["high"])
    assert abs(float(mean["value"]) - truth) < 6
    assert float(table["region 1", "sum"]["value"]) == pytest.approx(108 * float(mean["value"]), rel=1e-6)
    apart = table["region 1 - mask 2", "mean"]
    assert float(apart["value"]) == pytest.approx(
        float(mean["value"]) - float(table["mask 2", "mean"]["value"]), rel=1e-5
    )
    line = [r for r in rows if r["item"] == "line 3"]
    assert len(line) == 47
    said = capsys.readouterr().out
    assert "region 1 - mask 2: mean" in said
    assert "90 %" in said


def test_the_numbers_are_those_of_the_library(scan, tmp_path):
    out = str(tmp_path / "out.csv")
    assert main(["measure", scan, "--ellipse", "10,20,12,9", "--level", "0.8", "--csv", out, *FAST]) == 0
    noisy = images.read(scan).pixels
    mask = measure.ellipse(noisy.shape, 10, 20, 12, 9)
    request = make_request(noisy, 20.0, method="gibbs", data_range=255)
    top, left, bottom, right = box = measure.bounds(mask)
    from denoiser import Region

    found = measure.region(draw_particles(request, Region(*box)), mask[top:bottom, left:right], 0.8)["mean"]
    with open(out) as file:
        row = next(csv.DictReader(file))
    assert float(row["low"]) == pytest.approx(float(found.low))
    assert float(row["high"]) == pytest.approx(float(found.high))


def test_a_region_is_measured_as_in_the_whole(scan):
    noisy = images.read(scan).pixels
    from denoiser import Region

    request = make_request(noisy, 20.0, method="mp-svgd", data_range=255, particles=20, iterations=20, start="noisy")
    region = Region(24, 20, 40, 44)
    part = measure.region(draw_particles(request, region), np.ones(region.shape, bool))["mean"]
    mask = measure.rectangle(noisy.shape, 20, 24, 24, 16)
    whole = measure.region(request.run().samples, mask)["mean"]
    assert part.value == pytest.approx(whole.value, abs=0.05)
    assert part.reach == pytest.approx(whole.reach, rel=0.1)


@pytest.mark.parametrize(
    "words",
    [
        [], ["--region", "1,2,3"], ["--region", "a,b,c,d"], ["--region", "900,0,5,5"], ["--line", "0,0,500,5"],
        ["--mask", "nowhere.png"], ["--region", "1,2,9,9", "--level", "1.5"], ["--region", "1,2,9,9", "--method", "tv"],
        ["--region", "1,2,9,9", "--csv", "SCAN"],
    ],
)  # fmt: skip
def test_wrong_usage_is_one_line(scan, words, capsys):
    words = [scan if word == "SCAN" else word for word in words]
    try:
        code = main(["measure", scan, *words])
    except SystemExit as end:
        code = end.code
    assert code in (1, 2)
    said = capsys.readouterr().err
    assert said.startswith("denoise: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e9])
def test_an_offset_leaves_digits_for_the_interval(tmp_path, clean, capsys, offset):
    """1e9 and 1e9 + 3 are one number to six digits, and to nine."""
    values = offset + add_noise(clean, 20) * (1e-6 if offset == 1 else 1e-2)
    (tmp_path / "far.tif").write_bytes(tiff_write.encode([(values, None, None)]))
    words = ["--region", "10,20,12,9", "--line", "5,30,50,40", "--csv", str(tmp_path / "out.csv"), "--method", "gibbs"]
    assert main(["measure", str(tmp_path / "far.tif"), *words]) == 0
    value, low, high = map(float, re.findall(r"mean (\S+)  \((\S+) to (\S+)\)", capsys.readouterr().out)[0])
    with open(tmp_path / "out.csv") as file:
        row = next(csv.DictReader(file))
    told = [float(row[name]) - offset for name in ("value", "low", "high")]
    reach = (told[2] - told[1]) / 2
    assert reach > 0
    assert (value - offset, low - offset, high - offset) == pytest.approx(told, abs=0.02 * reach)
    assert told[0] == pytest.approx((told[1] + told[2]) / 2, abs=1e-3 * reach)


@pytest.mark.parametrize("flag", ["--csv", "--plot"])
def test_inputs_are_never_replaced(scan, tmp_path, capsys, flag):
    mask = np.zeros((64, 64), np.uint8)
    mask[40:50, 5:25] = 255
    images.write_png(tmp_path / "mask.png", mask)
    before = [(tmp_path / name).read_bytes() for name in ("scan.png", "mask.png")]
    for name in ("scan.png", "mask.png"):
        for more in ([], ["--overwrite"]):
            words = ["--mask", str(tmp_path / "mask.png"), flag, str(tmp_path / name)]
            assert main(["measure", scan, *words, *more, *FAST]) == 1
            assert "is an input; nothing was written" in capsys.readouterr().err
    assert [(tmp_path / name).read_bytes() for name in ("scan.png", "mask.png")] == before
    both = str(tmp_path / "both.png")
    with pytest.raises(SystemExit):
        main(["measure", scan, "--region", "1,1,9,9", "--csv", both, "--plot", both, *FAST])
    assert "--csv and --plot must be two files" in capsys.readouterr().err
