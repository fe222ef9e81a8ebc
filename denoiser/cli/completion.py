"""`denoise completion`: a script for the shell, made by shtab from the parsers themselves."""

from __future__ import annotations

import argparse

from denoiser.cli import COMMANDS, make_parser

EXAMPLES = """\
examples:
  eval "$(denoise completion bash)"        for this session; put it into ~/.bashrc for all
  eval "$(denoise completion zsh)"         the same for zsh, in ~/.zshrc
  denoise completion fish | source         the same for fish"""

_ZSH = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"
_FILES = "complete -o bashdefault -o default -F _shtab_denoise denoise\n"  # where it knows nothing, names of files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The shell."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish", "tcsh"), help="the shell to write for")


def script(shell: str) -> str:
    """The completion script. zsh understands the one for bash, which completes names of files beside commands."""
    import shtab

    root = argparse.ArgumentParser("denoise", description="Bayesian image denoising", add_help=False)
    root.add_argument("--version", action="store_true", help="show the version and leave")
    for action in make_parser("run")._actions:  # what goes without naming the command
        if action.option_strings:
            root._add_action(action)
    commands = root.add_subparsers()
    for command, line in COMMANDS.items():
        commands.add_parser(command, parents=[make_parser(command)], add_help=False, help=line)
    if shell in ("fish", "tcsh"):
        return str(shtab.complete(root, shell))
    return (_ZSH if shell == "zsh" else "") + str(shtab.complete(root, "bash")) + _FILES


def run(arguments: argparse.Namespace) -> int:
    """Print it."""
    print(script(arguments.shell), end="")
    return 0
