"""Compile a kernel of the loop IR and run it beside the interpreter; short names for writing kernels."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from runnel.backends.cpu import target
from runnel.backends.cpu.codegen import nest
from runnel.backends.interpreter import kernels as interpreter
from runnel.core.dtypes import DType, bool_, float32
from runnel.loops import scalar, verifier
from runnel.loops.ir import (
    Apply,
    Bound,
    Const,
    Expr,
    For,
    Index,
    Kernel,
    Load,
    Param,
    RangeBound,
    Stmt,
    Stride,
    Var,
)

Array = np.ndarray[Any, Any]
I0, I1, J0, J1 = RangeBound.I0, RangeBound.I1, RangeBound.J0, RangeBound.J1
I, J, K = Var("i"), Var("j"), Var("k")  # noqa: E741 - as in the formulas
N = Param("n")
ONE = Const(1.0, float32)


class Native:
    """A kernel compiled for this machine's target or another that runs here: called like ``interpreter.run``."""

    _engines = itertools.count()
    _jit: Any = None

    def __init__(
        self, kernel: Kernel, symbols: dict[str, int] | None = None, chosen: target.InstructionSet | None = None
    ) -> None:
        verifier.verify(kernel)
        host = chosen or target.host()
        text = nest.emit_kernel(kernel, host)
        if host == target.host():
            compile_for_others(kernel, text)
        if Native._jit is None:
            Native._jit = llvm.create_lljit_compiler(target.host().machine())
        library = llvm.JITLibraryBuilder().add_object_img(machine_code(text, host))
        for name, address in (symbols or {}).items():
            library.import_symbol(name, address)
        self.kernel = kernel
        self.library = library.export_symbol(kernel.name).link(Native._jit, f"test_nest_{next(Native._engines)}")
        words = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 4
        self.function = ctypes.CFUNCTYPE(None, *words)(self.library[kernel.name])

    def __call__(
        self, arrays: dict[str, Array], params: dict[str, int], i0: int, i1: int, j0: int = 0, j1: int = 1
    ) -> None:
        kernel = self.kernel
        bases = (ctypes.c_int64 * (len(arrays) + 1))(*[arrays[b.name].ctypes.data - 64 for b in kernel.buffers])
        thread = (ctypes.c_int64 * 8)(ctypes.addressof(bases))
        words = [word for slot in range(len(kernel.buffers)) for word in (slot, 64)]
        words += [params[p.name] for p in kernel.params]
        args = (ctypes.c_int64 * (len(words) + 1))(*words)
        self.function(ctypes.addressof(thread), ctypes.addressof(args), i0, i1, j0, j1)


def compile_for_others(kernel: Kernel, text: str) -> None:
    """Code generation must not fail anywhere: each other text is compiled for the least machine that has it."""
    texts = {text}
    for row in reversed(target.TARGETS):
        other = nest.emit_kernel(kernel, row)
        if other not in texts:
            texts.add(other)
            machine_code(other, row)


def machine_code(text: str, row: target.InstructionSet) -> bytes:
    module = llvm.parse_assembly(text)
    module.verify()
    return bytes(row.machine().emit_object(module))


def agree(kernel: Kernel, arrays: dict[str, Array], params: dict[str, int], *block: int) -> dict[str, Array]:
    """Run natively and in the interpreter; every byte of every array must agree. Returns the native results."""
    return agree_native(Native(kernel), arrays, params, *block)


def agree_native(native: Native, arrays: dict[str, Array], params: dict[str, int], *block: int) -> dict[str, Array]:
    actual = {name: array.copy() for name, array in arrays.items()}
    expected = {name: array.copy() for name, array in arrays.items()}
    native(actual, params, *block)
    interpreter.run(native.kernel, expected, params, *block)
    for name in arrays:
        same = (actual[name].view(np.uint8) == expected[name].view(np.uint8)).reshape(len(actual[name]), -1).all(axis=1)
        both_nan = (actual[name] != actual[name]) & (expected[name] != expected[name])
        assert (same | both_nan).all(), f"{name}: {actual[name]} is not {expected[name]}"
    return actual


def at(*terms: tuple[Var, Stride], offset: Stride = 0, gathered: tuple[tuple[Expr, Stride], ...] = ()) -> Index:
    return Index(terms, offset, gathered)


def load(buffer: str, dtype: DType, *terms: tuple[Var, Stride], offset: Stride = 0) -> Load:
    return Load(buffer, at(*terms, offset=offset), dtype)


def op(which: scalar.ScalarOp, *args: Expr, dtype: DType | None = None) -> Apply:
    return Apply(which, args, dtype or args[0].dtype)


def vec(var: Var, begin: Bound, end: Bound, *body: Stmt) -> For:
    return For(var, begin, end, "vec", body)


def seq(var: Var, begin: Bound, end: Bound, *body: Stmt) -> For:
    return For(var, begin, end, "seq", body)


def values(rng: np.random.Generator, dtype: DType, n: int) -> Array:
    if dtype is bool_:
        return rng.integers(0, 2, n).astype(np.bool_)
    if dtype.is_integer:
        limits = np.iinfo(dtype.numpy)
        return rng.integers(limits.min, limits.max, n, dtype=dtype.numpy, endpoint=True)
    return rng.standard_normal(n).astype(dtype.numpy)


def rng() -> np.random.Generator:
    return np.random.default_rng(7)
