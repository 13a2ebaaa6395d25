"""A moment of each scenario of ``concurrency``, in a separate process: one that hangs is ended there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stress.concurrency import SCENARIOS

ROOT = Path(__file__).resolve().parents[2]
POSIX = ("handlers", "forks")  # scenarios of systems that have what they are about


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(scenario: str, threads: int, pytestconfig: pytest.Config) -> None:
    if scenario in POSIX and not (hasattr(os, "fork") and hasattr(signal, "setitimer")):
        pytest.skip("no such thing on this system")
    seconds = str(pytestconfig.getoption("stress"))
    command = [sys.executable, "-m", "tests.stress.concurrency", scenario, seconds, str(threads)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120 + 10 * float(seconds))
    assert done.returncode == 0 and done.stdout.startswith(scenario), done.stdout + done.stderr
