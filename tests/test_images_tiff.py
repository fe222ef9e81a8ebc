"""TIFF: orientation once for every compression, tags, ranges, stacks; with imagecodecs and without."""

import contextlib
import io
import pickle
import struct
import subprocess
import sys

import image_files as made
import numpy as np
import pytest
import tifffile
from PIL import Image, ImageOps

from denoiser import images
from denoiser.units import Units


def read(data):
    return images.read(io.BytesIO(data))


def stack(data, **options):
    return images.read_stack(io.BytesIO(data), **options)


def written(pixels, like):
    out = io.BytesIO()
    images.write(out, pixels, like)
    return out.getvalue()


def rewritten(pictures):
    out = io.BytesIO()
    images.write_stack(out, [picture.pixels for picture in pictures], pictures)
    return out.getvalue()


# ---- orientation


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("compression", [None, "zlib", "lzw", "jpeg", "packbits", "group4"])
def test_upright_once_for_every_compression(compression, orientation):
    rows, columns = np.mgrid[0:24, 0:40]
    ramp = Image.fromarray((rows * 6 + columns * 2).astype(np.uint8))
    stored = ramp.point(lambda v: 255 * (v > 90), "1") if compression == "group4" else ramp
    name = {"zlib": "tiff_adobe_deflate", "lzw": "tiff_lzw", None: "raw"}.get(compression, compression)
    data = made.saved(stored, "TIFF", compression=name, tiffinfo={274: orientation})
    truth = np.array(ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("L")).astype(int)
    plain = np.array(Image.open(io.BytesIO(made.saved(stored, "TIFF"))).convert("L"))
    assert truth.shape == (plain.shape if orientation < 5 else plain.shape[::-1])
    turns = {1: lambda a: a, 2: lambda a: a[:, ::-1], 3: lambda a: a[::-1, ::-1], 4: lambda a: a[::-1],
             5: lambda a: a.T, 6: lambda a: np.rot90(a, -1), 7: lambda a: a[::-1, ::-1].T, 8: np.rot90}  # fmt: skip
    expected = turns[orientation](plain).astype(int)
    picture = read(data)
    for version in (picture, read(written(picture.pixels, picture))):
        assert version.pixels.shape == expected.shape
        assert np.abs(version.pixels - expected).max() <= (6 if compression == "jpeg" else 0)


def test_resolutions_of_a_turned_tiff_change_places():
    data = made.tiff(made.GREY, resolution=(300, 100), resolutionunit="INCH", extratags=[(274, 3, 1, 6, True)])
    picture = read(data)
    assert picture.dpi == (100, 300)
    assert read(written(picture.pixels, picture)).dpi == (100, 300)


# ---- tags


def test_colour_tags_are_kept():
    white, primaries = (3127, 10000, 3290, 10000), (64, 100, 33, 100, 30, 100, 60, 100, 15, 100, 6, 100)
    extra = [(318, 5, 2, white, True), (319, 5, 6, primaries, True)]
    picture = read(made.tiff(made.RGB, photometric="rgb", extratags=extra))
    with tifffile.TiffFile(io.BytesIO(written(picture.pixels, picture))) as file:
        tags = file.pages.first.tags
        assert tags[318].value == white
        assert tags[319].value == primaries


def test_smaller_copies_are_left_out_with_a_word():
    out = io.BytesIO()
    with tifffile.TiffWriter(out) as writer:
        writer.write(made.RGB, photometric="rgb", subifds=1, metadata=None)
        writer.write(made.RGB[::2, ::2], photometric="rgb", subfiletype=1, metadata=None)
    assert images.lost("x.tif", read(out.getvalue())) == ["smaller copies of the picture"]
    out = io.BytesIO()
    with tifffile.TiffWriter(out) as writer:
        writer.write(made.RGB[::4, ::4], photometric="rgb", subfiletype=1, metadata=None)
        writer.write(made.RGB, photometric="rgb", metadata=None)
    picture = read(out.getvalue())
    assert picture.pixels.shape == made.RGB.shape
    assert picture.notes == ("smaller copies of the picture",)


# ---- black and white


def ramp(low, high, dtype=np.uint16):
    return np.linspace(low, high, 900).reshape(30, 30).astype(dtype)


def test_the_file_says_its_range():
    said = made.tiff(ramp(0, 3000), extratags=[(281, 3, 1, 4095, True)])
    picture = read(said)
    assert picture.units == Units(0, 4095, "as the file says: MaxSampleValue")
    assert read(written(picture.pixels, picture)).white == 4095  # and so does the copy
    real = made.tiff(ramp(-1, 3, np.float32), extratags=[(340, 11, 1, -2.0, True), (341, 11, 1, 6.0, True)])
    assert (read(real).black, read(real).white) == (-2, 6)
    for useless in (65535, 1):  # all that fits, or less than there is
        assert read(made.tiff(ramp(100, 600), extratags=[(281, 3, 1, useless, True)])).white < 700


