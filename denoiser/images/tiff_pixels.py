"""The pixels of a TIFF, by tifffile: strips or tiles, any depth, predictors, bit order, planes.

tifffile gets a directory made anew from the tags that describe the layout, and one strip or tile at a time, unpacked
here where the format sets no bound of its own: a file can neither make it read other files' formats nor unpack to more
than it claims. Compressions beyond deflate, LZW, PackBits and LZMA need imagecodecs, the extra "codecs".
"""

from __future__ import annotations

import functools
import io
import logging
import lzma
import struct
import zlib
from types import ModuleType
from typing import Any

import numpy as np

from denoiser.data import install
from denoiser.images import exif, jpeg, pillow
from denoiser.images.exif import Directory, Entry

WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC, FILL_ORDER = 256, 257, 258, 259, 262, 266
STRIP_OFFSETS, SAMPLES, ROWS_PER_STRIP, STRIP_COUNTS, PLANAR = 273, 277, 278, 279, 284
PREDICTOR, COLOUR_MAP, TILE_WIDTH, TILE_HEIGHT, TILE_OFFSETS, TILE_COUNTS = 317, 320, 322, 323, 324, 325
EXTRA, SAMPLE_FORMAT, JPEG_TABLES = 338, 339, 347
TAGS = {WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC, FILL_ORDER, STRIP_OFFSETS, SAMPLES, ROWS_PER_STRIP, STRIP_COUNTS}
TAGS |= {PLANAR, PREDICTOR, COLOUR_MAP, TILE_WIDTH, TILE_HEIGHT, TILE_OFFSETS, TILE_COUNTS, SAMPLE_FORMAT}
_NONE, _LZW, _JPEG, _DEFLATE, _PACKBITS, _LZMA, _LERC = 1, 5, 7, (8, 32946), 32773, 34925, 34887
_FAX, _ZSTD, _JPEG2000 = (2, 3, 4), (50000, 34926), (33003, 33004, 33005, 34712)
_NAMES = {2: "fax", 3: "fax", 4: "fax", 6: "old JPEG", _JPEG: "JPEG", _LERC: "LERC", 50001: "WebP", 50002: "JPEG XL"}
_NAMES |= dict.fromkeys(_ZSTD, "zstd") | dict.fromkeys(_JPEG2000, "JPEG 2000")
_STREAMS = (_NONE, _LZW, _PACKBITS, _LZMA, *_DEFLATE, *_ZSTD)  # bytes that unpack to bytes: unpacked here
_PICTURES = (_JPEG, _LERC, *_JPEG2000, *_FAX)  # unpacked by imagecodecs, for tifffile
_WITHOUT = (_NONE, _LZW, _PACKBITS, _LZMA, *_DEFLATE)  # can be unpacked without imagecodecs
_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))  # FillOrder 2: the lowest bit comes first
_MAX_PARTS = 1 << 16  # strips or tiles
_KINDS = {1: "whole", 2: "signed whole", 3: "real", 4: "whole", 5: "complex", 6: "complex"}
logging.getLogger("tifffile").addHandler(logging.NullHandler())  # its remarks are not for the terminal
_SLIM = {WIDTH, HEIGHT, BITS, FILL_ORDER, SAMPLES, ROWS_PER_STRIP, PLANAR, PREDICTOR, TILE_WIDTH, TILE_HEIGHT}
_SLIM |= {SAMPLE_FORMAT, EXTRA, 292, 530}


