"""Image files for the tests, made by other hands than denoiser.images: Pillow, tifffile, and plain loops."""

import io
import struct
import zlib

import numpy as np
import tifffile
from PIL import Image, ImageCms, features

ICC = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def noise(shape, dtype="uint8", seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return rng.random(shape).astype(dtype)
    return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)


def saved(image, codec, **options):
    """What Pillow makes of an array or an Image."""
    out = io.BytesIO()
    (Image.fromarray(image) if isinstance(image, np.ndarray) else image).save(out, codec, **options)
    return out.getvalue()


def tiff(image, **options):
    """What tifffile makes of an array."""
    out = io.BytesIO()
    tifffile.imwrite(out, image, **{"metadata": None, **options})
    return out.getvalue()


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png16(samples, filters=(0, 1, 2, 3, 4), extra=b"", interlaced=False):
    """A 16-bit PNG, byte by byte, row r with filter r modulo the number of `filters`."""
    height, width, count = samples.shape
    passes = [(0, 0, 1, 1)]
    if interlaced:
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    body = bytearray()
    size = 2 * count
    for x, y, dx, dy in passes:
        part = samples[y::dy, x::dx]
        if not part.size:
            continue
        above = bytes(part.shape[1] * size)
        for number, values in enumerate(part):
            row = values.astype(">u2").tobytes()
            kind = filters[number % len(filters)]
            body.append(kind)
            for i, byte in enumerate(row):
                a, b, c = row[i - size] if i >= size else 0, above[i], above[i - size] if i >= size else 0
                p = a + b - c
                nearest = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
                body.append((byte - (0, a, b, (a + b) // 2, nearest)[kind]) % 256)
            above = row
    head = struct.pack(">IIBBBBB", width, height, 16, {1: 0, 2: 4, 3: 2, 4: 6}[count], 0, 0, int(interlaced))
    packed = zlib.compress(bytes(body))
    middle = len(packed) // 2  # pixels may come in several chunks
    data = chunk(b"IDAT", packed[:middle]) + chunk(b"IDAT", packed[middle:])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + data + chunk(b"IEND", b"")


def lzw16(image, predictor=1):
    """A 16-bit TIFF packed with LZW: libtiff packs the bytes as 8-bit grey; the tags are then put right."""
    height, width, count = image.shape
    values = image.copy()
    if predictor == 2:
        values[:, 1:] -= image[:, :-1]
    raw = values.astype("<u2").view(np.uint8).reshape(height, -1)
    grey = saved(np.ascontiguousarray(raw), "TIFF", compression="tiff_lzw", tiffinfo={278: height})
    with tifffile.TiffFile(io.BytesIO(grey)) as file:
        (start,), (length,) = file.pages[0].dataoffsets, file.pages[0].databytecounts
    packed = grey[start : start + length]
    tags = [
        (256, 4, 1, width),
        (257, 4, 1, height),
        (258, 3, 1, 16),
        (259, 3, 1, 5),
        (262, 3, 1, 2 if count > 2 else 1),
    ]
    tags += [(273, 4, 1, 8), (277, 3, 1, count), (278, 4, 1, height), (279, 4, 1, length), (317, 3, 1, predictor)]
    packed += bytes(length % 2)
    table = struct.pack("<H", len(tags)) + b"".join(
        struct.pack("<HHI", *tag[:3]) + struct.pack("<H2x" if tag[1] == 3 else "<I", tag[3]) for tag in tags
    )
    return struct.pack("<2sHI", b"II", 42, 8 + len(packed)) + packed + table + bytes(4)


def reversed_bits(data):
    """The same TIFF with the bits of its pixels in reverse, and FillOrder 2 to say so."""
    with tifffile.TiffFile(io.BytesIO(data)) as file:
        page = file.pages.first
        spans = list(zip(page.dataoffsets, page.databytecounts, strict=True))
    out = bytearray(data)
    flipped = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
    for start, count in spans:
        out[start : start + count] = bytes(out[start : start + count]).translate(flipped)
    return with_tag(bytes(out), 266, 2)


def with_tag(data, tag, value):
    """The same little TIFF with one more tag of the type SHORT: a new first directory, at the end of the file."""
    order = {b"II": "<", b"MM": ">"}[data[:2]]
    (start,) = struct.unpack_from(f"{order}I", data, 4)
    (count,) = struct.unpack_from(f"{order}H", data, start)
    entries = [data[start + 2 + 12 * i : start + 14 + 12 * i] for i in range(count)]
    entries = [e for e in entries if struct.unpack_from(f"{order}H", e)[0] != tag]
    entries.append(struct.pack(f"{order}HHIHH", tag, 3, 1, value, 0))
    entries.sort(key=lambda e: struct.unpack_from(f"{order}H", e)[0])
    body = data + bytes(len(data) % 2)
    table = struct.pack(f"{order}H", len(entries)) + b"".join(entries) + bytes(4)
    return body[:4] + struct.pack(f"{order}I", len(body)) + body[8:] + table


def exif(orientation=1, order="<", filler=b"a camera"):
    """An EXIF block: maker, orientation, and an inner directory with a long value."""
    mark = b"II" if order == "<" else b"MM"
    maker, inner = 8 + 2 + 3 * 12 + 4, 8 + 2 + 3 * 12 + 4 + len(filler)
    block = mark + struct.pack(f"{order}HIH", 42, 8, 3)
    block += struct.pack(f"{order}HHII", 271, 2, len(filler), maker)
    block += struct.pack(f"{order}HHIHH", 274, 3, 1, orientation, 0)
    block += struct.pack(f"{order}HHIII", 34665, 4, 1, inner, 0) + filler
    return block + struct.pack(f"{order}HHHII", 1, 36867, 2, 20, inner + 18) + bytes(4) + b"2020:02:02 02:02:02\0"


GREY, RGB, LA, RGBA = (noise((23, 31)), noise((23, 31, 3)), noise((23, 31, 2)), noise((23, 31, 4)))
DEEP = {count: noise((23, 31, count), "uint16", count) for count in (1, 2, 3, 4)}
SIGNED = noise((23, 31), "int16")
_PALETTE = Image.fromarray(RGB).quantize(17)
_CLEAR = _PALETTE.copy()
_CLEAR.info["transparency"] = bytes(range(0, 255, 15))

# name -> (file, pixels, alpha); None: not checked here, only that they survive
LOSSLESS = {
    "png-grey": (saved(GREY, "PNG"), GREY, None),
    "png-rgb": (saved(RGB, "PNG"), RGB, None),
    "png-la": (saved(LA, "PNG"), LA[..., 0], LA[..., 1]),
    "png-rgba": (saved(RGBA, "PNG"), RGBA[..., :3], RGBA[..., 3]),
    "png-1bit": (saved(Image.fromarray(GREY > 99), "PNG"), (GREY > 99) * np.uint8(255), None),
    "png-palette": (saved(_PALETTE, "PNG"), np.array(_PALETTE.convert("RGB")), None),
    "png-palette-clear": (
        saved(_CLEAR, "PNG"),
        np.array(_CLEAR.convert("RGBA"))[..., :3],
        np.array(_CLEAR.convert("RGBA"))[..., 3],
    ),
    "png-key": (saved(GREY, "PNG", transparency=int(GREY[3, 4])), GREY, (GREY[3, 4] != GREY) * np.uint8(255)),
    "png16-grey": (png16(DEEP[1]), DEEP[1][..., 0], None),
    "png16-la": (png16(DEEP[2]), DEEP[2][..., 0], DEEP[2][..., 1]),
    "png16-rgb": (png16(DEEP[3]), DEEP[3], None),
    "png16-rgba": (png16(DEEP[4]), DEEP[4][..., :3], DEEP[4][..., 3]),
    "png16-interlaced": (png16(DEEP[3], interlaced=True), DEEP[3], None),
    "png16-key": (
        png16(DEEP[3], extra=chunk(b"tRNS", DEEP[3][5, 6].astype(">u2").tobytes())),
        DEEP[3],
        (DEEP[3] != DEEP[3][5, 6]).any(axis=2) * np.uint16(65535),
    ),
    "webp-rgb": (saved(RGB, "WEBP", lossless=True), RGB, None),
    "webp-rgba": (saved(RGBA, "WEBP", lossless=True, exact=True), RGBA[..., :3], RGBA[..., 3]),
    "bmp-grey": (saved(GREY, "BMP"), GREY, None),
    "bmp-rgb": (saved(RGB, "BMP"), RGB, None),
    "bmp-1bit": (saved(Image.fromarray(GREY > 99), "BMP"), (GREY > 99) * np.uint8(255), None),
    "bmp-palette": (saved(_PALETTE, "BMP"), np.array(_PALETTE.convert("RGB")), None),
    "pgm": (saved(GREY, "PPM"), GREY, None),
    "ppm": (saved(RGB, "PPM"), RGB, None),
    "pbm": (saved(Image.fromarray(GREY > 99), "PPM"), (GREY > 99) * np.uint8(255), None),
    "pgm16": (b"P5 # a remark\n31\n23 65535\n" + DEEP[1].astype(">u2").tobytes(), DEEP[1][..., 0], None),
    "ppm16": (b"P6\n31 23\n65535\n" + DEEP[3].astype(">u2").tobytes(), DEEP[3], None),
    "pgm-odd-white": (b"P5 31 23 99\n" + (GREY % 100).tobytes(), GREY % 100, None),
    "pgm-text": (b"P2\n31 23\n255\n" + b" ".join(b"%d" % v for v in GREY.ravel()) + b"\n", GREY, None),
    "pbm-text": (b"P1\n31 23\n" + b"".join(b"%d" % v for v in (GREY < 99).ravel()), (GREY >= 99) * np.uint8(255), None),
    "tiff-grey": (tiff(GREY), GREY, None),
    "tiff-white-zero": (tiff(GREY, photometric="miniswhite"), 255 - GREY, None),
    "tiff-rgb": (tiff(RGB, photometric="rgb"), RGB, None),
    "tiff-rgba": (tiff(RGBA, photometric="rgb", extrasamples=["unassalpha"]), RGBA[..., :3], RGBA[..., 3]),
    "tiff-premultiplied": (tiff(RGBA, photometric="rgb", extrasamples=["assocalpha"]), RGBA[..., :3], RGBA[..., 3]),
    "tiff-1bit": (saved(Image.fromarray(GREY > 99), "TIFF"), (GREY > 99) * np.uint8(255), None),
    "tiff-fax": (
        saved(Image.fromarray(GREY > 99), "TIFF", compression="group4"),
        (GREY > 99) * np.uint8(255),
        None,
    ),
    "tiff-palette": (saved(_PALETTE, "TIFF"), np.array(_PALETTE.convert("RGB")), None),
    "tiff-lzw": (saved(RGB, "TIFF", compression="tiff_lzw"), RGB, None),
    "tiff-lzw-predicted": (saved(RGB, "TIFF", compression="tiff_lzw", tiffinfo={317: 2}), RGB, None),
    "tiff-packbits": (saved(GREY, "TIFF", compression="packbits"), GREY, None),
    "tiff16-grey": (tiff(DEEP[1][..., 0]), DEEP[1][..., 0], None),
    "tiff16-rgb": (tiff(DEEP[3], photometric="rgb"), DEEP[3], None),
    "tiff16-rgba": (
        tiff(DEEP[4], photometric="rgb", extrasamples=["unassalpha"]),
        DEEP[4][..., :3],
        DEEP[4][..., 3],
    ),
    "tiff16-big-endian": (tiff(DEEP[3], photometric="rgb", byteorder=">"), DEEP[3], None),
    "tiff16-bigtiff": (tiff(DEEP[3], photometric="rgb", bigtiff=True), DEEP[3], None),
    "tiff16-deflate": (tiff(DEEP[3], photometric="rgb", compression="zlib", predictor=True), DEEP[3], None),
    "tiff16-strips": (tiff(DEEP[3], photometric="rgb", compression="zlib", rowsperstrip=5), DEEP[3], None),
    "tiff16-tiles": (tiff(DEEP[3], photometric="rgb", compression="zlib", tile=(16, 16)), DEEP[3], None),
    "tiff16-planes": (
        tiff(np.moveaxis(DEEP[3], 2, 0), photometric="rgb", planarconfig="separate"),
        DEEP[3],
        None,
    ),
    "tiff16-lzw": (lzw16(DEEP[3]), DEEP[3], None),
    "tiff16-lzw-predicted": (lzw16(DEEP[3], predictor=2), DEEP[3], None),
    "tiff-float-grey": (tiff(noise((23, 31), "float32")), noise((23, 31), "float32"), None),
    "tiff-float-rgb": (tiff(noise((23, 31, 3), "float32"), photometric="rgb"), noise((23, 31, 3), "float32"), None),
    "tiff-double": (tiff(noise((23, 31), "float64")), noise((23, 31), "float64"), None),
    "tiff-half": (tiff(noise((23, 31), "float16")), noise((23, 31), "float16"), None),
    "tiff-int16": (tiff(SIGNED), SIGNED, None),
    "tiff-int16-deflate": (tiff(SIGNED, compression="zlib", predictor=True), SIGNED, None),
    "tiff-int32": (tiff(SIGNED.astype(np.int32) * 9999), SIGNED.astype(np.int32) * 9999, None),
    "tiff-uint32": (tiff(noise((23, 31, 3), "uint32"), photometric="rgb"), noise((23, 31, 3), "uint32"), None),
    "tiff-float-predicted": (
        tiff(noise((23, 31), "float32"), compression="zlib", predictor=3),
        noise((23, 31), "float32"),
        None,
    ),
    "tiff-lzma": (tiff(RGB, photometric="rgb", compression="lzma"), RGB, None),
    "tiff-reversed-bits": (reversed_bits(tiff(GREY)), GREY, None),
    "tiff16-reversed-bits": (reversed_bits(tiff(DEEP[3], photometric="rgb", byteorder=">")), DEEP[3], None),
    "tiff-reversed-deflate": (reversed_bits(tiff(GREY, compression="zlib")), GREY, None),
    "tiff-1bit-reversed": (
        reversed_bits(saved(Image.fromarray(GREY > 99), "TIFF")),
        (GREY > 99) * np.uint8(255),
        None,
    ),
}
try:
    import imagecodecs  # noqa: F401
except ImportError:
    pass
else:
    _TWELVE = DEEP[1][..., 0] >> 4
    LOSSLESS |= {
        "tiff-zstd": (tiff(RGB, photometric="rgb", compression="zstd", predictor=True), RGB, None),
        "tiff-lerc": (tiff(DEEP[1][..., 0], compression="lerc"), DEEP[1][..., 0], None),
        "tiff-jpeg2000": (tiff(DEEP[3], photometric="rgb", compression="jpeg2000"), DEEP[3], None),
        "tiff-12bit": (tiff(_TWELVE, bitspersample=12, compression=None), _TWELVE, None),
    }
LOSSY = {
    "jpeg-grey": saved(GREY, "JPEG"),
    "jpeg-rgb": saved(RGB, "JPEG"),
    "jpeg-progressive": saved(RGB, "JPEG", progressive=True, quality=50),
    "jpeg-metadata": saved(RGB, "JPEG", exif=b"Exif\0\0" + exif(6), icc_profile=ICC, dpi=(300, 300), comment=b"hello"),
    "webp-lossy": saved(RGBA, "WEBP", quality=80),
    "tiff-jpeg": saved(RGB, "TIFF", compression="jpeg"),
}
if features.check("avif"):
    LOSSY["avif"] = saved(RGBA, "AVIF", exif=exif(6))
try:
    import pillow_heif
except ImportError:
    pass
else:
    _HEIC = io.BytesIO()
    pillow_heif.encode("RGB", (31, 23), RGB.tobytes(), _HEIC, quality=80, exif=b"Exif\0\0" + exif(6))
    LOSSY["heic"] = _HEIC.getvalue()
EVERY = {**{name: file for name, (file, _, _) in LOSSLESS.items()}, **LOSSY}

STACKS = {
    "stack": tiff(noise((3, 11, 9), "uint16"), photometric="minisblack"),
    "stack-deflate": tiff(noise((3, 11, 9, 3)), photometric="rgb", compression="zlib"),
    "stack-imagej": tiff(noise((3, 11, 9)), imagej=True, metadata={"axes": "ZYX"}),
    "motion": LOSSY["jpeg-metadata"] + bytes(range(256)),
}
_FRAMES = [Image.fromarray(noise((9, 11, 3), seed=seed)) for seed in range(3)]
_SHAPE = {"save_all": True, "append_images": _FRAMES[1:]}
# name -> (file, a word of the reason)
REFUSED = {
    "animated.png": (saved(_FRAMES[0], "PNG", **_SHAPE), "animated"),
    "animated.webp": (saved(_FRAMES[0], "WEBP", **_SHAPE), "animation"),
    "animated.gif": (saved(_FRAMES[0], "GIF", **_SHAPE), "not a PNG"),
    "pages.tif": (saved(_FRAMES[0], "TIFF", **_SHAPE), "a stack of 3 pictures"),
    "raw.tif": (with_tag(tiff(GREY), 50706, 1), "raw"),
    "bayer.tif": (tiff(GREY, photometric="cfa"), "raw"),
    "cmyk.jpg": (saved(_FRAMES[0].convert("CMYK"), "JPEG"), "CMYK"),
    "cmyk.tif": (saved(_FRAMES[0].convert("CMYK"), "TIFF"), "CMYK"),
    "lab.tif": (saved(_FRAMES[0].convert("LAB"), "TIFF"), "colour space"),
    "int64.tif": (tiff(noise((9, 11), "uint8").astype(np.int64)), "64-bit signed"),
    "complex.tif": (tiff(noise((9, 11), "float32").astype(np.complex64)), "complex"),
    "nan.tif": (tiff(np.full((9, 11), np.nan, np.float32)), "not numbers"),
    "five.tif": (tiff(noise((9, 11, 5)), photometric="rgb", planarconfig="contig"), "samples"),
    "eps.png": (saved(_FRAMES[0], "EPS"), "not a PNG"),
    "pdf.jpg": (saved(_FRAMES[0], "PDF"), "not a PNG"),
    "svg.png": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "not a PNG"),
    "fits.tif": (b"SIMPLE  =                    T".ljust(2880), "not a PNG"),
    "pickle.png": (b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94.", "not a PNG"),
    "empty.png": (b"", "empty"),
    "text.bmp": (b"BM but not a picture at all", "text.bmp"),
    "pam.ppm": (b"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\nENDHDR\n\0", "not a PNG"),
}


_LITTLE = zlib.compress(bytes(99))


def _ihdr(width, height, depth=8, colour=2, packed=_LITTLE):
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def _tiff_bomb(width, height, body, **tags):
    """A TIFF of one strip that claims a size."""
    grey = {256: width, 257: height, 258: 8, 259: 8, 262: 1, 273: 8, 277: 1, 278: height, 279: len(body)}
    grey |= {int(key[1:]): value for key, value in tags.items()}
    table = struct.pack("<H", len(grey)) + b"".join(struct.pack("<HHII", tag, 4, 1, grey[tag]) for tag in sorted(grey))
    return struct.pack("<2sHI", b"II", 42, 8 + len(body)) + body + table + bytes(4)


def _patched(data, place, code, *values):
    out = bytearray(data)
    struct.pack_into(code, out, place, *values)
    return bytes(out)


def _scans(data, count):
    """A JPEG whose only scan is there many times."""
    start, end = data.index(b"\xff\xda"), data.rindex(b"\xff\xd9")
    return data[:start] + data[start:end] * count + data[end:]


_ZEROS = zlib.compress(bytes(1 << 26), 9)
# Files that claim more than they hold, or unpack to more than they claim.
NASTY = {
    "huge.png": _ihdr(2**31 - 1, 2**31 - 1),
    "wide.png": _ihdr(2**31 - 1, 1),
    "short.png": _ihdr(14000, 14000),
    "short16.png": _ihdr(14000, 14000, 16),
    "huge.bmp": _patched(saved(RGB, "BMP"), 18, "<ii", 2**30, 2**30),
    "long.bmp": _patched(saved(RGB, "BMP"), 18, "<ii", 14000, 14000),
    "huge.pgm": b"P5 999999999 999999999 255\n",
    "short.pgm": b"P5 14000 14000 255\n",
    "short-text.pgm": b"P2 14000 14000 255\n1 2 3",
    "huge.tif": _tiff_bomb(2**32 - 1, 2**32 - 1, b""),
    "short.tif": _tiff_bomb(14000, 14000, zlib.compress(bytes(99))),
    "none.tif": _tiff_bomb(14000, 14000, bytes(99), t259=1),
    "rows.tif": _tiff_bomb(14000, 14000, bytes(99), t278=1),
    "outside.tif": _tiff_bomb(14, 14, bytes(99), t273=2**32 - 5),
    "tiles.tif": _tiff_bomb(14, 14, _ZEROS, t322=2**31, t323=2**31, t324=8, t325=99),
    "huge.jpg": _patched(saved(RGB, "JPEG"), saved(RGB, "JPEG").index(b"\xff\xc0") + 5, ">HH", 65535, 65535),
    "tall.jpg": _patched(saved(RGB, "JPEG"), saved(RGB, "JPEG").index(b"\xff\xc0") + 5, ">HH", 14000, 14000),
    "scans.jpg": _scans(saved(RGB, "JPEG"), 1000),
    "canvas.webp": _patched(saved(RGBA, "WEBP", icc_profile=ICC), 24, "<HBHB", 16382, 0, 16382, 0),
    "thin.tif": _tiff_bomb(1, 199_000_000, bytes(99), t278=1),
    "thin16.png": _ihdr(1, 110_000, 16, 0, packed=zlib.compress(bytes(330_000))),
    "words.pgm": b"P2 2 2 255\n1 -2 3 4",
    "pages-loop.tif": _tiff_bomb(14, 14, bytes(196), t259=1)[:-4] + struct.pack("<I", 8 + 196),
    "loop.tif": struct.pack("<2sHI", b"II", 42, 8) + struct.pack("<HHHIII", 1, 34665, 4, 1, 8, 8),
}
