"""What the network is to minimise: squared error, likelihood of the error that remains, pseudo-likelihood of the edges."""

from __future__ import annotations

import torch

from denoiser.training.network import Potentials

_FLOOR = 1.0  # grey levels: below this the squared error counts as if sigma were that


def mean_loss(out: Potentials, clean: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
    """Squared error over sigma: about the same for all noise levels, because it grows about like sigma."""
    level = sigma.mean(dim=(2, 3), keepdim=True) + _FLOOR
    return ((out.mean - clean) ** 2 / level).mean()


def std_loss(out: Potentials, clean: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
    """-log of a Gaussian at the error, of the predicted standard deviation; where there is noise at all."""
    there = sigma > 0
    std = _floored(out.log_std, sigma)
    error = (out.mean - clean).detach()
    return (0.5 * (error / std) ** 2 + std.log())[there].mean()


def edge_loss(out: Potentials, clean: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
    """-log p(u_d | its four neighbours) in the Gaussian pairwise field; the standard deviations are taken as given."""
    std = _floored(out.log_std.detach(), sigma)
    v = ((out.mean - clean).detach() / std).clamp(-8, 8)
    tie_right, own_right = ties(out.right[..., :-1])
    tie_down, own_down = ties(out.down[..., :-1, :])
    # u_d - u_d' in units of both standard deviations: t_e (u_d - u_d')^2 with t_e = tie / (s_d s_d')
    ratio_right = (std[..., 1:] / std[..., :-1]).clamp(0.05, 20)
    ratio_down = (std[..., 1:, :] / std[..., :-1, :]).clamp(0.05, 20)
    precision = torch.zeros_like(v)
    pull = torch.zeros_like(v)
    count = torch.zeros_like(v[:1, :1])
    alpha = torch.zeros_like(v)
    for tie, own, ratio, first, second in (
        (tie_right, own_right, ratio_right, (..., slice(None, -1)), (..., slice(1, None))),
        (tie_down, own_down, ratio_down, (..., slice(None, -1), slice(None)), (..., slice(1, None), slice(None))),
    ):
        precision[first] += tie / ratio  # s_d^2 t_e
        precision[second] += tie * ratio
        pull[first] += tie * v[second]  # s_d^2 t_e u_d' / s_d
        pull[second] += tie * v[first]
        alpha[first] += own
        alpha[second] += own
        count[first] += 1
        count[second] += 1
    precision = precision + alpha / count
    loss = 0.5 * precision * (v - pull / precision) ** 2 - 0.5 * precision.log()
    return loss[sigma > 0].mean()


def ties(logit: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Strength of an edge and of the site itself in a field of unit variance: see `denoiser.learned.ties`."""
    kappa = torch.sigmoid(logit)
    a, b = torch.ones_like(kappa), torch.sqrt(torch.sigmoid(-logit) * (1 + kappa))  # sqrt(1 - kappa^2), no cancelling
    for _ in range(4):  # the arithmetic-geometric mean: 2 K(kappa) / pi is its inverse
        a, b = 0.5 * (a + b), torch.sqrt(a * b)
    return 0.25 * kappa / a, torch.sigmoid(-logit) / a


def _floored(log_std: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
    """The standard deviation in grey levels, nowhere zero."""
    return log_std.exp() * sigma.clamp(min=1e-3)
