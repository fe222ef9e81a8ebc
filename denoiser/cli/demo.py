"""`denoise demo`: add noise to a bundled photograph, denoise it, and show what was won."""

from __future__ import annotations

import argparse
from pathlib import Path

from denoiser import images, metrics, noise, panels
from denoiser.api import make_request
from denoiser.cli.arguments import positive, whole, wrong
from denoiser.cli.paths import prepare_folder
from denoiser.cli.progress import steps
from denoiser.data import data_folder
from denoiser.samplers import METHODS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where to write, and what to try."""
    samples = sorted(path.stem for path in data_folder("sample_images").glob("*.png"))
    parser.add_argument("--dir", type=Path, default=Path("demo"), help="folder for the pictures (default: demo)")
    parser.add_argument("--image", choices=samples, default="cat", help="bundled photograph (default: cat)")
    parser.add_argument("--overwrite", action="store_true", help="replace pictures that are there already")
    parser.add_argument("--sigma", type=positive, default=20, help="noise to add, in grey levels (default: 20)")
    parser.add_argument("--method", choices=sorted(METHODS), help="default: one pass of the learned field")
    parser.add_argument("--crop", type=whole(16), metavar="N", help="only the N x N pixels in the middle: a quick look")
    parser.add_argument("--seed", type=whole(0), default=0, help="default: 0")


def run(arguments: argparse.Namespace) -> int:
    """Write noisy, denoised and uncertainty pictures and print a table."""
    clean = images.read(data_folder("sample_images") / f"{arguments.image}.png").pixels.astype(float)
    if arguments.crop:
        top, left = (max((side - arguments.crop) // 2, 0) for side in clean.shape[:2])
        clean = clean[top : top + arguments.crop, left : left + arguments.crop]
    noisy = noise.add_noise(clean, arguments.sigma, arguments.seed)
    axis = -1 if clean.ndim == 3 else None
    if not arguments.sigma > 0:
        wrong("--sigma: there is nothing to show without noise")
    names = ("noisy", "denoised", "uncertainty", "side-by-side")
    prepare_folder(arguments.dir, [arguments.dir / f"{name}.png" for name in names], arguments.overwrite)
    request = make_request(
        noisy, arguments.sigma, method=arguments.method, seed=arguments.seed, channel_axis=axis, data_range=255
    )
    method = request.sampler.name
    result = request.run(lambda run: steps(run, method, quiet=False))
    uncertainty = panels.heat_map(result.std)
    pictures = [("noisy", noisy), ("denoised", result.mean), ("uncertainty", uncertainty)]
    for name, picture in pictures:
        images.write_png(arguments.dir / f"{name}.png", picture)
    captions, rows = [], []
    for name, picture, seconds in (("noisy", noisy, 0.0), ("denoised", result.mean, result.seconds)):
        decibels = metrics.psnr(clean, picture, data_range=255)
        similarity = metrics.ssim(clean, picture, data_range=255, channel_axis=axis)
        rows.append(f"{name:10} {decibels:8.2f} {similarity:8.3f} {seconds:8.1f}")
        captions.append(f"{name}: {decibels:.2f} dB, SSIM {similarity:.3f}")
    captions.append("uncertainty (posterior standard deviation)")
    columns = [(caption, picture) for caption, (_, picture) in zip(captions, pictures, strict=True)]
    images.write_png(arguments.dir / "side-by-side.png", panels.side_by_side(columns))
    print(f"{arguments.image}.png, noise level {arguments.sigma:g}, method {method}, prior {request.prior.name}")
    print(f"{'':10} {'PSNR dB':>8} {'SSIM':>8} {'seconds':>8}")
    print("\n".join(rows))
    print(f"pictures: {arguments.dir / 'side-by-side.png'} and the single ones beside it")
    return 0
