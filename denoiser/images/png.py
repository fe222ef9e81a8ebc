"""PNG. Pillow silently turns 16-bit colour into 8 bits, so 16-bit files are decoded here, with zlib and numpy.

Files of up to 8 bits are decoded by Pillow, stripped of everything but header, palette and pixels. All are
written here, which keeps text, profiles and the like as the very chunks they were.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np

from denoiser.images import pillow
from denoiser.images.picture import Picture, check_size, join_alpha, split_alpha
from denoiser.units import Units

XMP_MARK = b"XML:com.adobe.xmp\0\0\0\0\0"
SIGNATURE = b"\x89PNG\r\n\x1a\n"
_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by colour type
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
_MAX_PROFILE = 1 << 24
_DEFLATE_RATIO = 1032  # the most that deflate can shrink anything
# Kept as they are, together with whatever says of itself that it is safe to copy (a lower-case last letter).
_KEPT = (b"cHRM", b"gAMA", b"iCCP", b"sRGB", b"cICP", b"mDCV", b"cLLI", b"tIME", b"eXIf")
_MAX_SIDES = 100_000  # width and height together, of 16 bits: a pixel needs the one before it, which takes time
_BLOCK = 65536  # rows are filtered in blocks of about this many pixels


def decode(data: bytes, max_pixels: int) -> Picture:
    """A PNG file."""
    parts = list(_chunks(data))
    if not parts or parts[0][0] != b"IHDR" or len(parts[0][1]) != 13:
        raise ValueError("damaged: a PNG without a header")
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", parts[0][1])
    check_size(width, height, max_pixels)
    if depth not in _DEPTHS.get(colour, ()) or parts[0][1][10:12] != b"\0\0" or interlaced > 1:
        raise ValueError("damaged: a PNG header that makes no sense")
    if any(kind == b"acTL" and body[:4] > b"\0\0\0\1" for kind, body in parts):
        raise ValueError("an animated PNG; only single pictures can be denoised")
    stream = b"".join(body for kind, body in parts if kind == b"IDAT")
    if (height * width * depth * _SAMPLES[colour]) // 8 > _DEFLATE_RATIO * len(stream):
        raise ValueError("damaged: the file is too short for the picture it claims to hold")
    found = dict(reversed(parts))  # of several, the first
    key = found.get(b"tRNS", b"")
    if depth == 16:
        if width + height > _MAX_SIDES:
            raise ValueError(f"a 16-bit PNG of {width} x {height} pixels is too long and thin; use a TIFF")
        samples = _decode16(stream, width, height, _SAMPLES[colour], interlaced)
    else:
        critical = (b"IHDR", b"PLTE", b"tRNS") if colour == 3 else (b"IHDR",)
        slim = [part for part in parts if part[0] in critical] + [(b"IDAT", stream), (b"IEND", b"")]
        samples = pillow.samples(SIGNATURE + b"".join(_chunk(*part) for part in slim), "PNG", max_pixels)
    if colour in (0, 2) and len(key) >= 2 * _SAMPLES[colour]:
        samples = _key_to_alpha(samples, np.frombuffer(key, ">u2", _SAMPLES[colour]), depth)
    pixels, alpha = split_alpha(samples)
    kept = tuple(
        (kind, body)
        for kind, body in parts
        if kind in _KEPT or (kind[0] & kind[3] & 0x20) or (kind == b"bKGD" and depth >= 8 and colour != 3)
    )
    return Picture(
        pixels,
        alpha,
        claim=_claim(found.get(b"sBIT", b""), pixels) if depth == 16 else None,
        format="PNG",
        mode="palette" if colour == 3 else f"{depth}-bit" if depth < 8 else "",
        chunks=kept,
        exif=found.get(b"eXIf", b"").removeprefix(b"Exif\0\0"),
        icc=_profile(found.get(b"iCCP", b"")),
        xmp=next((body[22:] for kind, body in kept if kind == b"iTXt" and body.startswith(XMP_MARK)), b""),
        dpi=_dpi(found.get(b"pHYs", b"")),
    )


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Kind and body of every chunk; a broken one is left out if the picture does not need it."""
    place = len(SIGNATURE)
    while place + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, place)
        body = data[place + 8 : place + 8 + length]
        if len(body) < length or place + 12 + length > len(data):
            break
        if zlib.crc32(kind + body) == int.from_bytes(data[place + 8 + length : place + 12 + length], "big"):
            yield kind, body
        elif not kind[0] & 0x20:
            raise ValueError("damaged: a PNG checksum does not match")
        if kind == b"IEND":
            return
        place += 12 + length
    raise ValueError("damaged: the PNG ends too early")


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I4s", len(body), kind) + body + struct.pack(">I", zlib.crc32(kind + body))


