"""The search for schedules: its log, and what becomes of it when the log is cut."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import ArgumentError
from runnel.expressions import search

TEXT = "C[i, j] += A[i, k] * B[k, j]"


def operands() -> tuple[rn.Tensor, rn.Tensor]:
    rng = np.random.default_rng(31)
    a, b = (rn.asarray(rng.standard_normal(s).astype(np.float32)) for s in ((13, 9), (9, 40)))
    return a, b


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The candidates that are timed; a time is a function of the steps, so that every run is the same."""
    steps: list[object] = []

    def seconds(function: rn.expressions.function.TensorExpression, xs: object, fastest: float) -> float:
        steps.append(function.steps)
        return 1e-6 * (1 + sum(map(len, map(str, function.steps or ()))) % 97)

    monkeypatch.setattr(search, "_timed", seconds)
    monkeypatch.setattr(search, "_run_off", lambda expression, xs, finalists: finalists[0])
    return steps


def test_the_best_of_the_log_is_returned(tmp_path: Path, timed: list[object]) -> None:
    product, (a, b), log = rn.expressions.tensor_expr(TEXT), operands(), tmp_path / "log.jsonl"
    best = rn.expressions.search_schedule(product, a, b, trials=8, log=log)
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(entries) == len(timed) == 8
    assert all(entry["expression"] == "C[i: 13, j: 40] += (A[i, k] * B[k, j])" for entry in entries)
    fastest = min(entries, key=lambda entry: entry["seconds"])
    assert [list(step) for step in best.steps or ()] == fastest["steps"]
    assert best(a, b).numpy().tobytes() == product(a, b).numpy().tobytes()


def test_a_cut_log_goes_on(tmp_path: Path, timed: list[object]) -> None:
    product, (a, b) = rn.expressions.tensor_expr(TEXT), operands()
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    best = rn.expressions.search_schedule(product, a, b, trials=10, log=whole, seed=3)
    timed.clear()
    text = whole.read_text()
    lines = text.splitlines(keepends=True)
    junk = [
        "[1, 2]\n",
        "null\n",
        '{"expression": 3}\n',
        json.dumps({**json.loads(lines[0]), "steps": [["skew"]]}) + "\n",
    ]
    cut.write_bytes("".join([*junk, *lines[:6]]).encode() + lines[6][: len(lines[6]) // 2].encode() + b"\xff")
    assert rn.expressions.search_schedule(product, a, b, trials=10, log=cut, seed=3).steps == best.steps
    assert len(timed) == 4
    assert cut.read_text(errors="replace").splitlines()[-4:] == [line.rstrip("\n") for line in lines[6:]]


def test_candidates_run_and_are_timed() -> None:
    product, (a, b) = rn.expressions.tensor_expr(TEXT), operands()
    best = rn.expressions.search_schedule(product, a, b, trials=2)
    assert best.steps is not None
    assert best(a, b).numpy().tobytes() == product(a, b).numpy().tobytes()
    total = rn.expressions.tensor_expr("O[] += A[i, j]")
    assert rn.expressions.search_schedule(total, a, trials=1)(a).item() == total(a).item()


def test_arguments_are_checked() -> None:
    a, b = operands()
    with pytest.raises(ArgumentError, match="pass what tensor_expr returns"):
        rn.expressions.search_schedule(TEXT, a, b)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="0 trials"):
        rn.expressions.search_schedule(rn.expressions.tensor_expr(TEXT), a, b, trials=0)
    with pytest.raises(ArgumentError, match="takes tensors"):
        rn.expressions.search_schedule(rn.expressions.tensor_expr(TEXT), a, (9, 40))
