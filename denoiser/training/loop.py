"""The training run: batches, steps, checkpoints, validation. It ends when its minutes are over, and can be killed."""

from __future__ import annotations

import copy
import io
import math
import time
import zipfile
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from denoiser.files import label, read_bytes, write_bytes
from denoiser.training.losses import edge_loss, mean_loss, std_loss
from denoiser.training.muon import Muon
from denoiser.training.network import Network, Potentials, Shape
from denoiser.training.noises import Batch, Noises
from denoiser.training.photographs import Photographs
from denoiser.training.validate import Validation

_WORKERS = 2  # threads that compute the gradient of a part of the batch each, without waiting for each other


@dataclass(frozen=True)
class Recipe:
    """How to learn."""

    minutes: float = 90.0  # of running, over all resumptions; the learning rate follows them
    colours: str = "both"  # of the pictures: "grey", "colour" or "both"
    noise: str = "all"  # that it learns to remove: "white" (Poisson too), "camera" (mostly) or "all"
    batch: int = 14  # crops a step
    size: int = 104  # pixels a side of a crop
    rate: float = 2e-3  # of Muon, after a short warm-up; then a cosine to zero
    decay: float = 0.9993  # of the weights' average, a step
    share: float = 0.2  # of the gradient of standard deviations and edges that reaches the trunk
    exact: float = 0.85  # part of the time after which float32 takes the place of bfloat16
    save_every: float = 60.0  # seconds
    validate_every: float = 300.0  # seconds
    seed: int = 0


@dataclass
class State:
    """Everything that a resumed run needs."""

    network: Network
    average: Network
    optimiser: torch.optim.Optimizer
    step: int = 0
    seconds: float = 0.0
    norm: float = 0.0  # running mean of the gradient's norm
    curve: list[dict[str, Any]] = field(default_factory=list)

    @staticmethod
    def fresh(shape: Shape, start: dict[str, torch.Tensor] | None = None) -> State:
        """Random weights, or those of `start`."""
        torch.manual_seed(0)
        network = Network(shape).to(memory_format=torch.channels_last)
        if start is not None:
            network.load_state_dict(start)
        return State(network, copy.deepcopy(network), Muon(network.parameters()))

    def save(self, path: Path) -> None:
        """So that `load` can go on from it."""
        content = {
            "shape": self.network.shape._asdict(),
            "network": self.network.state_dict(),
            "average": self.average.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "counts": (self.step, self.seconds, self.norm),
            "curve": self.curve,
        }
        write_checkpoint(content, path)

    @staticmethod
    def load(path: Path) -> State:
        """What `save` wrote; ValueError for anything else."""
        content = read_checkpoint(path)
        try:
            state = State.fresh(Shape(**content["shape"]), content["network"])
            state.average.load_state_dict(content["average"])
            state.optimiser.load_state_dict(content["optimiser"])
            state.step, state.seconds, state.norm = content["counts"]
        except (AttributeError, KeyError, RuntimeError, TypeError, ValueError):
            raise ValueError(f"{label(path)}: a checkpoint of another version of `denoise train`") from None
        state.curve = content["curve"]
        return state


def write_checkpoint(content: dict[str, Any], path: Path) -> None:
    """To a file, whole or not at all: a kill or a full disk leaves the old one."""
    data = io.BytesIO()
    torch.save(content, data)
    write_bytes(path, data.getvalue())