def _profile(body: bytes) -> bytes:
    """The ICC profile of an iCCP chunk."""
    name, _, packed = body.partition(b"\0")
    unpacker = zlib.decompressobj()
    try:
        profile = unpacker.decompress(packed[1:], _MAX_PROFILE)
    except zlib.error:
        return b""
    return profile if name and unpacker.eof else b""


def _claim(body: bytes, pixels: np.ndarray) -> Units | None:
    """White by the significant bits, for programs that do not shift them to the top as the format demands."""
    bits = max(body, default=16)
    return Units(0.0, 2.0**bits - 1, f"{bits} significant bits") if 8 <= bits < 16 and pixels.max() < 2**bits else None


def _dpi(body: bytes) -> tuple[float, float] | None:
    if len(body) != 9 or body[8] != 1:
        return None
    across, down = struct.unpack(">II", body[:8])
    return (across * 0.0254, down * 0.0254) if across and down else None


def _key_to_alpha(samples: np.ndarray, key: np.ndarray, depth: int) -> np.ndarray:
    """One colour may be declared transparent. Denoised pixels would miss it, so it becomes an alpha channel."""
    white = 65535 if depth == 16 else 255
    scale = 255 // (2**depth - 1) if depth < 8 else 1
    key = (key & (2**depth - 1)).astype(np.int64) * scale  # programs leave anything in the bits beyond the depth
    opaque = (samples != key).any(axis=2, keepdims=True)
    return np.concatenate([samples, (opaque * white).astype(samples.dtype)], axis=2)


