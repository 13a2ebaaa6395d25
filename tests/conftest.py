"""What holds for every test: the verifiers are on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runnel.core import switches


@pytest.fixture(autouse=True)
def verified() -> Iterator[None]:
    """Graphs, kernels and plans are checked as they are made."""
    with switches.override(verify=True):
        yield
