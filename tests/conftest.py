"""Settings of every test: its kind, verifiers, little effort of LLVM, separate random numbers; and which are fast."""

from __future__ import annotations

import functools
import gc
import os
import random
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import is_hypothesis_test

import runnel as rn
from runnel.backends.cpu.target import EFFORT
from runnel.core import switches
from tests.random_numbers import RNG

KINDS = ("unit", "suite", "stress")
FOLDERS = {"suites": "suite", "fuzz": "suite", "programs": "suite", "codegen": "suite", "stress": "stress"}
FAST = ("core", "graph", "io")  # folders


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--stress", type=float, default=0.3, metavar="SECONDS", help="length of each race in tests/stress")


@functools.cache
def folders_of(path: Path) -> tuple[str, ...]:
    """The folders that a test is in, from ``tests`` on."""
    return path.relative_to(Path(__file__).parent).parts[:-1]


def pytest_configure(config: pytest.Config) -> None:
    """Configure the processes of a run, and the processes that tests start.

    Kernels are compiled with little effort, unless the environment asks for more. Where Python must not write bytecode
    beside the sources, it is kept in a folder for the run, so that each module is compiled once."""
    EFFORT.set(os.environ.setdefault(EFFORT.variable, "0"))
    if sys.dont_write_bytecode:
        folder = tempfile.TemporaryDirectory(prefix="runnel-tests-", ignore_cleanup_errors=True)
        config.add_cleanup(folder.cleanup)
        os.environ["PYTHONPYCACHEPREFIX"] = folder.name
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # Hypothesis asks the collector for references, which does not know all, on CPython 3.14 least of all.
    config.addinivalue_line("filterwarnings", "ignore:It looks like .register_random. was passed an object")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with its kind: the mark of the test, its module or its folder, else "suite" for Hypothesis, else
    "unit". Mark the tests that ``.ci/run`` repeats on other Pythons."""
    for item in items:
        folders = folders_of(item.path)
        if not any(item.get_closest_marker(kind) for kind in KINDS):
            otherwise = "suite" if is_hypothesis_test(getattr(item, "obj", None)) else "unit"
            item.add_marker(next((FOLDERS[name] for name in folders if name in FOLDERS), otherwise))
        if folders and folders[0] in FAST:
            item.add_marker(pytest.mark.fast)


def pytest_collection_finish() -> None:
    """The tests themselves stay to the end: collections of garbage, which many of them ask for, need not look there."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def frozen() -> None:
    """Neither need they look at what earlier modules left, such as programs in caches."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def alone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test of kind unit starts no process."""
    if request.node.get_closest_marker("unit"):
        monkeypatch.setattr(subprocess, "Popen", _refused)
        monkeypatch.setattr(os, "fork", _refused, raising=False)


@pytest.fixture
def usual_effort() -> Iterator[None]:
    """Kernels are compiled as users have them."""
    with switches.override(effort=EFFORT.default):
        yield


def _refused(*args: object, **kwargs: object) -> None:
    raise AssertionError("a test that starts processes is marked suite or stress")


@pytest.fixture(autouse=True)
def verified() -> Iterator[None]:
    """Graphs, kernels and plans are checked as they are made."""
    with switches.override(verify=True):
        yield


@pytest.fixture(autouse=True)
def seeded(request: pytest.FixtureRequest) -> Iterator[None]:
    """Reset every generator that tests share, with a seed that depends on the test."""
    seed = zlib.crc32(request.node.nodeid.encode())
    random.seed(seed)
    np.random.seed(seed)
    rn.manual_seed(seed)
    RNG.seed(seed)
    yield
    RNG.setstate(None)
