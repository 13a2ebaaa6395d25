"""Code generation is tested with the effort that LLVM makes for users: what comes of it is the point here."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def effort(usual_effort: None) -> None:
    """On for each test of the folder."""
