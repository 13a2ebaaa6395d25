"""Each scalar operation, compiled, against its NumPy meaning; and its object code for every target."""

from __future__ import annotations

import itertools
import struct
import warnings
from collections.abc import Iterator
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from harness import compiled, module_text
from hypothesis import given, settings, strategies as st

from runnel.backends.cpu.codegen.lanes import emit
from runnel.backends.cpu.codegen.text import Emitter
from runnel.backends.cpu.target import AVX2, AVX512, NEON, InstructionSet
from runnel.core import dtypes
from runnel.core.dtypes import DType, bfloat16, bool_, float16, float32, float64, int32, int64, uint32, uint64
from runnel.core.errors import DTypeError
from runnel.core.records import replace
from runnel.loops import scalar
from runnel.loops.formulas import table
from runnel.loops.scalar import SCALAR_OPS, ScalarOp

Array = np.ndarray[Any, Any]
HALVES = (float16, bfloat16)
CASTS = (scalar.cast, scalar.bitcast)


def supported(*ops: ScalarOp) -> Iterator[tuple[ScalarOp, DType]]:
    for op in ops:
        yield from ((op, d) for d in dtypes.REAL if table.supports(op, d))


def signatures(op: ScalarOp) -> Iterator[tuple[tuple[DType, ...], DType]]:
    """The argument dtypes and the result dtype of every form of an operation."""
    for _, d in supported(op):
        if op is scalar.select:
            yield (bool_, d, d), d
        elif op in CASTS:
            yield from (((d,), to) for to in dtypes.REAL if op is scalar.cast or to.itemsize == d.itemsize)
        else:
            yield (d,) * op.arity, bool_ if op.result == "bool" else d


def distinct_forms(op: ScalarOp) -> list[tuple[tuple[DType, ...], DType]]:
    """The forms whose code differs in more than conversions: one for each function that is computed in float64 whatever
    its argument is. LLVM takes seconds for each of these."""
    is_in_float64 = hasattr(table.TABLE[op].rule, "__wrapped__")
    return [((float32,) * op.arity, float32)] if is_in_float64 else list(signatures(op))


def sample(dtype: DType, size: int, seed: int) -> Array:
    """Values of every magnitude, with the special ones in between."""
    rng = np.random.default_rng(seed)
    if dtype is bool_:
        return rng.integers(0, 2, size).astype(bool)
    bits = rng.integers(0, 256, (size, dtype.itemsize), dtype=np.uint8).view(dtype.numpy)[:, 0]
    near = rng.integers(-9 if dtype.kind != "uint" else 0, 10, size)
    with np.errstate(all="ignore"):
        small = (near * 0.5).astype(dtype.numpy) if dtype.is_float else near.astype(dtype.numpy)
    values = np.where(rng.random(size) < 0.5, bits, small)
    if dtype.is_float:
        edges = [np.nan, np.inf, -np.inf, 0.0, -0.0]
    else:
        info = np.iinfo(dtype.numpy)
        edges = [info.min, info.max, 0, 1, info.max - 1]
    places = rng.random(size) < 0.2
    values[places] = rng.choice(np.array(edges, dtype.numpy), int(places.sum()))
    return values


def same(actual: Array, expected: Array) -> bool:
    """Equal to the bit, but for the signs and payloads of NaNs."""
    if actual.dtype != expected.dtype:
        return False
    with np.errstate(all="ignore"):
        nan = (actual != actual) & (expected != expected)
    bits = actual.view(np.uint8).reshape(actual.size, -1) == expected.view(np.uint8).reshape(expected.size, -1)
    return bool(np.all(nan | bits.all(1)))


def without_sign_of_zero(x: Array) -> Array:
    return np.where(x == 0, np.zeros_like(x), x)


def reference(op: ScalarOp, dtype: DType, *arrays: Array) -> Array:
    """The NumPy meaning; float16 and bfloat16 by way of float32, rounded once."""
    if op is scalar.rint and dtype.is_integer:
        return arrays[0]  # NumPy goes through float64
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        wide = [a.astype(np.float32) if a.dtype in (np.float16, bfloat16.numpy) else a for a in arrays]
        return np.asarray(op.numpy(*wide)).astype(dtype.numpy)


