"""benchmarks/everyday.py: the protocol of its sides, the ratios, the table; and that its networks run in Runnel."""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.suite

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmarks_everyday", BENCHMARKS / "everyday.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


everyday = load()


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({"runnel": [2.0, 4.0], "torch": [6.0, 6.0]}, {"best": 3.0, "paired": 2.25}),
        ({"runnel": [2.0, 2.0], "torch": [6.0, 6.0], "jax": [3.0, 5.0]}, {"best": 1.5, "paired": 2.0}),
        ({"runnel": [2.0]}, {}),
        ({"torch": [2.0]}, {}),
    ],
)
def test_ratios(times: dict[str, list[float]], expected: dict[str, float]) -> None:
    assert everyday.ratios(times) == pytest.approx(expected)


def test_missing_sides_are_dashes() -> None:
    result = {"workload": "x", "ms": {"runnel": [2.0, 1.0]}, "first_s": {"runnel": 3.0}, "errors": {"jax": "no"}}
    assert everyday.row(result, ["runnel", "torch", "jax"]) == ["`x`", "1", "–", "failed", "–", "–", "3", "–"]


def test_a_side_takes_turns_and_says_what_went_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    options = argparse.Namespace(checkout=BENCHMARKS.parent, threads=1, cpu_time=True, timeout=60.0)
    side = everyday.Side("runnel", sys.executable, "dqn", options, "")
    try:
        assert side.read()["first_s"] > 0
        assert side.turn(0.0)["ms"] > 0
    finally:
        side.end()
    broken = everyday.Side("runnel", "/bin/false", "dqn", options, "")
    assert "error" in broken.read()
    broken.end()


def test_every_workload_is_found() -> None:
    modules = ("text", "images", "control", "science")
    lists = ", ".join(f"*{name}.WORKLOADS" for name in modules)
    code = f"import {', '.join(modules)}; print({lists})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=BENCHMARKS / "workloads", capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == everyday.every_workload()
