"""`denoise models`: list the priors that come with the program."""

from __future__ import annotations

import argparse

from denoiser.priors import available_priors, load_prior


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(arguments: argparse.Namespace) -> int:
    """Print a paragraph a prior."""
    for name, path in available_priors().items():
        prior = load_prior(path)
        print(f"{name}: {prior.description}\n  {prior.citation}\n  {path}")
    return 0
