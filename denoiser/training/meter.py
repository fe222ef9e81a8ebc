"""The noise meter: a small network that says how strong the noise of every 8x8 block is. Learning, and its ONNX file.

    python -m denoiser.training.meter --photos FOLDER... --minutes 30 --out noise.onnx

Convolutions on the picture's 2x2 blocks, the logarithm of how much each of them finds, then convolutions at a quarter
and an eighth of the resolution. `denoiser.noise_meter` runs it.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from onnx import TensorProto, helper
from torch import nn
from torch.nn import functional as F

from denoiser.files import write_bytes
from denoiser.noise_meter import LAGS, LEAST
from denoiser.training.export import ORDER, Graph, model_bytes
from denoiser.training.loop import write_checkpoint
from denoiser.training.meter_samples import Square, Squares
from denoiser.training.network import CENTRE, Block
from denoiser.training.photographs import Photographs, find

UNIT = 16.0  # grey levels that become 1 inside
CHANNELS = (24, 32, 48, 64)
_SMALL = 0.02  # added before the logarithm
_DIM = 0.1  # of brightness beside the logarithms
_OUT = 6 + 6 + 3 * 2 * len(LAGS)


class _Differences(nn.Conv2d):
    """A convolution of 2x2 blocks of pixels that does not see the brightness of a plane: its weights sum to 0."""

    def kernel(self) -> torch.Tensor:
        """The weights that are used."""
        planes = self.weight.unflatten(1, (3, 4))
        return (planes - planes.mean(dim=(2, 3, 4), keepdim=True)).flatten(1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(N, 12, h, w) -> (N, channels, h, w)."""
        return F.conv2d(x, self.kernel(), self.bias, padding=1)


class Meter(nn.Module):
    """Opponent planes (N, 3, height, width), multiples of 8, in grey levels -> (N, 30, height / 8, width / 8).

    log of sqrt(sigma^2 + LEAST^2) of the three planes, then of red, green and blue; the log of the standard deviation
    of the error of each of these; the correlation of each plane at `LAGS` along rows, then along columns.
    """

    def __init__(self) -> None:
        super().__init__()
        first, second, third, fourth = CHANNELS
        self.enter = _Differences(12, first, 3, padding=1)
        self.filters = nn.Conv2d(first, second, 3, padding=1)
        self.quarter = nn.Conv2d(second + 3, third, 3, padding=1)
        self.quarter_blocks = nn.Sequential(Block(third))
        self.eighth = nn.Conv2d(third, fourth, 2, stride=2)
        self.eighth_blocks = nn.Sequential(Block(fourth), Block(fourth))
        self.head = nn.Conv2d(fourth, _OUT, 1)
        nn.init.zeros_(self.head.bias)
        self.register_buffer("centre", torch.tensor(CENTRE).reshape(1, 3, 1, 1), persistent=False)

    def forward(self, planes: torch.Tensor) -> torch.Tensor:
        """As the class says."""
        inside = ((planes - self.centre) / UNIT).contiguous(memory_format=torch.channels_last)
        found = F.avg_pool2d(self.filters(F.relu(self.enter(F.pixel_unshuffle(inside, 2)))).abs(), 2)
        seen = torch.cat([torch.log(found + _SMALL), F.avg_pool2d(inside, 4) * _DIM], dim=1)
        x = self.quarter_blocks(F.relu(self.quarter(seen)))
        return self.head(F.relu(self.eighth_blocks(F.relu(self.eighth(x)))))


def loss(said: torch.Tensor, truth: Square) -> torch.Tensor:
    """Gaussian likelihood of the logarithm of the level, robust far out, and squares of the correlations' errors."""
    variance, correlation, counts = (torch.from_numpy(a) for a in truth[1:])
    error = said[:, :6] - 0.5 * torch.log(variance + LEAST**2)
    spread = said[:, 6:12].clamp(-4, 2)
    ratio = error / spread.exp()
    likelihood = spread + torch.where(ratio.abs() < 3, 0.5 * ratio**2, 3 * ratio.abs() - 4.5)
    weight = (counts * variance / (variance + 0.5))[:, :3]  # a correlation of nothing says nothing
    far = (said[:, 12:].unflatten(1, (3, -1)) - correlation[..., None, None]).square().mean(dim=2)
    return (counts * likelihood).sum() / counts.sum() + 20 * (weight * far).sum() / weight.sum().clamp(min=1)


