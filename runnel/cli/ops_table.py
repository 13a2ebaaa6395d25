"""``runnel ops``: print the tables in which each op has a rule."""

from __future__ import annotations

import argparse
import json

from runnel.core.records import asdict
from runnel.ops import matrix

EXAMPLES = (
    ("runnel ops", "all ops, with the tables that have a rule for each"),
    ("runnel ops matmul softmax", "only these"),
    ('runnel ops --json | grep \'"vjp": "absent"\'', "ops without a gradient"),
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("names", nargs="*", metavar="OP", help="only these ops")
    command.add_argument("--json", action="store_true", help="one JSON object for each op")


def run(arguments: argparse.Namespace) -> int:
    rows = matrix.matrix()
    unknown = sorted(set(arguments.names) - {row.name for row in rows})
    if unknown:
        print(f"runnel ops: no op is called {', '.join(unknown)}")
        return 2
    if arguments.names:
        rows = [row for row in rows if row.name in arguments.names]
    if arguments.json:
        for row in rows:
            print(json.dumps(asdict(row)))
    else:
        print(matrix.as_text(rows))
    return 0
