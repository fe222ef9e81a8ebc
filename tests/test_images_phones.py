"""What phones write: motion photos, several pictures in one file, AVIF and HEIC; and grey pictures stored as colour."""

import io
import struct
import subprocess
import sys

import image_files as made
import numpy as np
import pytest
from PIL import Image, ImageOps, features

from conftest import ROOT
from denoiser import denoise, images, metrics
from denoiser.checks import all_alike
from denoiser.data import install
from denoiser.noise import add_noise

VIDEO = struct.pack(">I4s4sI", 16, b"ftyp", b"mp42", 0) + made.noise(500_000).tobytes()
needs_avif = pytest.mark.skipif(not features.check("avif"), reason="this Pillow knows no AVIF")


def read(data):
    return images.read(io.BytesIO(data))


def written(pixels, like):
    out = io.BytesIO()
    images.write(out, pixels, like)
    return out.getvalue()


def again(picture):
    return read(written(picture.pixels, picture))


def photo(side=64):
    """Something smooth, that lossy formats keep well."""
    rows, columns = np.mgrid[0:side, 0 : side + 16]
    return np.stack([rows * 3, columns * 2, 255 - rows * 2], axis=2).astype(np.uint8)


# ---- JPEG with something behind it


def test_a_motion_photo_keeps_its_video():
    still = made.saved(photo(), "JPEG", quality=95, exif=b"Exif\0\0" + made.exif(6))
    assert VIDEO.count(b"\xff\xda") > 1  # which look like scans
    picture = read(still + VIDEO * 30)  # 100 of them would be too many
    assert np.array_equal(picture.pixels, read(still).pixels)
    assert picture.trailer == VIDEO * 30
    copy = written(picture.pixels, picture)
    assert copy.endswith(b"\xff\xd9" + VIDEO * 30)
    assert images.lost("x.jpg", picture) == []
    assert "the video behind the photograph" in images.lost("x.png", picture)


def several(xmp=b"", behind=b""):
    image = Image.fromarray(photo())
    return made.saved(image, "MPO", save_all=True, append_images=[image.resize((20, 16))], xmp=xmp) + behind


def test_further_pictures_are_left_out_with_a_word():
    picture = read(several())
    assert picture.pixels.shape == (64, 80, 3)
    assert picture.notes == ("all but the first of its pictures (previews, depth or gain maps)",)
    assert again(picture).notes == ()
    assert picture.trailer == b""
    gain = read(several(xmp=b'<x:xmpmeta hdrgm:Version="1.0"/>'))
    assert images.lost("x.jpg", gain) == ["its gain map, with the brightness for HDR screens"]


@pytest.mark.parametrize(
    "named", [b'GCamera:MicroVideoOffset="%d"', b'Item:Mime="video/mp4" Item:Semantic="MotionPhoto" Item:Length="%d"']
)
def test_a_motion_photo_with_a_gain_map_keeps_the_video_only(named):
    xmp = b"<x:xmpmeta hdrgm:Version='1.0' " + named % len(VIDEO) + b"/>"
    picture = read(several(xmp=xmp, behind=VIDEO))
    assert picture.trailer == VIDEO
    assert len(picture.notes) == 1
    assert again(picture).trailer == VIDEO


def test_scans_are_counted_within_the_picture():
    with pytest.raises(ValueError, match="scans"):
        read(made.NASTY["scans.jpg"])
    remark = made.saved(made.RGB, "JPEG", comment=b"\xff\xda" * 999)  # nor are those in a remark
    assert read(remark).pixels.shape == made.RGB.shape


@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
def test_resolutions_of_a_turned_photograph_change_places(orientation):
    tags = Image.Exif()
    tags[274], tags[282], tags[283], tags[296] = orientation, 300.0, 72.0, 2
    data = made.saved(photo(), "JPEG", exif=tags.tobytes(), dpi=(300, 72))
    expected = (300, 72) if orientation < 5 else (72, 300)
    for version in (read(data), again(read(data))):
        assert version.dpi == expected
    copy = Image.open(io.BytesIO(written(read(data).pixels, read(data))))
    assert copy.info["dpi"] == expected
    assert (copy.getexif()[282], copy.getexif()[283]) == expected
    png = images.read(io.BytesIO(made.saved(photo(), "PNG", exif=tags.tobytes(), dpi=(300, 72))))
    assert again(png).dpi == pytest.approx(expected, abs=0.1)