def test_every_operation_has_a_row() -> None:
    assert set(table.TABLE) == set(SCALAR_OPS)


def test_every_bound_is_of_an_operation_on_floats() -> None:
    for op, bounds in table.ULP_BOUNDS.items():
        assert set(bounds) == {float32, float64}
        assert table.supports(op, float32)


def test_unsupported_dtypes_are_refused() -> None:
    with pytest.raises(DTypeError, match=r"\[exp\].*int32"):
        emit(Emitter(AVX2), scalar.exp, ["%x"], [int32], int32, 16)
    with pytest.raises(DTypeError, match="mul_high"):
        emit(Emitter(AVX2), scalar.mul_high, ["%x", "%y"], [uint64, uint64], uint64, 16)


EXACT = [
    op
    for op in SCALAR_OPS
    if op not in table.ULP_BOUNDS and op not in (scalar.fma, scalar.bitcast, scalar.cast, scalar.select)
]


@pytest.mark.parametrize(("op", "dtype"), list(supported(*EXACT)), ids=str)
@settings(deadline=None, max_examples=4)
@given(seed=st.integers(0, 2**32 - 1))
def test_exact_operations(op: ScalarOp, dtype: DType, seed: int) -> None:
    result = bool_ if op.result == "bool" else dtype
    arrays = [sample(dtype, 203, seed + k) for k in range(op.arity)]
    if op in (scalar.shift_left, scalar.shift_right):
        arrays[1] = np.random.default_rng(seed).integers(-2 if dtype.kind == "int" else 0, 70, 203).astype(dtype.numpy)
    expected = reference(op, result, *arrays)
    actual = compiled(op, (dtype,) * op.arity, result)(*arrays)
    if op in (scalar.maximum, scalar.minimum, scalar.sign):
        actual, expected = without_sign_of_zero(actual), without_sign_of_zero(expected)  # which NumPy leaves open
    assert same(actual, expected), (arrays, actual, expected)
    one_by_one = compiled(op, (dtype,) * op.arity, result, 1)(*arrays)
    assert same(one_by_one, compiled(op, (dtype,) * op.arity, result)(*arrays))


@pytest.mark.parametrize("dtype", dtypes.REAL, ids=str)
def test_select(dtype: DType) -> None:
    condition, a, b = sample(bool_, 99, 1), sample(dtype, 99, 2), sample(dtype, 99, 3)
    actual = compiled(scalar.select, (bool_, dtype, dtype), dtype)(condition, a, b)
    assert same(actual, np.where(condition, a, b))


@pytest.mark.parametrize("dtype", [d for d in dtypes.REAL if d is not bool_], ids=str)
def test_bitcast(dtype: DType) -> None:
    x = sample(dtype, 64, 5)
    for to in dtypes.REAL:
        if to.itemsize == dtype.itemsize and to is not bool_:
            assert np.array_equal(compiled(scalar.bitcast, (dtype,), to)(x).view(np.uint8), x.view(np.uint8))


@pytest.mark.parametrize("dtype", [float32, float64, int32, uint64], ids=str)
def test_fma(dtype: DType) -> None:
    if dtype.is_float:
        tiny = float(np.finfo(dtype.numpy).eps)
        x = np.full(16, 1 + tiny, dtype.numpy)
        left = compiled(scalar.fma, (dtype,) * 3, dtype)(x, x, np.full(16, -1 - 2 * tiny, dtype.numpy))
        assert np.all(left == tiny**2)
    else:
        a, b, c = (sample(dtype, 64, k) for k in range(3))
        assert np.array_equal(compiled(scalar.fma, (dtype,) * 3, dtype)(a, b, c), a * b + c)


