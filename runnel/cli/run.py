"""``runnel run``: run a script that imports torch or torchvision, with Runnel in their place."""

from __future__ import annotations

import argparse
import os
import sys

from runnel.compat.installation import FOLDER

EXAMPLES = (
    ("runnel run train.py --epochs 3", "run a script with its arguments, as python does"),
    ("runnel run -m package.train --epochs 3", "run a module"),
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="a module and its arguments")
    command.add_argument("script", nargs=argparse.REMAINDER, help="a script and its arguments")


def run(arguments: argparse.Namespace) -> int:
    """Become the Python process that runs the program, so its status and tracebacks are Python's."""
    program = ["-m", *arguments.module] if arguments.module else arguments.script
    if not program:
        print("runnel run: name a script, or a module after -m", file=sys.stderr)
        return 2
    path = os.pathsep.join(filter(None, [FOLDER, os.environ.get("PYTHONPATH")]))
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *program], os.environ | {"PYTHONPATH": path})
