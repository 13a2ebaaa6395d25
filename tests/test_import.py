"""The modules that ``import runnel`` loads. Its time is measured by ``benchmarks/import_time.py``."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.suite


ROOT = Path(__file__).resolve().parents[1]
PROBE = """
import json, sys
before = set(sys.modules)
import runnel
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_import_brings_only_the_declared_dependencies() -> None:
    """And of those not llvmlite: a process that finds its kernels in the cache needs it for linking only."""
    done = subprocess.run([sys.executable, "-c", PROBE], cwd=ROOT, capture_output=True, check=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {requirement.split(">")[0] for requirement in project["dependencies"]}
    top_level = {name.partition(".")[0] for name in json.loads(done.stdout)}
    foreign = top_level - set(sys.stdlib_module_names) - {"runnel"}
    assert foreign <= declared - {"llvmlite"}


def test_the_dependencies_are_three() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {requirement.split(">")[0] for requirement in project["dependencies"]} == {"numpy", "llvmlite", "ml_dtypes"}