@pytest.mark.parametrize("op", [scalar.maximum, scalar.minimum], ids=str)
def test_extremes_beside_a_constant_keep_nan(op: ScalarOp) -> None:
    x = sample(float32, 256, 7)
    for constant in (0.0, float("nan")):
        for place in (0, 1):
            fixed = np.full_like(x, constant)
            actual = compiled(op, (float32,) * 2, float32, constants=((place, constant),))(x, x)
            assert np.array_equal(actual, op.numpy(x, fixed), equal_nan=True)


def test_remainder_of_far_apart_floats() -> None:
    for dtype in (float32, float64):
        info = np.finfo(dtype.numpy)
        a = np.array([info.max, info.max, -info.max, 1e30, 5.5, info.max, info.smallest_subnormal * 7], dtype.numpy)
        least = info.smallest_subnormal
        b = np.array([least * 3, 0.7, 1e-30, -3.1, -info.max, np.inf, least * 5], dtype.numpy)
        assert same(compiled(scalar.remainder, (dtype,) * 2, dtype)(a, b), np.remainder(a, b))


def test_integers_to_a_power() -> None:
    x = np.array([3, -2, 2, -1, -1, 1, 0, 0, 5, 7, -7, 2], np.int32)
    y = np.array([4, 5, 31, -3, -4, -9, 0, -1, -1, 100, 77, 33], np.int32)
    expected = [81, -32, -(2**31), -1, 1, 1, 1, 0, 0, *np.power(x[-3:], y[-3:])]
    assert compiled(scalar.pow_, (int32, int32), int32)(x, y).tolist() == expected
    a = sample(uint64, 64, 3)
    b = a >> np.uint64(58)
    assert np.array_equal(compiled(scalar.pow_, (uint64, uint64), uint64)(a, b), np.power(a, b))


# casts


def exact_integer(x: Any, to: DType) -> int:
    """Convert a float to an integer: cut toward 0, saturated, NaN as 0."""
    info = np.iinfo(to.numpy)
    value = float(x)
    if value != value:
        return 0
    if value in (float("inf"), float("-inf")):
        return int(info.max if value > 0 else info.min)
    return min(max(int(value), int(info.min)), int(info.max))


@pytest.mark.parametrize("to", dtypes.INTEGERS, ids=str)
@pytest.mark.parametrize("dtype", dtypes.FLOATS, ids=str)
def test_floats_to_integers_saturate(dtype: DType, to: DType) -> None:
    info = np.iinfo(to.numpy)
    with np.errstate(all="ignore"):
        half = 2.0 ** (to.itemsize * 8 - 1)
        edges = np.array([info.min, info.max, -1, 0.99, -0.99, half], np.float64).astype(dtype.numpy)
    around = [np.nextafter(e, s * np.array(np.inf, dtype.numpy)) for e in edges for s in (-1, 1)]
    x = np.concatenate([edges, np.array(around, dtype.numpy), sample(dtype, 200, 11)])
    expected = np.array([exact_integer(v, to) for v in x], to.numpy)
    for lanes in (16, 1):
        assert np.array_equal(compiled(scalar.cast, (dtype,), to, lanes)(x), expected)


def nearest(value: int | float, to: DType) -> Any:
    """An exact number rounded to nearest even in float16 or bfloat16, by integer arithmetic on its binary digits."""
    digits, lowest = (11, -24) if to is float16 else (8, -133)
    numerator, denominator = value.as_integer_ratio()
    exponent = abs(numerator).bit_length() - denominator.bit_length() - digits
    for unit in itertools.count(max(exponent - 1, lowest)):
        scaled_n, scaled_d = (numerator, denominator << unit) if unit >= 0 else (numerator << -unit, denominator)
        whole, rest = divmod(abs(scaled_n), scaled_d)
        if whole < 1 << digits:
            whole += 2 * rest > scaled_d or (2 * rest == scaled_d and whole % 2 == 1)
            break
    with np.errstate(over="ignore"):
        magnitude = np.float64(whole) * np.float64(2.0) ** unit
        return to.numpy.type(np.copysign(magnitude, value))


