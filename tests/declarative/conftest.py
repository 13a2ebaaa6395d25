"""Each test declares in a separate graph."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import runnel.declarative as dg


@pytest.fixture(autouse=True)
def graph() -> Iterator[dg.Graph]:
    with dg.Graph() as own:
        yield own
