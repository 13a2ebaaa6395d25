"""Processes that multiprocessing starts, in each of its ways, run and compile programs."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.stress


_SCRIPT = """
import multiprocessing, sys
import numpy as np
import runnel as rn

def doubled(x):
    return x * 2 + x.sum()

def work(array):
    return rn.compile(doubled)(rn.asarray(array)).numpy()

if __name__ == "__main__":
    array = np.arange(6, dtype=np.float32)
    expected = work(array)
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        found = pool.map(work, [array] * 4)
    assert all(np.array_equal(expected, each) for each in found), found
    print("equal")
"""


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_programs_run_in_processes_started_this_way(method: str, tmp_path: Path) -> None:
    script = tmp_path / "pool.py"
    script.write_text(_SCRIPT, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])}
    command = [sys.executable, str(script), method]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert (done.returncode, done.stdout) == (0, "equal\n"), done.stderr