# ---- AVIF


@needs_avif
def test_avif_there_and_back():
    data = made.saved(photo(), "AVIF", quality=95, exif=made.exif(1), icc_profile=made.ICC, xmp=b"<x:xmpmeta/>")
    picture = read(data)
    assert (picture.format, picture.suffix) == ("AVIF", ".avif")
    assert metrics.psnr(photo(), picture.pixels, data_range=255) > 40
    other = again(picture)
    assert metrics.psnr(picture.pixels, other.pixels, data_range=255) > 40
    assert (other.icc, other.xmp) == (made.ICC, b"<x:xmpmeta/>")
    assert Image.open(io.BytesIO(written(picture.pixels, picture))).getexif()[271] == "a camera"
    clear = read(made.saved(np.dstack([photo(), photo()[..., 1]]), "AVIF"))
    assert np.abs(again(clear).alpha.astype(int) - photo()[..., 1]).max() <= 3
    grey = images.Picture(photo()[..., 0], format="AVIF")
    assert again(grey).pixels.shape == (64, 80, 3)


@needs_avif
@pytest.mark.parametrize("orientation", range(1, 9))
def test_avif_is_upright_once(orientation):
    data = made.saved(photo(), "AVIF", quality=95, exif=made.exif(orientation))
    expected = np.array(ImageOps.exif_transpose(Image.open(io.BytesIO(data)))).astype(int)
    assert expected.shape == ((64, 80, 3) if orientation < 5 else (80, 64, 3))
    for version in (read(data), again(read(data))):
        assert version.pixels.shape == expected.shape
        assert np.abs(version.pixels - expected).mean() < 3
    assert Image.open(io.BytesIO(written(read(data).pixels, read(data)))).getexif().get(274, 1) == 1


@needs_avif
def test_avif_refused_and_remarked():
    frames = [Image.fromarray(made.noise((32, 32, 3), seed=seed)) for seed in range(3)]
    with pytest.raises(ValueError, match="animation of 3"):
        read(made.saved(frames[0], "AVIF", save_all=True, append_images=frames[1:]))
    data = bytearray(made.saved(photo(), "AVIF"))
    data[data.index(b"av1C") + 6] |= 0x40
    from denoiser.images import pillow

    assert pillow._deeper(bytes(data)) == ("10 bits a sample; they become 8",)
    for share in (0.2, 0.5, 0.9):
        with pytest.raises(ValueError, match="the input: "):
            read(bytes(data[: int(share * len(data))]))


# ---- HEIC


@pytest.fixture
def heif():
    return pytest.importorskip("pillow_heif", reason="the extra heif")


def heic(heif, pixels, **options):
    mode = ("RGB" if pixels.ndim == 3 else "L") + (";16" if pixels.dtype == np.uint16 else "")
    out = io.BytesIO()
    heif.encode(mode, pixels.shape[1::-1], pixels.tobytes(), out, quality=95, chroma=444, **options)
    return out.getvalue()


def test_heic_there_and_back(heif):
    data = heic(heif, photo(), exif=b"Exif\0\0" + made.exif(1), xmp=b"<x:xmpmeta/>", icc_profile=made.ICC)
    picture = read(data)
    assert (picture.format, picture.suffix, picture.notes) == ("HEIF", ".heic", ())
    assert picture.pixels.dtype == np.uint8
    assert metrics.psnr(photo(), picture.pixels, data_range=255) > 38
    other = again(picture)
    assert metrics.psnr(picture.pixels, other.pixels, data_range=255) > 38
    assert (other.icc, other.xmp) == (made.ICC, b"<x:xmpmeta/>")
    assert other.exif == picture.exif != b""
    deep = read(heic(heif, photo().astype(np.uint16) * 257))
    assert deep.pixels.dtype == np.uint16
    assert metrics.psnr(photo() * 257.0, again(deep).pixels, data_range=65535) > 38


