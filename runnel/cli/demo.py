"""``runnel demo``: train a classifier of handwritten digits as one native program, and report the results."""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable

import numpy as np

from runnel import nn, ops, optim
from runnel.backends.host import objects, threads
from runnel.compile import compile
from runnel.core import switches
from runnel.core.records import asdict, record, replace
from runnel.data.classification import Classification, digits, mnist
from runnel.inspection.measure import Bench
from runnel.tensor import random
from runnel.tensor.creation import asarray
from runnel.tensor.tensor import Tensor
from runnel.train.callbacks import Progress


@record
class Recipe:
    """Hidden layers of a network, and settings of its training."""

    hidden: tuple[int, ...]
    epochs: int
    batch: int
    lr: float
    dropout: float


RECIPES = {
    "digits": Recipe((256, 128), 40, 32, 2e-3, 0.2),
    "mnist": Recipe((256, 128), 10, 128, 2e-3, 0.1),
}


@record
class Report:
    """The results of the demo."""

    data: str
    parameters: int
    threads: int
    epochs: int
    steps: int
    first_step_s: float
    ms_per_step: float
    train_s: float
    planned_bytes: int
    measured_bytes: int
    kernels_compiled: int
    kernels_loaded: int
    loss: float
    accuracy: float


def classifier(inputs: int, hidden: tuple[int, ...], classes: int, dropout: float) -> nn.Sequential:
    """Return a multilayer perceptron with ReLU and dropout between its layers."""
    layers: list[nn.Module] = []
    for width in hidden:
        layers += [nn.Linear(inputs, width), nn.ReLU(), nn.Dropout(dropout)]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, classes))


def train(
    data: Classification, recipe: Recipe, seed: int, advance: Callable[[str], None] = lambda note: None
) -> Report:
    """Train on ``data``; call ``advance`` after each step with a progress note."""
    random.manual_seed(seed)
    order = np.random.default_rng(seed)
    model = classifier(data.train_x.shape[1], recipe.hidden, data.classes, recipe.dropout)
    per_epoch = len(data.train_y) // recipe.batch
    optimizer = optim.AdamW(model.parameters(), lr=recipe.lr)
    schedule = optim.CosineAnnealingLR(optimizer, max(recipe.epochs * per_epoch, 1))

    @compile
    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = ops.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    before = objects.statistics.compiled, objects.statistics.loaded
    times: list[float] = []
    note = ""
    batch: tuple[Tensor, Tensor] | None = None
    loss = asarray(math.nan)
    start = time.perf_counter()
    for epoch in range(recipe.epochs):
        for x, y in data.batches(recipe.batch, order):
            batch = asarray(x, copy=False), asarray(y, copy=False)
            begun = time.perf_counter()
            loss = step(*batch)
            times.append(time.perf_counter() - begun)
            schedule.step()
            if len(times) % 50 == 1:
                note = f"epoch {epoch + 1}, loss {loss.item():.4f}"
            advance(note)
    took = time.perf_counter() - start
    planned = measured = 0
    if batch is not None:
        program = step.program(*batch).program
        planned, measured = program.plan.arena.peak, Bench(program).touched()
    return Report(
        data=data.name,
        parameters=model.num_parameters(),
        threads=threads.count(),
        epochs=recipe.epochs,
        steps=len(times),
        first_step_s=round(times[0], 4) if times else 0.0,
        ms_per_step=round(float(np.median(times[1:])) * 1e3, 4) if len(times) > 1 else 0.0,
        train_s=round(took, 2),
        planned_bytes=planned,
        measured_bytes=measured,
        kernels_compiled=objects.statistics.compiled - before[0],
        kernels_loaded=objects.statistics.loaded - before[1],
        loss=round(float(loss), 6),
        accuracy=round(accuracy(model, data.test_x, data.test_y), 4),
    )


def accuracy(model: nn.Module, x: np.ndarray, y: np.ndarray, batch: int = 1000) -> float:
    """Return the share of ``x`` that ``model`` classifies as ``y``."""
    model.eval()

    @compile
    def labels(x: Tensor) -> Tensor:
        predicted: Tensor = ops.argmax(model(x).detach(), -1)
        return predicted

    right = 0
    for start in range(0, len(y), batch):
        part = slice(start, start + batch)
        right += int((labels(asarray(x[part])).numpy() == y[part]).sum())
    model.train()
    return right / max(len(y), 1)


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
    """Return the results as text."""
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
