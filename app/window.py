"""One window: open a picture, say how noisy it is, watch the posterior mean and its uncertainty build up.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from qtpy.QtCore import Qt
from qtpy.QtGui import QKeySequence
from qtpy.QtWidgets import (
    QComboBox,
    QDoubleSpinBox,
    QFileDialog,
    QLabel,
    QMainWindow,
    QMessageBox,
    QProgressBar,
    QPushButton,
    QToolBar,
)
from superqt.utils import GeneratorWorker, create_worker

import denoiser
from denoiser import figures, images

FILES = "Images (*.png *.jpg *.jpeg *.tif *.tiff *.webp *.bmp *.ppm *.pgm)"
_STOP_MS = 10_000


class Window(QMainWindow):
    """Wires the parts together and computes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.setWindowTitle("Denoise")
        self.resize(1200, 560)
        self.picture: np.ndarray | None = None
        self.result: denoiser.Progress | None = None
        self._worker: GeneratorWorker | None = None

        self.views = pg.GraphicsLayoutWidget()
        self.setCentralWidget(self.views)
        self._images = [self._add_view(column, name) for column, name in enumerate(("noisy", "mean", "uncertainty"))]

        self.sigma = QDoubleSpinBox(minimum=0.1, maximum=255, value=20, decimals=1)
        self.sigma.setToolTip("Noise level: how far a pixel is typically off, in grey levels of 255")
        self.method = QComboBox()
        for name, sampler in denoiser.METHODS.items():
            self.method.addItem(sampler.title, name)
        self.open_button = QPushButton("&Open…", clicked=self.choose, shortcut=QKeySequence(QKeySequence.Open))
        self.run_button = QPushButton("&Run", clicked=self.run, shortcut=QKeySequence("Ctrl+R"), enabled=False)
        self.cancel_button = QPushButton("&Cancel", clicked=self.cancel, shortcut=QKeySequence("Esc"), enabled=False)
        self.save_button = QPushButton("&Save…", clicked=self.save, shortcut=QKeySequence(QKeySequence.Save))
        self.save_button.setEnabled(False)
        self.progress = QProgressBar(maximumWidth=220)
        bar = QToolBar("Denoise", movable=False)
        self.addToolBar(bar)
        for widget in (
            self.open_button,
            QLabel("  Noise level "),
            self.sigma,
            QLabel("  Method "),
            self.method,
            self.run_button,
            self.cancel_button,
            self.save_button,
        ):
            bar.addWidget(widget)
        self.statusBar().addPermanentWidget(self.progress)
        self.statusBar().showMessage("Open a noisy picture to begin")

    def _add_view(self, column: int, name: str) -> pg.ImageItem:
        """A titled view, linked in zoom and pan with the first."""
        view = self.views.addViewBox(row=1, col=column, lockAspect=True, invertY=True)
        self.views.addLabel(name, row=0, col=column)
        if column:
            view.linkView(view.XAxis, self._first)
            view.linkView(view.YAxis, self._first)
        else:
            self._first = view
        item = pg.ImageItem(axisOrder="row-major")
        view.addItem(item)
        return item

    def choose(self) -> None:
        """Ask for a file and open it."""
        path, _ = QFileDialog.getOpenFileName(self, "Open a picture", "", FILES)
        if path:
            self.open(path)

    def open(self, path: str) -> None:
        """Show a picture and estimate its noise; a bad file is a message, not a crash."""
        try:
            file = images.read(path)
        except (ValueError, OSError) as error:
            QMessageBox.warning(self, "Cannot open", str(error))
            return
        self.picture = file.pixels * (255 / file.white)
        self.cancel()
        self.result = None
        self.save_button.setEnabled(False)
        self._images[0].setImage(self.picture, levels=(0, 255))
        for item in self._images[1:]:
            item.clear()
        self._first.autoRange()
        axis = -1 if self.picture.ndim == 3 else None
        self.sigma.setValue(max(denoiser.estimate_sigma(self.picture, channel_axis=axis), 0.1))
        self.run_button.setEnabled(True)
        self.statusBar().showMessage(f"{path}: estimated noise level {self.sigma.value():.1f}")

    def run(self) -> None:
        """Drain the run loop on a worker thread."""
        if self.picture is None or self._worker is not None:
            return
        try:
            steps = denoiser.iterate(
                self.picture,
                self.sigma.value(),
                method=self.method.currentData(),
                channel_axis=-1 if self.picture.ndim == 3 else None,
                data_range=255,
            )
        except ValueError as error:
            QMessageBox.warning(self, "Cannot run", str(error))
            return
        self._worker = create_worker(_drain, steps, _ignore_errors=True)
        self._worker.yielded.connect(self._show)
        self._worker.errored.connect(lambda error: QMessageBox.warning(self, "The run failed", str(error)))
        self._worker.finished.connect(self._finish)
        self.run_button.setEnabled(False)
        self.cancel_button.setEnabled(True)
        self._worker.start()

    def cancel(self) -> None:
        """Stop after the current iteration; what has been computed stays."""
        if self._worker is not None:
            self._worker.quit()

    def _show(self, progress: denoiser.Progress) -> None:
        self.result = progress
        self.progress.setRange(0, progress.total)
        self.progress.setValue(progress.step)
        self._images[1].setImage(progress.mean, levels=(0, 255))
        std = progress.std if progress.std.ndim == 2 else np.sqrt((progress.std**2).mean(axis=-1))
        self._images[2].setImage(figures.heat(std, float(np.percentile(std, 99.5))))
        self.statusBar().showMessage(f"iteration {progress.step} of {progress.total}, {progress.eta:.0f} s to go")

    def _finish(self) -> None:
        self._worker = None
        self.run_button.setEnabled(True)
        self.cancel_button.setEnabled(False)
        self.save_button.setEnabled(self.result is not None)
        if self.result is not None:
            self.statusBar().showMessage(f"{self.result.step} iterations in {self.result.seconds:.1f} s")

    def save(self) -> None:
        """Ask for a name and save the mean."""
        if self.result is None:
            return
        path, _ = QFileDialog.getSaveFileName(self, "Save the denoised picture", "denoised.png", "PNG (*.png)")
        if path:
            try:
                images.write_png(path, self.result.mean)
            except OSError as error:
                QMessageBox.warning(self, "Cannot save", str(error))

    def keyPressEvent(self, event: object) -> None:
        """Space shows the noisy picture in place of the mean while it is held."""
        if event.key() == Qt.Key_Space and self.picture is not None:
            self._images[1].setImage(self.picture, levels=(0, 255))
        else:
            super().keyPressEvent(event)

    def keyReleaseEvent(self, event: object) -> None:
        """Back to the mean."""
        if event.key() == Qt.Key_Space and self.result is not None:
            self._images[1].setImage(self.result.mean, levels=(0, 255))
        else:
            super().keyReleaseEvent(event)

    def closeEvent(self, event: object) -> None:
        """End the worker before the window goes."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.yielded.disconnect(self._show)
            worker.quit()
            worker.await_workers(_STOP_MS)
        super().closeEvent(event)


def _drain(steps):  # type: ignore[no-untyped-def]
    """The worker's body: hand every Progress to the window."""
    yield from steps
