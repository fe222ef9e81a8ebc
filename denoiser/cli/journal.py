"""What a batch has finished, so that `--resume` can go on after a kill.

One file `.denoise-journal` in the output folder, one JSON object a line: the name of an output, the digest of what it
was made from (input bytes and settings) and the digest of its own bytes. The line is on the disk before the output
takes its name. So an output is trusted exactly when a line has both digests: it is whole, it is ours, and the same
command would make the same bytes again. Anything else that is there already is somebody's file.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from denoiser import files

NAME = ".denoise-journal"


def digest(*parts: bytes) -> str:
    """SHA-256 over the digests of the parts."""
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def made_from(source: bytes, settings: dict[str, Any]) -> str:
    """The digest of an input and of everything that decides what becomes of it."""
    return digest(source, json.dumps(settings, sort_keys=True, default=str).encode())


def _place(target: str, folder: Path | None) -> tuple[Path, str]:
    """The journal that an output belongs to, and the output's name in it."""
    home = folder if folder is not None else Path(target).parent
    return home / NAME, os.path.relpath(target, home)


def finished(target: str, folder: Path | None, origin: str) -> bool:
    """Whether `target` is there, whole, and made from `origin`."""
    journal, name = _place(target, folder)
    try:
        lines = journal.read_bytes().splitlines()
        wanted = {"output": name, "from": origin, "sha256": hashlib.sha256(files.read_bytes(target)).hexdigest()}
    except (OSError, ValueError):
        return False
    return any(_parse(line) == wanted for line in lines)


def _parse(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:  # the line that was being written when the process was killed
        return None


def announce(target: str, folder: Path | None, origin: str, data: bytes) -> None:
    """Note that `target` is about to become `data`."""
    journal, name = _place(target, folder)
    entry = {"output": name, "from": origin, "sha256": hashlib.sha256(data).hexdigest()}
    with open(journal, "ab") as file:
        # begins with a line break of its own: the last line may have been cut short by a kill
        file.write(b"\n" + json.dumps(entry).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
