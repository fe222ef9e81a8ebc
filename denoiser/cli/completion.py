"""`denoise completion`: a script for the shell, made from the parsers themselves so that it cannot be out of date."""

from __future__ import annotations

import argparse
import shlex

from denoiser.cli import COMMANDS, make_parser

EXAMPLES = """\
examples:
  eval "$(denoise completion bash)"        for this session; put it into ~/.bashrc for all
  eval "$(denoise completion zsh)"         the same for zsh, in ~/.zshrc"""

_ZSH = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"
_SCRIPT = """\
_denoise() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" command=run words=""
    case "${{COMP_WORDS[1]}}" in
        {commands}) [ "$COMP_CWORD" -gt 1 ] && command="${{COMP_WORDS[1]}}" ;;
    esac
    case "$command $before" in
{values}
        *) case "$word" in
            -*) case "$command" in
{flags}
                esac ;;
            *) [ "$COMP_CWORD" -eq 1 ] && words={names} ;;
        esac ;;
    esac
    COMPREPLY=( $(compgen -W "$words" -- "$word") )
}}
complete -o bashdefault -o default -F _denoise denoise
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The shell."""
    parser.add_argument("shell", choices=("bash", "zsh"), help="the shell to write for")


def script() -> str:
    """The completion function for bash; zsh understands it too."""
    values, flags = [], []
    for command in COMMANDS:
        actions = make_parser(command)._actions
        known = [option for action in actions for option in action.option_strings]
        flags.append(f"                    {command}) words={shlex.quote(' '.join(known))} ;;")
        for action in actions:
            if action.choices:
                asked = "|".join(f'"{command} {option}"' for option in action.option_strings or [command])
                words = shlex.quote(" ".join(map(str, action.choices)))
                values.append(f"        {asked}) words={words} ;;")
    flags[0] = flags[0].replace("words='", "words='--version ")
    return _SCRIPT.format(
        commands="|".join(COMMANDS),
        names=shlex.quote(" ".join(COMMANDS)),
        values="\n".join(values),
        flags="\n".join(flags),
    )


def run(arguments: argparse.Namespace) -> int:
    """Print it."""
    print((_ZSH if arguments.shell == "zsh" else "") + script(), end="")
    return 0
