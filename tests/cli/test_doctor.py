"""`runnel doctor`: what it finds, what it advises, and its exit status."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from runnel.cli import doctor
from runnel.cli.main import main
from runnel.core import switches
from runnel.inspection import schedule


def found(capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    status = main(["doctor", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert status == int(report["problems"] > 0)
    return status, {finding["topic"]: finding for finding in report["findings"]}


def test_everything_is_looked_at(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with switches.override(cache_dir=str(tmp_path)):
        status, findings = found(capsys)
    assert status == 0
    assert list(findings) == [
        "versions", "extras", "machine", "target", "threads", "cache", "programs", "arithmetic", "memory",
    ]  # fmt: skip
    assert findings["versions"]["figures"]["numpy"] and findings["arithmetic"]["figures"]["flops"] > 1e8
    assert findings["memory"]["figures"]["read"] > 1e7
    assert all(finding["advice"] for finding in findings.values() if finding["state"] != doctor.FINE)
    assert findings["cache"]["state"] == doctor.FINE and str(tmp_path) in findings["cache"]["text"]


def test_versions(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    required = tomllib.loads(Path("pyproject.toml").read_text())["project"]["dependencies"]
    assert required == [f"{name}>={least}" for name, least in doctor.LEAST.items()]
    monkeypatch.setattr(doctor, "_version", {"numpy": "1.26.4", "llvmlite": "0.45.1", "ml_dtypes": None}.get)
    only(monkeypatch, doctor.versions)
    status, findings = found(capsys)
    assert status == 1 and findings["versions"]["advice"] == "pip install 'numpy>=2.2' 'ml_dtypes>=0.5'"


def test_one_cpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(doctor, "cores", lambda: (1, 1))
    monkeypatch.setattr(doctor.threads, "affinity_count", lambda: 1)
    monkeypatch.setattr(doctor.os, "getloadavg", lambda: (5.0, 5.0, 5.0))
    with switches.override(num_threads=1):
        assert ", 1 core, 1 CPU for this process" in next(doctor.processor()).text
        finding = next(doctor.team())
    assert finding.state == doctor.FINE and "allowed: 1 CPU" in finding.text


def only(monkeypatch: pytest.MonkeyPatch, check: doctor.Check) -> None:
    monkeypatch.setattr(doctor, "CHECKS", (check,))


def test_for_readers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    only(monkeypatch, doctor.team)
    with switches.override(num_threads=200):
        assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("warning  threads     200 a program") and "→ Set RUNNEL_NUM_THREADS=" in lines[1]
    assert lines[-1] == "0 problems, 1 warning"


def test_a_cache_that_others_can_write_to(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    only(monkeypatch, doctor.cache_folder)
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    with switches.override(cache_dir=str(folder)):
        status, findings = found(capsys)
    assert status == 1 and findings["cache"]["state"] == doctor.PROBLEM
    assert "RUNNEL_CACHE_DIR" in findings["cache"]["advice"] and "others may write" in findings["cache"]["text"]


def test_a_cache_that_is_off_or_no_folder(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    only(monkeypatch, doctor.cache_folder)
    with switches.override(cache=False):
        assert found(capsys)[1]["cache"]["state"] == doctor.WARNING
    (tmp_path / "file").touch()
    with switches.override(cache_dir=str(tmp_path / "file")):
        assert found(capsys)[0] == 1


def test_a_target_below_the_best(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    only(monkeypatch, doctor.processor)
    runnable = schedule.runnable()
    with switches.override(target=runnable[-1]):
        finding = found(capsys)[1]["target"]
    assert finding["state"] == (doctor.WARNING if len(runnable) > 1 else doctor.FINE)


def test_a_check_that_fails_is_a_problem(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> Any:
        raise OSError("no such thing")
        yield

    only(monkeypatch, broken)
    status, findings = found(capsys)
    assert status == 1 and "no such thing" in findings["broken"]["text"]