def test_twelve_bits_stay_twelve():
    pytest.importorskip("imagecodecs")
    picture = read(made.LOSSLESS["tiff-12bit"][0])
    assert picture.white == 4095
    for version in (picture, read(written(picture.pixels + 9000.0, picture))):
        assert version.white == 4095
        assert version.pixels.max() <= 4095


@pytest.mark.parametrize(
    ("pixels", "black", "white"),
    [
        (ramp(0, 4095), 0, 4095),
        (ramp(0, 65535), 0, 65535),
        (ramp(0, 1, np.float16), 0, 1),
        (ramp(0, 255, np.float32), 0, 255),
        (ramp(0, 4095, np.int16), 0, 4095),
        (ramp(0, 2**32 - 1, np.uint32), 0, 2**32 - 1),
    ],
)
def test_the_range_of_common_files(pixels, black, white):
    picture = read(made.tiff(pixels))
    assert (picture.black, picture.white) == (black, white)
    assert picture.grey == (white - black) / 255


def test_given_units_and_refusals_name_the_file():
    picture = read(made.tiff(ramp(100, 600)))
    assert 80 < picture.black < 105
    assert 580 < picture.white < 620
    (given,) = images.with_units([picture], white=4095)
    assert given.units == Units(0, 4095, "given")
    hot = ramp(0, 1, np.float32)
    hot[3, 3] = 1e38
    with pytest.raises(ValueError, match=r"the input: a pixel of 1e\+38 .* --white and --black"):
        _ = read(made.tiff(hot)).units
    with pytest.raises(ValueError, match="the input: white must be"):
        images.with_units([picture], white=-1)


# ---- stacks


@pytest.mark.parametrize("compression", [None, "zlib"])
@pytest.mark.parametrize("order", "<>")
def test_a_stack_is_written_as_the_same_stack(order, compression):
    pages = made.noise((5, 23, 31), "uint16")
    pictures = stack(made.tiff(pages, photometric="minisblack", byteorder=order, compression=compression))
    assert len(pictures) == 5
    for data in (rewritten(pictures), rewritten(stack(rewritten(pictures)))):
        with tifffile.TiffFile(io.BytesIO(data)) as file:
            assert file.byteorder == order
            assert len(file.pages) == 5
            assert file.pages.first.compression == (8 if compression else 1)
            assert np.array_equal(np.stack([page.asarray() for page in file.pages]), pages)
        assert np.array_equal([picture.pixels for picture in stack(data)], pages)


def test_pages_of_any_size_and_kind():
    pages = [made.GREY, made.RGB, made.DEEP[3][:9, :8]]
    out = io.BytesIO()
    with tifffile.TiffWriter(out) as writer:
        for page in pages:
            writer.write(page, metadata=None, description=f"page of {page.shape}")
    pictures = stack(rewritten(stack(out.getvalue())))
    assert all(np.array_equal(a.pixels, b) for a, b in zip(pictures, pages, strict=True))
    with tifffile.TiffFile(io.BytesIO(rewritten(pictures))) as file:
        assert [page.description for page in file.pages] == [f"page of {page.shape}" for page in pages]


def imagej(pages, **options):
    out = io.BytesIO()
    tifffile.imwrite(out, pages, imagej=True, metadata={"axes": "ZYX", "unit": "um", "spacing": 0.3, "Info": "by hand"},
                     resolution=(5, 5), **options)  # fmt: skip
    return out.getvalue()


def test_imagej_metadata_are_kept():
    pages = made.noise((4, 23, 31), "uint16")
    pictures = stack(imagej(pages))
    assert len(pictures) == 4
    with tifffile.TiffFile(io.BytesIO(rewritten(pictures))) as file:
        assert file.is_imagej
        meta = file.imagej_metadata
        assert (meta["slices"], meta["unit"], meta["spacing"], meta["Info"]) == (4, "um", 0.3, "by hand")
        assert file.series[0].axes == "ZYX"
        assert np.array_equal(file.asarray(), pages)


def test_one_page_of_an_imagej_stack_is_a_picture():
    for picture in stack(imagej(made.noise((4, 23, 31), "uint16"))):
        assert np.array_equal(read(written(picture.pixels, picture)).pixels, picture.pixels)


def test_an_imagej_stack_of_one_directory():
    pages = made.noise((4, 23, 31), "uint16")
    data = bytearray(imagej(pages))
    with tifffile.TiffFile(io.BytesIO(bytes(data))) as file:  # as ImageJ does beyond 4 GB: the other directories go
        first = file.pages.first
        place = first.offset + 2 + 12 * len(first.tags)
        (start,) = first.dataoffsets
        assert data[start : start + pages.nbytes] == pages.astype(file.byteorder + "u2").tobytes()
    data[place : place + 4] = bytes(4)
    pictures = stack(bytes(data))
    assert np.array_equal([picture.pixels for picture in pictures], pages)
    assert np.array_equal(tifffile.imread(io.BytesIO(rewritten(pictures))), pages)
    with pytest.raises(ValueError, match="ends too early"):
        stack(bytes(data[: start + pages.nbytes - 9]))


