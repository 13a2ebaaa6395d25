"""Test many models in turn in one process: after the first, nothing grows, native memory included."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.suite


SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "sweep.py"


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, int]]:
    cases = (
        "same",
        "eager",
        "arguments",
        "methods",
        "serve",
        "transforms",
        "errors",
        "sources",
        "widths",
        "signatures",
    )
    command = [sys.executable, str(SCRIPT), "--models", "14", "--first", "6", "--json", "--cases", *cases]
    actual: dict[str, dict[str, int]] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return actual


@pytest.mark.parametrize("case", ["same", "eager", "arguments", "methods", "serve", "transforms", "errors"])
def test_nothing_stays_of_dropped_models(rows: dict[str, dict[str, int]], case: str) -> None:
    row = rows[case]
    assert (row["programs"], row["code"]) == (0, 0)
    assert row["allocated"] <= 0
    assert row["objects"] < 8, row["types"]  # less than one for each model
    assert row["resident"] < 1 << 21  # a model has as much, with its gradients, its state and its program


def test_of_ever_other_models_only_bounded_plans_stay(rows: dict[str, dict[str, int]]) -> None:
    for case in ("widths", "sources"):
        assert rows[case]["programs"] == 0
        assert rows[case]["allocated"] < 8 * 16 << 10
        assert rows[case]["resident"] < 1 << 23
        assert rows[case]["left"] < 80  # names of types that nobody has any more, until they are swept
    assert rows["signatures"]["programs"] == 8
