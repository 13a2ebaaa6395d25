"""Products inside kernels: matrices in scratch memory, made and read between ordinary loops."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from nest_harness import I0, I1, Array, I, J, at, load, op, seq, vec

from runnel.backends.cpu.codegen import build, contract
from runnel.backends.interpreter import kernels as interpreter
from runnel.core.dtypes import DType, float32, float64, int32, int64
from runnel.core.errors import VerifierError
from runnel.loops import printer, scalar, verifier
from runnel.loops.ir import (
    Apply,
    Buffer,
    Const,
    Index,
    Kernel,
    Let,
    Load,
    Param,
    Position,
    Product,
    Ref,
    Store,
    Var,
)

HEIGHT = 5  # rows of a block
T = Var("t")


def blocks_of_rows(dtype: DType) -> Kernel:
    """out[r] = (x[r]·yᵀ + 1)·y for each block of rows, whose first rows are in a table; the last block is shorter."""
    rows, inner, width = Param("rows"), Param("inner"), Param("width")
    first = Apply(scalar.cast, (Load("table", at((T, 1)), int32),), int64)
    left = Apply(scalar.sub, (rows, Ref("first", int64)), int64)
    here = Index(gathered=((Ref("first", int64), width),))
    one = Const(1.0, dtype)
    more = Store("s", at((I, inner), (J, 1)), op(scalar.add, load("s", dtype, (I, inner), (J, 1)), one))
    body = (
        Let("first", first),
        Let("height", Apply(scalar.minimum, (Const(HEIGHT, int64), left), int64)),
        Product("x", here, "y", Index(), "s", Index(), dtype, Ref("height", int64), inner, width, width, 1, 1, width,
                inner),
        seq(I, 0, Ref("height", int64), vec(J, 0, inner, more)),
        Product("s", Index(), "y", Index(), "out", here, dtype, Ref("height", int64), width, inner, inner, 1, width, 1,
                width),
    )  # fmt: skip
    buffers = (
        Buffer("x", dtype, "in"), Buffer("y", dtype, "in"), Buffer("table", int32, "in"), Buffer("out", dtype, "out"),
        Buffer("s", dtype, "scratch"),
    )  # fmt: skip
    return Kernel(f"blocks_of_rows_{dtype.name}", buffers, (rows, inner, width), (seq(T, I0, I1, *body),))


def run_native(kernel: Kernel, arrays: dict[str, Array], params: dict[str, int], i0: int, i1: int) -> None:
    (address,) = build.kernels([kernel])
    scratch = np.zeros(contract.SCRATCH + arrays["s"].nbytes, np.uint8)
    shared = [b for b in kernel.buffers if b.mode != "scratch"]
    bases = (ctypes.c_int64 * len(shared))(*[arrays[b.name].ctypes.data for b in shared])
    thread = (ctypes.c_int64 * 16)(ctypes.addressof(bases), scratch.ctypes.data, scratch.nbytes)
    words = [word for slot in range(len(shared)) for word in (slot, 0)] + [0, contract.SCRATCH]
    words += [params[p.name] for p in kernel.params]
    args = (ctypes.c_int64 * len(words))(*words)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 4)(address)
    function(ctypes.addressof(thread), ctypes.addressof(args), i0, i1, 0, 1)


@pytest.mark.parametrize("dtype", [float32, float64])
def test_products_between_loops(dtype: DType) -> None:
    rows, inner, width = 13, 21, 18
    source = np.random.default_rng(0)
    x, y = source.normal(size=(rows, width)), source.normal(size=(inner, width))
    arrays = {
        "x": x.astype(dtype.numpy).reshape(-1),
        "y": y.astype(dtype.numpy).reshape(-1),
        "table": np.array([0, 5, 10], np.int32),
        "out": np.zeros(rows * width, dtype.numpy),
        "s": np.full(HEIGHT * inner, np.nan, dtype.numpy),
    }
    kernel = blocks_of_rows(dtype)
    verifier.verify(kernel)
    params = {"rows": rows, "inner": inner, "width": width}
    expected = {name: a.copy() for name, a in arrays.items()}
    interpreter.run(kernel, expected, params, 0, 3)
    run_native(kernel, arrays, params, 0, 3)
    assert arrays["out"].tobytes() == expected["out"].tobytes()
    exact = (x @ y.T + 1) @ y
    np.testing.assert_allclose(arrays["out"].reshape(rows, width), exact, rtol=1e-4, atol=1e-4)


def test_products_are_checked_and_printed() -> None:
    kernel = blocks_of_rows(float32)
    assert "s[0 + i*inner + j] = product float32 i<height, j<inner, k<width of" in printer.text(kernel)
    inside = Product("x", Index(), "y", Index(), "s", Index(), float32, 1, 1, 1, 1, 1, 1, 1, 1)
    wrong = Kernel("wrong", kernel.buffers, kernel.params, (vec(J, 0, 4, inside),))
    with pytest.raises(VerifierError, match="outside vec loops"):
        verifier.verify(wrong)
    lane = Let("lane", Position(J, int64))
    wrong = Kernel("wrong", kernel.buffers, (), (vec(J, 0, 4, lane, seq(I, 0, Ref("lane", int64))),))
    with pytest.raises(VerifierError, match="known outside vec loops"):
        verifier.verify(wrong)
    early = Store("out", at((J, 1)), load("s", float32, (J, 1)))
    with pytest.raises(VerifierError, match="mode scratch"):
        verifier.verify(Kernel("wrong", kernel.buffers, (), (vec(J, 0, 4, early),)))
