"""Training under bad conditions: random delays, too many threads, forks, other processes, a spoiled cache.

Whatever happens, the bits equal a run on one undisturbed thread.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from runnel.compiler.schedule import partition
from runnel.core import switches
from tests.stress.training import trained

ROOT = Path(__file__).resolve().parents[2]
STEPS = 30


@cache
def undisturbed(steps: int) -> str:
    with switches.override(num_threads=1):
        return trained(steps)


def start(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Start the training in a separate process, with its cache in ``folder``."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.stress.training", str(STEPS), *arguments],
        cwd=ROOT,
        env={**os.environ, "RUNNEL_CACHE_DIR": str(folder), "RUNNEL_NUM_THREADS": "4", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def outcome(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out.strip()


@pytest.mark.parametrize(("threads", "delay"), [(1, 0), (2, 20), (3, 20), (4, 20), (4, 0), (7, 5)])
def test_delays_and_threads_change_no_bit(threads: int, delay: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = undisturbed(STEPS)
    monkeypatch.setattr(partition, "WORTH_A_TEAM", 0.0)
    monkeypatch.setattr(partition, "WORTH_SPLITTING", 0.0)
    with switches.override(num_threads=threads, stress=delay):
        assert trained(STEPS) == expected


def test_eager_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    assert trained(STEPS, compiled=False) == undisturbed(STEPS)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_may_be_forked_at_any_moment(tmp_path: Path) -> None:
    assert outcome(start(tmp_path, "fork")) == undisturbed(STEPS)


def test_processes_that_fill_one_cache_agree(tmp_path: Path) -> None:
    together = [start(tmp_path, RUNNEL_STRESS=str(5 * i)) for i in range(2)]
    assert [outcome(p) for p in together] == [undisturbed(STEPS)] * 2
    assert not list(tmp_path.glob("*.tmp"))


def test_a_cache_that_is_spoiled_meanwhile(tmp_path: Path) -> None:
    assert outcome(start(tmp_path, "damage", str(tmp_path))) == undisturbed(STEPS)
    assert outcome(start(tmp_path)) == undisturbed(STEPS), "a new process finds damaged files and does without them"
