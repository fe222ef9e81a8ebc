"""TIFF out: one picture or a stack, with the tags that were read; EXIF inside, which tifffile cannot write."""

from __future__ import annotations

import struct
import zlib

import numpy as np

from denoiser.images import exif, tiff_pixels
from denoiser.images.exif import Directory, Entry
from denoiser.images.picture import Picture, join_alpha
from denoiser.images.tiff import DESCRIPTION, EXTRA, ICC, LAYOUT, LIMITS, RESOLUTION_UNIT, XMP

_STACK = {DESCRIPTION, 50838, 50839}  # the words of ImageJ and OME on all pages
_STRIP_BYTES = 1 << 18
_KIND = {"u": 1, "i": 2, "f": 3}


def encode(pages: list[tuple[np.ndarray, np.ndarray | None, Picture | None]]) -> bytes:
    """A TIFF of pages (pixels, alpha, like) in strips, packed with deflate unless `like` came unpacked."""
    order = "<" if pages[0][2] is None else _tags(pages[0][2])[1]
    parts = [struct.pack(f"{order}2sHI", b"II" if order == "<" else b"MM", 42, 8)]
    for number, (pixels, alpha, like) in enumerate(pages):
        strips, tags = _page(pixels, alpha, like, order)
        if like is not None and like.pages > len(pages):  # one of a stack, which ImageJ's or OME's words would miss
            tags = {tag: value for tag, value in tags.items() if tag not in _STACK}
        # a directory may lie anywhere: here it comes first, as long as it will be, and then its strips
        start = sum(map(len, parts))
        size = len(exif.write_directory(tags, order, start))
        offset = start + size
        offsets = []
        for strip in strips:
            offsets.append(offset)
            offset += len(strip) + len(strip) % 2
        if offset >= 2**32:
            raise ValueError("the picture is too large for a TIFF of 4 GB")
        tags[tiff_pixels.STRIP_OFFSETS] = exif.longs(offsets, order)
        last = number == len(pages) - 1
        parts.append(exif.write_directory(tags, order, start, 0 if last else offset))
        parts.extend(strip + bytes(len(strip) % 2) for strip in strips)
    return b"".join(parts)


def _page(
    pixels: np.ndarray, alpha: np.ndarray | None, like: Picture | None, order: str
) -> tuple[list[bytes], Directory]:
    """The strips of a picture, and its tags, with the offsets of the strips yet to be filled in."""
    kept: Directory = {} if like is None else _tags(like)[0]
    samples = join_alpha(pixels, alpha)
    height, width, count = samples.shape
    packed = like is None or like.format != "TIFF" or like.compressed
    differences = packed and samples.dtype.kind in "ui" and samples.itemsize <= 4
    step = max(1, _STRIP_BYTES // (width * count * samples.itemsize)) if packed else height
    strips = []
    for y in range(0, height, step):
        strip = samples[y : y + step]
        if differences:
            strip = np.concatenate([strip[:, :1], strip[:, 1:] - strip[:, :-1]], axis=1)
        raw = strip.astype(order + strip.dtype.str[1:]).tobytes()
        strips.append(zlib.compress(raw) if packed else raw)
    tags: Directory = {
        **kept,
        tiff_pixels.WIDTH: exif.longs([width], order),
        tiff_pixels.HEIGHT: exif.longs([height], order),
        tiff_pixels.BITS: exif.shorts([8 * samples.itemsize] * count, order),
        tiff_pixels.COMPRESSION: exif.shorts([8 if packed else 1], order),
        tiff_pixels.PHOTOMETRIC: exif.shorts([1 if count < 3 else 2], order),
        tiff_pixels.STRIP_OFFSETS: exif.longs([0] * len(strips), order),
        tiff_pixels.SAMPLES: exif.shorts([count], order),
        tiff_pixels.ROWS_PER_STRIP: exif.longs([step], order),
        tiff_pixels.STRIP_COUNTS: exif.longs([len(strip) for strip in strips], order),
        tiff_pixels.SAMPLE_FORMAT: exif.shorts([_KIND[samples.dtype.kind]] * count, order),
    }
    if differences:
        tags[tiff_pixels.PREDICTOR] = exif.shorts([2], order)
    if alpha is not None:
        tags[EXTRA] = exif.shorts([1 if like and like.premultiplied else 2], order)
    if like is not None and like.format == "TIFF" and like.largest and not any(high in tags for _, high in LIMITS):
        tags[LIMITS[0][1]] = exif.longs([int(like.largest)] * count, order)  # twelve bits stay known as twelve
    return strips, tags


def _tags(like: Picture) -> tuple[Directory, str]:
    """The tags to write: those of the TIFF that was read, or the EXIF and profiles of another format."""
    if like.format == "TIFF":
        return dict(like.tags), like.byte_order
    found, order = exif.read_block(like.exif)
    tags = {tag: value for tag, value in found.items() if tag not in LAYOUT}
    if like.icc:
        tags[ICC] = Entry(7, len(like.icc), like.icc)
    if like.xmp:
        tags[XMP] = Entry(1, len(like.xmp), like.xmp)
    if like.dpi:
        for tag, dpi in zip(exif.RESOLUTIONS, like.dpi, strict=True):
            tags[tag] = Entry(5, 1, struct.pack(f"{order}II", min(round(dpi * 1000), 2**32 - 1), 1000))
        tags[RESOLUTION_UNIT] = exif.shorts([2], order)
    return tags, order
