"""`denoise models`: list the priors that come with the program."""

from __future__ import annotations

import argparse

from denoiser.learned import load_model
from denoiser.priors import available_priors, load_prior


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(arguments: argparse.Namespace) -> int:
    """Print a paragraph a prior."""
    model = load_model()
    count = model.card.get("photographs", "free")
    print(
        "learned: a pairwise Markov random field whose potentials a network reads off the noisy picture, in the "
        "average of four passes (learned-fast: one, learned-best: eight)\n"
        f"  learned from {count} photographs, credited in the card beside it\n  {model.path}"
    )
    for name, path in available_priors().items():
        prior = load_prior(path)
        print(f"{name}: {prior.description}\n  {prior.citation}\n  {path}")
    return 0
