"""Words to the user: errors, questions, help, about; and the last net, which has whatever nobody caught said.

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import html
import sys
import traceback
from collections.abc import Callable, Iterable
from types import TracebackType

from qtpy.QtCore import Qt
from qtpy.QtGui import QKeySequence
from qtpy.QtWidgets import QAction, QDialog, QDialogButtonBox, QMessageBox, QTextBrowser, QVBoxLayout, QWidget

import denoiser

ABOUT = """
<h2>Denoise {version}</h2>
<p>Bayesian image denoising: the most plausible picture behind the noise, and how far to trust every pixel of it.</p>
<p>The method is described in</p>
<p style="margin-left: 16px">Jingwei Zhuo, Chang Liu, Jiaxin Shi, Jun Zhu, Ning Chen and Bo Zhang:
<b>Message Passing Stein Variational Gradient Descent.</b>
Proceedings of the 35th International Conference on Machine Learning (ICML), 2018.</p>
<p>and the image priors in Schmidt, Gao and Roth: A Generative Perspective on MRFs in Low-Level Vision. CVPR 2010.
Please cite them when you publish results.</p>
<p>The library is under the BSD-3-Clause licence; this window, which uses PyQt5, under the GNU General Public
Licence, version 3 or later.</p>
"""

WORDS = """
<h3>In plain words</h3>
<p><b>Noise level (sigma)</b>: how far a pixel is typically off, in grey levels; black is 0 and white is 255. 5 is
barely seen, 25 is a dark room without a flash.</p>
<p><b>Particles</b>: candidate pictures, each of which could be the truth behind the noise. Their mean is the result;
where they differ from each other, nobody can be sure.</p>
<p><b>Iterations</b>: how often the method goes over the picture to improve the candidates.</p>
<p><b>Experiment</b>: the picture is taken as clean, noise is added to it, and the result is measured against the
picture: PSNR (decibels; one more is well visible) and SSIM (1 is perfect). <b>Restore</b>: the picture itself is
noisy, its noise is measured, and nobody can know how close the result is to the truth.</p>
<p><b>Uncertainty</b>: the standard deviation of the particles. The true value of a pixel lies within the 90 % interval
shown under the cursor in nine of ten cases, as far as the image model is right.</p>
<p>A picture can be dropped on the window, as can a folder; Page Down then goes to the next picture in it.
Drag with the left button to move a picture, turn the wheel to zoom; all views follow. Click a run in the table
to make it result A, Shift+click to make it result B.</p>
"""


_DESTROY = ("Discard", "Replace", "Save all the same")


def _words(error: BaseException) -> tuple[str, bool]:
    """What to tell the user about an error, and whether it is a mistake of the program."""
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return "There is not enough memory for this. Fewer particles or a smaller picture may help.", False
    if isinstance(error, FloatingPointError):
        return f"The computation went astray: {text}.", False
    if isinstance(error, ValueError | OSError):
        return text[:1].upper() + text[1:] or type(error).__name__, False
    return "Something went wrong that should not have. The window goes on; your results are still here.", True


def catch_all(report: Callable[[str, BaseException, str], None]) -> None:
    """Have exceptions of slots and events reported. PyQt5 would end the process; threads catch their own."""
    telling = False

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        nonlocal telling
        text = "".join(traceback.format_exception(kind, error, trace))
        print(text, file=sys.stderr)
        if isinstance(error, KeyboardInterrupt) or telling:  # no dialog about the dialog
            return
        telling = True
        try:
            report("Something went wrong", error, text)
        except Exception:
            traceback.print_exc()
        finally:
            telling = False

    sys.excepthook = hook


def warn(parent: QWidget, title: str, error: BaseException, trace: str) -> None:
    """Tell of an error in plain words, without stopping anything that is under way."""
    text, ours = _words(error)
    box = QMessageBox(QMessageBox.Warning, title, title, QMessageBox.Ok, parent)
    box.setInformativeText(text)
    box.setDetailedText(trace if ours else "")
    box.setAttribute(Qt.WA_DeleteOnClose)
    box.open()


def ask(parent: QWidget, title: str, text: str, *choices: str) -> str:
    """One of the choices; the last is what Escape means. Enter means the first that destroys nothing."""
    box = QMessageBox(QMessageBox.Question, title, title, QMessageBox.NoButton, parent)
    box.setInformativeText(text)
    buttons = {}
    for choice in choices:
        safe = QMessageBox.RejectRole if choice == "Cancel" else QMessageBox.AcceptRole
        buttons[box.addButton(choice, QMessageBox.DestructiveRole if choice in _DESTROY else safe)] = choice
    box.setDefaultButton(next(button for button, choice in buttons.items() if choice not in _DESTROY))
    box.setEscapeButton(list(buttons)[-1])  # "Cancel"
    box.exec_()
    return buttons.get(box.clickedButton(), choices[-1])


def _page(parent: QWidget, title: str, text: str, width: int, height: int) -> None:
    dialog = QDialog(parent)
    dialog.setWindowTitle(title)
    dialog.setAttribute(Qt.WA_DeleteOnClose)
    browser = QTextBrowser(openExternalLinks=True)
    browser.setHtml(text)
    buttons = QDialogButtonBox(QDialogButtonBox.Close)
    buttons.rejected.connect(dialog.reject)
    layout = QVBoxLayout(dialog)
    layout.addWidget(browser)
    layout.addWidget(buttons)
    dialog.resize(width, height)
    dialog.open()


def about(parent: QWidget) -> None:
    """Who, what, and whom to cite."""
    _page(parent, "About Denoise", ABOUT.format(version=denoiser.__version__), 560, 420)


def help_page(parent: QWidget, actions: Iterable[QAction], extra: Iterable[tuple[str, str]]) -> None:
    """What the words mean, and all keys; extra: (what, keys) of those that are no actions."""
    rows = []
    for action in actions:
        keys = ", ".join(k.toString(QKeySequence.NativeText) for k in action.shortcuts())
        rows.append((action.text().replace("&", "").rstrip("…"), keys))
    lines = "".join(
        f"<tr><td>{html.escape(what)}&nbsp;&nbsp;</td><td><b>{html.escape(keys)}</b></td></tr>"
        for what, keys in (*rows, *extra)
    )
    _page(parent, "Help", f"{WORDS}<h3>Keys</h3><table cellpadding='2'>{lines}</table>", 640, 640)
