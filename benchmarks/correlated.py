"""A likelihood that knows how the noise is correlated, against a white one with a larger sigma (docs/noise.md).

    python benchmarks/correlated.py FOLDER [--measured] [--every N] [--crop N] [--samples N]

FOLDER has pictures NAME_noisy.png and NAME_clean.png. Level and autocorrelation of the noise of each plane are taken
from the truth, or measured in the noisy picture. The correlated likelihood is

    -log p(y | x) = |g * (y - x)|^2 / (2 sigma^2)

with a small stencil g that whitens the noise, fitted by Whittle's likelihood; in the Gaussian solver it is one more
filter, of fixed precision.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from denoiser import images
from denoiser.colour import GAINS, std_to_channels, to_channels, to_planes
from denoiser.metrics import coverage, psnr
from denoiser.noise import PlaneNoise, estimate_noise
from denoiser.posterior import Posterior
from denoiser.priors import FilterBank, Prior, load_prior
from denoiser.samplers import make_sampler
from denoiser.samplers.gaussian import _components, _draw_precisions, _solve
from denoiser.stencil import Stencil

BURN_IN, PADDING, LAGS, GRID = 12, 4, 5, 32


def autocorrelation(noise: np.ndarray) -> np.ndarray:
    """At 0 to LAGS rows and columns apart."""
    noise = noise - noise.mean()
    height, width = noise.shape
    lags = range(LAGS + 1)
    found = [[(noise[r:, c:] * noise[: height - r, : width - c]).mean() for c in lags] for r in lags]
    return np.array(found) / noise.var()


def whitening(rho: np.ndarray, side: int) -> np.ndarray:
    """The stencil (side, side) whose response to the noise is as white, and of variance 1, as it can be made."""
    lags = np.arange(-LAGS, LAGS + 1)
    taper = np.sqrt(np.clip(1 - np.hypot(*np.meshgrid(lags, lags)) / (LAGS + 1.5), 0, 1))
    waves = np.exp(-2j * np.pi * np.outer(np.arange(GRID), lags) / GRID)
    power = (waves @ (rho[np.abs(lags)][:, np.abs(lags)] * taper) @ waves.T).real
    power = np.maximum(power, 0.003 * power.max())
    power /= power.mean()
    waves = np.exp(-2j * np.pi * np.outer(np.arange(GRID), np.arange(side)) / GRID)

    def whittle(taps: np.ndarray) -> tuple[float, np.ndarray]:
        response = waves @ taps.reshape(side, side) @ waves.T
        square = np.abs(response) ** 2 + 1e-12
        slope = waves.T @ ((power - 1 / square) * response.conj() / GRID**2) @ waves
        return 0.5 * float((square * power - np.log(square)).mean()), slope.real.ravel()

    first = 1e-3 * np.random.default_rng(0).standard_normal((side, side))
    first[side // 2, side // 2] += 1
    return minimize(whittle, first.ravel(), jac=True, method="L-BFGS-B").x.reshape(side, side)


def correlated(prior: Prior, noisy: np.ndarray, sigma: float, stencil: np.ndarray, samples: int):
    """Mean and standard deviation under the correlated likelihood, by Gibbs sampling."""
    rng = np.random.default_rng(0)
    y = np.pad(noisy, PADDING, mode="symmetric")
    shape, count = y.shape, len(prior.filters)
    filters = Stencil(FilterBank("correlated", (*prior.filters, stencil)), shape)
    y = y.astype(np.float32).ravel()
    weights, components = _components(prior.experts)
    responses = filters.responses(y)
    responses[count] = 0  # the likelihood pulls towards y, which is where the solver's unknown is 0
    precisions = np.zeros(filters.cliques, np.float32)
    rows, columns = filters.extents[count]
    precisions[count].reshape(shape)[:rows, :columns] = sigma**-2
    constant = np.full(y.size, 1e-5, np.float32)
    scratch, shift, x = filters.workspace(), np.zeros_like(y), y
    drawn = np.empty((count, y.size), np.float32)
    sums = np.zeros((2, y.size))
    for sweep in range(BURN_IN + samples):
        uniforms = rng.random(drawn.shape, dtype=np.float32)
        seen = filters.responses(x)[:count]
        _draw_precisions(seen, shape[1], filters.extents[:count], weights, components, uniforms, drawn)
        precisions[:count] = drawn
        pull = -precisions * responses + np.sqrt(precisions) * rng.standard_normal(precisions.shape, dtype=np.float32)
        b = np.sqrt(constant) * rng.standard_normal(y.size, dtype=np.float32)
        _solve(filters, precisions, constant, filters.adjoint(pull, b), shift, 1e-3, scratch)
        x = y + shift
        if sweep >= BURN_IN:
            sums += x, x.astype(float) ** 2
    mean, square = sums / samples
    std = np.sqrt(np.maximum(square - mean**2, 0) * samples / (samples - 1))
    inside = np.s_[PADDING:-PADDING, PADDING:-PADDING]
    return mean.reshape(shape)[inside], std.reshape(shape)[inside]


def white(prior: Prior, noisy: np.ndarray, sigma: float, samples: int):
    """The same under the white likelihood."""
    posterior = Posterior(prior, noisy, sigma)
    gibbs = make_sampler("gibbs", {"samples": samples, "burn_in": BURN_IN})
    *_, last = gibbs.estimates(posterior, np.random.default_rng(0))
    return posterior.crop(last.mean), posterior.crop(last.std)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--measured", action="store_true")
    parser.add_argument("--every", type=int, default=3)
    parser.add_argument("--crop", type=int, default=128)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--prior", default="pairwise")
    arguments = parser.parse_args()
    prior = load_prior(arguments.prior)
    rows: dict[str, list[tuple[float, float, float]]] = {}
    for file in sorted(arguments.folder.glob("*_noisy.png"))[:: arguments.every]:
        pair = file, file.with_name(file.name.replace("_noisy", "_clean"))
        noisy, clean = (images.read(path).pixels.astype(float) for path in pair)
        noise = to_planes(noisy - clean)
        rhos, sigmas = [autocorrelation(plane) for plane in noise], noise.std(axis=(1, 2))
        if arguments.measured:
            found = estimate_noise(noisy, -1)
            rhos = [np.pad(p.correlation, (0, LAGS + 1 - len(p.correlation))) for p in found.planes]
            sigmas = np.sqrt((found.plane_maps(noisy) ** 2).mean(axis=(1, 2)))
        top, left = ((length - arguments.crop) // 2 for length in noisy.shape[:2])
        part = np.s_[top : top + arguments.crop, left : left + arguments.crop]
        planes, truth = to_planes(noisy[part]), clean[part]
        areas = [PlaneNoise((0.0,), (1.0,), tuple(map(tuple, rho.tolist()))).area for rho in rhos]
        ways = {f"white, sigma * area^{power}": power for power in (0, 0.25, 0.3, 0.35, 0.5)}
        for name in (*ways, "correlated, 3x3", "correlated, 5x5"):
            answers = []
            for plane, sigma, rho, area, gain in zip(planes, sigmas, rhos, areas, GAINS, strict=True):
                if name in ways:
                    drawn = white(prior, plane * gain, sigma * gain * area ** ways[name], arguments.samples)
                else:
                    stencil = whitening(rho, int(name[-1]))
                    drawn = correlated(prior, plane * gain, sigma * gain, stencil, arguments.samples)
                answers.append((drawn[0] / gain, drawn[1] / gain))
            mean = to_channels(np.stack([a[0] for a in answers]))
            std = std_to_channels(np.stack([a[1] for a in answers]))
            won = psnr(truth, mean, data_range=255) - psnr(truth, noisy[part], data_range=255)
            luminance = to_planes(truth)[0]
            before, after = ((p - luminance).var() for p in (planes[0], answers[0][0]))
            covers = coverage(truth, mean, std, count=arguments.samples)
            rows.setdefault(name, []).append((won, 10 * np.log10(before / after), covers))
        print(file.stem, *(f"{values[-1][0]:+.2f}" for values in rows.values()), flush=True)
    print("\n| likelihood | gain, dB | of brightness alone | 90 % covers |\n|---|---|---|---|")
    for name, values in rows.items():
        won, brightness, covers = np.mean(values, axis=0)
        print(f"| {name} | {won:+.2f} | {brightness:+.2f} | {covers:.1%} |")


if __name__ == "__main__":
    main()