def test_ome_metadata_are_kept():
    pages = made.noise((3, 23, 31), "uint16")
    out = io.BytesIO()
    tifffile.imwrite(out, pages, ome=True, metadata={"axes": "ZYX", "PhysicalSizeX": 0.25, "PhysicalSizeXUnit": "µm"})
    with tifffile.TiffFile(io.BytesIO(rewritten(stack(out.getvalue())))) as file:
        assert file.is_ome
        assert 'PhysicalSizeX="0.25"' in file.ome_metadata
        assert file.series[0].axes == "ZYX"
        assert np.array_equal(file.asarray(), pages)


def test_a_stack_has_one_range():
    pages = np.stack([ramp(100, 200), ramp(100, 600)])
    pictures = images.with_units(stack(made.tiff(pages, photometric="minisblack")))
    assert pictures[0].units == pictures[1].units
    assert 580 < pictures[0].white < 620
    assert {picture.white for picture in images.with_units(pictures, white=4095)} == {4095}


def test_stacks_and_single_pictures(tmp_path):
    data = made.tiff(made.noise((3, 9, 9)), photometric="minisblack")
    with pytest.raises(ValueError, match="the input: a stack of 3 pictures"):
        read(data)
    pictures = stack(data)
    with pytest.raises(ValueError, match="only TIFF"):
        images.write_stack(tmp_path / "x.png", [p.pixels for p in pictures], pictures)
    with pytest.raises(ValueError, match="stack of 3"):
        images.write_stack(tmp_path / "x.tif", [pictures[0].pixels], pictures)
    with pytest.raises(ValueError, match="3 x 9 x 9 pixels are more than the limit of 200"):
        stack(data, max_pixels=200)
    (one,) = stack(made.EVERY["png-rgb"])
    images.write_stack(tmp_path / "x.png", [one.pixels], [one])
    assert np.array_equal(images.read(tmp_path / "x.png").pixels, made.RGB)


# ---- hostile


def test_streams_that_claim_another_size():
    codecs = pytest.importorskip("imagecodecs")
    large = np.zeros((900, 900), np.uint8)
    for code, body in (
        (7, codecs.jpeg_encode(large)),
        (34712, codecs.jpeg2k_encode(large)),
        (34887, codecs.lerc_encode(large)),
    ):
        with pytest.raises(ValueError, match=r"does not have the size|cannot be unpacked"):
            read(made._tiff_bomb(14, 14, bytes(body), t259=code))
    zeros = codecs.zstd_encode(bytes(1 << 28))
    with pytest.raises(ValueError, match="unpacked"):
        read(made._tiff_bomb(14, 14, zeros, t259=50000))
    assert read(made._tiff_bomb(14, 14, codecs.lzw_encode(bytes(1 << 26)), t259=5)).pixels.shape == (14, 14)


@pytest.mark.parametrize("code", [6, 50001, 50002, 34661, 12345])
def test_compressions_that_nobody_here_knows(code):
    with pytest.raises(ValueError, match=r"compression .* is not supported"):
        read(made._tiff_bomb(14, 14, bytes(999), t259=code))


WITHOUT = """
import io, pickle, sys
sys.modules["imagecodecs"] = None  # as if it were not installed
import numpy as np
from denoiser import images
for name, data, pixels in pickle.load(sys.stdin.buffer):
    try:
        same = np.array_equal(images.read(io.BytesIO(data)).pixels, pixels)
        print(name, "equal" if same else "DIFFERENT")
    except ValueError as error:
        print(name, error)
"""


def test_without_imagecodecs():
    files = [(name, data, pixels) for name, (data, pixels, _) in made.LOSSLESS.items() if name.startswith("tiff")]
    files.append(("tiff-jpeg", made.EVERY["tiff-jpeg"], made.RGB))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT], input=pickle.dumps(files), capture_output=True
    )
    assert done.stderr == b""
    found = dict(line.split(" ", 1) for line in done.stdout.decode().splitlines())
    assert len(found) == len(files)
    needs = {"tiff-fax", "tiff-jpeg", "tiff-zstd", "tiff-lerc", "tiff-jpeg2000", "tiff-12bit", "tiff-float-predicted"}
    for name, words in found.items():
        if name in needs:
            assert "needs the package imagecodecs: pip install '.[codecs]'" in words, name
        else:
            assert words == "equal", name


def test_tifffile_is_silent(capfd):
    data = bytearray(made.EVERY["tiff16-tiles"])
    for place in range(8, 200, 7):
        broken = bytes(data[:place]) + struct.pack("<H", 0xFFFF) + bytes(data[place + 2 :])
        with contextlib.suppress(ValueError):
            read(broken)
    assert capfd.readouterr() == ("", "")
