"""Image files in and out: every bit of depth, every tag, upright once, and clear words for what is refused."""

import io
import os
import stat
import struct
import subprocess
import sys
import time
import zlib
from dataclasses import replace

import image_files as made
import numpy as np
import pytest
import tifffile
from PIL import Image, ImageOps

from denoiser import images
from denoiser.images import exif
from denoiser.images.exif import Entry

SUFFIX = {"png": ".png", "web": ".webp", "bmp": ".bmp", "tif": ".tif", "jpe": ".jpg"}


def read(data, **options):
    return images.read(io.BytesIO(data), **options)


def written(pixels, like):
    out = io.BytesIO()
    images.write(out, pixels, like)
    return out.getvalue()


def again(picture):
    return read(written(picture.pixels, picture))


def same(one, other):
    return one.dtype == other.dtype and np.array_equal(one, other)


# ---- depth


@pytest.mark.parametrize("name", made.LOSSLESS)
def test_read_and_written_bit_for_bit(name):
    data, pixels, alpha = made.LOSSLESS[name]
    picture = read(data)
    for version in (picture, again(picture)):
        assert same(version.pixels, pixels)
        assert (version.alpha is None) == (alpha is None)
        assert alpha is None or same(version.alpha, alpha)
        assert version.white == picture.white
        assert version.format == picture.format


def test_white():
    whites = {
        name: read(made.LOSSLESS[name][0]).white for name in ("png-1bit", "png16-la", "pgm-odd-white", "tiff-double")
    }
    assert list(whites.values()) == [255, 65535, 99, 1]


@pytest.mark.parametrize("name", ["png16-grey", "png16-la", "png16-rgb", "png16-rgba", "png-rgb", "png-la"])
def test_another_decoder_reads_our_png(name):
    gui = pytest.importorskip("PyQt5.QtGui", reason="libpng, as Qt brings it, is the judge")
    data, pixels, alpha = made.LOSSLESS[name]
    image = gui.QImage.fromData(written(pixels.astype(float), read(data)))
    assert image.depth() >= 8 * pixels.itemsize
    image = image.convertToFormat(gui.QImage.Format_RGBA64)
    bits = image.constBits()
    bits.setsize(image.sizeInBytes())
    values = np.frombuffer(bits, np.uint16).reshape(image.height(), -1)[:, : 4 * image.width()].reshape(23, 31, 4)
    scale = 1 if pixels.dtype == np.uint16 else 257
    assert np.array_equal(values[..., :3], np.broadcast_to(pixels.reshape(23, 31, -1).astype(int) * scale, (23, 31, 3)))
    assert alpha is None or np.array_equal(values[..., 3], alpha.astype(int) * scale)


@pytest.mark.parametrize("name", [name for name in made.LOSSLESS if name.startswith("tiff")])
def test_another_decoder_reads_our_tiff(name):
    data, pixels, alpha = made.LOSSLESS[name]
    with tifffile.TiffFile(io.BytesIO(written(pixels, read(data)))) as file:
        (page,) = file.pages
        values = page.asarray()
        assert page.extrasamples == (() if alpha is None else (1,) if "premultiplied" in name else (2,))
    assert same(values[..., :3] if pixels.ndim == 3 else values, pixels)
    assert alpha is None or same(values[..., 3], alpha)


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1), (300, 257)])
@pytest.mark.parametrize("channels", [(), (3,)])
def test_odd_shapes(shape, channels):
    deep = made.noise(shape + channels, "uint16")
    out = io.BytesIO()
    images.write_uint16_png(out, deep)
    assert same(read(out.getvalue()).pixels, deep)
    out = io.BytesIO()
    images.write_png(out, deep >> 8)
    assert same(np.array(Image.open(out)), (deep >> 8).astype(np.uint8))
    assert same(read(made.tiff(deep, photometric="rgb" if channels else "minisblack")).pixels, deep)


def test_every_filter_alone():
    for kind in range(5):
        assert same(read(made.png16(made.DEEP[4], filters=(kind,))).pixels, made.DEEP[4][..., :3])


