"""The family of kernels that docs/extending.md adds from outside: the same bits on any number of threads, and programs
with it in the cache on disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.docs.pages import ROOT

PROCESS = """
import json, sys, types
from pathlib import Path
from runnel.compiler.plan import Planner
from tests.docs.pages import blocks
planned = []
plan = Planner.plan
Planner.plan = lambda self: (planned.append(self.graph.name), plan(self))[1]
page = Path("docs/extending.md").read_text(encoding="utf-8")
section = page[page.index("## A family of kernels") : page.index("## A column")]
module = sys.modules["page"] = types.ModuleType("page")
for block in blocks(section)[:2]:
    exec(compile(block.code, "extending.md", "exec"), module.__dict__)
np, rn, ops = module.np, module.rn, module.ops
rng = np.random.default_rng(0)
operands = [rn.asarray(rng.uniform(0.5, 1.0, (32, 600)).astype(np.float32)) for _ in range(3)]
def cell(decay, signal, gate):
    return ops.tanh(module.linear_recurrence(decay, signal)) * gate + signal
def slopes(*operands):
    return rn.grad(lambda *xs: (cell(*xs) ** 2).mean(), argnums=(0, 1))(*operands)
values = [rn.compile(cell)(*operands), *rn.compile(slopes)(*operands)]
print(json.dumps([planned, [x.numpy().tobytes().hex() for x in values]]))
"""


def run(folder: Path, threads: int, seed: str) -> Any:
    environment = {
        **os.environ,
        "RUNNEL_CACHE": "1",
        "RUNNEL_CACHE_DIR": str(folder),
        "RUNNEL_VERIFY": "0",
        "RUNNEL_NUM_THREADS": str(threads),
        "PYTHONHASHSEED": seed,
    }
    command = [sys.executable, "-W", "error", "-c", PROCESS]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_bits_do_not_depend_on_threads_and_another_process_reads_the_programs(tmp_path: Path) -> None:
    planned, bits = run(tmp_path, 2, "1")
    assert {"cell", "slopes"} <= set(planned)
    alone, same_bits = run(tmp_path, 1, "2")
    assert {"cell", "slopes"} <= set(alone)  # programs of other threads are others
    again, read_bits = run(tmp_path, 2, "3")
    assert not {"cell", "slopes"} & set(again)
    assert bits == same_bits == read_bits
