"""Kernels that begin with a Contract: how they call the generic contraction and run their epilogue."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from images import Image, native
from listed_products import indirect, listed_data, panelled, panelled_data, resumed, resumed_data
from nest_harness import (
    I0,
    I1,
    J0,
    J1,
    Array,
    I,
    J,
    Native,
    at,
    load,
    op,
    rng,
    seq,
    values,
    vec,
)

from runnel.backends.cpu import target
from runnel.backends.cpu.codegen import products
from runnel.backends.interpreter import kernels as interpreter
from runnel.core import dtypes
from runnel.core.dtypes import DType, float32, float64, int64
from runnel.core.errors import VerifierError
from runnel.core.records import replace
from runnel.loops import printer, scalar, verifier
from runnel.loops.ir import (
    BatchSpec,
    Buffer,
    Contract,
    Kernel,
    Param,
    Store,
)


def contraction(element: DType) -> Any:
    """A stand-in for the generic contraction: NumPy, one block, then the epilogue."""
    words = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 10 + [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 2
    words += [ctypes.c_void_p] * 2 + [ctypes.c_int64]
    kernel_type = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 4)

    def at_address(address: int, count: int) -> Array:
        return np.frombuffer((ctypes.c_char * (count * element.itemsize)).from_address(address), element.numpy)

    def run(*call: int) -> None:
        (a, b, c), (a_row, a_k, b_k, b_col, c_row, k, i0, i1, j0, j1) = call[:3], call[3:13]
        epilogue, thread, args, *_ = call[13:]
        i, j, inner = np.arange(i0, i1)[:, None], np.arange(j0, j1)[None, :], np.arange(k)
        left = at_address(a, 1 + (i1 - 1) * a_row + (k - 1) * a_k)[i * a_row + inner * a_k]
        right = at_address(b, 1 + (k - 1) * b_k + (j1 - 1) * b_col)[inner[:, None] * b_k + j * b_col]
        at_address(c, 1 + (i1 - 1) * c_row + j1 - 1)[i * c_row + j] = left @ right
        if epilogue:
            half = (i0 + i1) // 2
            kernel_type(epilogue)(thread, args, i0, half, j0, j1)
            kernel_type(epilogue)(thread, args, half, i1, j0, j1)

    return ctypes.CFUNCTYPE(None, *words)(run)


def contract_spec(dtype: DType, batch: BatchSpec | None = None) -> tuple[Contract, tuple[Param, ...]]:
    names = ("k", "a_row", "a_k", "b_k", "b_col", "c_row")
    params = tuple(map(Param, names))
    return Contract("a", "b", "c", dtype, *params, batch=batch), params


@pytest.mark.parametrize("with_epilogue", [True, False])
def test_contract_calls_the_generic_function_with_its_epilogue(with_epilogue: bool) -> None:
    spec, params = contract_spec(float32)
    c = load("c", float32, (I, Param("c_row")), (J, 1))
    result = Store("out", at((I, 19), (J, 1)), op(scalar.add, c, load("bias", float32, (J, 1))))
    epilogue = (seq(I, I0, I1, vec(J, J0, J1, result)),) if with_epilogue else ()
    buffers = [Buffer(b, float32, "in") for b in ("a", "b", "bias")] + [
        Buffer(b, float32, "inout") for b in ("c", "out")
    ]
    kernel = Kernel("product", tuple(buffers), params, (spec, *epilogue))
    callback = contraction(float32)
    address = ctypes.cast(callback, ctypes.c_void_p).value or 0
    native = Native(kernel, {products.symbol(float32): address})
    arrays = {
        "a": values(rng(), float32, 6 * 8),
        "b": values(rng(), float32, 8 * 19),
        "bias": values(rng(), float32, 19),
    }
    arrays = {**arrays, "c": np.zeros(6 * 19, np.float32), "out": np.zeros(6 * 19, np.float32)}
    numbers = {"k": 8, "a_row": 8, "a_k": 1, "b_k": 19, "b_col": 1, "c_row": 19}
    native(arrays, numbers, 1, 6, 0, 19)
    expected = np.zeros((6, 19), np.float32)
    expected[1:] = arrays["a"].reshape(6, 8)[1:] @ arrays["b"].reshape(8, 19)
    np.testing.assert_allclose(arrays["c"].reshape(6, 19), expected, rtol=1e-5)
    if with_epilogue:
        expected[1:] = arrays["c"].reshape(6, 19)[1:] + arrays["bias"]
    np.testing.assert_array_equal(arrays["out"].reshape(6, 19), expected if with_epilogue else np.zeros((6, 19)))


def test_batched_contract() -> None:
    batch = BatchSpec(*map(Param, ("m", "n", "a_step", "b_step", "c_step")))
    spec, params = contract_spec(float64, batch)
    buffers = (Buffer("a", float64, "in"), Buffer("b", float64, "in"), Buffer("c", float64, "out"))
    kernel = Kernel("batched", buffers, (*params, *map(Param, ("m", "n", "a_step", "b_step", "c_step"))), (spec,))
    callback = contraction(float64)
    native = Native(kernel, {products.symbol(float64): ctypes.cast(callback, ctypes.c_void_p).value or 0})
    arrays = {"a": values(rng(), float64, 5 * 12), "b": values(rng(), float64, 5 * 28), "c": np.zeros(5 * 21)}
    numbers = {"k": 4, "a_row": 4, "a_k": 1, "b_k": 7, "b_col": 1, "c_row": 7, "m": 3, "n": 7}
    native(arrays, {**numbers, "a_step": 12, "b_step": 28, "c_step": 21}, 1, 4)
    expected = arrays["a"].reshape(5, 3, 4) @ arrays["b"].reshape(5, 4, 7)
    expected[[0, 4]] = 0
    np.testing.assert_allclose(arrays["c"].reshape(5, 3, 7), expected, rtol=1e-12)
    before = arrays["c"].copy()
    native(arrays, {**numbers, "a_step": 12, "b_step": 28, "c_step": 21}, 3, 3)
    np.testing.assert_array_equal(arrays["c"], before)


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_lists_and_resumed_chains_mean_what_the_interpreter_says(dtype: DType) -> None:
    pairs = [(indirect(dtype), listed_data(dtype)), (resumed(dtype), resumed_data(dtype))]
    for width in (16, target.host().panel_columns(dtype)):
        pairs.append((panelled(dtype, width), panelled_data(dtype, width)))
    for kernel, data in pairs:
        verifier.verify(kernel)
        for arrays, params, rows in data:
            image = Image()
            slots = [image.put(arrays[b.name]) for b in kernel.buffers]
            image.call(kernel, slots, [params[p.name] for p in kernel.params], 0, rows, 0, params["n"])
            actual = native(image)[slots[2]]
            interpreter.run(kernel, arrays, params, 0, rows, 0, params["n"])
            assert actual.tobytes() == arrays["c"].tobytes()
            assert not np.isnan(actual).any()


def test_lists_are_checked_and_printed() -> None:
    kernel = indirect(float32)
    assert "contract float32 k<k of a[rows[i] + ks[k]], b[k*n + j*one]" in printer.text(kernel)
    wide = tuple(Buffer("rows", int64, "in") if b.name == "rows" else b for b in kernel.buffers)
    with pytest.raises(VerifierError, match=r"list of offsets and int64"):
        verifier.verify(Kernel("wrong", wide, kernel.params, kernel.body))
    stepping = replace(kernel.body[0], a_k=1)
    with pytest.raises(VerifierError, match="0 for A's strides"):
        verifier.verify(Kernel("wrong", kernel.buffers, kernel.params, (stepping,)))
    arrays, params, rows = next(listed_data(float32))
    with pytest.raises(VerifierError, match=r"rows\[1\]"):
        interpreter.run(kernel, arrays, params, 0, rows + 1, 0, params["n"])


def test_contractions_exist_in_three_dtypes() -> None:
    assert products.symbol(float32) == "rn_contract_f32"
    assert products.symbol(dtypes.bfloat16) == "rn_contract_bf16"
    with pytest.raises(VerifierError, match="float16"):
        products.symbol(dtypes.float16)
