"""Section 5.2, the qualitative figure: a photograph and a patch of it, noisy and denoised by every method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from denoiser import images
from denoiser.api import denoise
from denoiser.data import data_folder
from denoiser.evaluation.averages import table
from denoiser.metrics import psnr, ssim
from denoiser.noise import add_noise
from denoiser.paper.report import Report, Setting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIGMA = 10.0
PARTICLES = 50
FULL_SIDE, QUICK_SIDE = 256, 96  # the longer side of the picture, pixels
PATCH = 50
BUNDLED = "camera.png"  # the cameraman, public domain, in the place of Lena
_LUMA = np.array([0.299, 0.587, 0.114])

METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "MAP": ("map", {}),
    "SVGD": ("svgd", {"particles": PARTICLES}),
    "Aux. Gibbs": ("gibbs", {"samples": PARTICLES, "chains": 1}),
    "MP-SVGD": ("mp-svgd", {"particles": PARTICLES}),
}


def grey_photograph(setting: Setting) -> tuple[str, np.ndarray]:
    """(name, grey picture on the 0-255 scale) of the picture that the setting names, or of the bundled one."""
    path = setting.image or data_folder("sample_images") / BUNDLED
    picture = images.read(path)
    values = picture.units.to_grey(picture.pixels)
    return path.name, values if values.ndim == 2 else values @ _LUMA


def rescaled(picture: np.ndarray, height: int, width: int) -> np.ndarray:
    """The picture at another size, smoothed first."""
    from skimage.transform import resize  # slow to import

    return np.asarray(resize(picture, (height, width), anti_aliasing=True))


def run(setting: Setting) -> Report:
    """The picture at the paper's size with noise 10, by every method."""
    name, clean = grey_photograph(setting)
    longest = QUICK_SIDE if setting.quick else FULL_SIDE
    if max(clean.shape) > longest:
        height, width = (max(round(n * longest / max(clean.shape)), 1) for n in clean.shape)
        clean = rescaled(clean, height, width)
    if min(clean.shape) < 11:
        raise ValueError(f"{name}: SSIM needs at least 11x11 pixels, got {clean.shape[1]}x{clean.shape[0]}")
    noisy = add_noise(clean, SIGMA, setting.seed)
    pictures = {"noisy": noisy}
    for number, (title, (method, options)) in enumerate(METHODS.items()):
        setting.tell(title, number / len(METHODS))
        pictures[title] = denoise(noisy, SIGMA, method=method, seed=setting.seed, data_range=255, **options).mean
    rows: list[dict[str, Any]] = [
        {"method": title, "PSNR": psnr(clean, p, data_range=255), "SSIM": ssim(clean, p, data_range=255)}
        for title, p in pictures.items()
    ]
    best = max(rows, key=lambda row: float(row["PSNR"]))
    by = {row["method"]: row for row in rows}
    return Report(
        title="Denoising, for the eye",
        paper="(section 5.2) The picture by SVGD lacks details of texture and resembles that by MAP; those by Gibbs "
        "sampling and MP-SVGD keep them. MP-SVGD has the highest PSNR and SSIM of 50 particles.",
        setting=f"{name} at {clean.shape[1]}x{clean.shape[0]} pixels, noise {SIGMA:g}, pairwise prior, "
        f"{PARTICLES} particles or draws.",
        found=[
            f"{best['method']} has the highest PSNR, {best['PSNR']:.2f} dB.",
            f"SVGD is {by['SVGD']['PSNR'] - by['MAP']['PSNR']:+.2f} dB from MAP, MP-SVGD "
            f"{by['MP-SVGD']['PSNR'] - by['Aux. Gibbs']['PSNR']:+.2f} dB from Gibbs sampling.",
        ],
        tables=[
            table(["method", "PSNR", "SSIM"], [[r["method"], f"{r['PSNR']:.2f}", f"{r['SSIM']:.3f}"] for r in rows])
        ],
        rows=rows,
        draw=lambda figure: _draw(figure, clean, pictures, rows),
        size=(14, 14 / (len(pictures) + 1) * (1 + clean.shape[0] / clean.shape[1]) + 0.7),
    )


def busiest_patch(clean: np.ndarray, side: int) -> tuple[slice, slice]:
    """The patch whose neighbouring pixels differ most: where details can be lost."""
    height, width = (min(side, n) for n in clean.shape)
    change = np.abs(np.diff(clean, axis=0, append=clean[-1:])) + np.abs(np.diff(clean, axis=1, append=clean[:, -1:]))
    windows = np.lib.stride_tricks.sliding_window_view(change, (height, width))[::5, ::5]
    row, column = np.unravel_index(windows.mean(axis=(2, 3)).argmax(), windows.shape[:2])
    return slice(5 * row, 5 * row + height), slice(5 * column, 5 * column + width)


def _draw(figure: Figure, clean: np.ndarray, pictures: dict[str, np.ndarray], rows: list[dict[str, Any]]) -> None:
    patch = busiest_patch(clean, PATCH)
    shown = {"original": clean, **pictures}
    captions = ["original", *(f"{r['method']}\n({r['PSNR']:.2f}, {r['SSIM']:.3f})" for r in rows)]
    for caption, picture, column in zip(captions, shown.values(), figure.subplots(2, len(shown)).T, strict=True):
        for axes, pixels in zip(column, (picture, picture[patch]), strict=True):
            axes.imshow(pixels, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
            axes.set_axis_off()
        column[0].set_title(caption, fontsize=10)
        top, left = patch[0].start, patch[1].start
        x, y = [left, patch[1].stop, patch[1].stop, left, left], [top, top, patch[0].stop, patch[0].stop, top]
        column[0].plot(x, y, color="#e69f00", lw=1)
