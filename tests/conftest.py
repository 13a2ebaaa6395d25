"""What holds for every test: the verifiers are on, and its random numbers are its own. And which tests are fast."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import runnel as rn
from runnel.core import switches
from tests.random_numbers import RNG

FAST = ("core", "errors", "graph", "io")  # folders


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what ``.ci/run`` repeats on other versions of Python."""
    for item in items:
        if item.path.relative_to(Path(__file__).parent).parts[0] in FAST:
            item.add_marker(pytest.mark.fast)


@pytest.fixture(autouse=True)
def verified() -> Iterator[None]:
    """Graphs, kernels and plans are checked as they are made."""
    with switches.override(verify=True):
        yield


@pytest.fixture(autouse=True)
def seeded(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every generator that tests share begins anew, with numbers of this test's own."""
    seed = zlib.crc32(request.node.nodeid.encode())
    random.seed(seed)
    np.random.seed(seed)
    rn.manual_seed(seed)
    RNG.seed(seed)
    yield
    RNG.setstate(None)
