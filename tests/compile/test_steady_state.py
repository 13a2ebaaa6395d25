"""Test a compiled training step once it runs: it allocates its results only, and the next process compiles nothing."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import runnel as rn
from runnel import nn, ops, optim
from runnel.backends.host import memory

pytestmark = pytest.mark.suite


def make_step(rows=64):
    rn.manual_seed(0)
    model = nn.Sequential(nn.Linear(40, 300), nn.ReLU(), nn.Linear(300, 10))
    optimizer = optim.Adam(model.parameters(), 1e-3)

    @rn.compile
    def step(x, y):
        optimizer.zero_grad()
        scores = model(x)
        loss = ops.cross_entropy(scores, y)
        loss.backward()
        optimizer.step()
        return loss, scores

    drawn = np.random.default_rng(0)
    x = rn.asarray(drawn.standard_normal((rows, 40)).astype(np.float32))
    return step, x, rn.asarray(drawn.integers(0, 10, rows))


def test_a_running_step_allocates_its_results_alone():
    step, x, y = make_step()
    saved = step(x, y)
    for _ in range(20):
        saved = step(x, y)  # while the results before are still held, as a training loop does
    before = memory.statistics()
    calls = 11  # none of them is audited: the audits are at 16 and 32
    for _ in range(calls):
        saved = step(x, y)
    after = memory.statistics()
    assert after.live == before.live
    assert after.system_allocations == before.system_allocations
    assert after.allocations - before.allocations <= calls * len(saved)


def test_the_next_process_compiles_nothing(tmp_path: Path):
    program = textwrap.dedent("""
        import json
        from tests.compile.test_steady_state import make_step
        from runnel.backends.host import objects
        step, x, y = make_step()
        losses = [step(x, y)[0].item() for _ in range(3)]
        count = objects.statistics
        print(json.dumps({"compiled": count.compiled, "loaded": count.loaded, "losses": losses}))
    """)
    environment = {**os.environ, "RUNNEL_CACHE_DIR": str(tmp_path), "RUNNEL_CACHE": "1"}
    runs = [
        json.loads(
            subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True).stdout
        )
        for _ in range(2)
    ]
    assert runs[0]["compiled"] > 5
    assert runs[1]["compiled"] == 0
    assert runs[1]["loaded"] == runs[0]["compiled"]
    assert runs[0]["losses"] == runs[1]["losses"]
