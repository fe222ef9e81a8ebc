"""What a first run and large pictures cost MP-SVGD; exits with 1 when a claim fails.

    python benchmarks/scaling.py [--photo]

Compilation: processor seconds of a run in a fresh process with an empty kernel cache, less those of the same run with
the cache that it left, over those of `import numba, skimage`. Pixels: processor seconds of four sweeps, start and tiles
included, against the size of the picture. --photo: 12 megapixels in colour, JPEG to JPEG, through the command
(`--prior pairwise --quality fast`), with its peak memory; takes minutes.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image
from skimage.transform import resize

from denoiser import add_noise, denoise
from denoiser.data import data_folder
from denoiser.images import read

RUN = """
import numpy as np, denoiser
denoiser.denoise(np.full((24, 24), 100.0), 10, method="mp-svgd", prior="pairwise", iterations=1)
"""
SIDES = (200, 400, 800, 2000)  # 0.04 to 4 megapixels
MEGAPIXELS = (3000, 4000)


def child_seconds(code: str, **environment: str) -> float:
    """Processor seconds of a Python process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compilation() -> bool:
    """Seconds of compiling before the first sweep, over those of an import, the least of two runs each."""
    compiling, importing = [], []
    for _ in range(2):
        importing.append(child_seconds("import numba, skimage"))
        with tempfile.TemporaryDirectory() as folder:
            cold = child_seconds(RUN, NUMBA_CACHE_DIR=folder)
            compiling.append(cold - child_seconds(RUN, NUMBA_CACHE_DIR=folder))
    ratio = min(compiling) / min(importing)
    print(f"compiling takes {min(compiling):.1f} s, {ratio:.0f} times `import numba, skimage` (<= 30)", flush=True)
    return ratio <= 30


def pixels() -> bool:
    """The power of the number of pixels with which the time grows."""
    picture = read(data_folder("sample_images") / "camera.png").pixels.astype(float)
    seconds = []
    for side in (64, *SIDES):  # the first one compiles
        noisy = add_noise(resize(picture, (side, side)), 10)
        began = time.process_time()
        denoise(noisy, 10, method="mp-svgd", prior="pairwise", iterations=4)
        seconds.append(time.process_time() - began)
    slope = float(np.polyfit(np.log(np.square(SIDES)), np.log(seconds[1:]), 1)[0])
    print(f"seconds at {SIDES} pixels a side: {', '.join(f'{s:.2f}' for s in seconds[1:])}")
    print(f"they grow with the power {slope:.2f} of the pixels (<= 1.05)", flush=True)
    return slope <= 1.05


def photograph() -> bool:
    """A 12 megapixel JPEG in colour through the command."""
    clean = resize(read(data_folder("sample_images") / "astronaut.png").pixels.astype(float), (*MEGAPIXELS, 3))
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "photo.jpg"
        Image.fromarray(np.clip(add_noise(clean, 15), 0, 255).astype(np.uint8)).save(source, quality=95)
        began = time.perf_counter()
        command = [sys.executable, "-m", "denoiser", str(source), "--prior", "pairwise", "--quality", "fast"]
        subprocess.run(command, check=True)
        took = time.perf_counter() - began
    gigabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(f"12 megapixels in colour: {took:.0f} s and {gigabytes:.2f} GB (< 2)")
    return gigabytes < 2


def main() -> int:
    held = [compilation(), pixels()]
    if "--photo" in sys.argv[1:]:
        held.append(photograph())
    print("all claims hold" if all(held) else "a claim FAILED")
    return int(not all(held))


if __name__ == "__main__":
    sys.exit(main())