def read_checkpoint(path: Path) -> dict[str, Any]:
    """The contents of a checkpoint; ValueError for any other file."""
    data = io.BytesIO(read_bytes(path))
    try:
        if zipfile.ZipFile(data).testzip() is not None:  # torch does not look at the checksums
            raise ValueError("damaged")
        data.seek(0)
        content = torch.load(data, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises whatever its unpickler meets
        raise ValueError(f"{label(path)}: not a checkpoint of `denoise train`, or a damaged one") from error
    if not isinstance(content, dict) or {"shape", "network", "average", "optimiser", "counts", "curve"} - set(content):
        raise ValueError(f"{label(path)}: not a checkpoint of `denoise train`")
    return content


def train(
    state: State,
    photographs: Photographs,
    validation: Validation,
    recipe: Recipe,
    checkpoint: Path,
    report: Callable[[dict[str, Any]], None],
) -> None:
    """Go on until `recipe.minutes` have been spent.

    report: called with the figures of every validation, and often between.
    checkpoint: written every `recipe.save_every` seconds and at the end.
    """
    torch.set_num_threads(1)
    total = 60 * recipe.minutes
    noises = Noises(photographs, np.random.default_rng([recipe.seed, state.step]), recipe.colours, recipe.noise)
    last_save = last_validation = last_report = began = time.monotonic()
    before = state.seconds
    losses = np.zeros(3)
    with (
        ThreadPoolExecutor(_WORKERS, initializer=torch.set_num_threads, initargs=(1,)) as pool,
        closing(_ahead(lambda: noises.batch(recipe.batch, recipe.size))) as batches,
    ):
        while state.seconds < total:
            progress = state.seconds / total
            new = _step(state, next(batches), recipe, progress, pool)
            losses = new if not losses.any() else 0.99 * losses + 0.01 * new
            now = time.monotonic()
            state.seconds = before + now - began
            if now - last_validation > recipe.validate_every or state.seconds >= total:
                torch.set_num_threads(_WORKERS)
                figures = validation.measure(state.average)
                torch.set_num_threads(1)
                entry = {"minutes": state.seconds / 60, "step": state.step, "losses": losses.tolist(), **figures}
                state.curve.append(entry)
                report(entry)
                last_validation = time.monotonic()
            elif now - last_report > 10:
                report({"minutes": state.seconds / 60, "step": state.step, "losses": losses.tolist()})
                last_report = now
            if now - last_save > recipe.save_every:
                state.save(checkpoint)
                last_save = now
    state.save(checkpoint)


def _step(state: State, batch: Batch, recipe: Recipe, progress: float, pool: ThreadPoolExecutor) -> np.ndarray:
    """One step; the three losses."""
    parameters = list(state.network.parameters())
    half = progress < recipe.exact

    def part(first: int) -> tuple[tuple[torch.Tensor, ...], np.ndarray]:
        clean, noisy, sigma = (torch.from_numpy(a[first::_WORKERS]) for a in batch)
        out = state.network(noisy, sigma, recipe.share, half)
        few = max(len(clean) // 3, 1)  # edges are dear, and learn from fewer
        parts = (
            mean_loss(out, clean, sigma),
            std_loss(out, clean, sigma),
            edge_loss(Potentials(*(a[:few] for a in out)), clean[:few], sigma[:few]),
        )
        loss = parts[0] + 0.1 * parts[1] + 0.1 * parts[2]
        return torch.autograd.grad(loss, parameters), np.array([float(p.detach()) for p in parts])

    results = list(pool.map(part, range(_WORKERS)))
    for index, parameter in enumerate(parameters):
        parameter.grad = sum(grads[index] for grads, _ in results) / _WORKERS
    norm = float(torch.nn.utils.clip_grad_norm_(parameters, 1.5 * state.norm if state.step > 20 else 1e9))
    if not np.isfinite(norm):  # a step that cannot be taken
        return results[0][1] * 0
    state.norm = norm if state.step == 0 else 0.99 * state.norm + 0.01 * min(norm, 3 * state.norm)
    warm = min((state.step + 1) / 200, 1.0)
    for group in state.optimiser.param_groups:
        group["lr"] = recipe.rate * warm * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
    state.optimiser.step()
    state.step += 1
    keep = min(recipe.decay, state.step / (state.step + 10))
    with torch.no_grad():
        for mine, theirs in zip(state.average.parameters(), parameters, strict=True):
            mine.lerp_(theirs, 1 - keep)
    return np.mean([losses for _, losses in results], axis=0)


def _ahead(make: Callable[[], Batch]) -> Generator[Batch]:
    """Batches, of which the next is made in a thread while this one is used."""
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(make)
        while True:
            this = following.result()
            following = pool.submit(make)
            yield this
