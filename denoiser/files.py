"""Files themselves: opened only if they are plain files, replaced only as a whole."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path
from typing import BinaryIO

MAX_BYTES = 1 << 31  # of an input file; a picture of 100 million 16-bit RGB pixels has 0.6e9
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def label(source: object) -> str:
    """A name for messages, in one line whatever characters the file's name has."""
    text = os.fspath(source) if isinstance(source, str | Path) else getattr(source, "name", None)
    text = text if isinstance(text, str) else "the input"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _refuse_special(mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = next((name for test, name in _KINDS if test(mode)), "no plain file")
        raise ValueError(f"is {kind}, not an image file")


def read_bytes(source: str | Path | BinaryIO) -> bytes:
    """All of a plain file or of a stream. Never waits for a pipe: special files are refused before they are opened."""
    if not isinstance(source, str | Path):
        data = source.read(MAX_BYTES + 1)
        size = len(data)
    else:
        if b"\0" in os.fsencode(source):
            raise ValueError("no file has such a name")
        if os.path.islink(source) and not os.path.exists(source):
            raise ValueError(f"is a link to {label(os.readlink(source))}, which does not exist")
        _refuse_special(os.stat(source).st_mode)
        # O_NONBLOCK and the second look: someone may have put a pipe there in between
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with open(os.open(source, flags), "rb") as file:
            status = os.fstat(file.fileno())
            _refuse_special(status.st_mode)
            size = status.st_size
            data = file.read() if size <= MAX_BYTES else b""
    if size > MAX_BYTES:
        raise ValueError(f"has more than {MAX_BYTES >> 30} GB; cut it into smaller pictures")
    return data


def write_bytes(target: str | Path | BinaryIO, data: bytes) -> None:
    """Write to a stream, or replace a file: afterwards it holds all of `data`, or what it held before.

    The data go to a hidden file in the same folder, are flushed to the disk, and the hidden file takes the
    name. On Linux it has no name until then, so that even a killed process leaves nothing behind. A new file
    gets the permissions that any new file gets, an old one keeps its own. If the name is a symbolic link, the
    file it points to is replaced and the link stays, as with any program that saves.
    """
    if not isinstance(target, str | Path):
        target.write(data)
        target.flush()
        return
    try:
        _replace(Path(os.path.realpath(target)), data)
    except (OSError, ValueError) as error:
        raise OSError(f"{label(target)}: cannot be written: {getattr(error, 'strerror', None) or error}") from None


def _replace(path: Path, data: bytes) -> None:
    try:
        old = path.stat()
    except FileNotFoundError:
        old = None
    if old is not None:
        _refuse_special(old.st_mode)
        if not os.access(path, os.W_OK):
            raise ValueError("it is read-only")
    temporary = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        handle, nameless = _new_file(temporary)
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            if old is not None and hasattr(os, "fchmod"):
                with contextlib.suppress(OSError):
                    os.fchown(handle, old.st_uid, old.st_gid)
                os.fchmod(handle, stat.S_IMODE(old.st_mode))
            os.fsync(handle)
            if nameless:  # src_dir_fd makes Python follow the link in /proc; nothing else reads it
                os.link(f"/proc/self/fd/{handle}", temporary, src_dir_fd=handle, follow_symlinks=True)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _new_file(path: Path) -> tuple[int, bool]:
    """A new file to write to; without a name where the system can do that: such a file dies with its process."""
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            return os.open(path.parent, os.O_TMPFILE | os.O_WRONLY, 0o666), True
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666), False


def same_file(one: str | Path, other: str | Path) -> bool:
    """Whether two names mean one file: equal, by `..`, by a link of either kind, or where neither exists yet."""
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        return os.path.realpath(one) == os.path.realpath(other)