class Page:
    """The tags of one picture, as numbers."""

    def __init__(self, tags: Directory, order: str, big: bool = False) -> None:
        self.tags, self.order, self.big = tags, order, big

    def numbers(self, tag: int, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Whole numbers."""
        entry = self.tags.get(tag)
        return (entry.numbers(self.order) if isinstance(entry, Entry) else ()) or default

    def number(self, tag: int, default: int = 0) -> int:
        """The first of them."""
        return self.numbers(tag, (default,))[0]

    @property
    def photometric(self) -> int:
        """What the samples mean; where the file does not say, what libtiff takes them for."""
        fax = self.number(COMPRESSION, 1) in _FAX
        return self.number(PHOTOMETRIC, 2 if self.number(SAMPLES, 1) >= 3 else 0 if fax else 1)

    @property
    def tiled(self) -> bool:
        """Tiles, not strips."""
        return TILE_WIDTH in self.tags or TILE_OFFSETS in self.tags

    @property
    def where(self) -> tuple[int, int]:
        """The tags with the offsets and the lengths of strips or tiles."""
        return (TILE_OFFSETS, TILE_COUNTS) if self.tiled else (STRIP_OFFSETS, STRIP_COUNTS)

    def values(self, tag: int) -> tuple[float, ...]:
        """Finite numbers of any kind."""
        entry = self.tags.get(tag)
        codes = {1: "B", 3: "H", 4: "I", 6: "b", 8: "h", 9: "i", 11: "f", 12: "d"}
        if not isinstance(entry, Entry) or entry.kind not in codes or entry.number > 16:
            return ()
        found = struct.unpack(f"{self.order}{entry.number}{codes[entry.kind]}", entry.raw)
        return tuple(map(float, found)) if np.isfinite(found).all() else ()


def read(page: Page, data: bytes) -> np.ndarray:
    """(height, width, samples) of grey or RGB and perhaps alpha; palettes looked up, white the largest value."""
    photometric, samples = page.photometric, page.number(SAMPLES, 1)
    if photometric == 5:
        raise ValueError("CMYK colours, made for printing; convert it to RGB with its colour profile first")
    if photometric not in (0, 1, 2, 3) and not (photometric == 6 and page.number(COMPRESSION, 1) == _JPEG):
        raise ValueError(f"a TIFF of colour space {photometric} is not supported; convert it to grey or RGB")
    colours = 3 if photometric in (2, 6) else 1
    if not 0 <= samples - colours <= 1:
        raise ValueError(f"a TIFF of {samples} samples a pixel; only grey, RGB and one alpha channel are supported")
    values, bits = _samples(page, data), page.number(BITS, 1)
    if photometric == 3:
        return _looked_up(values, np.array(page.numbers(COLOUR_MAP)), bits)
    if bits < 8:
        values = (values * np.uint16(255) // np.uint16(2**bits - 1)).astype(np.uint8)
    if photometric == 0:
        if values.dtype.kind != "u":
            raise ValueError("real or signed numbers with white as zero are not supported; invert it first")
        most = 2**bits - 1 if bits > 8 else 255
        values = np.concatenate([values.dtype.type(most) - values[..., :1], values[..., 1:]], axis=2)
    return values


def _looked_up(values: np.ndarray, palette: np.ndarray, bits: int) -> np.ndarray:
    if bits > 8 or values.dtype.kind not in "bu":
        raise ValueError(f"a palette of {bits}-bit numbers is not supported; convert it to RGB")
    if len(palette) != 3 << bits:
        raise ValueError("damaged: a palette of the wrong length")
    if palette.max() > 255:  # some programs forget that the palette has 16 bits
        palette >>= 8
    colours = palette.astype(np.uint8).reshape(3, -1).T[values[..., 0].astype(np.uint8)]
    return np.concatenate([colours, values[..., 1:].astype(np.uint8)], axis=2)


def _samples(page: Page, data: bytes) -> np.ndarray:
    """(height, width, samples), as stored, from strips or tiles, interleaved or plane after plane."""
    width, height, samples = page.number(WIDTH), page.number(HEIGHT), page.number(SAMPLES, 1)
    compression = page.number(COMPRESSION, 1)
    bits = _bits(page)
    planes = samples if page.number(PLANAR, 1) == 2 else 1
    inner = samples // planes
    tiled = page.tiled
    offsets, counts = (page.numbers(tag) for tag in page.where)
    across = page.number(TILE_WIDTH) if tiled else width
    down = page.number(TILE_HEIGHT) if tiled else min(page.number(ROWS_PER_STRIP, height), height)
    if down < 1 or across < 1 or across * down > 4 * width * height + 65536:
        raise ValueError("damaged: strips or tiles of an impossible size")
    parts = planes * -(-height // down) * -(-width // across)
    if parts > min(len(offsets), _MAX_PARTS):
        raise ValueError("damaged: parts of the TIFF are missing")
    line = -(-across * inner * bits // 8)
    if not counts and compression == _NONE and parts == 1:
        counts = (len(data) - offsets[0],)
    if len(counts) < parts:
        raise ValueError("damaged: parts of the TIFF are missing")
    if compression == _NONE and len(data) * 8 < width * height * samples * bits:
        raise ValueError("damaged: the TIFF ends too early")
    decode = _decoder(page, compression, down)
    out: np.ndarray | None = None
    for number, (start, count) in enumerate(zip(offsets[:parts], counts, strict=False)):
        rows = down if tiled else min(down, height - number % -(-height // down) * down)
        if compression == _NONE:
            count = min(count, line * rows)
        if start + count > len(data):
            raise ValueError("damaged: the TIFF ends too early")
        raw = _unpacked(data[start : start + count], page, compression, line, (rows, across))
        block, (plane, _, y, x, _), _ = decode(raw, number)
        block = block.reshape(-1, *block.shape[-2:])[: height - y, : width - x]
        if out is None:  # asked for only now that the first part was good
            out = np.zeros((height, width, samples), block.dtype.newbyteorder("="))
        if block.dtype != out.dtype or block.shape != (min(rows, height - y), min(across, width - x), inner):
            raise ValueError("damaged: a part of the TIFF does not have the size that it claims")
        out[y : y + len(block), x : x + block.shape[1], plane : plane + inner] = block
    assert out is not None  # there is at least one part
    return out


def _bits(page: Page) -> int:
    """Bits of a sample, if samples of that kind can be read."""
    bits, kinds = set(page.numbers(BITS, (1,))), set(page.numbers(SAMPLE_FORMAT, (1,)))
    if len(bits) != 1 or len(kinds) != 1:
        raise ValueError("a TIFF whose channels differ in kind is not supported")
    (size,), (kind,) = bits, kinds
    allowed = {1: range(1, 33), 4: range(1, 33), 2: (8, 16, 32), 3: (16, 24, 32, 64)}.get(kind, ())
    if size not in allowed:
        raise ValueError(f"{size}-bit {_KINDS.get(kind, 'unknown')} numbers as pixels are not supported")
    predictor = page.number(PREDICTOR, 1)
    fits = {1: True, 2: kind != 3 and size in (8, 16, 32), 3: kind == 3}
    if not fits.get(predictor, False) and page.number(COMPRESSION, 1) in _STREAMS:
        raise ValueError(f"TIFF predictor {predictor} for such pixels is not supported; save it without")
    return size


def _decoder(page: Page, compression: int, down: int) -> Any:
    """tifffile's function (bytes, number of the strip or tile) -> (block, its place, its shape)."""
    import tifffile  # takes a while, and most pictures are no TIFFs

    ours = compression in _STREAMS
    if not ours and compression not in _PICTURES:
        name = _NAMES.get(compression, compression)
        raise ValueError(f"TIFF compression {name} is not supported; save it with LZW, deflate or none")
    if compression not in _WITHOUT and _imagecodecs() is None:
        raise ValueError(_missing(f"TIFF compression {_NAMES[compression]}"))
    order = page.order
    tags = {tag: page.tags[tag] for tag in _SLIM if tag in page.tags}
    tags[PHOTOMETRIC] = exif.shorts([page.photometric], order)
    tags[COMPRESSION] = exif.shorts([_NONE if ours else compression], order)
    if ours:
        tags.pop(FILL_ORDER, None)  # turned before they are unpacked
    if not page.tiled:
        tags[ROWS_PER_STRIP] = exif.longs([down], order)
    tags |= dict.fromkeys(page.where, exif.longs([8], order))  # it never looks there
    tables = page.tags.get(JPEG_TABLES)
    with tifffile.TiffFile(io.BytesIO(exif.write_block(tags, order))) as file:
        slim = file.pages.first
        if slim.dtype is None:
            raise ValueError(f"{page.number(BITS, 1)}-bit numbers as pixels are not supported")
        predictor = slim.predictor if ours else 1
        if _imagecodecs() is None and (predictor == 3 or slim.bitspersample not in (1, 2, 4, 8, 16, 32, 64)):
            raise ValueError(_missing(f"TIFF predictor {predictor} of {slim.bitspersample} bits"))
        if compression != _JPEG:
            return slim.decode
        return functools.partial(slim.decode, jpegtables=bytes(tables.raw) if isinstance(tables, Entry) else None)


@functools.cache
def _imagecodecs() -> ModuleType | None:
    try:
        import imagecodecs
    except ImportError:
        return None
    return imagecodecs


def _missing(what: str) -> str:
    return f"{what} needs the package imagecodecs: {install('codecs')}"


def _unpacked(packed: bytes, page: Page, compression: int, line: int, shape: tuple[int, int]) -> bytes:
    """The lines of a strip or tile, and never more than those; of pictures in themselves, those that fit it."""
    rows, across = shape
    expected = line * rows
    codecs = _imagecodecs()
    if compression in _STREAMS and page.number(FILL_ORDER, 1) == 2:
        packed = packed.translate(_REVERSED)
    raw: bytes = packed[:expected] if compression == _NONE else packed
    try:
        if compression in _DEFLATE:
            raw = zlib.decompressobj().decompress(packed, expected)
        elif compression == _LZMA:
            raw = lzma.LZMADecompressor(memlimit=1 << 28).decompress(packed, expected)
        elif compression in _ZSTD and codecs is not None:
            raw = codecs.zstd_decode(packed, out=expected)
        elif compression == _LZW and codecs is not None:
            raw = bytes(codecs.lzw_decode(packed, out=expected))
        elif compression in (_LZW, _PACKBITS):
            raw = _by_libtiff(packed, compression, line, rows)
    except (zlib.error, lzma.LZMAError, EOFError, RuntimeError):
        raise ValueError("damaged: pixels of the TIFF cannot be unpacked") from None
    if compression in (_JPEG, _LERC, *_JPEG2000):
        height, width = _own_size(packed, compression)
        if width > across or height > rows:
            raise ValueError("damaged: a part of the TIFF does not have the size that it claims")
    if compression in _STREAMS and len(raw) < expected:
        raise ValueError("damaged: the TIFF ends too early")
    return raw


def _own_size(packed: bytes, compression: int) -> tuple[int, int]:
    """Height and width that a JPEG, JPEG 2000 or LERC stream claims."""
    try:
        if compression == _JPEG:
            found = jpeg.anatomy(packed)
            return found.height, found.width
        if compression == _LERC:
            version = struct.unpack_from("<i", packed, 6)[0]
            height, width = struct.unpack_from("<ii", packed, 14 if version >= 3 else 10)
            return height, width
        across, down, left, top = struct.unpack_from(">4I", packed, packed.index(b"\xff\x4f\xff\x51") + 8)
        return down - top, across - left
    except (struct.error, ValueError):
        raise ValueError("damaged: pixels of the TIFF cannot be unpacked") from None


def _by_libtiff(packed: bytes, compression: int, line: int, rows: int) -> bytes:
    """LZW and PackBits by Pillow's libtiff, which does not care what bytes mean: a grey picture one line wide."""
    tags = {WIDTH: line, HEIGHT: rows, BITS: 8, COMPRESSION: compression, PHOTOMETRIC: 1, STRIP_OFFSETS: 8}
    tags |= {SAMPLES: 1, ROWS_PER_STRIP: rows, STRIP_COUNTS: len(packed)}
    body = packed + bytes(len(packed) % 2)
    table = exif.write_directory({tag: exif.longs([value], "<") for tag, value in tags.items()}, "<", 8 + len(body))
    return pillow.samples(struct.pack("<2sHI", b"II", 42, 8 + len(body)) + body + table, "TIFF", line * rows).tobytes()
