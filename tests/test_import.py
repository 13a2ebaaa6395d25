"""What ``import runnel`` costs: its time, and what it pulls in."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BUDGET = 1.5  # seconds of the processor, which are more when other programs fill its caches; 0.35 is the aim
PROBE = """
import json, sys, time
sys.dont_write_bytecode = False
before = set(sys.modules)
start = time.process_time()
import runnel
seconds = time.process_time() - start
print(json.dumps({"seconds": seconds, "modules": sorted(set(sys.modules) - before)}))
"""


@pytest.fixture(scope="module")
def probes(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    """Three processes; the first also writes the byte code that an installed package has."""
    flags = ["-X", f"pycache_prefix={tmp_path_factory.mktemp('bytecode')}"]
    command = [sys.executable, *flags, "-c", PROBE]
    return [json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout) for _ in range(3)]


def test_import_is_quick(probes: list[dict[str, float]]) -> None:
    assert min(probe["seconds"] for probe in probes) < BUDGET


def test_import_brings_only_the_declared_dependencies(probes: list[dict[str, list[str]]]) -> None:
    """And of those not llvmlite: a process that finds its kernels in the cache needs it for linking only."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {requirement.split(">")[0] for requirement in project["dependencies"]}
    top_level = {name.partition(".")[0] for name in probes[0]["modules"]}
    foreign = top_level - set(sys.stdlib_module_names) - {"runnel"}
    assert foreign <= declared - {"llvmlite"}


def test_the_dependencies_are_three() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {requirement.split(">")[0] for requirement in project["dependencies"]} == {"numpy", "llvmlite", "ml_dtypes"}
