"""TIFF in: which pictures a file holds, and the tags of each that a copy keeps. Pixels are tiff_pixels' business."""

from __future__ import annotations

import re
import struct
from dataclasses import replace

import numpy as np

from denoiser.images import exif, tiff_pixels
from denoiser.images.exif import Directory, Entry
from denoiser.images.picture import Picture, check_size, split_alpha
from denoiser.images.tiff_pixels import BITS, COMPRESSION, HEIGHT, PHOTOMETRIC, SAMPLES, WIDTH, Page
from denoiser.units import Units

SUBFILE, SUB_IFDS, DESCRIPTION, DNG_VERSION = 254, 330, 270, 50706
EXTRA, XMP, ICC, RESOLUTION_UNIT = 338, 700, 34675, 296
LIMITS = ((340, 341), (280, 281))  # the least and the largest value that a sample may have
# Tags that describe how the pixels are laid out: written anew, never copied.
LAYOUT = {254, 255, 263, 264, 265, 288, 289, 290, 291, 292, 293, 297, 301, 320, 321, 326, 327, 328, SUB_IFDS}
LAYOUT |= {332, 333, 334, 336, EXTRA, 342, 343, 344, 345, 347, 351, 433, 434, 435, 529, 530, 531, 532, 559}
LAYOUT |= {*tiff_pixels.TAGS, *range(512, 522)}
_BULKY = {XMP, ICC, 33723, 34377, 37724, 50838, 50839}  # too long for the EXIF of other formats
_MAX_PAGES = 1 << 14


def decode(data: bytes, max_pixels: int) -> list[Picture]:
    """The pictures of a TIFF file: one, or the pages of a stack."""
    pages, notes = _pages(data)
    for page in pages:
        check_size(page.number(WIDTH), page.number(HEIGHT), max_pixels, len(pages))
    return [replace(_picture(data, page, notes), pages=len(pages)) for page in pages]


def _pages(data: bytes) -> tuple[list[Page], tuple[str, ...]]:
    """The tags of every picture but thumbnails and smaller copies, and what is left out."""
    order, offset, big = exif.header(data)
    found: list[Page] = []
    seen: set[int] = set()
    smaller = False
    while offset:
        if offset in seen or len(seen) >= _MAX_PAGES:
            raise ValueError("damaged: its pages follow each other in a circle, or without end")
        seen.add(offset)
        tags, offset = exif.read_directory(data, offset, order, big)
        page = Page(tags, order, big)
        if DNG_VERSION in tags or page.number(PHOTOMETRIC, 1) in (32803, 34892):
            raise ValueError("a camera's raw file; develop it to a TIFF first")
        if page.number(SUBFILE) & 1:
            if SUB_IFDS in tags:
                raise ValueError("a camera's raw file; develop it to a TIFF first")
            smaller = True
            continue
        smaller = smaller or SUB_IFDS in tags
        found.append(page)
    if not found:
        raise ValueError("damaged: no picture in the TIFF")
    if len(found) == 1:
        found = _imagej(data, found[0])
    return found, ("smaller copies of the picture",) if smaller else ()


def _imagej(data: bytes, page: Page) -> list[Page]:
    """ImageJ writes large stacks as one picture that says how many follow it, without gaps, unpacked."""
    entry = page.tags.get(DESCRIPTION)
    words = bytes(entry.raw) if isinstance(entry, Entry) else b""
    named = re.search(rb"^images=(\d{1,5})\s*$", words, re.MULTILINE) if words.startswith(b"ImageJ=") else None
    count = int(named[1]) if named else 1
    if count < 2 or page.number(COMPRESSION, 1) != 1:
        return [page]
    size = page.number(WIDTH) * page.number(HEIGHT) * page.number(SAMPLES, 1) * page.number(BITS, 1) // 8
    start = page.number(tiff_pixels.STRIP_OFFSETS)
    if start + count * size > len(data) or count > _MAX_PAGES:
        raise ValueError(f"damaged: an ImageJ stack of {count} pictures that ends too early")
    plain = {tag: value for tag, value in page.tags.items() if tag not in (50838, 50839, DESCRIPTION)}
    pages = []
    for number in range(count):
        tags = dict(plain if number else page.tags)
        tags[tiff_pixels.STRIP_OFFSETS] = exif.longs([start + number * size], page.order)
        tags[tiff_pixels.STRIP_COUNTS] = exif.longs([size], page.order)
        tags[tiff_pixels.ROWS_PER_STRIP] = exif.longs([page.number(HEIGHT)], page.order)
        pages.append(Page(tags, page.order, page.big))
    return pages


def _picture(data: bytes, page: Page, notes: tuple[str, ...]) -> Picture:
    tags, order, photometric = page.tags, page.order, page.photometric
    values = tiff_pixels.read(page, data)
    pixels, alpha = split_alpha(values)
    if pixels.dtype.kind == "f" and not np.isfinite(pixels).all():
        raise ValueError("some of its pixels are not numbers (NaN or infinite); replace them first")
    bits, size = page.number(BITS, 1), 8 * pixels.itemsize
    as_stored = photometric in (1, 2) and bits >= 8
    dropped = LAYOUT if as_stored else {*LAYOUT, *(tag for pair in LIMITS for tag in pair)}
    kept = exif.expand({tag: value for tag, value in tags.items() if tag not in dropped}, data, order, page.big)
    icc, xmp = (bytes(v.raw) if isinstance(v := kept.get(tag), Entry) else b"" for tag in (ICC, XMP))
    return Picture(
        pixels,
        alpha,
        claim=_claim(page, pixels.dtype, bits) if as_stored else None,
        largest=2.0**bits - 1 if 8 < bits < size and pixels.dtype.kind == "u" else None,
        format="TIFF",
        mode="palette" if photometric == 3 else f"{bits}-bit" if bits < 8 else "",
        exif=exif.write_block({tag: value for tag, value in kept.items() if tag not in _BULKY}, order),
        icc=icc,
        xmp=xmp,
        dpi=_dpi(kept, order),
        tags=kept,
        byte_order=order,
        compressed=page.number(COMPRESSION, 1) != 1,
        premultiplied=alpha is not None and page.numbers(EXTRA)[:1] == (1,),
        notes=notes,
    )


def _claim(page: Page, dtype: np.dtype, bits: int) -> Units | None:
    """What the file says of black and white; that a type's largest value is white says nothing."""
    most = float(np.iinfo(dtype).max) if dtype.kind in "ui" else np.inf
    for low, high in LIMITS:
        white, black = (page.values(tag)[:1] for tag in (high, low))
        if white and (black or (0.0,))[0] < white[0] < most:
            return Units((black or (0.0,))[0], white[0], "as the file says: MaxSampleValue")
    return Units(0.0, 2.0**bits - 1, f"{bits} bits") if 8 < bits < 8 * dtype.itemsize and dtype.kind == "u" else None


def _dpi(tags: Directory, order: str) -> tuple[float, float] | None:
    unit = tags.get(RESOLUTION_UNIT)
    scale = {2: 1.0, 3: 2.54}.get((unit.numbers(order) or (0,))[0] if isinstance(unit, Entry) else 2)
    found = []
    for tag in exif.RESOLUTIONS:
        entry = tags.get(tag)
        if scale is None or not isinstance(entry, Entry) or entry.kind != 5 or entry.number != 1:
            return None
        above, below = struct.unpack(f"{order}II", entry.raw)
        if not above or not below:
            return None
        found.append(scale * above / below)
    return found[0], found[1]
