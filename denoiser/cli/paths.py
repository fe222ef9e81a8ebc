"""Which files go in, where each comes out, and what is refused because something could be lost."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from denoiser import images
from denoiser.files import label

STANDARD = "-"  # standard input, or standard output
_MARK = "-denoised"


@dataclass(frozen=True)
class Input:
    """A file to denoise. `place`: its path below the folder that was named, which --dir keeps. `error`: why not."""

    path: str
    place: Path
    error: str = ""


def expand(names: Iterable[str], recursive: bool, without: Path | None) -> list[Input]:
    """The files that the command line names: files, folders, patterns, `-`. Nothing twice, nothing within `without`."""
    found: dict[str, Input] = {}
    for name in names:
        for entry in _expand_one(name, recursive, without):
            found.setdefault(entry.path if entry.path == STANDARD else os.path.abspath(entry.path), entry)
    return list(found.values())


def _expand_one(name: str, recursive: bool, without: Path | None) -> Iterator[Input]:
    if name == STANDARD:
        yield Input(name, Path("stdin"))
    elif os.path.isdir(name):
        inside = list(_walk(name, without)) if recursive else []
        if not recursive:
            yield Input(name, Path(name), "is a folder; -r takes the pictures in it")
        elif not inside:
            yield Input(name, Path(name), "this folder holds no pictures")
        yield from inside
    elif os.path.lexists(name) or not glob.has_magic(name):
        yield Input(name, Path(os.path.basename(name)), "" if name else "is not a name")
    else:
        matches = sorted(glob.glob(name, recursive=True))
        if not matches:
            yield Input(name, Path(name), "no file matches")
        for match in matches:
            if os.path.isdir(match) and not recursive:
                continue  # **/ names folders too
            yield from _expand_one(match, recursive, without)


def _walk(folder: str, without: Path | None) -> Iterator[Input]:
    """The pictures in a folder and those below it, by their names; results of earlier runs are left out."""
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        if without is not None:
            folders[:] = [f for f in folders if not images.same_file(os.path.join(where, f), without)]
        for name in sorted(names):
            stem, suffix = os.path.splitext(name)
            known = suffix.lower() in images.SUFFIXES or suffix.lower() == ".pbm"
            if known and not name.startswith(".") and not stem.endswith(_MARK):
                path = os.path.join(where, name)
                yield Input(path, Path(os.path.relpath(path, folder)))


def output_for(entry: Input, picture: images.Picture, output: str | None, folder: Path | None) -> str:
    """Where the result of an input goes."""
    if output is not None:
        return output
    if entry.path == STANDARD and folder is None:
        return STANDARD
    suffix = entry.place.suffix
    if images.SUFFIXES.get(suffix.lower()) != picture.format or suffix.lower() in (".pgm", ".ppm"):
        suffix = picture.suffix
    if folder is not None:
        return str(folder / entry.place.parent / (entry.place.stem + suffix))
    path = Path(entry.path)
    return str(path.with_name(f"{path.stem}{_MARK}{suffix}"))


class Names:
    """The files that many names mean, so that one more name is compared with all of them at once."""

    def __init__(self, names: Iterable[str]) -> None:
        self._paths, self._files = set[str](), set[tuple[int, int]]()
        for name in names:
            if name != STANDARD:
                self._paths.add(os.path.realpath(name))
                with contextlib.suppress(OSError, ValueError):
                    status = os.stat(name)
                    self._files.add((status.st_dev, status.st_ino))

    def __contains__(self, name: str) -> bool:
        try:
            status = os.stat(name)
        except (OSError, ValueError):
            return os.path.realpath(name) in self._paths
        return (status.st_dev, status.st_ino) in self._files


def check_output(target: str, inputs: Names, taken: dict[str, str], overwrite: bool) -> None:
    """Refuse a target that is an input, that is there already, that another input took, or that cannot be written."""
    if target == STANDARD:
        return
    name = label(target)
    if target in inputs:
        raise ValueError(f"{name}: is an input; a picture is never replaced by its result")
    other = taken.get(os.path.realpath(target))
    if other is not None:
        raise ValueError(f"{name}: is already the result of {label(other)}")
    if os.path.isdir(target):
        raise ValueError(f"{name}: is a folder, and cannot be replaced by a picture")
    if os.path.lexists(target) and not overwrite:
        raise ValueError(f"{name}: exists already; --overwrite replaces it, --skip-existing leaves it")
    if os.path.exists(target) and not os.path.isfile(target):
        raise ValueError(f"{name}: is no plain file, and cannot be replaced by a picture")
    folder = os.path.dirname(os.path.realpath(target))
    while not os.path.lexists(folder):  # --dir makes the folders that are missing
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        raise ValueError(f"{name}: cannot be written: {label(folder)} is not a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"{name}: cannot be written: no permission to write in {label(folder)}")
    if len(os.fsencode(os.path.basename(target))) > 255:
        raise ValueError(f"{name}: cannot be written: the name is too long")


def prepare_folder(folder: Path, files: Iterable[Path], overwrite: bool) -> None:
    """Make a folder for results and find out now, not after an hour, whether they can be written there."""
    if os.path.lexists(folder) and not folder.is_dir():
        raise ValueError(f"{label(folder)}: is not a folder")
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        if os.path.lexists(file) and not overwrite:
            raise ValueError(f"{file} exists already; --overwrite replaces it")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{folder}: cannot be written to")
