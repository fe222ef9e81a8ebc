"""The Gaussian conditional p(x | z) of a posterior, given a scale z_c for every clique: what Gibbs, MAP and starts use.

Given z the posterior is N(mu, Q^-1) with Q = W diag(lambda) W^T + diag(epsilon + 1/sigma^2), where lambda_c is the
clique precision that z_c stands for and W^T x are the filter responses. Either z is drawn from p(z | x)
(`Conditional`), or lambda is its expectation given x (`reweighted_means`). Linear systems are solved for x - y.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from denoiser.exp2 import LOG2E, exp2
from denoiser.gsm import GSM, table_precision
from denoiser.jit import kernel
from denoiser.posterior import Posterior
from denoiser.random_fields import normal_fields, uniform_fields
from denoiser.stencil import Stencil

_BLOCK = 128  # cliques whose cumulative weights are held at a time


@kernel(fastmath=True)
def _draw_precisions(responses, width, extents, weights, precisions, uniforms, out):  # type: ignore[no-untyped-def]
    """out[f, clique] = precision * s_z with z drawn from its conditional; returns -sum log phi(r).

    P(z = j | r) is proportional to alpha_j sqrt(s_j) exp(-precision s_j r^2 / 2); the sum of these weights is
    phi(r) itself, so the prior energy comes for free. `weights` holds alpha_j N(0; 0, 1/(precision s_j)).
    """
    energy = 0.0
    count = weights.shape[1]
    cumulative = np.empty((count, _BLOCK), np.float32)
    total = np.empty(_BLOCK, np.float32)
    out[:] = 0
    for f in range(len(extents)):
        for row in range(extents[f, 0]):
            for begin in range(0, extents[f, 1], _BLOCK):
                size = min(_BLOCK, extents[f, 1] - begin)
                start = row * width + begin
                r = responses[f, start : start + size]
                u = uniforms[f, start : start + size]
                chosen = out[f, start : start + size]
                total[:] = 0
                for j in range(count):
                    exponent = np.float32(-0.5 * LOG2E) * precisions[f, j]
                    weight = weights[f, j]
                    line = cumulative[j]
                    for i in range(size):
                        total[i] += weight * exp2(exponent * r[i] * r[i])
                        line[i] = total[i]
                for i in range(size):
                    energy -= np.log(total[i])
                    chosen[i] = precisions[f, 0]
                for j in range(1, count):
                    below = cumulative[j - 1]
                    precision = precisions[f, j]
                    for i in range(size):
                        chosen[i] = precision if below[i] <= u[i] * total[i] else chosen[i]
    return energy


@kernel()
def _expected_precisions(tables, responses, width, extents, out):  # type: ignore[no-untyped-def]
    """out[f, clique] = E[precision * s_z | response]; 0 where there is no clique."""
    for f in range(len(extents)):
        for i in range(responses.shape[1]):
            there = i < extents[f, 0] * width and i % width < extents[f, 1]
            out[f, i] = table_precision(tables[f], np.float32(responses[f, i])) if there else 0


def _components(experts: tuple[GSM, ...]) -> tuple[np.ndarray, np.ndarray]:
    """(alpha_j N(0; 0, 1/p_j), p_j) of all experts, shape (experts, J); shorter mixtures are filled with weight 0."""
    longest = max(len(e.weights) for e in experts)
    peaks, precisions = np.zeros((2, len(experts), longest))
    for f, e in enumerate(experts):
        count = len(e.weights)
        peaks[f, :count] = e.weights * np.sqrt(e.precisions / (2 * np.pi))
        precisions[f] = np.pad(e.precisions, (0, longest - count), mode="edge")
    return peaks.astype(np.float32), precisions.astype(np.float32)


def _solve(
    stencil: Stencil,
    precisions: np.ndarray,
    constant: np.ndarray,
    b: np.ndarray,
    x: np.ndarray,
    tolerance: float,
    scratch: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    """`stencil.solve`, or a FloatingPointError that says why there is no solution."""
    if stencil.solve(precisions, constant, b, x, tolerance, scratch) < 0:
        raise FloatingPointError(
            f"the linear solver did not reach a residual of {tolerance:g}: "
            "the tolerance is too small, or the picture's values are absurd"
        )


class Conditional:
    """p(x | z) on a posterior, with z drawn given an image, and the scratch space to solve for its mean and draws.

    tolerance: residual of the solver, relative to that of a draw's noise.
    opposite: with the random numbers turned round, -n for a normal and 1 - u for a uniform one. Two chains, one of them
    opposite, err in opposite directions where they can.
    Images are flat float32 arrays, shape (pixels,), on the padded field.
    """

    def __init__(
        self, posterior: Posterior, rng: np.random.Generator, tolerance: float, opposite: bool = False
    ) -> None:
        self.posterior, self.rng, self.tolerance, self.opposite = posterior, rng, tolerance, opposite
        prior, stencil = posterior.prior, posterior.stencil
        self._weights, self._precisions = _components(prior.experts)
        self.noisy = posterior.noisy.astype(np.float32).ravel()
        self._noisy_responses = stencil.responses(self.noisy)
        self._constant = (posterior.noise_precision + prior.epsilon).astype(np.float32).ravel()  # one value a pixel
        self._drawn = np.empty(stencil.cliques, np.float32)  # lambda: the clique precisions that z stands for
        self._scratch = stencil.workspace()

    def draw_scales(self, x: np.ndarray) -> float:
        """Draw z given the image x; returns -sum log phi of all cliques of x, which comes with it."""
        posterior, stencil = self.posterior, self.posterior.stencil
        uniforms = uniform_fields(self.rng, (len(self._drawn), *posterior.shape), posterior.origin)
        if self.opposite:
            np.subtract(1, uniforms, out=uniforms)
        energy = _draw_precisions(
            stencil.responses(x),
            posterior.shape[1],
            stencil.extents,
            self._weights,
            self._precisions,
            uniforms.reshape(self._drawn.shape),
            self._drawn,
        )
        return float(energy)

    def solve_mean(self, shift: np.ndarray) -> np.ndarray:
        """y + shift = E[x | z]; `shift` is the solver's start."""
        return self._solve_shift(-self._drawn * self._noisy_responses, self._to_zero(), shift)

    def draw_image(self, shift: np.ndarray, overrelaxation: float = 0, x: np.ndarray | None = None) -> np.ndarray:
        """y + shift = a draw of x given z; `shift` is the solver's start.

        overrelaxation: a in [0, 1). A draw is mu - a (x - mu) + sqrt(1 - a^2) d with d from N(0, Q^-1) and x the image
        so far, which is needed if a > 0: it leaves N(mu, Q^-1) as it is (Adler 1981), and errors of mean cancel.
        Q (draw - y) = W (sqrt(1 - a^2) sqrt(lambda) e - lambda W^T (y + a x)) + sqrt(1 - a^2) sqrt(c) e' - a c (x - y)
        - (1 + a) epsilon y with c = 1/sigma^2 + epsilon.
        """
        pull, b = -self._drawn * self._noisy_responses, self._to_zero()
        cliques, pixels = self._clique_noise(), self._pixel_noise()
        if overrelaxation and x is not None:
            a, rest = np.float32(overrelaxation), np.float32(np.sqrt(1 - overrelaxation**2))
            pull -= a * self._drawn * self.posterior.stencil.responses(x)
            b += a * (b - self._constant * (x - self.noisy))
            cliques, pixels = rest * cliques, rest * pixels
        return self._solve_shift(pull + cliques, b + pixels, shift)

    def _to_zero(self) -> np.ndarray:
        return np.float32(-self.posterior.prior.epsilon) * self.noisy

    def _solve_shift(self, pull: np.ndarray, b: np.ndarray, shift: np.ndarray) -> np.ndarray:
        """y + shift, where Q shift = W pull + b."""
        self._solve(self.posterior.stencil.adjoint(pull, b), shift)
        return self.noisy + shift

    def solve_noise(self) -> np.ndarray:
        """x - E[x | z] for a draw of x given z."""
        deviation = np.zeros(self.posterior.size, np.float32)
        self._solve(self.posterior.stencil.adjoint(self._clique_noise(), self._pixel_noise()), deviation)
        return deviation

    def _clique_noise(self) -> np.ndarray:
        return np.sqrt(self._drawn) * self._normals(len(self._drawn)).reshape(self._drawn.shape)

    def _pixel_noise(self) -> np.ndarray:
        return np.sqrt(self._constant) * self._normals(1).ravel()

    def _normals(self, count: int) -> np.ndarray:
        normals = normal_fields(self.rng, (count, *self.posterior.shape), self.posterior.origin)
        return np.negative(normals, out=normals) if self.opposite else normals

    def _solve(self, b: np.ndarray, x: np.ndarray) -> None:
        _solve(self.posterior.stencil, self._drawn, self._constant, b, x, self.tolerance, self._scratch)