@pytest.mark.parametrize("orientation", range(1, 9))
def test_heic_is_upright_once(heif, orientation):
    data = heic(heif, photo(), exif=b"Exif\0\0" + made.exif(orientation))
    truth = ImageOps.exif_transpose(
        Image.open(io.BytesIO(made.saved(photo(), "PNG", exif=b"Exif\0\0" + made.exif(orientation))))
    )
    expected = np.array(truth).astype(int)
    for version in (read(data), again(read(data))):
        assert version.pixels.shape == expected.shape
        assert np.abs(version.pixels - expected).mean() < 4


def test_heic_damaged(heif):
    data = heic(heif, photo())
    for share in (0.1, 0.3, 0.6, 0.9):
        with pytest.raises(ValueError, match="the input: "):
            read(data[: int(share * len(data))])
    with pytest.raises(ValueError, match="limit of 99"):
        images.read(io.BytesIO(data), max_pixels=99)


def test_without_pillow_heif(tmp_path):
    code = """
import io, sys
sys.modules["pillow_heif"] = None
from denoiser import images
import numpy as np
for call in (lambda: images.read(io.BytesIO(b"\\0\\0\\0\\x18ftypheic" + bytes(99))),
             lambda: images.check_target("x.heic", images.Picture(np.zeros((9, 9), np.uint8)))):
    try:
        call()
    except ValueError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    words = f"HEIC needs the package pillow-heif: {install('heif')}"
    assert (done.stdout.splitlines(), done.stderr) == ([f"the input: {words}", words], "")


# ---- words


@pytest.mark.parametrize("bits", [2, 64])
def test_what_is_merely_not_supported_is_not_called_damaged(bits):
    data = bytearray(made.saved(made.RGB, "BMP"))
    struct.pack_into("<H", data, 28, bits)
    with pytest.raises(ValueError, match="not read") as error:
        read(bytes(data))
    assert "damaged" not in str(error.value)


# ---- grey stored as colour


@pytest.fixture(scope="module")
def grey():
    clean = images.read(ROOT / "sample_images" / "camera.png").pixels[100:228, 100:228]
    return np.clip(np.rint(add_noise(clean, 15)), 0, 255).astype(np.uint8)


def tripled(pixels):
    return np.repeat(pixels[..., None], 3, axis=2)


def is_grey(pixels):
    return all_alike(pixels, images.Picture(pixels).grey)


@pytest.mark.parametrize("codec", ["PNG", "JPEG 95", "JPEG 60", "WEBP 80", "AVIF 80", "TIFF"])
def test_grey_pictures_stored_as_colour(grey, codec):
    name, _, quality = codec.partition(" ")
    if name == "AVIF" and not features.check("avif"):
        pytest.skip("this Pillow knows no AVIF")
    picture = read(made.saved(tripled(grey), name, **({"quality": int(quality)} if quality else {})))
    assert picture.pixels.ndim == 3
    assert is_grey(picture.pixels)


def test_colour_pictures_are_not_grey(grey):
    faint = tripled(grey).astype(int)
    faint[..., 0] += 3
    assert not is_grey(np.clip(faint, 0, 255).astype(np.uint8))
    stamp = tripled(grey)
    stamp[100:103, 50:60] = (200, 30, 40)
    assert not is_grey(stamp)
    assert not is_grey(np.clip(np.rint(add_noise(tripled(grey // 2 + 60), 5)), 0, 255).astype(np.uint8))


def test_grey_in_other_units(grey):
    tinted = tripled(grey.astype(np.uint16) * 16)
    assert is_grey(tinted)
    tinted[..., 2] += 20  # a grey level and a quarter
    assert is_grey(tinted)
    tinted[..., 2] += 20
    assert not is_grey(tinted)
    assert is_grey(tripled(grey / 255.0))


def test_grey_stored_as_colour_is_as_good_as_grey(grey):
    alone = denoise(grey, 15, prior="pairwise", particles=8, iterations=8)
    colour = denoise(tripled(grey), 15, channel_axis=-1, prior="pairwise", particles=8, iterations=8)
    assert np.allclose(colour.mean, tripled(alone.mean), atol=1e-3)
    assert np.allclose(colour.std, tripled(alone.std), atol=1e-3)
