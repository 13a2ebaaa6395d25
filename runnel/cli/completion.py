"""``runnel completion``: print a script for shell completion."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

EXAMPLES = (
    ("runnel completion bash >> ~/.bashrc", "complete words in bash"),
    ('runnel completion zsh > "${fpath[1]}/_runnel"', "complete words in zsh, in a folder of $fpath"),
    ("runnel completion fish > ~/.config/fish/completions/runnel.fish", "complete words in fish"),
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("shell", choices=sorted(SHELLS), help="which shell")


def run(arguments: argparse.Namespace) -> int:
    print(SHELLS[arguments.shell](list(commands(arguments.parser))))
    return 0


class Word(NamedTuple):
    """An option, or with an empty name a positional argument."""

    name: str
    help: str
    choices: tuple[str, ...]
    takes_value: bool


class Command(NamedTuple):
    """A subcommand and its words."""

    name: str
    help: str
    words: tuple[Word, ...]

    @property
    def options(self) -> list[Word]:
        return [word for word in self.words if word.name]

    @property
    def takes_files(self) -> bool:
        """True if a positional argument can be anything, such as a file."""
        return any(not word.name and not word.choices for word in self.words)

    @property
    def choices(self) -> list[str]:
        """Values of positional arguments."""
        return [choice for word in self.words if not word.name for choice in word.choices]


def commands(parser: argparse.ArgumentParser) -> Iterator[Command]:
    """Yield the commands of a parser."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, part in action.choices.items():
                yield Command(name, helps.get(name, ""), tuple(_words(part)))


def _words(parser: argparse.ArgumentParser) -> Iterator[Word]:
    for action in parser._actions:
        takes_value = action.nargs != 0
        choices = tuple(map(str, action.choices or ()))
        for name in [option for option in action.option_strings if option.startswith("--")] or [""]:
            yield Word(name, (action.help or "").replace("%%", "%"), choices, takes_value)


def _bash(listed: list[Command]) -> str:
    cases = []
    for command in listed:
        values = [
            f"        {command.name},{word.name}) {_offering(word.choices)}; return ;;"
            for word in command.options
            if word.choices
        ]
        files = "|".join(f"{command.name},{w.name}" for w in command.options if w.takes_value and not w.choices)
        cases += values + ([f'        {files}) COMPREPLY=($(compgen -f -- "$word")); return ;;'] if files else [])
    words = [
        f'        {command.name}) words="{" ".join([*(w.name for w in command.options), *command.choices])}" ;;'
        for command in listed
    ]
    return "\n".join(
        [
            "_runnel() {",
            '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words=""',
            '    if [ "$COMP_CWORD" -eq 1 ]; then',
            f"        {_offering([*(c.name for c in listed), '--help', '--version'])}; return",
            "    fi",
            '    case "${COMP_WORDS[1]},$before" in',
            *cases,
            "    esac",
            '    case "${COMP_WORDS[1]}" in',
            *words,
            "    esac",
            '    COMPREPLY=($(compgen -W "$words" -- "$word"))',
            '    case "$word" in -*) ;; *) COMPREPLY+=($(compgen -f -- "$word")) ;; esac',
            "}",
            "complete -F _runnel runnel",
        ]
    )


def _offering(words: Iterable[str]) -> str:
    return f'COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$word"))'


def _zsh(listed: list[Command]) -> str:
    lines = ["#compdef runnel", "_runnel() {", "    local -a parts", "    parts=("]
    lines += [f"        {_quoted(f'{_plain(c.name)}:{_plain(c.help)}')}" for c in listed]
    lines += ["    )", "    if (( CURRENT == 2 )); then _describe command parts; return; fi", "    case $words[2] in"]
    for command in listed:
        specs = []
        for word in command.options:
            value = (
                f":value:({' '.join(word.choices)})" if word.choices else ":value:_files" if word.takes_value else ""
            )
            specs.append(_quoted(f"{word.name}[{_plain(word.help)}]{value}"))
        if command.choices:
            specs.append(_quoted(f"*:value:({' '.join(command.choices)})"))
        elif command.takes_files:
            specs.append(_quoted("*:file:_files"))
        lines.append(f"        {command.name}) _arguments {' '.join(specs)} ;;")
    return "\n".join([*lines, "    esac", "}", '_runnel "$@"'])


def _fish(listed: list[Command]) -> str:
    lines = []
    for command in listed:
        lines.append(f"complete -c runnel -n __fish_use_subcommand -f -a {command.name} -d {_quoted(command.help)}")
        where = f"complete -c runnel -n '__fish_seen_subcommand_from {command.name}'"
        for word in command.options:
            value = f" -x -a {_quoted(' '.join(word.choices))}" if word.choices else " -r" if word.takes_value else ""
            lines.append(f"{where} -l {word.name.removeprefix('--')} -d {_quoted(word.help)}{value}")
        if command.choices:
            lines.append(f"{where} -a {_quoted(' '.join(command.choices))}")
        if not command.takes_files:
            lines.append(f"{where} -f")
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Remove characters that have a meaning in zsh's specifications."""
    return "".join("" if letter in "[]:" else letter for letter in text)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


SHELLS: dict[str, Any] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
