"""The network: noisy planes and their noise map in, the potentials of a pairwise field out. In torch, for learning.

A U-Net of three scales on the picture's 2x2 blocks: half, quarter and eighth resolution, residual blocks of two 3x3
convolutions, nothing that looks at the whole picture. `export.to_onnx` writes the same graph for onnxruntime.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

#: What is subtracted from the planes (luminance, red-blue, green-magenta), and the grey levels that become 1 inside.
CENTRE = (220.0, 0.0, 0.0)
PLANE_UNIT, SIGMA_UNIT = 128.0, 64.0
#: Bounds of the heads' outputs: std / sigma in 0.002..20, see `denoiser.learned` for the edges' logits.
LOG_STD = (-6.0, 3.0)
LOGIT = (-5.0, 9.0)
#: About how far a plane's pixels are from their neighbourhood, in grey levels. Colours are soft: where the noise is
#: stronger than that, the mean is built anew; taking noise off errs in proportion to it. Brightness is not.
DETAIL = (float("inf"), 12.0, 9.0)


class Shape(NamedTuple):
    """Channels at the three scales, and residual blocks on the way down, at the bottom and on the way up."""

    half: int = 48
    quarter: int = 96
    eighth: int = 96
    blocks: tuple[int, int, int, int, int] = (1, 1, 2, 1, 2)
    head: int = 32


class Potentials(NamedTuple):
    """What the network says of every pixel of every plane, tensors of shape (N, 3, height, width)."""

    mean: torch.Tensor  # grey levels
    log_std: torch.Tensor  # log(std / sigma)
    right: torch.Tensor  # logit of the tie to the right neighbour
    down: torch.Tensor  # logit of the tie to the lower neighbour


class Block(nn.Module):
    """x + conv(relu(conv(x)))."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        nn.init.kaiming_normal_(self.first.weight, nonlinearity="relu")
        nn.init.normal_(self.second.weight, std=0.1 * (9 * channels) ** -0.5)  # a block starts near the identity

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(N, channels, h, w) -> the same."""
        return x + self.second(F.relu(self.first(x)))


class Network(nn.Module):
    """Planes and noise map of shape (N, 3, height, width), multiples of 8, in grey levels -> `Potentials`."""

    def __init__(self, shape: Shape | None = None) -> None:
        super().__init__()
        self.shape = shape = shape or Shape()
        half, quarter, eighth = shape.half, shape.quarter, shape.eighth
        chains = zip((half, quarter, eighth, quarter, half), shape.blocks, strict=True)
        stacks = [nn.Sequential(*(Block(channels) for _ in range(count))) for channels, count in chains]
        self.enter = nn.Conv2d(12 + 3, half, 3, padding=1)
        self.half_down, self.quarter_down, self.bottom, self.quarter_up, self.half_up = stacks
        self.to_quarter = nn.Conv2d(half, quarter, 2, stride=2)
        self.to_eighth = nn.Conv2d(quarter, eighth, 2, stride=2)
        self.from_eighth = nn.Conv2d(eighth, 4 * quarter, 1)
        self.from_quarter = nn.Conv2d(quarter, 4 * half, 1)
        self.noise = nn.Conv2d(half, 12, 3, padding=1)
        self.head = nn.Conv2d(half, shape.head, 3, padding=1)
        self.rest = nn.Conv2d(shape.head, 36, 1)
        self.register_buffer("detail", torch.tensor(DETAIL).reshape(1, 3, 1, 1), persistent=False)
        self.register_buffer("centre", torch.tensor(CENTRE).reshape(1, 3, 1, 1), persistent=False)
        nn.init.zeros_(self.noise.weight)
        nn.init.zeros_(self.rest.weight)

    def forward(self, planes: torch.Tensor, sigma: torch.Tensor, share: float = 1.0, half: bool = False) -> Potentials:
        """share: of the gradient of std and edges that reaches the trunk. half: compute in bfloat16 inside."""
        blocks = F.pixel_unshuffle((planes - self.centre) / PLANE_UNIT, 2)
        inside = torch.cat([blocks, F.avg_pool2d(sigma, 2) / SIGMA_UNIT], dim=1)
        fine = self.enter(inside.contiguous(memory_format=torch.channels_last))
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            fine = self.half_down(fine)
            middle = self.quarter_down(self.to_quarter(fine))
            coarse = self.bottom(self.to_eighth(middle))
            middle = self.quarter_up(middle + F.pixel_shuffle(self.from_eighth(coarse), 2))
            fine = self.half_up(fine + F.pixel_shuffle(self.from_quarter(middle), 2))
            noise = F.pixel_shuffle(self.noise(fine), 2).float()
            shared = fine if share == 1 else share * fine + (1 - share) * fine.detach()
            rest = F.pixel_shuffle(self.rest(F.relu(self.head(shared))), 2).float()
        log_std, right, down = rest.split(3, dim=1)
        ratio = (sigma / self.detail) ** 2
        taken = (planes - self.centre) * (ratio / (1 + ratio)) + sigma / (1 + ratio).sqrt() * noise
        return Potentials(planes - taken, log_std.clamp(*LOG_STD), right.clamp(*LOGIT), down.clamp(*LOGIT))


def multiplications(shape: Shape) -> float:
    """Multiplications a pixel."""
    half, quarter, eighth = shape.half, shape.quarter, shape.eighth
    a, b, c, d, e = (2 * 9 * count for count in shape.blocks)
    at_half = half * (9 * 15 + (a + e) * half + 9 * 12 + 9 * shape.head) + 36 * shape.head
    at_quarter = quarter * (4 * half + (b + d) * quarter + 4 * half)
    at_eighth = eighth * (4 * quarter + c * eighth + 4 * quarter)
    return at_half / 4 + at_quarter / 16 + at_eighth / 64


def receptive_field(shape: Shape) -> int:
    """How far, in pixels, an input can be from an output that it changes; pieces are aligned to 8 pixels."""
    a, b, c, d, e = (2 * count for count in shape.blocks)
    # A 3x3 convolution reaches one block further at its scale; going to a coarser scale and back stays in its block.
    at_half = 1 + a + e + 2  # enter, both stacks, the head (or noise); one more for safety of the split at the edge
    return 2 * at_half + 4 * (b + d) + 8 * c + 8  # and wherever in its block of 8 the pixel lies
