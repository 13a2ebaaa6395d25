"""The family of kernels that docs/extend/ops.md adds from outside: the same bits on any number of threads, and programs
with it in the cache on disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import ROOT

pytestmark = pytest.mark.suite


FAMILY = """
import json, sys, types
from pathlib import Path
from runnel.compiler import plan
from tests.docs.pages import blocks
planned = []
made = plan.Plan
plan.Plan = lambda graph, *parts: (planned.append(graph.name), made(graph, *parts))[1]
page = Path("docs/extend/ops.md").read_text(encoding="utf-8")
section = page[page.index("## A family of kernels") : page.index("## A table")]
module = sys.modules["page"] = types.ModuleType("page")
for block in blocks(section)[:2]:
    exec(compile(block.code, "extending.md", "exec"), module.__dict__)
np, rn, ops, recurrence = module.np, module.rn, module.ops, module.linear_recurrence
rng = np.random.default_rng(0)
def drawn(*shape):
    return rn.asarray(rng.uniform(0.5, 1.0, shape).astype(np.float32))
"""

TWO_PROGRAMS = """
operands = [drawn(32, 600) for _ in range(3)]
def cell(decay, signal, gate):
    return ops.tanh(recurrence(decay, signal)) * gate + signal
def slopes(*operands):
    return rn.grad(lambda *xs: (cell(*xs) ** 2).mean(), argnums=(0, 1))(*operands)
values = [rn.compile(cell)(*operands), *rn.compile(slopes)(*operands)]
print(json.dumps([planned, [x.numpy().tobytes().hex() for x in values]]))
"""

MANY_PROGRAMS = """
a, x, b = drawn(6, 70), drawn(6, 70), drawn(70)
programs = {
    "stored in a concatenation": lambda a, x, b: ops.concat([recurrence(a, x) * b, x], 0),
    "padded and read twice": lambda a, x, b: (ops.pad(recurrence(a, x), ((1, 1), (2, 3))), recurrence(a, x) + b),
    "transposed operands": lambda a, x, b: (recurrence(a.T, x.T) + x.T).sum(0),
    "backwards": lambda a, x, b: recurrence(a[::-1], x[::-1])[::-1] * b,
    "a slice of the result": lambda a, x, b: recurrence(a, x)[::2] * 2,
    "in a loop": lambda a, x, b: rn.scan(lambda c, r: (recurrence(a, c) + r, c[0]), x, ops.stack([x, x, x]))[0],
    "three axes": lambda a, x, b: recurrence(a.reshape(6, 7, 10), x.reshape(6, 7, 10)) * x.reshape(6, 7, 10),
    "one step": lambda a, x, b: recurrence(a[:1], x[:1]) * b,
    "no steps": lambda a, x, b: recurrence(a[:0], x[:0]) * b,
    "batches of gradients": lambda a, x, b: rn.vmap(
        rn.grad(lambda a, x: (recurrence(a, x) ** 2).sum()), in_axes=(None, 0))(a, ops.stack([x, x + 1])),
}
def bits(values):
    return [x.numpy().tobytes() for x in (values if isinstance(values, tuple) else (values,))]
differing = [name for name, f in programs.items() if bits(rn.compile(f)(a, x, b)) != bits(f(a, x, b))]
state = rn.Variable(np.ones((6, 70), np.float32))
def update(a):
    state.assign(recurrence(a, state) * 0.5 + state)
update(a)
eager = state.numpy().tobytes()
state.assign(rn.ones((6, 70)))
rn.compile(update)(a)
if state.numpy().tobytes() != eager:
    differing.append("a Variable that is read and written")
print(json.dumps(differing))
"""


def run(code: str, folder: Path, threads: int, seed: str = "0", verify: str = "0") -> Any:
    """Return the output of a process that has the family of the page and runs ``code``."""
    environment = {
        **os.environ,
        "RUNNEL_CACHE": "1",
        "RUNNEL_CACHE_DIR": str(folder),
        "RUNNEL_VERIFY": verify,
        "RUNNEL_NUM_THREADS": str(threads),
        "PYTHONHASHSEED": seed,
    }
    command = [sys.executable, "-W", "error", "-c", FAMILY + code]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_bits_do_not_depend_on_threads_and_another_process_reads_the_programs(tmp_path: Path) -> None:
    planned, bits = run(TWO_PROGRAMS, tmp_path, 2, "1")
    assert {"cell", "slopes"} <= set(planned)
    alone, same_bits = run(TWO_PROGRAMS, tmp_path, 1, "2")
    assert {"cell", "slopes"} <= set(alone)  # programs of other threads are others
    again, read_bits = run(TWO_PROGRAMS, tmp_path, 2, "3")
    assert not {"cell", "slopes"} & set(again)
    assert bits == same_bits == read_bits


@pytest.mark.parametrize("threads", [1, 2])
def test_programs_have_the_bits_of_eager_execution_and_pass_the_verifier(tmp_path: Path, threads: int) -> None:
    assert run(MANY_PROGRAMS, tmp_path, threads, verify="1") == []
