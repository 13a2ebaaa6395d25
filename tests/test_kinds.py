"""Every test is of one kind: unit, suite or stress."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import FOLDERS, KINDS


def test_every_test_has_one_kind(request: pytest.FixtureRequest) -> None:
    """Of those that this run has collected: all of them, if it is a run of the whole."""
    counts = {
        item.nodeid: sum(item.get_closest_marker(kind) is not None for kind in KINDS) for item in request.session.items
    }
    assert {name: count for name, count in counts.items() if count != 1} == {}


def test_folders_have_kinds_that_are() -> None:
    assert set(FOLDERS.values()) <= set(KINDS)


def test_a_unit_test_starts_no_process() -> None:
    with pytest.raises(AssertionError, match="is marked suite or stress"):
        subprocess.run([sys.executable, "-c", ""], check=False)


@pytest.mark.suite
def test_others_may() -> None:
    subprocess.run([sys.executable, "-c", ""], check=True)
