"""The kernels that lowering makes: native code gives the interpreter's bits, and every target has code for them."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys

import numpy as np
import pytest

from runnel.backends.cpu import target
from runnel.backends.cpu.codegen import nest
from runnel.backends.host import memory
from runnel.compiler.plan_ir.plan import Plan
from runnel.compiler.program import Program
from runnel.loops.formulas.table import ULP_BOUNDS
from runnel.loops.ir import Apply, Expr, For, Kernel, Load, Stmt
from tests.compiler.harness import same_bits
from tests.suites.plans import Array, interpret, kernels, samples

pytestmark = pytest.mark.usefixtures("usual_effort")
SAMPLE = 70  # kernels compiled for each foreign target


def native(plan: Plan, arrays: list[Array]) -> list[Array]:
    inputs = []
    for array in arrays:
        storage = memory.allocate(array.nbytes)
        storage.ndarray((array.size,), array.dtype, writeable=True)[:] = array.reshape(-1)
        inputs.append(storage)
    outputs = [memory.allocate(p.nbytes) for p in plan.outputs]
    Program(plan).run([s.address for s in inputs], [s.address for s in outputs])
    return [s.ndarray((p.size,), p.dtype.numpy) for s, p in zip(outputs, plan.outputs, strict=True)]


def expressions(body: tuple[Stmt, ...]) -> list[Expr]:
    results: list[Expr] = []
    for stmt in body:
        if isinstance(stmt, For):
            results += expressions(stmt.body)
        elif hasattr(stmt, "value"):
            results.append(stmt.value)
    return results


def is_exact(expr: Expr) -> bool:
    if isinstance(expr, Apply):
        return expr.op not in ULP_BOUNDS and all(map(is_exact, expr.args))
    return not isinstance(expr, Load) or all(is_exact(x) for x, _ in expr.index.gathered)


def steps_back(plan: Plan) -> bool:
    """Return True if a kernel walks backwards from its first element; the interpreter's arrays begin there."""
    return any(min(call.params, default=0) < 0 for call in plan.calls)


def test_native_code_does_what_the_interpreter_does() -> None:
    compared = exact = 0
    for name, plan, arrays in samples():
        if steps_back(plan):
            continue
        compared += 1
        bitwise = all(is_exact(e) for call in plan.calls for e in expressions(call.kernel.body))
        exact += bitwise
        for got, want in zip(native(plan, arrays), interpret(plan, arrays), strict=True):
            if bitwise:
                assert same_bits(got, want), name
            else:
                tolerance = 4e-3 if want.dtype.itemsize == 2 else 2e-5
                np.testing.assert_allclose(
                    got.astype(np.float64), want.astype(np.float64), tolerance, tolerance, err_msg=name
                )
    assert compared > 400 and exact > 300


def chosen() -> list[tuple[Kernel, str]]:
    """One kernel of each op and function, and others in an order that is as good as random."""
    first: dict[str, tuple[Kernel, str]] = {}
    for kernel, name in kernels().values():
        first.setdefault(name.split()[0], (kernel, name))
    rest = sorted(kernels().values(), key=lambda pair: hashlib.sha256(pair[0].name.encode()).digest())
    picked = {k.name: (k, n) for k, n in [*first.values(), *rest]}
    return list(picked.values())[: max(SAMPLE, len(first))]


COMPILE = """
import json, sys
import llvmlite.binding as llvm
from runnel.backends.cpu.target import by_name
from runnel.core.records import replace
machine = replace(by_name(sys.argv[1]), effort=1).machine()  # it selects instructions as with more effort
for name, text in json.load(sys.stdin):
    print(name, flush=True)
    module = llvm.parse_assembly(text)
    module.verify()
    assert len(machine.emit_object(module)) > 200
print("done", flush=True)
"""


@pytest.mark.parametrize(("row", "plain"), [(target.AVX512_BF16, target.AVX512), (target.NEON_BF16, target.NEON)])
def test_dot_instructions_are_only_in_the_library(row: target.InstructionSet, plain: target.InstructionSet) -> None:
    """So that rows that differ in them have the same kernels."""
    assert row.dot and not plain.dot
    for kernel, name in chosen():
        assert nest.emit_kernel(kernel, row) == nest.emit_kernel(kernel, plain), name


@pytest.mark.parametrize("row", [row for row in target.TARGETS if not row.dot], ids=lambda row: row.name)
def test_every_target_has_code(row: target.InstructionSet) -> None:
    """In a separate process: LLVM aborts if it cannot select an instruction."""
    texts = [(f"{kernel.name} of {name}", nest.emit_kernel(kernel, row)) for kernel, name in chosen()]
    ended = subprocess.run(
        [sys.executable, "-c", COMPILE, row.name], input=json.dumps(texts), capture_output=True, text=True, check=False
    )
    last = (ended.stdout.splitlines() or ["nothing"])[-1]
    assert last == "done", f"{row.name} stopped at {last}:\n{ended.stderr[-2000:]}"
