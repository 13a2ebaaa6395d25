"""``runnel demo``: train a classifier of handwritten digits as one native program, and report the figures."""

from __future__ import annotations

import argparse
import json

from runnel.cli.training import RECIPES, Report, train
from runnel.core import switches
from runnel.core.records import asdict, replace
from runnel.data import digits, mnist
from runnel.train.progress import Progress

EXAMPLES = (
    ("runnel demo", "train on scikit-learn's digits, for a few seconds"),
    ("runnel demo --data mnist --epochs 3", "the same with MNIST, which is downloaded"),
    ("runnel demo --threads 1 --seed 7 --json", "on one thread; the figures as a line of JSON for programs"),
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--data", choices=sorted(RECIPES), default="digits", help="scikit-learn's digits, or MNIST")
    command.add_argument(
        "--data-dir", metavar="DIR", help="folder with MNIST's idx files; without it they are downloaded"
    )
    command.add_argument("--epochs", type=int, help="passes over the training examples")
    command.add_argument("--seed", type=int, default=0, help="of initial values, order of examples and dropout")
    command.add_argument("--threads", type=int, default=0, help="0: as many as the machine allows")
    command.add_argument("--json", action="store_true", help="end with the figures as one line of JSON")


def run(arguments: argparse.Namespace) -> int:
    data = mnist(arguments.data_dir) if arguments.data == "mnist" else digits()
    recipe = RECIPES[arguments.data]
    if arguments.epochs is not None:
        recipe = replace(recipe, epochs=max(arguments.epochs, 1))
    steps = recipe.epochs * (len(data.train_y) // recipe.batch)
    threads = arguments.threads or switches.num_threads.value
    with switches.override(num_threads=threads), Progress(f"Training on {data.name}", steps) as bar:
        report = train(data, recipe, arguments.seed, lambda note: bar.advance(1, note))
    print(as_text(report))
    if arguments.json:
        print(json.dumps(asdict(report)))
    return 0


def as_text(report: Report) -> str:
    """The figures for a reader."""
    rows = {
        "data": report.data,
        "parameters": f"{report.parameters:,}",
        "threads": str(report.threads),
        "time to first step": f"{report.first_step_s:.3f} s (trace, plan, {report.kernels_compiled} kernels compiled, "
        f"{report.kernels_loaded} loaded from the cache)",
        "per step": f"{report.ms_per_step:.3f} ms ({report.steps:,} steps in {report.train_s:.1f} s)",
        "memory of the step": f"{_kb(report.planned_bytes)} planned, {_kb(report.measured_bytes)} measured",
        "final loss": f"{report.loss:.4f}",
        "test accuracy": f"{report.accuracy:.2%}",
    }
    width = max(map(len, rows))
    return "\n".join(f"{name.ljust(width)}  {value}" for name, value in rows.items())


def _kb(nbytes: int) -> str:
    return f"{nbytes / 1024:,.1f} kB"