def _decode16(stream: bytes, width: int, height: int, samples: int, interlaced: int) -> np.ndarray:
    passes = _ADAM7 if interlaced else ((0, 0, 1, 1),)
    sizes = [(max(0, -(-(height - y) // dy)), max(0, -(-(width - x) // dx))) for x, y, dx, dy in passes]
    size = samples * 2
    expected = sum(rows * (1 + columns * size) for rows, columns in sizes if columns)
    try:
        raw = zlib.decompressobj().decompress(stream, expected)
    except zlib.error:
        raise ValueError("damaged: the pixels of the PNG cannot be unpacked") from None
    if len(raw) < expected:
        raise ValueError("damaged: the PNG ends too early")
    out = np.empty((height, width, samples), np.uint16)
    place = 0
    for (x, y, dx, dy), (rows, columns) in zip(passes, sizes, strict=True):
        if not rows or not columns:
            continue
        count = rows * (1 + columns * size)
        lines = np.frombuffer(raw, np.uint8, count, place).reshape(rows, -1)
        place += count
        flat = np.ascontiguousarray(_unfilter(lines, size))
        out[y::dy, x::dx] = flat.view(">u2").reshape(rows, columns, samples)
    return out


def _unfilter(lines: np.ndarray, size: int) -> np.ndarray:
    """Undo the filters of `lines` (filter type, then bytes), whose pixels have `size` bytes each.

    A pixel needs those to its left, above, and above left. All pixels of one rising diagonal are therefore
    independent of each other, and are computed together.
    """
    kinds = lines[:, 0].astype(np.int16)
    if kinds.max() > 4:
        raise ValueError("damaged: a PNG filter that does not exist")
    height, width = len(lines), (lines.shape[1] - 1) // size
    out = np.zeros((height + 1, width + 1, size), np.uint8)
    out[1:, 1:] = lines[:, 1:].reshape(height, width, size)
    if not kinds.any():
        return out[1:, 1:]
    flat = out.reshape(-1, size)
    is_sub, is_up, is_mean, is_paeth = ((kinds == kind).astype(np.int16)[:, None] for kind in (1, 2, 3, 4))
    for diagonal in range(height + width - 1):
        top, bottom = max(0, diagonal - width + 1), min(height, diagonal + 1)
        # down one row and left one pixel is `width` pixels further on in `flat`, whose rows have width + 1
        start = (top + 1) * (width + 1) + diagonal - top + 1
        reach = (bottom - top - 1) * width + 1
        here = flat[start : start + reach : width]
        left = flat[start - 1 : start - 1 + reach : width].astype(np.int16)
        above = flat[start - width - 1 : start - width - 1 + reach : width].astype(np.int16)
        corner = flat[start - width - 2 : start - width - 2 + reach : width].astype(np.int16)
        rows = slice(top, bottom)
        guess = is_sub[rows] * left + is_up[rows] * above + is_mean[rows] * ((left + above) >> 1)
        guess += is_paeth[rows] * _paeth(left, above, corner)
        here += guess.astype(np.uint8)
    return out[1:, 1:]


def _paeth(left: np.ndarray, above: np.ndarray, corner: np.ndarray) -> np.ndarray:
    """Whichever of the three is nearest to left + above - corner."""
    to_left, to_above = np.abs(above - corner), np.abs(left - corner)
    to_corner = np.abs(left + above - 2 * corner)
    return np.where(
        (to_left <= to_above) & (to_left <= to_corner), left, np.where(to_above <= to_corner, above, corner)
    )


def encode(pixels: np.ndarray, alpha: np.ndarray | None, like: Picture | None = None) -> bytes:
    """A PNG of 8 or 16 bits with what `like` wants to be kept."""
    samples = join_alpha(pixels, alpha)
    height, width, count = samples.shape
    depth = 8 * samples.itemsize
    head = struct.pack(">IIBBBBB", width, height, depth, {1: 0, 2: 4, 3: 2, 4: 6}[count], 0, 0, 0)
    rows = samples.astype(">u2" if depth == 16 else np.uint8).view(np.uint8).reshape(height, -1)
    packer = zlib.compressobj(6)
    step = max(1, _BLOCK // width)
    body = [packer.compress(_filter(rows, y, y + step, count * depth // 8)) for y in range(0, height, step)]
    stream = b"".join([*body, packer.flush()])
    kept = [] if like is None else list(like.chunks) if like.format == "PNG" else _metadata(like)
    return SIGNATURE + b"".join(_chunk(*part) for part in [(b"IHDR", head), *kept, (b"IDAT", stream), (b"IEND", b"")])


def _filter(rows: np.ndarray, top: int, bottom: int, size: int) -> bytes:
    """Rows top to bottom, each with the filter that leaves the smallest bytes, which deflate shrinks best."""
    block = rows[top:bottom].astype(np.int16)
    above, left, corner = (np.zeros_like(block) for _ in range(3))
    above[1:] = block[:-1]
    if top:
        above[0] = rows[top - 1]
    left[:, size:], corner[:, size:] = block[:, :-size], above[:, :-size]
    kinds = (1, 2, 4)
    tried = np.stack([(block - guess).astype(np.uint8) for guess in (left, above, _paeth(left, above, corner))])
    best = np.abs(tried.view(np.int8).astype(np.int16)).sum(axis=2).argmin(axis=0)
    chosen = tried[best, np.arange(len(block))]
    return np.concatenate([np.array(kinds, np.uint8)[best][:, None], chosen], axis=1).tobytes()


def _metadata(like: Picture) -> list[tuple[bytes, bytes]]:
    """The metadata of another format as chunks."""
    found = []
    if like.icc:
        found.append((b"iCCP", b"ICC profile\0\0" + zlib.compress(like.icc)))
    if like.dpi:
        found.append((b"pHYs", struct.pack(">IIB", *(min(round(dpi / 0.0254), 2**31 - 1) for dpi in like.dpi), 1)))
    if like.exif:
        found.append((b"eXIf", like.exif))
    if like.xmp:
        found.append((b"iTXt", XMP_MARK + like.xmp))
    return found