@pytest.mark.parametrize("to", HALVES, ids=str)
@pytest.mark.parametrize("dtype", [float64, float32, int64, uint64, int32, uint32], ids=str)
def test_halves_are_rounded_once(dtype: DType, to: DType) -> None:
    rng = np.random.default_rng(5)
    if dtype.is_float:
        # ties of the narrow format, moved by one last place of the wide one: rounding twice gets these wrong
        ties = (rng.integers(1 << 10, 1 << 12, 300) + 0.5) * np.exp2(rng.integers(-30, 4, 300))
        moved = [np.nextafter(ties.astype(dtype.numpy), dtype.numpy.type(s)) for s in (-np.inf, np.inf)]
        x = np.concatenate([ties.astype(dtype.numpy), *moved, -moved[0]])
        large = 1e300 if dtype is float64 else 1e38
        x = np.concatenate([x, np.array([65519.9, 65520, large, 1e-8, 0.0, -0.0], dtype.numpy)])
    else:
        top = np.iinfo(dtype.numpy).bits - (dtype.kind == "int")
        heads = rng.integers(128, 256, 40).tolist()
        ties = [((2 * m + 1) << s) + d for m in heads for s in range(top - 9) for d in (-1, 0, 1)]
        x = np.array([t for t in ties if t < 1 << top], dtype.numpy)
    expected = np.array([nearest(v.item(), to) for v in x], to.numpy)
    for lanes in (16, 1):
        assert same(compiled(scalar.cast, (dtype,), to, lanes)(x), expected)


@pytest.mark.parametrize("dtype", dtypes.REAL, ids=str)
def test_other_casts_are_numpys(dtype: DType) -> None:
    x = sample(dtype, 400, 13)
    for to in dtypes.REAL:
        if (dtype.is_float and to.is_integer) or to in HALVES:
            continue
        with np.errstate(all="ignore"):
            expected = x.astype(to.numpy)
        assert same(compiled(scalar.cast, (dtype,), to)(x), expected), to
        assert same(compiled(scalar.cast, (dtype,), to, 1)(x), expected), to


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_all_halves_come_and_go(dtype: DType) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy)
    for wide in (float32, float64):
        up = compiled(scalar.cast, (dtype,), wide)(every)
        with np.errstate(all="ignore"):  # signalling NaNs
            assert np.array_equal(up, every.astype(wide.numpy), equal_nan=True)
        assert same(compiled(scalar.cast, (wide,), dtype)(up), every)


# every target

SYMBOL_TABLE = 2  # the type of an ELF section, ELF-64 object file format, figure 8


def undefined_symbols(code: bytes) -> set[str]:
    """The names an ELF object file expects from elsewhere."""
    (sections,) = struct.unpack_from("<Q", code, 0x28)
    size, count = struct.unpack_from("<HH", code, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", code, sections + k * size) for k in range(count)]
    names = set()
    for header in headers:
        if header[1] == SYMBOL_TABLE:
            text = headers[header[6]][4]
            for at in range(header[4], header[4] + header[5], 24):
                name, _, _, section = struct.unpack_from("<IBBH", code, at)
                if name and section == 0:
                    names.add(code[text + name : code.index(b"\0", text + name)].decode())
    return names


def test_undefined_symbols_are_seen() -> None:
    for target in (AVX2, NEON):
        module = llvm.parse_assembly("declare void @g()\ndefine void @f() {\n call void @g()\n ret void\n}")
        assert undefined_symbols(target.machine().emit_object(module)) == {"g"}


@pytest.mark.parametrize("target", [AVX2, AVX512, NEON], ids=lambda t: t.name)
@pytest.mark.parametrize("op", SCALAR_OPS, ids=str)
def test_object_code_needs_no_library(op: ScalarOp, target: InstructionSet) -> None:
    machine = replace(target, effort=1).machine()  # it selects instructions as with more effort
    for arguments, result in distinct_forms(op):
        for lanes in (16, 1):
            if str(op) == "signbit" and bfloat16 in arguments and lanes == 1:
                continue  # LLVM cannot lower one passed by value; kernels read theirs from memory
            module = llvm.parse_assembly(module_text(target, op, arguments, result, lanes))
            assert not undefined_symbols(machine.emit_object(module)), (arguments, result)
