"""PBM, PGM and PPM, read and written here: Pillow would squeeze 16-bit colour and odd maxima into 8 bits."""

from __future__ import annotations

import re

import numpy as np

from denoiser.images.picture import Picture, check_size
from denoiser.units import Units

_HEADER = re.compile(rb"P([1-6])" + rb"((?:\s|#[^\n\r]*[\n\r])+)(\d{1,9})" * 2)
_MAXIMUM = re.compile(rb"(?:\s|#[^\n\r]*[\n\r])+(\d{1,9})")


def decode(data: bytes, max_pixels: int) -> Picture:
    """A PNM file, text or binary."""
    head = _HEADER.match(data[:65536])
    if head is None:
        raise ValueError("damaged: a PNM without a header")
    kind, width, height = int(head[1]), int(head[3]), int(head[5])
    check_size(width, height, max_pixels)
    place, white = head.end(), 1
    if kind not in (1, 4):
        maximum = _MAXIMUM.match(data[:65536], place)
        if maximum is None:
            raise ValueError("damaged: a PNM header that makes no sense")
        place, white = maximum.end(), int(maximum[1])
    if not 1 <= white <= 65535:
        raise ValueError(f"damaged: a PNM whose white is {white}")
    if data[place : place + 1].strip():
        raise ValueError("damaged: a PNM header that makes no sense")
    place += 1
    channels = 3 if kind in (3, 6) else 1
    count = height * width * channels
    dtype = np.dtype(np.uint8 if white < 256 else np.uint16)
    if kind == 4:
        across = -(-width // 8)
        packed = _binary(data, place, height * across, np.dtype(np.uint8)).reshape(height, across)
        values = np.unpackbits(packed, axis=1, count=width)
    elif kind in (5, 6):
        values = _binary(data, place, count, dtype)
    else:
        values = _text(data[place:], count, digits=kind == 1)
    if values.max() > white:
        raise ValueError(f"damaged: a pixel is brighter than the white of {white} that its header names")
    if kind in (1, 4):
        values, white = (1 - values) * 255, 255  # in PBM a one is black
    shape = (height, width, 3) if channels == 3 else (height, width)
    pixels = np.ascontiguousarray(values.reshape(shape).astype(dtype))
    odd = white not in (255, 65535)
    return Picture(
        pixels,
        claim=Units(0.0, float(white), "as the file's header says") if odd else None,
        largest=float(white) if odd else None,
        format="PNM",
        mode="1-bit" if kind in (1, 4) else "",
    )


def _binary(data: bytes, place: int, count: int, dtype: np.dtype) -> np.ndarray:
    if len(data) - place < count * dtype.itemsize:
        raise ValueError("damaged: the PNM ends too early")
    return np.frombuffer(data, dtype.newbyteorder(">"), count, place)


def _text(body: bytes, count: int, digits: bool) -> np.ndarray:
    """Numbers with blanks between them, or (PBM) digits that need none."""
    if len(body) < count:  # before anything is unpacked
        raise ValueError("damaged: the PNM ends too early")
    body = re.sub(rb"#[^\n\r]*", b"", body)
    if digits:
        letters = np.frombuffer(body, np.uint8)
        values = letters[(letters == ord("0")) | (letters == ord("1"))][:count] - ord("0")
    else:
        words = body.split(None, count)[:count]
        if not all(word.isdigit() and len(word) < 10 for word in words):
            raise ValueError("damaged: the PNM holds something that is no number")
        values = np.array(words, object).astype(np.int64)
    if len(values) < count:
        raise ValueError("damaged: the PNM ends too early")
    return values


def encode(pixels: np.ndarray, white: float) -> bytes:
    """A binary PGM or PPM."""
    height, width = pixels.shape[:2]
    head = b"P%d\n%d %d\n%d\n" % (5 if pixels.ndim == 2 else 6, width, height, int(white))
    return head + pixels.astype(pixels.dtype.newbyteorder(">")).tobytes()
