"""Loops over lanes with long bodies, which are written once for full blocks and the rest."""

from __future__ import annotations

import numpy as np
import pytest
from nest_harness import I0, I1, J0, J1, I, J, K, N, Native, agree_native, at, load, op, rng, seq, values, vec

from runnel.backends.cpu import target
from runnel.backends.cpu.codegen import nest
from runnel.backends.cpu.codegen.loops import LONG
from runnel.compiler.lowering.parts import from_bits
from runnel.core import dtypes
from runnel.core.dtypes import DType, bool_, float32, int64
from runnel.loops import scalar
from runnel.loops.ir import Acc, Apply, Buffer, Const, Expr, Kernel, Let, Load, Param, Ref, Stmt, Store, Update

EVERYWHERE = pytest.mark.parametrize("row", [r for r in target.TARGETS if r.runs_here], ids=lambda r: r.name)


def chain(first: Expr, length: int) -> list[Stmt]:
    """Lets that go on from ``first``; the last is called v<length - 1>."""
    lets: list[Stmt] = [Let("v0", first)]
    for i in range(1, length):
        before = Ref(f"v{i - 1}", first.dtype)
        lets.append(Let(f"v{i}", op(scalar.mul if i % 2 else scalar.sub, before, Ref(f"v{i // 2}", first.dtype))))
    return lets


def elementwise(dtype: DType, length: int = LONG) -> Kernel:
    """From a row, one read backwards, and a gathered one, to a dense row, a bool row and every other element."""
    position = load("at", int64, (J, 1))
    gathered = Load("x", at(gathered=((position, 1),)), dtype)
    first = op(scalar.add, load("x", dtype, (J, 1)), op(scalar.add, load("y", dtype, (J, -1), offset=60), gathered))
    last = Ref(f"v{length - 1}", dtype)
    body = [
        *chain(first, length),
        Store("out", at((J, 1)), last),
        Store("flags", at((J, 1)), op(scalar.lt, last, Const(0, dtype), dtype=bool_)),
        Store("apart", at((J, 2)), last),
    ]
    kinds = {"x": dtype, "y": dtype, "at": int64, "out": dtype, "flags": bool_, "apart": dtype}
    buffers = tuple(Buffer(n, d, "in" if n in ("x", "y", "at") else "out") for n, d in kinds.items())
    return Kernel("long", buffers, (), (vec(J, J0, J1, *body),))


@EVERYWHERE
@pytest.mark.parametrize("dtype", [float32, dtypes.float64, dtypes.int8, dtypes.bfloat16], ids=lambda d: d.name)
def test_every_length(dtype: DType, row: target.InstructionSet) -> None:
    native = Native(elementwise(dtype), chosen=row)
    random = rng()
    arrays = {name: values(random, dtype, 120) for name in ("x", "y", "out", "apart")}
    arrays |= {"at": random.integers(0, 120, 120), "flags": np.zeros(120, np.bool_)}
    for n in (*range(36), 48, 50):
        agree_native(native, arrays, {}, 0, 1, 3, 3 + n)


@EVERYWHERE
def test_sums_within_rows(row: target.InstructionSet) -> None:
    """Lanes beyond the end of a row take no part in its sum and its maximum."""
    wide = ((I, N), (K, 1))
    last = Ref(f"v{LONG - 1}", float32)
    inner = vec(K, J0, J1, *chain(load("x", float32, *wide), LONG), Update("s", last), Update("m", last))
    body = seq(
        I, I0, I1, Acc("s", "sum", float32), Acc("m", "max", float32), inner,
        Store("sums", at((I, 1)), Ref("s", float32)), Store("highest", at((I, 1)), Ref("m", float32)),
    )  # fmt: skip
    buffers = (Buffer("x", float32, "in"), Buffer("sums", float32, "out"), Buffer("highest", float32, "out"))
    native = Native(Kernel("rows", buffers, (N,), (body,)), chosen=row)
    x = rng().uniform(-2, -1, 4 * 1200).astype(np.float32)
    for n in (1, 15, 16, 17, 33, 1040, 1200):
        zeros = {"sums": np.zeros(4, np.float32), "highest": np.zeros(4, np.float32)}
        agree_native(native, {"x": x, **zeros}, {"n": 1200}, 0, 4, 0, n)


@pytest.mark.parametrize("row", target.TARGETS, ids=lambda r: r.name)
def test_a_long_body_is_written_once(row: target.InstructionSet) -> None:
    text, twice = (nest.emit_kernel(elementwise(float32, n), row) for n in (LONG, LONG - 10))
    assert text.count("fmul") < 0.7 * twice.count("fmul")


@EVERYWHERE
@pytest.mark.parametrize("dtype", [float32, dtypes.float64, dtypes.bfloat16, dtypes.float16], ids=lambda d: d.name)
def test_constants_that_are_too_many_for_registers_are_read_at_each_use(
    dtype: DType, row: target.InstructionSet
) -> None:
    """One of them is a stride, too, and one is also used as an integer."""
    constants = [Param(f"c{i}") for i in range(nest.MOST_NUMBERS + 4)]
    whole = Apply(scalar.cast, (constants[0],), dtype)
    value: Expr = op(scalar.add, load("x", dtype, (I, constants[1]), (J, 1)), whole)
    for number in constants:
        value = op(scalar.add, op(scalar.mul, value, Const(0.5, dtype)), from_bits(number, dtype))
    loop = seq(I, I0, I1, vec(J, J0, J1, Store("out", at((I, constants[1]), (J, 1)), value)))
    kernel = Kernel("numbers", (Buffer("x", dtype, "in"), Buffer("out", dtype, "out")), tuple(constants), (loop,))
    native = Native(kernel, chosen=row)
    words = rng().standard_normal(len(constants)).astype(dtype.numpy).view(f"i{dtype.itemsize}").tolist()
    bits = {p.name: int(w) for p, w in zip(constants, words, strict=True)} | {"c1": 40}
    arrays = {"x": values(rng(), dtype, 120), "out": np.zeros(120, dtype.numpy)}
    for columns in (1, 16, 37):
        agree_native(native, arrays, bits, 0, 3, 0, columns)
    assert nest.emit_kernel(kernel, row).count("load i64, ptr") < nest.MOST_NUMBERS
