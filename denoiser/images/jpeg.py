"""JPEG files as bytes: their segments, where the picture ends and what lies behind it. Pixels are Pillow's business."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

MAX_SCANS = 100  # a progressive JPEG has about ten; thousands of empty ones are an attack
EXIF_MARK = b"Exif\0\0"
_EXIF_PART = 65533 - len(EXIF_MARK)  # how much of it fits a segment
_FRAMES = {0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF}
_NEXT = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")  # in the coded pixels: a marker that is no restart
_VIDEO = re.compile(rb'MicroVideoOffset\s*=\s*"(\d{1,10})"|Semantic="MotionPhoto"[^>]*?Length="(\d{1,10})"')


class Anatomy(NamedTuple):
    """What the markers of a JPEG say."""

    width: int
    height: int
    scans: int
    end: int  # offset behind the picture; the length of the data if they end before it
    segments: tuple[tuple[bytes, bytes], ...]  # marker and body of what programs and cameras wrote beside the pixels
    several: bool  # an index of further pictures


def anatomy(data: bytes) -> Anatomy:
    """Walk over the markers of the first picture in the data, and over nothing behind it."""
    width = height = scans = 0
    segments: list[tuple[bytes, bytes]] = []
    several, end = False, len(data)
    for marker, place, body in _walk(data):
        if marker in _FRAMES and len(body) >= 6:
            height, width = struct.unpack_from(">HH", body, 1)
        elif marker == 0xDA:
            scans += 1
            if scans > MAX_SCANS:
                raise ValueError(f"a JPEG of more than {MAX_SCANS} scans; save it again as a plain one")
        elif marker == 0xD9:
            end = place + 2
        elif body.startswith(b"MPF\0"):
            several = True  # not kept: it would point to pictures that are gone
        elif not scans and (0xE0 <= marker <= 0xED or marker in (0xEF, 0xFE)):  # not Adobe's, on how colours are stored
            segments.append((bytes([marker]), body))
    return Anatomy(width, height, scans, end, tuple(segments), several)


def _walk(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Marker, offset and body of every segment until the end of the picture."""
    place = 2
    while place + 2 <= len(data) and data[place] == 0xFF:
        marker = data[place + 1]
        if marker == 0xFF or marker == 0x01 or 0xD0 <= marker <= 0xD7:  # padding, or markers without a body
            place += 1 if marker == 0xFF else 2
            continue
        if marker == 0xD9:
            yield marker, place, b""
            return
        length = max(int.from_bytes(data[place + 2 : place + 4], "big"), 2)
        yield marker, place, data[place + 4 : place + 2 + length]
        place += 2 + length
        if marker == 0xDA:
            found = _NEXT.search(data, place)
            if found is None:
                return
            place = found.start()


def trailer(data: bytes, found: Anatomy, xmp: bytes) -> bytes:
    """What lies behind the picture and can be written again behind another: the video of a motion photo.

    Such a video is found by its distance from the end of the file. Further pictures, in contrast, are found by their
    distance from the start, and belong to the picture as it was: they are left out.
    """
    behind = data[found.end :]
    if not found.several:
        return behind
    named = _VIDEO.search(xmp)
    length = int(named[1] or named[2]) if named else 0
    return behind[-length:] if 0 < length <= len(behind) else b""


def left_out(found: Anatomy, xmp: bytes) -> tuple[str, ...]:
    """In words, the pictures behind the first that a copy will not have."""
    if not found.several:
        return ()
    if b"hdrgm:" in xmp or b"HDRGainMap" in xmp:
        return ("its gain map, with the brightness for HDR screens",)
    return ("all but the first of its pictures (previews, depth or gain maps)",)


def with_segments(jpeg: bytes, theirs: list[tuple[bytes, bytes]], exif: bytes) -> bytes:
    """Put the segments of the original into a fresh JPEG, whose own first segment (JFIF) gives way to theirs."""
    own = int.from_bytes(jpeg[4:6], "big")
    theirs = [(kind, body) for kind, body in theirs if not body.startswith(EXIF_MARK)]
    if theirs and theirs[0][1].startswith(b"JFIF\0"):
        first, theirs = theirs[:1], theirs[1:]
    else:
        first = [(b"\xe0", jpeg[6 : 4 + own])]
    blocks = [(b"\xe1", EXIF_MARK + exif[at : at + _EXIF_PART]) for at in range(0, len(exif), _EXIF_PART)]
    parts = (b"\xff" + kind + struct.pack(">H", len(body) + 2) + body for kind, body in [*first, *blocks, *theirs])
    return jpeg[:2] + b"".join(parts) + jpeg[4 + own :]