def test_pixels_are_rounded_and_clipped():
    picture = read(made.saved(np.zeros((2, 2), np.uint8), "PNG"))
    assert read(written(np.array([[-3, 0.6], [254.4, 300]]), picture)).pixels.tolist() == [[0, 1], [254, 255]]
    deep = read(made.tiff(np.zeros((2, 2), np.uint16)))
    assert read(written(np.array([[-3, 0.6], [65534.4, 7e5]]), deep)).pixels.tolist() == [[0, 1], [65534, 65535]]
    real = read(made.tiff(np.zeros((2, 2), np.float32)))
    assert read(written(np.array([[-3, 0.6], [2, 7e5]]), real)).pixels.tolist() == [[-3, np.float32(0.6)], [2, 7e5]]
    with pytest.raises(ValueError, match="finite"):
        written(np.full((2, 2), np.nan), picture)
    with pytest.raises(ValueError, match="shape"):
        written(np.zeros((2, 3)), picture)


def test_an_odd_white_fills_the_scale_of_another_format(tmp_path):
    picture = read(b"P5 2 1 99\n\0c")
    images.write(tmp_path / "x.png", picture.pixels, picture)
    assert images.read(tmp_path / "x.png").pixels.tolist() == [[0, 255]]


def test_jpeg_is_as_fine_as_the_original_and_never_coarser_than_95():
    fine, coarse = (made.saved(made.RGB, "JPEG", quality=quality, subsampling=0) for quality in (100, 30))
    tables = [again(read(data)).tables for data in (fine, coarse)]
    assert tables[0] == read(fine).tables
    assert tables[1] == tuple(map(tuple, read(made.saved(made.RGB, "JPEG", quality=95)).tables))
    difference = again(read(coarse)).pixels.astype(int) - read(coarse).pixels
    assert np.abs(difference).mean() < 4  # and the picture is nothing but noise


def test_float_and_16_bit_maps(tmp_path):
    std = made.noise((9, 11), "float32")
    images.write_float_tiff(tmp_path / "std.tif", std)
    assert same(tifffile.imread(tmp_path / "std.tif"), std)
    assert same(images.read(tmp_path / "std.tif").pixels, std)


# ---- metadata


def oriented(codec, orientation):
    rows, columns = np.mgrid[0:24, 0:40]
    upright = np.stack([rows * 10, columns * 6, 0 * rows], axis=2).astype(np.uint8)
    undo = {6: Image.ROTATE_90, 8: Image.ROTATE_270, 5: Image.TRANSPOSE, 7: Image.TRANSVERSE}
    undo |= {2: Image.FLIP_LEFT_RIGHT, 3: Image.ROTATE_180, 4: Image.FLIP_TOP_BOTTOM}
    image = Image.fromarray(upright)
    stored = image.transpose(undo[orientation]) if orientation > 1 else image
    if codec == "TIFF":
        return upright, made.tiff(np.array(stored), photometric="rgb", extratags=[(274, 3, 1, orientation, True)])
    options = {"quality": 100, "subsampling": 0} if codec == "JPEG" else {"lossless": True} if codec == "WEBP" else {}
    return upright, made.saved(
        stored, codec, exif=b"Exif\0\0" + made.exif(orientation, "<>"[orientation % 2]), **options
    )


