"""TIFF, read and written here from its directory of tags, one strip or tile after the other.

Why not tifffile or Pillow alone: Pillow reads 16-bit colour as 8 bits, tifffile without imagecodecs knows no
LZW, unpacks deflate without a bound, and writes no EXIF directory. LZW and PackBits bytes are unpacked by
Pillow's libtiff; 8-bit pictures packed as JPEG or fax are read by Pillow as a whole.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np

from denoiser.images import exif, pillow
from denoiser.images.exif import Directory, Entry
from denoiser.images.picture import Picture, check_size, join_alpha, split_alpha

WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC, FILL_ORDER = 256, 257, 258, 259, 262, 266
STRIP_OFFSETS, SAMPLES, ROWS_PER_STRIP, STRIP_COUNTS, PLANAR = 273, 277, 278, 279, 284
X_RESOLUTION, Y_RESOLUTION, RESOLUTION_UNIT = 282, 283, 296
PREDICTOR, COLOUR_MAP, TILE_WIDTH, TILE_HEIGHT, TILE_OFFSETS, TILE_COUNTS = 317, 320, 322, 323, 324, 325
SUB_IFDS, EXTRA, SAMPLE_FORMAT, XMP, ICC = 330, 338, 339, 700, 34675
# Tags that describe how the pixels are laid out: written anew, never copied.
_LAYOUT = {254, 255, 263, 264, 265, 280, 281, 288, 289, 290, 291, 292, 293, 297, 301, 318, 319, 321, 326, 327, 328}
_LAYOUT |= {332, 333, 334, 336, 340, 341, 342, 343, 344, 345, 347, 351, 433, 434, 435, 529, 530, 531, 532, 559}
_LAYOUT |= {WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC, FILL_ORDER, STRIP_OFFSETS, SAMPLES, ROWS_PER_STRIP}
_LAYOUT |= {STRIP_COUNTS, PLANAR, PREDICTOR, COLOUR_MAP, TILE_WIDTH, TILE_HEIGHT, TILE_OFFSETS, TILE_COUNTS}
_LAYOUT |= {SUB_IFDS, EXTRA, SAMPLE_FORMAT, *range(512, 522)}
_BULKY = {XMP, ICC, 33723, 34377, 37724, 50839}  # too long for the EXIF of other formats
_NONE, _LZW, _DEFLATE, _OLD_DEFLATE, _PACKBITS = 1, 5, 8, 32946, 32773
_WHOLE_BY_PILLOW = {2: "fax", 3: "fax", 4: "fax", 7: "JPEG"}
_STRIP_BYTES = 1 << 18
_MAX_PARTS = 1 << 16  # strips or tiles


class _Page:
    """The tags of one picture, as numbers."""

    def __init__(self, tags: Directory, order: str) -> None:
        self.tags, self.order = tags, order

    def numbers(self, tag: int, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        entry = self.tags.get(tag)
        return (entry.numbers(self.order) if isinstance(entry, Entry) else ()) or default

    def number(self, tag: int, default: int = 0) -> int:
        return self.numbers(tag, (default,))[0]


def decode(data: bytes, max_pixels: int) -> Picture:
    """A TIFF file of one picture."""
    order, offset, big = exif.header(data)
    tags, following = exif.read_directory(data, offset, order, big)
    page = _Page(tags, order)
    width, height, samples = page.number(WIDTH), page.number(HEIGHT), page.number(SAMPLES, 1)
    check_size(width, height, max_pixels)
    if following or SUB_IFDS in tags:
        raise ValueError("a TIFF of several pictures, or a camera's raw file; save the one you want by itself")
    photometric, compression = page.number(PHOTOMETRIC, 1), page.number(COMPRESSION, 1)
    if photometric == 5:
        raise ValueError("CMYK colours, made for printing; convert it to RGB with its colour profile first")
    if photometric not in (0, 1, 2, 3) and compression not in _WHOLE_BY_PILLOW:
        raise ValueError(f"a TIFF of colour space {photometric} is not supported; convert it to grey or RGB")
    extra = page.numbers(EXTRA)
    colours = 3 if photometric in (2, 6) else 1
    if not 0 <= samples - colours <= 1:
        raise ValueError(f"a TIFF of {samples} samples a pixel; only grey, RGB and one alpha channel are supported")
    if compression in _WHOLE_BY_PILLOW:
        if set(page.numbers(BITS, (1,))) - {1, 8}:
            raise ValueError(f"{_WHOLE_BY_PILLOW[compression]} in a TIFF of other than 8 bits; save it with LZW")
        values = pillow.samples(data, "TIFF", max_pixels)
        values = values.reshape(*values.shape[:2], -1)
        if values.shape != (height, width, samples):
            raise ValueError("damaged: the picture does not have the size that the TIFF claims")
    else:
        values = _samples(page, data, width, height, samples)
        values = _as_grey_or_rgb(values, page, photometric)
    pixels, alpha = split_alpha(values)
    white = 255.0 if pixels.dtype == np.uint8 else 65535.0
    if pixels.dtype.kind == "f":
        if not np.isfinite(pixels).all():
            raise ValueError("some of its pixels are not numbers (NaN or infinite); replace them first")
        largest = float(pixels.max())
        white = 1.0 if largest <= 2 else 255.0 if largest <= 512 else 65535.0
    kept = exif.expand({tag: value for tag, value in tags.items() if tag not in _LAYOUT}, data, order, big)
    icc, xmp = (bytes(v.raw) if isinstance(v := kept.get(tag), Entry) else b"" for tag in (ICC, XMP))
    bits = page.number(BITS, 1)
    return Picture(
        pixels,
        alpha,
        white=white,
        format="TIFF",
        mode="palette" if photometric == 3 else f"{bits}-bit" if bits < 8 else "",
        exif=exif.write_block({tag: value for tag, value in kept.items() if tag not in _BULKY}, order),
        icc=icc,
        xmp=xmp,
        dpi=_dpi(kept, order),
        tags=kept,
        byte_order=order,
        compressed=compression != _NONE,
        premultiplied=alpha is not None and extra[:1] == (1,),
    )


def _samples(page: _Page, data: bytes, width: int, height: int, samples: int) -> np.ndarray:
    """(height, width, samples), as stored, from strips or tiles, interleaved or plane after plane."""
    bits, dtype = _dtype(page, samples)
    planes = samples if page.number(PLANAR, 1) == 2 else 1
    inner = samples // planes
    tiled = TILE_WIDTH in page.tags
    across = page.number(TILE_WIDTH) if tiled else width
    down = page.number(TILE_HEIGHT) if tiled else min(page.number(ROWS_PER_STRIP, height), height)
    offsets = page.numbers(TILE_OFFSETS if tiled else STRIP_OFFSETS)
    counts = page.numbers(TILE_COUNTS if tiled else STRIP_COUNTS)
    if not 0 < across < width + 65536 or not 0 < down < height + 65536:
        raise ValueError("damaged: strips or tiles of an impossible size")
    if planes * -(-height // down) * -(-width // across) > min(len(offsets), _MAX_PARTS):
        raise ValueError("damaged: parts of the TIFF are missing")
    places = [(p, y, x) for p in range(planes) for y in range(0, height, down) for x in range(0, width, across)]
    compression = page.number(COMPRESSION, 1)
    if not counts and compression == _NONE and len(offsets) == 1:
        counts = (len(data) - offsets[0],)
    if len(counts) < len(places):
        raise ValueError("damaged: parts of the TIFF are missing")
    if compression == _NONE and len(data) * 8 < width * height * samples * bits:
        raise ValueError("damaged: the TIFF ends too early")
    line = -(-across * inner * bits // 8)
    out = np.zeros((height, width, samples), dtype.newbyteorder("="))
    for (plane, y, x), start, count in zip(places, offsets, counts, strict=False):
        rows = down if tiled else min(down, height - y)
        if start + count > len(data):
            raise ValueError("damaged: the TIFF ends too early")
        raw = _unpack(data[start : start + count], compression, line, rows)
        block = _values(raw, page, rows, across, inner, bits, dtype)
        channels = slice(plane, plane + 1) if planes > 1 else slice(None)
        out[y : y + rows, x : x + across, channels] = block[: height - y, : width - x]
    return out


def _dtype(page: _Page, samples: int) -> tuple[int, np.dtype]:
    """Bits of a sample and the type that holds it, or why it cannot be read."""
    bits, kinds = set(page.numbers(BITS, (1,))), set(page.numbers(SAMPLE_FORMAT, (1,)))
    if len(bits) != 1 or len(kinds) != 1:
        raise ValueError("a TIFF whose channels differ in kind is not supported")
    (size,), (kind,) = bits, kinds
    if kind in (1, 4) and size in (1, 2, 4) and samples == 1:
        if page.number(FILL_ORDER, 1) != 1 or page.number(PREDICTOR, 1) != 1:
            raise ValueError("a TIFF with its bits in reverse is not supported; save it as 8-bit grey")
        return size, np.dtype(np.uint8)
    name = {(1, 8): "u1", (1, 16): "u2", (4, 8): "u1", (4, 16): "u2", (3, 32): "f4", (3, 64): "f8"}.get((kind, size))
    if name is None:
        what = {1: "whole", 2: "signed whole", 3: "real", 5: "complex", 6: "complex"}.get(kind, "unknown")
        raise ValueError(f"{size}-bit {what} numbers as pixels are not supported; convert to 8, 16 or real 32 bits")
    return size, np.dtype(page.order + name)


def _unpack(packed: bytes, compression: int, line: int, rows: int) -> bytes:
    """The `rows` lines of a strip or tile, and never more than those."""
    expected = line * rows
    if compression == _NONE:
        raw = packed[:expected]
    elif compression in (_DEFLATE, _OLD_DEFLATE):
        try:
            raw = zlib.decompressobj().decompress(packed, expected)
        except zlib.error:
            raise ValueError("damaged: pixels of the TIFF cannot be unpacked") from None
    elif compression in (_LZW, _PACKBITS):
        # libtiff's unpackers do not care what bytes mean: ask for a grey 8-bit picture one line wide.
        tags = {
            **_size_tags(line, rows, "<"),
            COMPRESSION: exif.short(compression, "<"),
            **_strip_tags([8], [len(packed)], rows, "<"),
        }
        bare = struct.pack("<2sHI", b"II", 42, 8 + len(packed)) + packed
        raw = pillow.samples(bare + exif.write_directory(tags, "<", len(bare)), "TIFF", expected).tobytes()
    else:
        raise ValueError(f"TIFF compression {compression} is not supported; save it with LZW, deflate or none")
    if len(raw) < expected:
        raise ValueError("damaged: the TIFF ends too early")
    return raw


def _values(raw: bytes, page: _Page, rows: int, across: int, inner: int, bits: int, dtype: np.dtype) -> np.ndarray:
    """Bytes -> (rows, across, inner) numbers, with the predictor undone."""
    predictor = page.number(PREDICTOR, 1)
    if bits < 8:
        parts = np.unpackbits(np.frombuffer(raw, np.uint8).reshape(rows, -1), axis=1)[:, : across * bits]
        weights = 2 ** np.arange(bits - 1, -1, -1, dtype=np.uint8)
        return (parts.reshape(rows, across, 1, bits) * weights).sum(axis=3, dtype=np.uint8)
    if predictor == 3 and dtype.kind == "f":  # differences of bytes, the most significant of all numbers first
        shuffled = np.frombuffer(raw, np.uint8).reshape(rows, -1, inner)
        planes = np.cumsum(shuffled, axis=1, dtype=np.uint8).reshape(rows, dtype.itemsize, -1)
        joined = np.ascontiguousarray(planes.swapaxes(1, 2))
        return joined.view(dtype.newbyteorder(">")).reshape(rows, across, inner)
    block = np.frombuffer(raw, dtype).reshape(rows, across, inner)
    if predictor == 2 and dtype.kind == "u":
        return np.cumsum(block, axis=1, dtype=dtype.newbyteorder("="))
    if predictor != 1:
        raise ValueError(f"TIFF predictor {predictor} is not supported; save it with LZW, deflate or none")
    return block


def _as_grey_or_rgb(values: np.ndarray, page: _Page, photometric: int) -> np.ndarray:
    """Palettes looked up, bits spread over 0 to 255, white made the largest value."""
    bits = page.number(BITS, 1)
    if photometric == 3:
        palette = np.array(page.numbers(COLOUR_MAP))
        if len(palette) != 3 << bits or values.dtype != np.uint8 or values.shape[2] != 1:
            raise ValueError("damaged: a palette of the wrong length")
        if palette.max() > 255:  # some programs forget that the palette has 16 bits
            palette >>= 8
        return palette.astype(np.uint8).reshape(3, -1).T[values[..., 0]]
    if bits < 8:
        values = values * np.uint8(255 // (2**bits - 1))
    if photometric == 0 and values.dtype.kind == "u":
        values = values.copy()
        values[..., 0] = np.iinfo(values.dtype).max - values[..., 0]
    elif photometric == 0:
        raise ValueError("real numbers with white as zero are not supported; invert it first")
    return values


def _dpi(tags: Directory, order: str) -> tuple[float, float] | None:
    unit = tags.get(RESOLUTION_UNIT)
    scale = {2: 1.0, 3: 2.54}.get((unit.numbers(order) or (0,))[0] if isinstance(unit, Entry) else 2)
    found = []
    for tag in (X_RESOLUTION, Y_RESOLUTION):
        entry = tags.get(tag)
        if scale is None or not isinstance(entry, Entry) or entry.kind != 5 or entry.number != 1:
            return None
        above, below = struct.unpack(f"{order}II", entry.raw)
        if not above or not below:
            return None
        found.append(scale * above / below)
    return found[0], found[1]


def encode(pixels: np.ndarray, alpha: np.ndarray | None, like: Picture | None = None) -> bytes:
    """A TIFF in strips, packed with deflate unless `like` came unpacked, with the tags of `like`."""
    kept, order = ({}, "<") if like is None else _tags(like)
    samples = join_alpha(pixels, alpha)
    height, width, count = samples.shape
    packed = like is None or like.format != "TIFF" or like.compressed
    differences = packed and samples.dtype.kind == "u"
    step = max(1, _STRIP_BYTES // (width * count * samples.itemsize))
    body = bytearray(8)
    offsets, counts = [], []
    for y in range(0, height, step):
        strip = samples[y : y + step]
        if differences:
            strip = np.concatenate([strip[:, :1], strip[:, 1:] - strip[:, :-1]], axis=1)
        raw = strip.astype(order + strip.dtype.str[1:]).tobytes()
        raw = zlib.compress(raw) if packed else raw
        offsets.append(len(body))
        counts.append(len(raw))
        body += raw + bytes(len(raw) % 2)
    tags = {
        **kept,
        **_size_tags(width, height, order),
        BITS: exif.shorts([8 * samples.itemsize] * count, order),
        SAMPLES: exif.short(count, order),
        COMPRESSION: exif.short(_DEFLATE if packed else _NONE, order),
        PHOTOMETRIC: exif.short(1 if count < 3 else 2, order),
        SAMPLE_FORMAT: exif.shorts([3 if samples.dtype.kind == "f" else 1] * count, order),
        **_strip_tags(offsets, counts, step, order),
    }
    if differences:
        tags[PREDICTOR] = exif.short(2, order)
    if alpha is not None:
        tags[EXTRA] = exif.short(1 if like and like.premultiplied else 2, order)
    end = exif.write_directory(tags, order, len(body))
    if len(body) + len(end) >= 2**32:
        raise ValueError("the picture is too large for a TIFF of 4 GB")
    struct.pack_into(f"{order}2sHI", body, 0, b"II" if order == "<" else b"MM", 42, len(body))
    return bytes(body) + end


def _size_tags(width: int, height: int, order: str) -> Directory:
    return {
        WIDTH: exif.longs([width], order),
        HEIGHT: exif.longs([height], order),
        BITS: exif.short(8, order),
        PHOTOMETRIC: exif.short(1, order),
        SAMPLES: exif.short(1, order),
    }


def _strip_tags(offsets: list[int], counts: list[int], step: int, order: str) -> Directory:
    return {
        STRIP_OFFSETS: exif.longs(offsets, order),
        ROWS_PER_STRIP: exif.longs([step], order),
        STRIP_COUNTS: exif.longs(counts, order),
    }


def _tags(like: Picture) -> tuple[Directory, str]:
    """The tags to write: those of the TIFF that was read, or the EXIF and profiles of another format."""
    if like.format == "TIFF":
        return dict(like.tags), like.byte_order
    found, order = exif.read_block(like.exif)
    tags = {tag: value for tag, value in found.items() if tag not in _LAYOUT}
    if like.icc:
        tags[ICC] = Entry(7, len(like.icc), like.icc)
    if like.xmp:
        tags[XMP] = Entry(1, len(like.xmp), like.xmp)
    if like.dpi:
        for tag, dpi in zip((X_RESOLUTION, Y_RESOLUTION), like.dpi, strict=True):
            tags[tag] = Entry(5, 1, struct.pack(f"{order}II", min(round(dpi * 1000), 2**32 - 1), 1000))
        tags[RESOLUTION_UNIT] = exif.short(2, order)
    return tags, order
