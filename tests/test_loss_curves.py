"""Small networks learn as in PyTorch: 100 steps from the same weights and batches give the losses recorded there."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.suite


ROOT = Path(__file__).resolve().parents[1]
# `python benchmarks/loss_curves.py --framework torch --size small --json FILE` with PyTorch 2.13.0 wrote them.
RECORDED: dict[str, list[float]] = json.loads((ROOT / "tests" / "data" / "loss_curves.json").read_text())
# PyTorch's own losses differ by 1e-5 of these between one thread and two (cnn): rounding grows from step to step.
TOLERANCE = 1e-4


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmarks_loss_curves", ROOT / "benchmarks" / "loss_curves.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


curves = load()


def test_every_case_is_recorded() -> None:
    assert set(RECORDED) == set(curves.CASES["small"]) == set(curves.CASES["full"])
    assert all(len(losses) == curves.STEPS and losses[-1] < losses[0] for losses in RECORDED.values())


@pytest.mark.parametrize("case", sorted(RECORDED))
def test_losses_equal_the_ones_of_pytorch(case: str) -> None:
    actual = curves.losses(curves.CASES["small"][case], "runnel")
    assert curves.difference(actual, RECORDED[case]) < TOLERANCE


def test_differences_are_relative_but_for_small_losses() -> None:
    assert curves.difference([2.0, 1.1], [2.0, 1.0]) == pytest.approx(0.1)
    assert curves.difference([2.0, 1e-3], [2.0, 0.0]) == pytest.approx(0.05)
