"""SciPy and scikit-learn take tensors where they support the Array API (``dispatched.py``)."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.suite


@pytest.mark.parametrize(("library", "oldest"), [("scipy", "1.17.0"), ("sklearn", "1.8.0")])
def test_results_are_tensors_with_the_values_of_numpy(library: str, oldest: str) -> None:
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    if np.lib.NumpyVersion(module.__version__) < oldest:
        pytest.skip(f"{library} {module.__version__} supports fewer functions than {oldest}")
    command = [sys.executable, "-m", "tests.suites.ecosystem.dispatched", library]
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert len(lines) == 1 and int(lines[0].split()[0]) > 8, run.stdout
