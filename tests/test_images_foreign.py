"""Pixels of a thousand files that nobody here made: Pillow's own test images, against Pillow and tifffile.

They come from Pillow's source package: DENOISER_PILLOW_SOURCE names it, or pip fetches it; without it this is skipped.
"""

import logging
import os
import subprocess
import sys
import tarfile
import warnings

import numpy as np
import PIL
import pytest
import tifffile
from PIL import Image, ImageOps

from denoiser import images

# Where others see it differently, and why that is no mistake here.
KNOWN = {
    "xmp_tags_orientation.avif": "only XMP says that it is turned: the tag is kept as it is, with the pixels",
    "xmp_tags_orientation.png": "the same",
    "xmp_tags_orientation_exiftool.png": "the same",
    "exif_imagemagick_orientation.png": "the same, in a remark of ImageMagick's",
    "no_rows_per_strip.tif": "does not say whether 0 is black: libtiff says yes, Pillow no",
    "pil136.tiff": "colours are multiplied by alpha: kept so, Pillow divides",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pillow")
    source = os.environ.get("DENOISER_PILLOW_SOURCE")
    if source is None:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest"]
        subprocess.run([*command, folder, f"pillow=={PIL.__version__}"], capture_output=True, timeout=600)
        source = next(iter(map(str, folder.glob("*.tar.gz"))), None)
    if source is None:
        pytest.skip("Pillow's source package cannot be had")
    with tarfile.open(source) as package:
        for member in package:
            if member.isfile() and "/Tests/images/" in member.name:
                member.name = os.path.join("images", member.name.split("/Tests/images/")[1])
                package.extract(member, folder, filter="data")
    return sorted(path for path in (folder / "images").rglob("*") if path.is_file())


def by_pillow(path, page):
    """(height, width, samples) as Pillow reads it, upright."""
    with Image.open(path) as image:
        if page:
            image.seek(page)
        image.load()
        clear = "transparency" in image.info
        image = ImageOps.exif_transpose(image)
    if clear or image.mode == "PA":
        deep = image.mode.startswith("I")
        image = image if deep else image.convert("LA" if image.mode == "L" else "RGBA")
    elif image.mode in ("P", "1", "RGBX", "YCbCr"):
        image = image.convert({"1": "L"}.get(image.mode, "RGB"))
    values = np.array(image)
    return values.reshape(*values.shape[:2], -1)


def by_tifffile(path, page):
    with tifffile.TiffFile(path) as file:
        values, found = file.pages[page].asarray(), file.pages[page]
        values = np.moveaxis(values, 0, -1) if values.ndim == 3 and found.planarconfig == 2 else values
    return values.reshape(*values.shape[:2], -1)


def agrees(ours, path, page, reader):
    """Whether another reader sees the same numbers; None if it cannot say."""
    try:
        theirs = reader(path, page)
    except Exception:
        return None
    if ours.dtype == np.uint16 and theirs.dtype == np.uint8:
        ours = (ours >> 8).astype(np.uint8)  # Pillow knows no 16-bit colour
    if ours.shape[2] == 2 and theirs.shape[2] == 1:
        ours = ours[..., :1]  # nor a transparent grey of 16 bits
    if ours.shape[2] == 2 and theirs.shape[2] == 4:
        ours = ours[..., [0, 0, 0, 1]]
    return bool(ours.shape == theirs.shape and (ours == theirs).all())


@pytest.mark.slow
def test_the_same_pixels_as_others_see(files):
    logging.disable(logging.CRITICAL)
    differ, refused, checked = [], [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for path in files:
            try:
                pictures = images.read_stack(path, max_pixels=60_000_000)
            except (ValueError, OSError) as error:
                refused.append(str(error))
                continue
            for page, picture in enumerate(pictures):
                shape = (*picture.pixels.shape[:2], -1)
                parts = [part.reshape(shape) for part in (picture.pixels, picture.alpha) if part is not None]
                ours = np.concatenate(parts, axis=2)
                said = [agrees(ours, path, page, by_pillow)]
                if picture.format == "TIFF" and not any(said):
                    said.append(agrees(ours, path, page, by_tifffile))
                checked += True in said
                if False in said and True not in said and path.name not in KNOWN:
                    differ.append(f"{path.name} page {page + 1}")
    logging.disable(logging.NOTSET)
    print(f"{len(files)} files: {checked} pictures the same, {len(refused)} files refused, {len(differ)} differ")
    assert differ == []
    assert all(len(words.splitlines()) == 1 and ": " in words for words in refused)
    assert checked > 500
