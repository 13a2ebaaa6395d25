"""``runnel profile``: the script runs as it would by itself, and its programs are told of."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from runnel.cli.main import main
from runnel.compile.compiled import Compiled

SCRIPT = """
import sys
import numpy as np
import runnel as rn

@rn.compile
def double(x):
    return x @ x * 2.0

@rn.compile
def both(x):
    return double(x) + double(x)

x = rn.asarray(np.ones((16, 16), np.float32))
for _ in range(int(sys.argv[1])):
    double(x)
double(rn.asarray(np.ones((8, 8), np.float32)))
both(x)
print("arguments", sys.argv[1:], __name__)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def profiled(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    status = main(["profile", "--seconds", "0", *arguments])
    return status, capsys.readouterr().out.splitlines()


def test_programs_are_counted_and_measured(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, call = (sys.argv, sys.path[:]), Compiled.__call__
    status, lines = profiled(capsys, "--json", str(script), "7", "--flag")
    assert status == 0
    assert (sys.argv, sys.path) == before and Compiled.__call__ is call
    assert lines[0] == "arguments ['7', '--flag'] __main__"
    actual: dict[str, Any] = json.loads(lines[-1])
    programs = [(p["name"], p["calls"], p["traced"]) for p in actual["programs"]]
    assert programs == [("double", 7, 1), ("double", 1, 1), ("both", 1, 1)]
    first = actual["programs"][0]
    assert 0 < first["best_seconds"] <= first["seconds"] and first["first_seconds"] > 0
    assert actual["programs"][1]["best_seconds"] is None
    inside = sum(p["seconds"] + p["first_seconds"] for p in actual["programs"])
    assert actual["outside"] == pytest.approx(actual["seconds"] - inside) and actual["outside"] > 0
    for program in actual["programs"]:
        assert all(c["seconds"] > 0 and c["predicted"] > 0 for c in program["measured"]["calls"])


def test_the_report_is_for_readers(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, lines = profiled(capsys, "--top", "1", str(script), "3")
    text = "\n".join(lines)
    assert status == 0
    assert "outside compiled functions" in text and "script.py:8" in text
    assert text.count("all calls one after another") == 3
    assert "quicker calls" in text or all("… and" not in line for line in lines)
    assert all(line == line.rstrip() for line in lines)


def test_a_timeline_is_written(script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.json"
    assert profiled(capsys, "--trace", str(path), str(script), "2")[0] == 0
    events = json.loads(path.read_text())["traceEvents"]
    assert [e["args"]["name"] for e in events if e["ph"] == "M"] == ["double", "double", "both"]
    assert all(e["dur"] > 0 for e in events if e["ph"] == "X")


@pytest.mark.parametrize(
    ("ending", "status"), [("sys.exit(3)", 3), ("sys.exit()", 0), ("1 / 0", 1), ("sys.exit('no')", 1)]
)
def test_a_script_that_ends_otherwise_is_reported_all_the_same(
    ending: str, status: int, script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script.write_text(SCRIPT + ending)
    main(["profile", "--seconds", "0", str(script), "2"])
    captured = capsys.readouterr()
    assert "double" in captured.out
    assert ("ZeroDivisionError" in captured.err) is (ending == "1 / 0")
    assert main(["profile", "--seconds", "0", str(script), "2"]) == status


def test_eager_functions_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "eager.py"
    path.write_text(
        "import runnel as rn\n"
        "double = rn.uncompiled(lambda x: x * 2.0)\n"
        "f = rn.compile(lambda x: double(x), name='twice')\n"
        "f(rn.tensor([1.0, 2.0]))\n"
    )
    status, lines = profiled(capsys, str(path))
    assert status == 0
    assert any(line.startswith("twice: runs eagerly") for line in lines)
