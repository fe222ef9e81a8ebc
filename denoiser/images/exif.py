"""TIFF directories, which are also what EXIF is made of: read with every bound checked, and written.

Values stay the bytes they were, in the byte order of their file, so that a copy keeps them exactly.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

ORIENTATION = 274
RESOLUTIONS = (282, 283)  # across and down
EXIF, GPS, INTEROP = 34665, 34853, 40965  # tags whose value is a directory of its own
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
_MAX_NUMBERS = 1 << 18  # of one tag; a TIFF of more strips than this is an attack
_WHOLE = {1: "B", 3: "H", 4: "I", 13: "I", 16: "Q", 18: "Q"}


class Entry(NamedTuple):
    """One tag's value: TIFF type, count, raw bytes."""

    kind: int
    number: int
    raw: bytes | memoryview

    def numbers(self, order: str) -> tuple[int, ...]:
        """The value as whole numbers, empty if it is something else."""
        code = _WHOLE.get(self.kind)
        return struct.unpack(f"{order}{self.number}{code}", self.raw) if code and self.number <= _MAX_NUMBERS else ()


Value: TypeAlias = "Entry | Directory"
Directory: TypeAlias = "dict[int, Value]"


def shorts(values: list[int], order: str) -> Entry:
    """Whole numbers of the type SHORT."""
    return Entry(3, len(values), struct.pack(f"{order}{len(values)}H", *values))


def longs(values: list[int], order: str) -> Entry:
    """Whole numbers of the type LONG."""
    return Entry(4, len(values), struct.pack(f"{order}{len(values)}I", *values))


def header(data: bytes | memoryview) -> tuple[str, int, bool]:
    """Byte order, offset of the first directory, and whether this is a BigTIFF."""
    order = {b"II": "<", b"MM": ">"}.get(bytes(data[:2]))
    if order is None or len(data) < 8:
        raise ValueError("damaged: no TIFF header")
    (magic,) = struct.unpack_from(f"{order}H", data, 2)
    if magic == 43 and len(data) >= 16:
        return order, struct.unpack_from(f"{order}Q", data, 8)[0], True
    if magic != 42:
        raise ValueError("damaged: no TIFF header")
    return order, struct.unpack_from(f"{order}I", data, 4)[0], False


def read_directory(data: bytes | memoryview, offset: int, order: str, big: bool = False) -> tuple[Directory, int]:
    """The directory at `offset` and the offset of the next one (0: none). Tags that point nowhere are left out."""
    head, word, size = ("Q", "Q", 20) if big else ("H", "I", 12)
    inline = struct.calcsize(f"={word}")
    start = offset + struct.calcsize(f"={head}")
    if not 8 <= offset <= len(data) - (start - offset):
        raise ValueError("damaged: a directory of tags lies outside the file")
    (count,) = struct.unpack_from(f"{order}{head}", data, offset)
    end = start + count * size
    if end + inline > len(data) and end != len(data):
        raise ValueError("damaged: a directory of tags lies outside the file")
    found: Directory = {}
    for place in range(start, end, size):
        tag, kind, number = struct.unpack_from(f"{order}HH{word}", data, place)
        length = _SIZES.get(kind, 0) * number
        where = place + size - inline
        if length > inline:
            (where,) = struct.unpack_from(f"{order}{word}", data, where)
        if length and where + length <= len(data):
            found[tag] = Entry(kind, number, memoryview(data)[where : where + length])
    following = struct.unpack_from(f"{order}{word}", data, end)[0] if end + inline <= len(data) else 0
    return found, following