@pytest.mark.parametrize("codec", ["PNG", "JPEG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_upright_once(codec, orientation):
    upright, data = oriented(codec, orientation)
    picture = read(data)
    for version in (picture, again(picture), again(again(picture))):
        assert version.pixels.shape == upright.shape
        assert np.abs(version.pixels.astype(int) - upright).max() <= (4 if codec == "JPEG" else 0)
    # and for everybody else
    other = Image.open(io.BytesIO(written(picture.pixels, picture)))
    assert ImageOps.exif_transpose(other).size == other.size == (40, 24)
    assert other.getexif().get(274, 1) == 1


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("codec", ["PNG", "JPEG", "WEBP"])
def test_exif_and_icc_are_kept_byte_for_byte(codec, order):
    data = made.saved(made.RGB, codec, exif=b"Exif\0\0" + made.exif(6, order), icc_profile=made.ICC)
    other = Image.open(io.BytesIO(written(read(data).pixels, read(data))))
    assert other.info["icc_profile"] == made.ICC
    assert other.info["exif"].removeprefix(b"Exif\0\0") == made.exif(1, order)


@pytest.mark.parametrize("order", "<>")
def test_tiff_tags_are_kept(order):
    kept = [(270, 2, 12, "a old scene.", True), (700, 1, 9, b"<x:xmpme>", True)]
    data = made.tiff(made.DEEP[3], photometric="rgb", byteorder=order, resolution=(300, 200), iccprofile=made.ICC,
                     resolutionunit="INCH", software="maker", extratags=kept)  # fmt: skip
    picture = read(data)
    assert picture.dpi == (300, 200)
    with tifffile.TiffFile(io.BytesIO(written(picture.pixels, picture))) as file:
        tags = file.pages[0].tags
        assert file.byteorder == order
        assert tags[34675].value == made.ICC
        assert (tags[270].value, tags[305].value, bytes(tags[700].value)) == ("a old scene.", "maker", b"<x:xmpme>")
        assert (tags[282].value, tags[283].value, tags[296].value) == ((300, 1), (200, 1), 2)


@pytest.mark.parametrize("order", "<>")
def test_exif_inside_a_tiff_is_kept(order):
    inner = {36867: Entry(2, 20, b"2020:02:02 02:02:02\0"), exif.INTEROP: {1: Entry(2, 4, b"R98\0")}}
    gps = {1: Entry(2, 2, b"N\0"), 2: Entry(5, 3, struct.pack(f"{order}6I", 52, 1, 30, 1, 0, 1))}
    tags = {271: Entry(2, 9, b"a camera\0"), exif.EXIF: inner, exif.GPS: gps}
    picture = replace(read(made.EVERY["tiff16-rgb"]), tags=tags, byte_order=order)
    for _ in range(2):
        data = written(picture.pixels, picture)
        found = Image.open(io.BytesIO(data)).getexif()
        assert (found[271], found.get_ifd(exif.EXIF)[36867]) == ("a camera", "2020:02:02 02:02:02")
        assert found.get_ifd(exif.GPS) == {1: "N", 2: (52, 30, 0)}
        picture = read(data)
        assert picture.tags == tags
        assert exif.read_block(picture.exif) == (tags, order)


@pytest.mark.parametrize("suffix", [".png", ".tif", ".webp", ".jpg"])
@pytest.mark.parametrize("name", ["jpeg-metadata", "tiff-rgb"])
def test_metadata_moves_to_another_format(tmp_path, name, suffix):
    picture = read(made.EVERY[name])
    if name == "tiff-rgb":
        picture = read(
            made.saved(made.RGB, "TIFF", exif=b"Exif\0\0" + made.exif(3), icc_profile=made.ICC, dpi=(300, 300))
        )
    images.write(tmp_path / f"x{suffix}", picture.pixels, picture)
    other = Image.open(io.BytesIO((tmp_path / f"x{suffix}").read_bytes()))
    assert other.info["icc_profile"] == made.ICC
    assert other.getexif()[271].strip("\0") == "a camera"
    assert other.getexif().get_ifd(34665)[36867] == "2020:02:02 02:02:02"
    if suffix != ".webp":
        assert np.allclose([float(dpi) for dpi in other.info["dpi"]], 300, atol=0.1)


def test_png_chunks_are_kept_byte_for_byte():
    extra = [(b"gAMA", struct.pack(">I", 45455)), (b"iCCP", b"my profile\0\0" + zlib.compress(made.ICC, 1))]
    extra += [
        (b"pHYs", struct.pack(">IIB", 2834, 2835, 1)),
        (b"tEXt", b"Title\0a cat"),
        (b"zTXt", b"x\0\0" + zlib.compress(b"y")),
    ]
    extra += [(b"iTXt", "Author\0\0\0\0\0Ж".encode()), (b"tIME", bytes(7)), (b"prVt", b"safe to copy")]
    unsafe = made.chunk(b"prVT", b"not safe to copy") + made.chunk(b"sBIT", bytes([9, 9, 9]))
    data = made.png16(made.DEEP[3], extra=b"".join(made.chunk(*part) for part in extra) + unsafe)
    out = written(read(data).pixels, read(data))
    assert all(made.chunk(*part) in out for part in extra)
    assert b"prVT" not in out
    assert read(out).icc == made.ICC


def test_a_broken_remark_is_left_out_and_broken_pixels_are_an_error():
    remark = bytearray(made.chunk(b"tEXt", b"Title\0a cat"))
    remark[-1] ^= 1
    picture = read(made.png16(made.DEEP[3], extra=bytes(remark)))
    assert picture.chunks == ()
    data = bytearray(made.png16(made.DEEP[3]))
    data[-20] ^= 1
    with pytest.raises(ValueError, match="checksum"):
        read(bytes(data))


@pytest.mark.parametrize("key", [1, 255, 0xFFFF])
def test_a_transparent_colour_is_masked_to_the_depth(key):
    data = made.saved(Image.fromarray(made.GREY > 99), "PNG")
    place = data.index(b"IDAT") - 4
    picture = read(data[:place] + made.chunk(b"tRNS", struct.pack(">H", key)) + data[place:])
    assert np.array_equal(picture.alpha == 0, made.GREY > 99)


def test_an_orientation_that_is_a_list_is_none():
    block = bytearray(made.exif(6))
    struct.pack_into("<I", block, 10 + 12 + 4, 2)
    picture = read(made.saved(made.RGB, "PNG", exif=b"Exif\0\0" + bytes(block)))
    assert same(picture.pixels, made.RGB)
    assert picture.exif == bytes(block)


def test_xmp_is_turned_with_the_picture():
    xmp = b'<x:xmpmeta tiff:Orientation="6"/>'
    picture = read(made.saved(made.RGB, "JPEG", exif=b"Exif\0\0" + made.exif(6), xmp=xmp))
    assert again(picture).xmp == xmp.replace(b"6", b"1")


def test_jpeg_comment_and_resolution_are_kept():
    iptc = (b"\xed", b"Photoshop 3.0\x008BIM a caption")
    picture = read(made.LOSSY["jpeg-metadata"])
    picture = replace(picture, chunks=(*picture.chunks, iptc))
    for _ in range(2):
        picture = again(picture)
        assert (b"\xfe", b"hello") in picture.chunks
        assert iptc in picture.chunks
        assert picture.dpi == (300, 300)
        assert len(picture.chunks) == len(set(picture.chunks)) == 5  # JFIF, EXIF, the profile, and these two


def test_long_exif_takes_several_segments():
    picture = replace(read(made.LOSSY["jpeg-rgb"]), exif=made.exif(1, filler=bytes(100_000)))
    assert again(picture).exif == picture.exif


def test_what_another_format_cannot_keep():
    jpeg, plain = read(made.LOSSY["jpeg-metadata"]), read(made.EVERY["png-rgb"])
    remarks = "remarks that only JPEG can hold"
    assert images.lost("x.jpg", jpeg) == images.lost("x.bmp", plain) == []
    assert images.lost("x.png", jpeg) == [remarks]
    assert images.lost("x.bmp", jpeg) == ["EXIF data", "the colour profile", remarks]


def test_a_photograph_with_a_second_picture_behind_it():
    image = Image.fromarray(made.RGB)
    picture = read(made.saved(image, "MPO", save_all=True, append_images=[image]))
    assert picture.pixels.shape == made.RGB.shape
    assert "first" in picture.notes[0]
    assert again(picture).notes == ()


# ---- targets


@pytest.mark.parametrize(
    ("name", "target", "word"),
    [
        ("png16-rgb", "x.jpg", "16-bit"),
        ("png16-grey", "x.webp", "16-bit"),
        ("tiff-float-grey", "x.png", "real"),
        ("png-rgba", "x.jpg", "transparency"),
        ("png-la", "x.pgm", "transparency"),
        ("tiff-premultiplied", "x.png", "premultiplied"),
        ("png-rgb", "x.gif", ".gif"),
        ("pbm", "x.pbm", ".pgm"),
        ("png-rgb", "x.pgm", ".ppm"),
    ],
)
def test_a_target_that_cannot_hold_the_picture(tmp_path, name, target, word):
    picture = read(made.EVERY[name])
    with pytest.raises(ValueError, match=word) as error:
        images.check_target(tmp_path / target, picture)
    assert target in str(error.value)
    with pytest.raises(ValueError, match=word):
        images.write(tmp_path / target, picture.pixels, picture)
    assert list(tmp_path.iterdir()) == []


def test_targets_too_large_or_too_full():
    wide = images.Picture(np.zeros((1, 70000), np.uint8))
    for target, word in (("x.jpg", "65500"), ("x.webp", "16383")):
        with pytest.raises(ValueError, match=word):
            images.check_target(target, wide)
    with pytest.raises(ValueError, match="EXIF"):
        images.check_target("x.jpg", images.Picture(np.zeros((9, 9), np.uint8), exif=bytes(70000)))


@pytest.mark.parametrize("name", ["png-rgba", "png-la"])
def test_alpha_in_a_bmp(tmp_path, name):
    picture = read(made.EVERY[name])
    images.write(tmp_path / "x.bmp", picture.pixels, picture)
    other = images.read(tmp_path / "x.bmp")
    assert same(other.alpha, picture.alpha)
    assert same(again(other).alpha, picture.alpha)
    assert np.array_equal(other.pixels, np.broadcast_to(picture.pixels.reshape(23, 31, -1), (23, 31, 3)))


def test_the_suffix_names_the_format(tmp_path):
    picture = read(made.EVERY["png-rgb"])
    for suffix, codec in images.SUFFIXES.items():
        if suffix != ".pgm":
            images.write(tmp_path / f"x{suffix.upper()}", picture.pixels, picture)
            assert images.read(tmp_path / f"x{suffix.upper()}").format == codec
    assert picture.suffix == ".png"
    assert read(made.EVERY["pbm"]).suffix == ".pgm"
    assert images.check_target("without", picture) == "PNG"


# ---- refused


@pytest.mark.parametrize("name", made.REFUSED)
def test_refused_with_a_reason(tmp_path, name):
    data, word = made.REFUSED[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=word) as error:
        images.read(tmp_path / name)
    assert name in str(error.value)
    assert "\n" not in str(error.value)


def test_the_limit_is_an_argument():
    for data in (made.EVERY["png-rgb"], *made.EVERY.values()):
        with pytest.raises(ValueError, match="limit of 99"):
            read(data, max_pixels=99)
    assert read(made.EVERY["png-rgb"], max_pixels=23 * 31)


@pytest.mark.parametrize("name", made.EVERY)
def test_truncated_is_an_error(name):
    data = made.EVERY[name]
    for share in (0.3, 0.6, 0.9):
        with pytest.raises(ValueError, match="the input: "):
            read(data[: int(share * len(data))])


@pytest.mark.parametrize("kind", ["folder", "fifo", "dangling", "missing", "device", "socket", "loop", "nul", "long"])
def test_what_is_no_file_is_refused_at_once(tmp_path, kind):
    path = tmp_path / "x.png"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "dangling":
        path.symlink_to(tmp_path / "nothing")
    elif kind == "device":
        path = "/dev/zero"
    elif kind == "socket":
        os.mknod(path, stat.S_IFSOCK | 0o600)
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "nul":
        path = "x\0.png"
    elif kind == "long":
        path = tmp_path / ("x" * 300)
    start = time.monotonic()
    with pytest.raises((ValueError, OSError)) as error:
        images.read(path)
    assert time.monotonic() - start < 1
    assert "x" in str(error.value) or "zero" in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_a_name_with_a_line_break_stays_in_one_line(tmp_path):
    path = tmp_path / "a\nb \udcff ü.png"
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"a\\nb .*ü.png: not a PNG") as error:
        images.read(path)
    str(error.value).encode()
    picture = read(made.EVERY["png-rgb"])
    images.write(path, picture.pixels, picture)
    assert same(images.read(str(path)).pixels, picture.pixels)


NASTY = """
import resource, signal, sys, time
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))  # a failure must not take the machine with it
signal.alarm(20)
sys.path.insert(0, sys.argv[1])
import image_files as made, io
from denoiser import images
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for name, data in made.NASTY.items():
    start = time.monotonic()
    try:
        images.read(io.BytesIO(data))
        print(name, "was read")
    except ValueError as error:
        if "\\n" in str(error) or time.monotonic() - start > 1:
            print(name, error, time.monotonic() - start)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if grown > 300_000:
        print(name, "took", grown, "kB")
        break
"""


def test_bombs_are_refused_before_memory_is_taken():
    command = [sys.executable, "-W", "error", "-c", NASTY, os.path.dirname(__file__)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("name", ["short.png", "short16.png", "tall.jpg"])
def test_too_short_for_the_size_it_claims(name):
    with pytest.raises(ValueError, match="too short"):
        read(made.NASTY[name])


def test_a_strip_that_unpacks_to_more_is_cut_off():
    bomb = made._tiff_bomb(14, 14, made._ZEROS)
    assert read(bomb).pixels.shape == (14, 14)


def test_warnings_do_not_leak(recwarn):
    block = bytearray(made.exif(1))
    struct.pack_into("<I", block, 10 + 4, 60000)  # a value longer than the block
    assert read(made.saved(made.RGB, "JPEG", exif=b"Exif\0\0" + bytes(block))).exif == bytes(block)
    assert Image.MAX_IMAGE_PIXELS is not None
    assert len(recwarn) == 0


def test_a_picture_is_frozen():
    picture = read(made.EVERY["png-rgb"])
    with pytest.raises(AttributeError):
        picture.name = "x"
