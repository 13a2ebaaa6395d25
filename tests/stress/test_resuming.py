"""A training that is killed at random moments continues to the bit: a few kills of benchmarks/resume.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_killed_trainings_continue_to_the_bit() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "resume.py"), "--kills", "3", "--seed", "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["kills"] == 3 and report["equal"]