def expand(directory: Directory, data: bytes | memoryview, order: str, big: bool = False) -> Directory:
    """Copy a directory, its bytes included, with EXIF, GPS and interoperability directories in place of pointers."""
    if sum(len(value.raw) for value in directory.values() if isinstance(value, Entry)) > len(data):
        raise ValueError("damaged: tags overlap")
    copy: Directory = {}
    for tag, value in directory.items():
        if not isinstance(value, Entry):
            continue
        if tag not in (EXIF, GPS, INTEROP):
            copy[tag] = value._replace(raw=bytes(value.raw))
        elif value.numbers(order):
            try:
                inner, _ = read_directory(data, value.numbers(order)[0], order, big)
            except ValueError:
                continue  # a broken pointer: nothing there to keep
            pointers = (INTEROP,) if tag == EXIF else ()  # no deeper, so that loops end
            inner = {key: entry for key, entry in inner.items() if key not in (EXIF, GPS, INTEROP) or key in pointers}
            copy[tag] = expand(inner, data, order, big)
    return copy


def write_directory(directory: Mapping[int, Value], order: str, start: int, following: int = 0) -> bytes:
    """The bytes of a directory that will lie at offset `start` of its file, long values and inner ones after it.

    following: the offset of the next directory, 0 if there is none.
    """
    place = start + 2 + 12 * len(directory) + 4
    table, tail = [struct.pack(f"{order}H", len(directory))], b""
    for tag in sorted(directory):
        value = directory[tag]
        if isinstance(value, Entry):
            kind, number, raw = value
            raw = bytes(raw)
        else:
            kind, number, raw = 4, 1, struct.pack(f"{order}I", place + len(tail))
            tail += write_directory(value, order, place + len(tail))
        if len(raw) > 4:
            at = place + len(tail)
            tail += raw + bytes(len(raw) % 2)
            raw = struct.pack(f"{order}I", at)
        table.append(struct.pack(f"{order}HHI", tag, kind, number) + raw.ljust(4, b"\0"))
    return b"".join(table) + struct.pack(f"{order}I", following) + tail


def write_block(directory: Mapping[int, Value], order: str) -> bytes:
    """A whole EXIF block."""
    mark = b"II" if order == "<" else b"MM"
    return mark + struct.pack(f"{order}HI", 42, 8) + write_directory(directory, order, 8) if directory else b""


def read_block(block: bytes) -> tuple[Directory, str]:
    """The tags of an EXIF block and their byte order; a broken block has none."""
    try:
        order, offset, big = header(block)
        return expand(read_directory(block, offset, order, big)[0], block, order, big), order
    except ValueError:
        return {}, "<"


def orientation(block: bytes) -> int:
    """1 to 8; 1 when the block does not say, or is broken."""
    tags, order = read_block(block)
    entry = tags.get(ORIENTATION)
    numbers = entry.numbers(order) if isinstance(entry, Entry) else ()
    return numbers[0] if len(numbers) == 1 and 1 <= numbers[0] <= 8 else 1


def reset_orientation(block: bytes) -> bytes:
    """The same block, byte for byte, but for an orientation of 1; on its side, the resolutions change places."""
    order, offset, big = header(block)
    if big:
        raise ValueError("damaged: EXIF in a form that nobody uses")
    on_its_side = orientation(block) >= 5
    patched = bytearray(block)
    (count,) = struct.unpack_from(f"{order}H", block, offset)
    values = {}
    for place in range(offset + 2, offset + 2 + 12 * count, 12):
        tag, kind = struct.unpack_from(f"{order}HH", block, place)
        if tag == ORIENTATION and kind in (1, 3, 4):
            struct.pack_into(f"{order}{_WHOLE[kind]}", patched, place + 8, 1)
        if tag in RESOLUTIONS:
            values[tag] = place + 2  # type, count and value or offset: ten bytes
    if on_its_side and len(values) == 2:
        one, other = values.values()
        patched[one : one + 10], patched[other : other + 10] = block[other : other + 10], block[one : one + 10]
    return bytes(patched)


def reset_xmp(xmp: bytes) -> bytes:
    """XMP repeats the orientation; two tags that disagree would turn the picture again."""
    return re.sub(rb"(tiff:Orientation\s*(?:=\s*[\"']|>))[2-8]", rb"\g<1>1", xmp)
