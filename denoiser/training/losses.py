"""What the network is to minimise: squared error, likelihood of the remaining error, pseudo-likelihood of the edges."""

from __future__ import annotations

import torch

from denoiser.training.network import Potentials

_FLOOR = 1.0  # grey levels: below this the squared error counts as if sigma were that
_OUTLIER = 8.0  # standard deviations that an error counts at most


def mean_loss(out: Potentials, clean: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
    """Squared error over sigma: about the same for all noise levels, because it grows about like sigma."""
    level = sigma.mean(dim=(2, 3), keepdim=True) + _FLOOR
    return ((out.mean - clean) ** 2 / level).mean()


def std_loss(out: Potentials, clean: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
    """-log of a Gaussian at the error, of the predicted standard deviation; where there is noise at all."""
    log_std = out.log_std + _floored(sigma).log()
    z = (out.mean - clean).detach() / log_std.exp()
    loss = 0.5 * (z**2).clamp(max=_OUTLIER**2) + log_std
    return loss[sigma > 0].mean()


def edge_loss(out: Potentials, clean: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
    """-log p(v_d | its four neighbours), v = error / std, in the Gaussian pairwise field; the std is taken as given."""
    std = out.log_std.detach().exp() * _floored(sigma)
    v = ((out.mean - clean).detach() / std).clamp(-_OUTLIER, _OUTLIER)
    precision, pull, own, count = (torch.zeros_like(v) for _ in range(4))
    edges = (
        (out.right[..., :-1], (..., slice(None, -1)), (..., slice(1, None))),
        (out.down[..., :-1, :], (..., slice(None, -1), slice(None)), (..., slice(1, None), slice(None))),
    )
    for logit, first, second in edges:
        tie, alone = ties(logit)
        for here, there in ((first, second), (second, first)):
            precision[here] += tie
            pull[here] += tie * v[there]
            own[here] += alone
            count[here] += 1
    precision = precision + own / count
    loss = 0.5 * precision * (v - pull / precision) ** 2 - 0.5 * precision.log()
    return loss[sigma > 0].mean()


def ties(logit: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Strength of an edge and of the site itself in a field of unit variance: see `denoiser.learned.ties`."""
    kappa = torch.sigmoid(logit)
    a, b = torch.ones_like(kappa), torch.sqrt(torch.sigmoid(-logit) * (1 + kappa))  # sqrt(1 - kappa^2), no cancelling
    for _ in range(4):  # the arithmetic-geometric mean: 2 K(kappa) / pi is its inverse
        a, b = 0.5 * (a + b), torch.sqrt(a * b)
    return 0.25 * kappa / a, torch.sigmoid(-logit) / a


def _floored(sigma: torch.Tensor) -> torch.Tensor:
    """The noise map without zeros."""
    return sigma.clamp(min=0.05)
