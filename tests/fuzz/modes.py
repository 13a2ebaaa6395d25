"""Random elementwise programs, loops and choices: eager, compiled and threaded runs give the same bits.

Operands are special values of every dtype, Python and NumPy numbers, 0-d tensors and views; what one mode refuses all
refuse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import runnel as rn
from runnel import ops
from runnel.core import dtypes, switches, tables
from runnel.core.dispatch import apply
from runnel.core.dtypes import DType
from runnel.core.errors import RunnelError
from runnel.core.tables import Op
from runnel.loops.rules import Elementwise
from runnel.ops.promotion import binary, unary
from tests.compiler.harness import same_bits
from tests.fuzz.running import Choices, arrays_of, check

FLOATS = (
    0.0, -0.0, 1.0, -1.0, 0.1, -2.5, 3.0, 1 / 3, float("inf"), -float("inf"), float("nan"), 1e-45, -1e-40, 1e-310, 6e-8,
    65504.0, 65520.0, 3.4e38, 1e39, 1 + 2.0**-8 + 2.0**-40, 0.5, -0.5, 88.8, -104.0, 2.0**24 + 1,
)  # fmt: skip
INTEGERS = (0, 1, -1, 2, 3, 7, -5, 127, -128, 255, 2**15, 2**31 - 1, -(2**31), 2**40 + 1, 2**53 + 1, -(2**63))
SHAPES = ((), (1,), (5,), (17,), (40,), (3, 5), (1, 5), (3, 1), (2, 16), (0,), (2, 3, 4))
# Ops of one element to one element without attributes, by the number of their operands.
POINTWISE: dict[int, list[Op]] = {}
for _op in Op.registry.values():
    if isinstance(tables.lower.get(_op), Elementwise) and "*" not in _op.signature:
        POINTWISE.setdefault(len(_op.signature.split(",")), []).append(_op)
FUNCTIONS: tuple[Callable[[Any], Any], ...] = (
    ops.relu, ops.gelu, ops.silu, ops.softplus, ops.leaky_relu, ops.elu, ops.square, ops.reciprocal, ops.rsqrt,
    ops.log10, ops.hardswish, ops.mish, ops.isfinite, lambda x: ops.clip(x, -1.5, 2), lambda x: ops.clip(x, 0.0, 1),
    lambda x: ops.pow(x, 2), lambda x: ops.pow(x, 0.5), lambda x: ops.pow(x, -1.0), lambda x: ops.maximum(x, 0.0),
    lambda x: ops.minimum(-0.0, x), lambda x: x * 1.0, lambda x: x + 0, lambda x: x - 0.0, lambda x: 0.0 - x,
    lambda x: x / 1, lambda x: -0.0 + x, lambda x: ops.where(x == 0, x, x), lambda x: ops.maximum(x, x), ops.abs,
    lambda x: ops.negative(ops.negative(x)), lambda x: x * 0.1, lambda x: 0.3 - x, lambda x: x**3, lambda x: x // 2,
    lambda x: x % 3,
)  # fmt: skip


class Draw(Choices):
    """The choices of one program."""

    def number(self) -> Any:
        """A Python or NumPy number."""
        kind = self.of(("float", "float", "float", "int", "bool", "numpy", "numpy int", "bfloat16"))
        if kind == "bool":
            return self.chance(0.5)
        if kind == "int":
            return self.of(INTEGERS[:12])
        if kind == "numpy int":
            return self.of((np.int8, np.int32, np.int64, np.uint8))(self.of((0, 1, 3, 100)))
        with np.errstate(all="ignore"):
            kinds = {"float": (float,), "bfloat16": (ml_dtypes.bfloat16,)}
            return self.of(kinds.get(kind, (np.float16, np.float32, np.float64)))(self.of(FLOATS))

    def tensor(self, shape: tuple[int, ...], dtype: DType) -> rn.Tensor:
        count = int(np.prod(shape))
        if dtype.is_float:
            values: Any = np.array([self.of(FLOATS) for _ in range(count)])
        else:
            values = np.array([self.of(INTEGERS) for _ in range(count)], np.int64)
        with np.errstate(all="ignore"):
            return rn.asarray(values.reshape(shape).astype(dtype.numpy))


Step = tuple[Callable[..., Any], tuple[int, ...]]


def steps(draw: Draw, tensors: int, numbers: int) -> list[Step]:
    """Each a function of some earlier values: tensors first, then numbers, then results."""
    built: list[Step] = []
    for number in range(int(draw.rng.integers(1, 5))):
        results = [*range(tensors), *range(tensors + numbers, tensors + numbers + number)]
        operand = [*results, *range(tensors + numbers)]
        kind = draw.of(("binary", "binary", "binary", "unary", "function", "cast", "where"))
        x = draw.of(results[-2:])
        if kind == "binary":
            places = draw.of(((x, draw.of(operand)), (draw.of(operand), x)))
            built.append((_binary(draw.of(POINTWISE[2])), places))
        elif kind == "unary":
            built.append((_unary(draw.of(POINTWISE[1])), (x,)))
        elif kind == "function":
            built.append((draw.of(FUNCTIONS), (x,)))
        elif kind == "cast":
            built.append((_cast(draw.of(dtypes.REAL)), (x,)))
        else:
            built.append((lambda x, y, z: ops.where(x == y, y, z), (x, draw.of(operand), draw.of(operand))))
    return built


def _binary(op: Op) -> Callable[[Any, Any], Any]:
    return lambda x, y: binary(op, x, y)


def _unary(op: Op) -> Callable[[Any], Any]:
    return lambda x: unary(op, x)


def _cast(dtype: DType) -> Callable[[Any], Any]:
    return lambda x: ops.cast(x, dtype)


def elementwise(draw: Draw) -> str:
    dtype = draw.of(dtypes.REAL)
    shape = draw.of(SHAPES)
    tensors = [draw.tensor(shape, dtype)]
    if draw.chance(0.5):
        other = draw.of((shape, (), (1,) * len(shape)))
        tensors.append(draw.tensor(other, draw.of((dtype, dtype, draw.of(dtypes.REAL)))))
    numbers = [draw.number() for _ in range(int(draw.rng.integers(1, 3)))]
    program = steps(draw, len(tensors), len(numbers))

    def fn(*values: Any) -> Any:
        known = [*values[: len(tensors)], *(values[len(tensors) :] or numbers)]
        for step, places in program:
            known.append(step(*(known[p] for p in places)))
        return tuple(known[len(tensors) + len(numbers) :])

    what = f"{len(program)} steps on {dtype.name}{shape} and {numbers}"
    try:
        actual = arrays_of(fn(*tensors))
    except (RunnelError, TypeError, ValueError, OverflowError, ArithmeticError) as error:
        try:
            rn.compile(fn)(*tensors)
        except type(error):
            return f"{what}: {type(error).__name__}"
        raise AssertionError(f"{what}: eager raises {error!r}, compiled does not") from error
    check(fn, tensors, draw.rng, interpreted=draw.chance(0.3))
    if all(isinstance(x, float) for x in numbers):
        arguments = arrays_of(rn.compile(fn)(*tensors, *numbers))
        for a, b in zip(actual, arguments, strict=True):
            assert same_bits(a, b), f"{what}, numbers as arguments:\n{b}\n{a}"
    return what


def view(draw: Draw, base: rn.Tensor) -> rn.Tensor:
    """A square matrix seen in another way, as large as it was."""
    n = base.shape[0]
    return draw.of((
        lambda: base.T, lambda: ops.flip(base, 0), lambda: ops.flip(base.T, 1), lambda: base,
        lambda: ops.concat([base, base])[::2], lambda: ops.concat([base, base], 1)[:, ::2],
        lambda: ops.concat([base, base], 1)[:, n:], lambda: ops.broadcast_to(base[:1], (n, n)),
        lambda: ops.broadcast_to(base[:, 1:2], (n, n)), lambda: ops.broadcast_to(base, (2, n, n))[1].T,
        lambda: ops.reshape(base.T, (n, n)),
    ))()  # fmt: skip


Use = Callable[[Any, Any, Any], Any]  # of a carry and two captured matrices
USES: tuple[Use, ...] = (
    lambda c, m, b: c @ m, lambda c, m, b: m @ c, lambda c, m, b: c * m + b, lambda c, m, b: c @ m @ b,
    lambda c, m, b: c + ops.sum(m, 0), lambda c, m, b: c @ m.T, lambda c, m, b: ops.where(m > 0, c, b.T),
    lambda c, m, b: c.T @ m, lambda c, m, b: (c @ m) * m, lambda c, m, b: ops.maximum(c, m[:1]),
)  # fmt: skip


def controlled(draw: Draw) -> str:
    """Loops and choices over views that they capture, carry and go along."""
    n, length = draw.of((2, 3, 5, 17)), draw.of((1, 2, 4))
    dtype = draw.of((rn.float32, rn.float32, rn.float64))

    def fresh(*shape: int) -> rn.Tensor:
        return rn.asarray(draw.rng.standard_normal(shape) * 0.5, dtype)

    start, observed, beside = (view(draw, fresh(n, n)) for _ in range(3))
    xs = ops.permute(fresh(n, length, n), (1, 0, 2)) if draw.chance(0.5) else fresh(length, n, n)
    first, second = draw.of(USES), draw.of(USES)
    kind = draw.of(("scan", "scan", "cond", "while", "scan in cond"))
    flag = draw.chance(0.5)

    def fn(start: Any, xs: Any, m: Any, b: Any) -> Any:
        def body(c: Any, x: Any) -> Any:
            return ops.tanh(first(c, m, b) + x), second(c, m, b)

        def loop(start: Any, xs: Any) -> Any:
            return rn.scan(body, start, xs)

        if kind == "scan":
            return loop(start, xs)
        if kind == "while":
            counted = (rn.zeros(()), start)
            return rn.while_loop(lambda s: s[0] < length, lambda s: (s[0] + 1, ops.tanh(first(s[1], m, b))), counted)
        if kind == "cond":
            branches = (lambda c, x: (first(c, m, b), x), lambda c, x: (second(c, m, b), first(x, m, b)))
            return rn.cond(rn.asarray(flag), *branches, start, xs[0])
        return rn.cond(rn.asarray(flag), loop, lambda c, xs: loop(c * 2, xs), start, xs)

    what = f"{kind} of {n}x{n}, {length} steps, {dtype.name}"
    actual = check(fn, [start, xs, observed, beside], draw.rng)
    closed = rn.compile(lambda start, xs: fn(start, xs, observed, beside))
    for a, b in zip(actual, arrays_of(closed(start, xs)), strict=True):
        assert same_bits(a, b), f"{what}, matrices from outside:\n{b}\n{a}"
    return what


def special_products(draw: Draw) -> str:
    """Products with infinities, NaN and subnormal numbers."""
    dtype = draw.of((rn.float32, rn.float64, rn.bfloat16, rn.float16))
    m, n, k = draw.of((1, 2, 7, 17)), draw.of((1, 3, 16, 33)), draw.of((1, 2, 3, 8, 65))
    a, b = draw.tensor((m, k), dtype), draw.tensor((k, n), dtype)
    after = draw.of((lambda y: y, lambda y: y + 1, ops.relu, lambda y: ops.maximum(y, -0.0)))
    check(lambda a, b: (after(a @ b), apply(Op.registry["neg"], b)), [a, b], draw.rng)
    return f"{m}x{k}x{n} {dtype.name}"


FAMILIES = (elementwise, elementwise, elementwise, elementwise, controlled, special_products)


def run(seed: int) -> str:
    """Check the program of ``seed``; says what it was."""
    with switches.override(num_threads=1):
        draw = Draw(seed)
        return str(draw.of(FAMILIES)(draw))