def to_onnx(meter: Meter) -> bytes:
    """The graph of `Meter`: input `planes` (n, 3, height, width), output `said`."""
    g = Graph(meter)
    with torch.no_grad():
        meter.enter.weight.copy_(meter.enter.kernel())
    centred = g.add("Sub", "planes", g.constant(np.reshape(CENTRE, (1, 3, 1, 1))))
    inside = g.add("Div", centred, g.constant(UNIT))
    blocks = g.add("SpaceToDepth", inside, blocksize=2)
    found = g.add("Abs", g.convolution(g.add("Relu", g.convolution(blocks, "enter", ORDER)), "filters"))
    pooled = g.add("AveragePool", found, kernel_shape=[2, 2], strides=[2, 2])
    logarithm = g.add("Log", g.add("Add", pooled, g.constant(_SMALL)))
    means = g.add("AveragePool", inside, kernel_shape=[4, 4], strides=[4, 4])
    seen = g.add("Concat", logarithm, g.add("Mul", means, g.constant(_DIM)), axis=1)
    x = g.blocks(g.add("Relu", g.convolution(seen, "quarter")), "quarter_blocks")
    x = g.blocks(g.add("Relu", g.convolution(x, "eighth")), "eighth_blocks")
    last = g.convolution(g.add("Relu", x), "head")
    g.add("Identity", last, name="said")
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (
            ("planes", ["n", 3, "height", "width"]),
            ("said", ["n", _OUT, "rows", "columns"]),
        )
    ]
    return model_bytes(g, ends[:1], ends[1:], {"format": "denoiser-noise-meter"})


def multiplications() -> float:
    """Multiplications a pixel."""
    a, b, c, d = CHANNELS
    return 9 * (12 * a + a * b) / 4 + 9 * (b * c + 2 * c * c) / 16 + (4 * c * d + 36 * d * d + d * _OUT) / 64


def train(squares: Squares, minutes: float, checkpoint: Path, batch: int = 10, rate: float = 2e-3) -> tuple[Meter, int]:
    """Learn for so many minutes, over all resumptions; returns the average of the last weights, and the steps."""
    torch.manual_seed(0)
    meter, average = Meter(), Meter()
    optimiser = torch.optim.AdamW(meter.parameters(), lr=rate, weight_decay=1e-4)
    step, spent = 0, 0.0
    average.load_state_dict(meter.state_dict())
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        for name, part in (("meter", meter), ("average", average), ("optimiser", optimiser)):
            part.load_state_dict(saved[name])
        step, spent = saved["step"], saved["spent"]
    begun, told, losses = time.monotonic() - spent, 0.0, []
    while (done := (time.monotonic() - begun) / (60 * minutes)) < 1:
        for group in optimiser.param_groups:
            group["lr"] = rate * min((step + 1) / 200, 1) * (0.5 + 0.5 * math.cos(math.pi * done))
        truth = squares.batch(batch, fresh=batch if len(squares.bank) < 20 * batch else batch // 2)
        value = loss(meter(torch.from_numpy(truth.noisy)), truth)
        optimiser.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(meter.parameters(), 5.0)
        optimiser.step()
        step += 1
        keep = min(0.998, step / (step + 10))
        with torch.no_grad():
            for mean, new in zip(average.parameters(), meter.parameters(), strict=True):
                mean.lerp_(new, 1 - keep)
        losses.append(float(value.detach()))
        if time.monotonic() - told > 30:
            told = time.monotonic()
            print(f"step {step}, {100 * done:.0f} %, loss {np.mean(losses[-200:]):.3f}", flush=True)
            write_checkpoint(
                {
                    "meter": meter.state_dict(), "average": average.state_dict(), "optimiser": optimiser.state_dict(),
                    "step": step, "spent": time.monotonic() - begun,
                },
                checkpoint,
            )  # fmt: skip
    return average, step


def main() -> None:
    """Learn, and write the model with its card."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, nargs="+", required=True, metavar="FOLDER")
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="MODEL")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    files = find(arguments.photos)
    squares = Squares(Photographs(files, smallest=136), np.random.default_rng(time.time_ns()))
    meter, steps = train(squares, arguments.minutes, arguments.out.with_suffix(".pt"))
    card: dict[str, Any] = {
        "format": "denoiser-noise-meter-card",
        "made": time.strftime("%Y-%m-%d", time.gmtime()),
        "recipe": {"minutes": arguments.minutes, "steps": steps, "batch": 10, "size": 128, "rate": 2e-3},
        "multiplications_a_pixel": round(multiplications()),
        "photographs": len(files),
        "credits": "the photographs of the learned field's card",
    }
    write_bytes(arguments.out, to_onnx(meter))
    write_bytes(arguments.out.with_suffix(".json"), (json.dumps(card, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
