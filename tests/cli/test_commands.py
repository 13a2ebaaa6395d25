"""The commands: what they print, and their figures."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runnel.cli.main import main
from runnel.core.tables import Op, Table
from runnel.data.classification import PARTS

pytestmark = pytest.mark.suite


def last_line(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    actual: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return actual


def test_demo_learns_the_digits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--json"]) == 0
    figures = last_line(capsys)
    assert figures["accuracy"] >= 0.97
    assert figures["parameters"] == 64 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10
    assert figures["steps"] == figures["epochs"] * (1438 // 32)
    assert figures["ms_per_step"] > 0 and figures["first_step_s"] > 0
    assert figures["planned_bytes"] - 64 < figures["measured_bytes"] <= figures["planned_bytes"]


def test_demo_prints_for_readers_and_repeats_itself(capsys: pytest.CaptureFixture[str]) -> None:
    losses = []
    for threads in ("1", "2", "2"):
        main(["demo", "--epochs", "2", "--seed", "5", "--threads", threads, "--json"])
        out = capsys.readouterr().out
        losses.append(json.loads(out.splitlines()[-1])["loss"])
        for word in ("parameters", "time to first step", "per step", "planned", "measured", "test accuracy"):
            assert word in out
    assert len(set(losses)) == 1


def test_demo_reads_idx_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = np.arange(300) % 10
    for part in PARTS:
        if "labels" in part:
            content = struct.pack(">HBBI", 0, 8, 1, 300) + labels.astype(np.uint8).tobytes()
        else:
            images = np.zeros((300, 28, 28), np.uint8)
            images[np.arange(300), labels] = 255
            content = struct.pack(">HBBIII", 0, 8, 3, 300, 28, 28) + images.tobytes()
        (tmp_path / f"{part}.gz").write_bytes(gzip.compress(content))
    assert main(["demo", "--data", "mnist", "--data-dir", str(tmp_path), "--epochs", "20", "--json"]) == 0
    assert last_line(capsys)["accuracy"] > 0.9


def test_an_error_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--data", "mnist", "--data-dir", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("runnel: [mnist] the folder")


def test_ops_prints_every_op_and_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in Op.registry)
    assert all(name in out.splitlines()[0] for name in Table.registry)


def test_ops_of_some(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "add", "--json"]) == 0
    assert last_line(capsys)["cells"]["vjp"] == "present"
    assert main(["ops", "nonsense"]) == 2


@pytest.mark.parametrize("options", [["mlp_tiny_b8"], ["mlp_tiny_b8", "--eager"], ["add"]])
def test_bench_prints_one_line(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *options, "--json", "--seconds", "0.05"]) == 0
    out = capsys.readouterr().out
    line = json.loads(out)
    assert out.count("\n") == 1
    assert line["case"] == options[0] and 0 < line["best_ms"] <= line["median_ms"]
    assert line["config"] == ("compile" if options == ["mlp_tiny_b8"] else "eager")
    assert line["runs"] >= 5 and line["threads"] >= 1


def test_cases_are_described(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    assert "train a classifier" in out and "time one case" in out
