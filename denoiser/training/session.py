"""`denoise train` from folders to files: model.onnx, its card model.json, model.pt to resume from, model.png."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from denoiser.files import label, write_bytes
from denoiser.learned import _load, load_model
from denoiser.panels import new_figure
from denoiser.training.calibrate import calibrate
from denoiser.training.export import read_onnx, to_onnx
from denoiser.training.loop import Recipe, State, train
from denoiser.training.network import Shape, multiplications
from denoiser.training.photographs import Photographs, find
from denoiser.training.validate import Validation, squares

_HELD_BACK = 20  # every so manieth photograph is kept for validation when no folder is named for it
_CALIBRATED = 60  # pictures that the calibration looks at


def learn(
    photos: Sequence[Path],
    out: Path,
    recipe: Recipe,
    *,
    start: str | None = None,
    validate: Path | None = None,
    report: Callable[[dict[str, Any]], None] = lambda figures: None,
) -> dict[str, Any]:
    """Learn, or go on where a run that was stopped has left off, and write the files; returns the card.

    photos: folders of clean photographs. out: the ONNX file. start: "learned" or a model file to begin from.
    validate: a folder of other photographs; without it, every twentieth of `photos` is held back.
    report: called with a dictionary of figures, about every ten seconds.
    """
    if out.suffix != ".onnx":
        raise ValueError(f"{label(out)}: the name of a model ends with .onnx")
    files = find(photos)
    others = find([validate]) if validate is not None else files[::_HELD_BACK]
    if validate is None:
        files = [f for f in files if f not in others] or files
    photographs = Photographs(files, recipe.size)
    try:
        validation = Validation(others)
    except ValueError as error:
        raise ValueError(f"to validate on: {error}; name a folder of others: --validate") from None
    checkpoint = out.with_suffix(".pt")
    if checkpoint.exists():
        state = State.load(checkpoint)
    elif start is None:
        state = State.fresh(Shape())
    else:
        weights = read_onnx(load_model(start).path)
        state = State.fresh(weights.shape, weights.state_dict())
    state.save(checkpoint)  # a folder that takes no files says so now
    report({"peers": validation.peers(), "photographs": len(files), "resumed": state.seconds / 60})
    train(state, photographs, validation, recipe, checkpoint, report)
    write_bytes(out, to_onnx(state.average))
    return write_card(out, state, recipe, photos, len(files), others, start)


def write_card(
    out: Path,
    state: State,
    recipe: Recipe,
    photos: Sequence[Path],
    count: int,
    others: Sequence[Path],
    start: str | None = None,
) -> dict[str, Any]:
    """Calibrate the model that was written to `out` on `others`, and write its card and its curve beside it.

    photos: the folders it learned from, for their CREDITS.tsv; count: the photographs in them.
    """
    curve = state.curve
    card = {
        "format": "denoiser-learned-card",
        "version": 1,
        "made": time.strftime("%Y-%m-%d", time.gmtime()),
        "network": {**state.network.shape._asdict(), "multiplications_a_pixel": multiplications(state.network.shape)},
        "recipe": {**asdict(recipe), "steps": state.step, "spent_minutes": round(state.seconds / 60, 1)},
        "started_from": start,
        "photographs": count,
        "credits": [line for folder in photos for line in _credits(folder)],
        "validation": {**(curve[-1] if curve else {}), "nl_means": Validation(others).peers()},
    }
    write_bytes(out.with_suffix(".json"), b"{}\n")  # the model must be seen without a calibration
    _load.cache_clear()
    card["calibration"] = calibrate(load_model(out), squares(others, _CALIBRATED), recipe.colours, recipe.noise)
    write_bytes(out.with_suffix(".json"), (json.dumps(card, indent=1) + "\n").encode())
    _plot(curve, out.with_suffix(".png"))
    return card


def _credits(folder: Path) -> list[str]:
    """The lines of the CREDITS.tsv in a folder of photographs, if it has one."""
    file = folder / "CREDITS.tsv"
    return file.read_text(encoding="utf-8").splitlines() if file.is_file() else []


def _plot(curve: list[dict[str, Any]], path: Path) -> None:
    """PSNR by time as a PNG."""
    if not curve:
        return
    figure = new_figure((7, 4))
    axes = figure.add_subplot()
    minutes = [entry["minutes"] for entry in curve]
    for name in [key for key in curve[-1] if isinstance(curve[-1][key], float) and key not in ("minutes", "coverage")]:
        values = np.array([entry.get(name, np.nan) for entry in curve])
        axes.plot(minutes, values - values[0], marker=".", label=f"{name} ({values[-1]:.2f} dB)")
    axes.set(xlabel="minutes", ylabel="PSNR gained since the first validation, dB")
    axes.legend()
    figure.savefig(path, dpi=100)