def reweighted_means(
    stencil: Stencil,
    posterior: Posterior,
    tables: Iterable[np.ndarray],
    tolerance: float,
    x: np.ndarray | None = None,
) -> Iterator[np.ndarray]:
    """From the flat image x (default: the noisy one), yield the next image of IRLS for each set of score tables.

    stencil: `posterior.stencil`, or `posterior.exact_stencil` to compute in float64.
    """
    prior, shape = posterior.prior, posterior.shape
    noisy: np.ndarray = posterior.noisy.astype(stencil.dtype).ravel()
    shift = np.zeros(stencil.size, stencil.dtype) if x is None else x - noisy  # the unknown
    noisy_responses = stencil.responses(noisy)
    precisions: np.ndarray = np.empty(stencil.cliques, stencil.dtype)
    constant: np.ndarray = (posterior.noise_precision.ravel() + prior.epsilon).astype(stencil.dtype)
    scratch = stencil.workspace()
    for table in tables:
        responses = stencil.responses(noisy + shift)
        _expected_precisions(table, responses, shape[1], stencil.extents, precisions)
        b = stencil.adjoint(-precisions * noisy_responses, noisy.dtype.type(-prior.epsilon) * noisy)
        _solve(stencil, precisions, constant, b, shift, tolerance, scratch)
        yield noisy + shift
