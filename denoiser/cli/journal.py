"""What a batch has finished, so that `--resume` can go on after a kill.

One file `.denoise-journal` in the output folder, one JSON object a line: the name of an output, the digest of what it
was made from (input bytes and settings) and the digest of its own bytes. The line is on the disk before the output
takes its name. So an output is trusted exactly when a line has both digests: it is whole, it is ours, and the same
command would make the same bytes again. Anything else that is there already is somebody's file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from denoiser import files

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

NAME = ".denoise-journal"
_MOST_OPEN = 64  # files at a time, when every output has its journal beside it


def made_from(source: bytes, settings: dict[str, Any]) -> str:
    """The digest of an input and of everything that decides what becomes of it."""
    parts = (source, json.dumps(settings, sort_keys=True, default=str).encode())
    return _sha256(b"".join(hashlib.sha256(part).digest() for part in parts))


class Journal:
    """The journals of one command: of the folder that all outputs go to, or one beside each output."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._open: dict[Path, _File] = {}

    def close(self) -> None:
        """Let go of everything."""
        for file in self._open.values():
            file.close()
        self._open.clear()

    def _file(self, home: Path) -> _File:
        if home not in self._open:
            if len(self._open) >= _MOST_OPEN and not any(file.locked for file in self._open.values()):
                self.close()
            self._open[home] = _File(home / NAME)
        return self._open[home]

    def _place(self, target: str) -> tuple[Path, str]:
        """The folder whose journal an output belongs to, and the output's name in it."""
        home = self._folder if self._folder is not None else Path(target).parent
        return home, os.path.relpath(target, home)

    def finished(self, target: str, origin: str) -> bool:
        """Whether `target` is there, whole, and made from `origin`."""
        home, name = self._place(target)
        if not (home / NAME).exists():
            return False
        try:
            lines = self._file(home).lines()
            return (name, origin) in lines and lines[name, origin] == _sha256(files.read_bytes(target))
        except (OSError, ValueError):
            return False

    def announce(self, target: str, origin: str, data: bytes) -> None:
        """Note that `target` is about to become `data`."""
        home, name = self._place(target)
        self._file(home).append({"output": name, "from": origin, "sha256": _sha256(data)})

    def claim(self, target: str, wait: bool) -> bool:
        """Keep other processes from working on `target` until `release`; whether it is ours. Ends with the process."""
        home, name = self._place(target)
        try:
            home.mkdir(parents=True, exist_ok=True)
            return self._file(home).lock(name, wait)
        except OSError:
            return True  # no locks on this file system: what is done twice is still done right

    def release(self, target: str) -> None:
        """Let others have it."""
        home, name = self._place(target)
        if home in self._open:
            self._open[home].unlock(name)


class _File:
    """One journal, open: its locks would be gone if any descriptor of it were closed."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "a+b", buffering=0)  # noqa: SIM115
        self.locked = set[str]()
        self._read, self._lines = 0, dict[tuple[str, str], str]()

    def lines(self) -> dict[tuple[str, str], str]:
        """(output, from) -> digest of the output; only what was appended since the last look is read."""
        handle = self._file.fileno()
        data = os.pread(handle, os.fstat(handle).st_size - self._read, self._read)
        whole = data[: data.rfind(b"\n") + 1]  # the rest may be being written, and is read again
        self._read += len(whole)
        for line in whole.split(b"\n"):
            try:
                entry = json.loads(line)
                self._lines[entry["output"], entry["from"]] = entry["sha256"]
            except (ValueError, TypeError, KeyError):  # a line that was being written when the process was killed
                continue
        return self._lines

    def append(self, entry: dict[str, str]) -> None:
        """Add a line; it is on the disk when this returns."""
        # begins with a line break of its own: the last line may have been cut short by a kill
        line = b"\n" + json.dumps(entry).encode() + b"\n"
        if self._file.write(line) != len(line):
            raise OSError(f"{self._file.name}: cannot be written: the disk is full")
        os.fsync(self._file.fileno())

    def lock(self, name: str, wait: bool) -> bool:
        """Lock a byte far behind the end that stands for this name."""
        if fcntl is None:
            return True
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, _byte(name))
        except BlockingIOError:
            return False
        self.locked.add(name)
        return True

    def unlock(self, name: str) -> None:
        """Unlock it again."""
        self.locked.discard(name)
        if fcntl is not None:
            with contextlib.suppress(OSError):
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _byte(name))

    def close(self) -> None:
        """Close the file, and with it give up all locks."""
        self._file.close()


def _byte(name: str) -> int:
    return (1 << 40) + int(_sha256(os.fsencode(name))[:12], 16)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
