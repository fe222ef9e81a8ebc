"""Ways for a picture into the window: a dialog, a drop, the clipboard, recent files, samples, the next in a folder.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from qtpy.QtCore import QMimeData, QObject, QSettings, Signal
from qtpy.QtGui import QImage
from qtpy.QtWidgets import QApplication, QFileDialog, QMenu, QWidget

from denoiser import images
from denoiser.data import data_folder

from . import source as sources
from .background import IDLE, Background

_RECENT = 10
SUFFIXES = (*images.SUFFIXES, ".pbm")
FILTER = (
    f"Pictures ({' '.join('*' + s for s in SUFFIXES)} {' '.join('*' + s.upper() for s in SUFFIXES)});;All files (*)"
)


def pictures_in(folder: str) -> list[str]:
    """The pictures in a folder, by name."""
    names = sorted(os.listdir(folder), key=str.lower)
    return [os.path.join(folder, n) for n in names if n.lower().endswith(SUFFIXES) and not n.startswith(".")]


def from_clipboard(image: QImage) -> images.Picture:
    """A picture as if it had been read from an 8-bit PNG."""
    kind = QImage.Format_Grayscale8 if image.isGrayscale() else QImage.Format_RGBA8888
    image = image.convertToFormat(kind)
    rows = np.frombuffer(image.constBits().asstring(image.sizeInBytes()), np.uint8)
    rows = rows.reshape(image.height(), image.bytesPerLine())
    if kind == QImage.Format_Grayscale8:
        return images.Picture(rows[:, : image.width()].copy(), name="pasted picture")
    pixels = rows[:, : 4 * image.width()].reshape(image.height(), image.width(), 4)
    alpha = pixels[..., 3].copy()
    return images.Picture(pixels[..., :3].copy(), None if (alpha == 255).all() else alpha, name="pasted picture")


class Opener(QObject):
    """Asks the window to open pictures, reads them on a thread and says when they are there."""

    opened = Signal(object)  # Source
    failed = Signal(str, object, str)
    busy = Signal(str)  # what is being read

    def __init__(self, parent: QWidget, background: Background, settings: QSettings) -> None:
        super().__init__(parent)
        self._window, self._background, self._settings = parent, background, settings
        self._task = IDLE
        self._folder: list[str] = []
        self._source: sources.Source | None = None
        self.recent_menu, self.samples_menu = QMenu("&Recent", parent), QMenu("Sa&mples", parent)
        self.recent_menu.setToolTipsVisible(True)
        self.recent_menu.aboutToShow.connect(self._fill_recent)
        for path in sorted(data_folder("sample_images").glob("*.png")):
            self.samples_menu.addAction(path.stem.capitalize(), partial(self._window.open, str(path)))

    def choose(self, title: str = "Open a picture") -> str:
        """Ask for a file; "" for none."""
        folder = str(self._settings.value("folder", "") or "")
        path, _ = QFileDialog.getOpenFileName(self._window, title, folder, FILTER)
        return str(path)

    def choose_file(self) -> None:
        """Ask for a file and open it."""
        if path := self.choose():
            self._window.open(path)

    def paste(self) -> None:
        """From the clipboard."""
        self._window.take(QApplication.clipboard().mimeData())

    def open(self, path: str, page: int = 0) -> None:
        """A file, or a page of it, or the first picture of a folder."""
        try:
            if os.path.isdir(path):
                self._folder = pictures_in(path)
                if not self._folder:
                    raise ValueError(f"{path}: this folder holds no pictures")
                path = self._folder[0]
            elif path not in self._folder:
                self._folder = []
        except (OSError, ValueError) as error:
            self.failed.emit("Cannot open", error, "")
            return
        self._start(lambda _: sources.load(path, page), Path(path).name)

    def _start(self, work: object, name: str) -> None:
        self._task.stop()
        self.busy.emit(name)
        self._task = self._background.start(work, done=self._done, failed=partial(self.failed.emit, "Cannot open"))

    def _done(self, source: sources.Source) -> None:
        self._source = source
        if source.path:
            path = os.path.abspath(source.path)
            self._settings.setValue("folder", os.path.dirname(path))
            self._settings.setValue("recent", [path, *(p for p in self.recent() if p != path)][:_RECENT])
        self.opened.emit(source)

    def step_picture(self, by: int) -> None:
        """The next picture of the folder; none at its end."""
        path = self._source.path if self._source is not None else None
        if path is None:
            return
        try:
            self._folder = self._folder or pictures_in(os.path.dirname(os.path.abspath(path)))
        except OSError:
            return
        here = next((n for n, p in enumerate(self._folder) if images.same_file(p, path)), None)
        if here is not None and 0 <= here + by < len(self._folder):
            self._window.open(self._folder[here + by])

    def step_page(self, by: int) -> None:
        """The next page of a stack; none at its end."""
        here = self._source
        if here is not None and here.path is not None and 0 <= here.page + by < here.pages:
            self._window.open(here.path, here.page + by)

    def recent(self) -> list[str]:
        """The last files, the newest first."""
        value = self._settings.value("recent", [])
        return [value] if isinstance(value, str) else [str(v) for v in value] if isinstance(value, list) else []

    def _fill_recent(self) -> None:
        self.recent_menu.clear()
        for number, path in enumerate(self.recent(), 1):
            name = f"&{number % 10}  {Path(path).name}"
            self.recent_menu.addAction(name, partial(self._window.open, path)).setToolTip(path)

    @staticmethod
    def welcome(data: QMimeData) -> bool:
        """Whether something that is dragged could be opened."""
        return bool(data.hasImage() or any(url.isLocalFile() for url in data.urls()))

    def taker(self, data: QMimeData) -> Callable[[], None] | None:
        """What opens that which was dropped or pasted, even once it is gone; None if it is nothing to open."""
        files = [url.toLocalFile() for url in data.urls() if url.isLocalFile()]
        image = QImage(data.imageData()) if data.hasImage() and not files else QImage()

        def take_files() -> None:
            if len(files) > 1:  # the others are the next pictures
                self._folder = [f for f in files if not os.path.isdir(f)]
            self.open(files[0])

        def take_image() -> None:
            picture = from_clipboard(image)
            self._folder = []
            self._start(lambda _: sources.measure(picture, None), "the pasted picture")

        return take_files if files else None if image.isNull() else take_image
