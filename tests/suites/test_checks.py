"""The statement ``Check`` of the loop IR, from text to machine code, and what a program does when one fails."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel import ops
from runnel.backends.cpu import target
from runnel.backends.cpu.codegen import nest
from runnel.backends.cpu.codegen.build import kernels as linked
from runnel.backends.cpu.launch import Launch, barrier_address
from runnel.backends.interpreter import kernels as interpreter
from runnel.core.dtypes import bool_, int64
from runnel.core.errors import AxisError, VerifierError
from runnel.loops import printer, scalar, verifier
from runnel.loops.ir import (
    Acc,
    Apply,
    Buffer,
    Check,
    Const,
    Expr,
    For,
    Index,
    Kernel,
    Load,
    Param,
    RangeBound,
    Ref,
    Stmt,
    Update,
    Var,
)

I, J = Var("i"), Var("j")  # noqa: E741
X = Load("x", Index(((I, Param("ld")), (J, 1))), int64)
SMALL = Apply(scalar.lt, (X, Const(10, int64)), bool_)


def kernel(*body: Stmt, code: Any = 7) -> Kernel:
    return Kernel(f"checked_{code if isinstance(code, int) else code.name}", (Buffer("x", int64, "in"),), PARAMS, body)


PARAMS = (Param("ld"), Param("code"))


def by_rows(code: Any) -> Kernel:
    """Every element of x must be below 10."""
    vec = For(J, RangeBound.J0, RangeBound.J1, "vec", (Update("ok", SMALL),))
    block = (Acc("ok", "all", bool_), vec, Check(Ref("ok", bool_), code))
    return kernel(For(I, RangeBound.I0, RangeBound.I1, "seq", block), code=code)


def test_text() -> None:
    assert "        check ok else code\n" in printer.text(by_rows(PARAMS[1]))
    assert printer.statement(Check(Ref("ok", bool_), 7)) == "check ok else 7"
    assert '"node": "Check"' in str(printer.as_json(by_rows(7))).replace("'", '"')


@pytest.mark.parametrize(
    ("value", "code", "why"),
    [
        (X, 7, "a Check is of a bool, not of int64"),
        (Ref("ok", bool_), 0, "the code of a Check is not 0"),
        (Ref("ok", bool_), Param("other"), "no param 'other'"),
        (Ref("no", bool_), 7, "no value called 'no'"),
    ],
)
def test_ill_formed(value: Expr, code: Any, why: str) -> None:
    vec = For(J, RangeBound.J0, RangeBound.J1, "vec", (Update("ok", SMALL),))
    body: Stmt = For(I, RangeBound.I0, RangeBound.I1, "seq", (Acc("ok", "all", bool_), vec, Check(value, code)))
    if value is X:
        body = For(J, 0, 1, "seq", (For(I, 0, 1, "seq", (Check(value, code),)),))
    with pytest.raises(VerifierError, match=why):
        verifier.verify(kernel(body))


def test_not_in_lanes() -> None:
    inside = For(I, 0, 1, "seq", (For(J, RangeBound.J0, RangeBound.J1, "vec", (Check(SMALL, 7),)),))
    with pytest.raises(VerifierError, match="outside vec loops"):
        verifier.verify(kernel(inside))


@pytest.mark.parametrize("code", [7, PARAMS[1]], ids=["literal", "param"])
def test_native_reports_what_the_interpreter_reports(code: Any) -> None:
    tested = by_rows(code)
    verifier.verify(tested)
    for row in target.TARGETS:
        assert "store i64" in nest.emit_kernel(tested, row)
    words = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 4
    function = ctypes.CFUNCTYPE(None, *words)(linked([tested])[0])
    for place in (None, (0, 0), (2, 36), (1, 17), (3, 5)):
        x = np.zeros((4, 37), np.int64)
        if place is not None:
            x[place] = 10
        for block in ((0, 4, 0, 37), (0, 2, 0, 37), (1, 3, 0, 20), (2, 2, 0, 37)):
            bases = (ctypes.c_int64 * 1)(x.ctypes.data)
            thread = (ctypes.c_int64 * 8)(ctypes.addressof(bases))
            args = (ctypes.c_int64 * 4)(0, 0, 37, 7)
            function(ctypes.addressof(thread), ctypes.addressof(args), *block)
            fault = interpreter.run(tested, {"x": x.reshape(-1)}, {"ld": 37, "code": 7}, *block)
            i0, i1, j0, j1 = block
            assert thread[6] == fault == (7 if (x[i0:i1, j0:j1] == 10).any() else 0)


def test_a_fault_stops_all_threads_at_the_next_barrier() -> None:
    """Whichever thread finds the fault: nothing after the barrier runs, and the next run is whole."""
    tested = by_rows(7)
    address = linked([tested])[0]
    x = np.zeros((3, 37), np.int64)
    behind = np.full((1, 37), 10, np.int64)  # running this would report too
    bases = np.array([x.ctypes.data, behind.ctypes.data], np.int64)
    first, second = np.array([0, 0, 37, 7], np.int64), np.array([1, 0, 37, 9], np.int64)
    other = by_rows(PARAMS[1])
    programs = []
    for t in range(3):
        rows = [
            (address, first.ctypes.data, t, t + 1, 0, 37, 0, 0),
            (barrier_address(), 0, 0, 0, 0, 0, 0, 0),
            (linked([other])[0], second.ctypes.data, 0, 1, 0, 37, 0, 0),
            (0,) * 8,
        ]
        programs.append(np.array(rows, np.int64))
    launch = Launch(programs, bases.ctypes.data)
    assert launch.run() == 9
    for _ in range(200):
        for t in range(3):
            x[t, 36] = 10
            assert launch.run() == 7, "the fault before the barrier, not the one behind it"
            x[t, 36] = 0
    behind[:] = 0
    assert launch.run() == 0


def test_compiled_functions_change_nothing_at_a_fault() -> None:
    table = rn.Variable(np.ones((5, 3), np.float32), name="table")
    count = rn.Variable(np.zeros(3, np.float32), name="count")

    @rn.compile
    def step(i: rn.Tensor) -> rn.Tensor:
        count.assign(count + 1.0)
        rows = ops.embedding(table, i)
        table.assign(table * 2.0)
        return rows.sum()

    good, bad = rn.asarray(np.array([0, 4])), rn.asarray(np.array([0, 5]))
    values = [step(good).item() for _ in range(3)]
    assert values == [6.0, 12.0, 24.0]
    for _ in range(2):
        with pytest.raises(AxisError, match=r"\[0, 5\)"):
            step(bad)
    assert count.tolist() == [3.0] * 3 and table.tolist()[0] == [8.0] * 3
    assert step(good).item() == 48.0


def test_faults_on_several_python_threads() -> None:
    """A fault belongs to the run that found it."""
    x = rn.asarray(np.arange(8, dtype=np.float32))
    wrong: list[int] = []

    def work(limit: int) -> None:
        i = rn.asarray(np.full(4, limit))
        for _ in range(200):
            try:
                ops.embedding(x, i)
                wrong.append(limit) if limit >= 8 else None
            except AxisError:
                wrong.append(limit) if limit < 8 else None

    workers = [threading.Thread(target=work, args=(limit,)) for limit in (3, 8, 7, 9)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong
