"""Sent to other processes: multiprocessing with spawn, and joblib, with its memory maps and its cache."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest

import runnel as rn
from runnel import nn
from tests.tensor.copying.described import described
from tests.tensor.copying.test_every_class import ROOT
from tests.tensor.copying.trainer import Net, Trainer, summed, tripled

pytestmark = pytest.mark.suite


X = rn.asarray(np.random.default_rng(1).standard_normal((8, 4)).astype(np.float32))


def model() -> nn.Module:
    rn.manual_seed(2)
    return Net().eval()


def test_spawned_workers_compute_the_same() -> None:
    net = model()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        sums = pool.starmap(summed, [(net, X), (tripled, X), (net.infer, X)])
        sent_back = pool.apply(Trainer)
    assert sums == [summed(net, X), summed(tripled, X), summed(net.infer, X)]
    assert described(sent_back.model) == described(Trainer().model)


def test_joblib_writes_and_reads(tmp_path: Path) -> None:
    trainer = Trainer()
    trainer.train(1, False)
    large = rn.zeros(1 << 19)
    path = tmp_path / "kept.joblib"
    joblib.dump({"trainer": trainer, "large": large}, path)
    actual = joblib.load(path, mmap_mode="r")
    path.write_bytes(b"\xff" * path.stat().st_size)  # of a memory map, the values would change
    for part in ("model", "optimizer"):
        loaded, saved = (getattr(x, part).state_dict() for x in (actual["trainer"], trainer))
        assert described(loaded) == described(saved)
    assert (actual["large"].numpy() == 0).all()
    assert joblib.hash(X) == joblib.hash(rn.asarray(X.numpy())) != joblib.hash(X + 1.0)


SCRIPT = """
import joblib, numpy as np, runnel as rn
from runnel import nn

class Net(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(4, 3)

    @rn.compile
    def infer(self, x):
        return helper(self.fc(x))

@rn.compile
def helper(x):
    return x * 2.0

if __name__ == "__main__":
    net, x = Net(), rn.ones((300, 4))
    wanted = [net.infer(x).tolist(), helper(x).tolist()]
    found = joblib.Parallel(2, max_nbytes=1000)(joblib.delayed(f)(x) for f in (net.infer, helper))
    print([y.tolist() for y in found] == wanted)
"""


def test_joblib_takes_what_the_main_script_defines(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-W", "error", str(script)]
    done = subprocess.run(command, cwd=ROOT, env=None, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
