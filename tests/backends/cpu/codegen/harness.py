"""Runs a scalar operation on arrays: a loop of 16 lanes (or of one) around ``scalars.emit``, compiled and called."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from runnel.backends.cpu.codegen.lanes import emit
from runnel.backends.cpu.codegen.text import Emitter, element, vector
from runnel.backends.cpu.target import InstructionSet, host
from runnel.core.dtypes import DType, bool_
from runnel.loops.scalar import ScalarOp

LANES = 16


def module_text(
    target: InstructionSet, op: ScalarOp, arg_dtypes: tuple[DType, ...], dtype: DType, lanes: int,
    constants: tuple[tuple[int, Any], ...] = (),
) -> str:  # fmt: skip
    """``void f(ptr out, ptr a, ptr b, …, i64 n)``; n is a multiple of ``lanes``. ``constants`` fixes some arguments."""
    em = Emitter(target)
    fixed = dict(constants)
    em.effect("br label %loop")
    em.start("loop")
    em.effect("%i = phi i64 [0, %entry], [%next, %last]")
    names = []
    for k, d in enumerate(arg_dtypes):
        names.append(em.constant(fixed[k], d, lanes) if k in fixed else _load(em, f"%a{k}", d, lanes))
    result = emit(em, op, names, list(arg_dtypes), dtype, lanes)
    _store(em, result, dtype, lanes)
    em.effect("br label %last")
    em.start("last")
    em.effect(f"%next = add i64 %i, {lanes}")
    em.effect("%more = icmp ult i64 %next, %n")
    em.effect("br i1 %more, label %loop, label %end")
    em.start("end")
    em.effect("ret void")
    header = ", ".join(f"ptr noalias %a{k}" for k in range(len(arg_dtypes)))
    body = "\n".join(em.lines)
    declarations = "\n".join([*sorted(em.declarations), *em.definitions.values()])
    return f"{declarations}\ndefine void @f(ptr noalias %out, {header}, i64 %n) {{\nentry:\n{body}\n}}\n"


def _memory(dtype: DType, lanes: int) -> str:
    return ("i8" if lanes == 1 else f"<{lanes} x i8>") if dtype is bool_ else vector(dtype, lanes)


def _address(em: Emitter, base: str, dtype: DType) -> str:
    return em.value(f"getelementptr {'i8' if dtype is bool_ else element(dtype)}, ptr {base}, i64 %i")


def _load(em: Emitter, base: str, dtype: DType, lanes: int) -> str:
    memory = _memory(dtype, lanes)
    loaded = em.value(f"load {memory}, ptr {_address(em, base, dtype)}, align {dtype.itemsize}")
    if dtype is not bool_:
        return loaded
    return em.value(f"icmp ne {memory} {loaded}, {'0' if lanes == 1 else 'zeroinitializer'}")


def _store(em: Emitter, name: str, dtype: DType, lanes: int) -> None:
    memory = _memory(dtype, lanes)
    if dtype is bool_:
        name = em.value(f"zext {vector(dtype, lanes)} {name} to {memory}")
    em.effect(f"store {memory} {name}, ptr {_address(em, '%out', dtype)}, align {dtype.itemsize}")


@functools.cache
def _jit() -> Any:
    return llvm.create_lljit_compiler(host().machine())


_KEPT: list[Any] = []


@functools.cache
def compiled(
    op: ScalarOp, arg_dtypes: tuple[DType, ...], dtype: DType, lanes: int = LANES,
    constants: tuple[tuple[int, Any], ...] = (),
) -> Callable[..., np.ndarray[Any, Any]]:  # fmt: skip
    """The operation as a function on equally long arrays."""
    module = llvm.parse_assembly(module_text(host(), op, arg_dtypes, dtype, lanes, constants))
    module.verify()
    code = host().machine().emit_object(module)
    name = f"{op.name}.{len(_KEPT)}"
    tracker = llvm.JITLibraryBuilder().add_object_img(code).export_symbol("f").link(_jit(), name)
    _KEPT.append(tracker)
    function = ctypes.CFUNCTYPE(None, *([ctypes.c_void_p] * (1 + len(arg_dtypes))), ctypes.c_int64)(tracker["f"])

    def run(*arrays: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        size = arrays[0].size
        padded = -(-size // LANES) * LANES
        inputs = []
        for array, d in zip(arrays, arg_dtypes, strict=True):
            buffer = np.ones(padded, d.numpy)
            buffer[:size] = array
            inputs.append(buffer)
        out = np.empty(padded, dtype.numpy)
        function(out.ctypes.data, *(b.ctypes.data for b in inputs), padded)
        return out[:size]

    return run
