"""The ``runnel`` command: parse the command line and run a subcommand."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence

from runnel.cli import bench, completion, demo, doctor, ops_table, profile, run
from runnel.core import dtype_info
from runnel.core.errors import RunnelError

PARTS = {
    "run": run,
    "demo": demo,
    "doctor": doctor,
    "profile": profile,
    "bench": bench,
    "ops": ops_table,
    "completion": completion,
}


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    command = argparse.ArgumentParser(
        "runnel",
        description="A deep-learning framework for CPUs, written entirely in Python.",
        epilog=_examples(
            [*(module.EXAMPLES[0] for module in PARTS.values()), ("runnel demo --help", "more of a part")]
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("--version", action="version", version=f"runnel {dtype_info.__version__}")
    command.set_defaults(parser=command)
    parts = command.add_subparsers(dest="part", required=True, metavar="|".join(PARTS))
    for name, module in PARTS.items():
        summary = (module.__doc__ or "").splitlines()[0].partition(": ")[2]
        module.add_arguments(
            parts.add_parser(
                name,
                help=summary,
                description=summary,
                epilog=_examples(module.EXAMPLES),
                formatter_class=argparse.RawDescriptionHelpFormatter,
            )
        )
    return command


def _examples(examples: Iterable[tuple[str, str]]) -> str:
    """Return commands, each under its description."""
    return "\n".join(["examples:", *(f"  # {what}\n  {example}" for example, what in examples)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    chosen = parser().parse_args(arguments)
    try:
        status: int = PARTS[chosen.part].run(chosen)
    except RunnelError as error:
        print(f"runnel: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("runnel: interrupted", file=sys.stderr)
        return 130
    return status
