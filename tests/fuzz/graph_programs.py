"""Random programs of array functions, as Python source: many values, much reuse, several outputs.

A program is a list of lines, each assigning one value, so that a failing one can be printed, run by hand and made
smaller. Shapes are drawn from a few extents, which makes values meet that one kernel could compute together; values
stay small, so that a difference is not hidden by an infinity. Seeds that follow one another share their extents, and so
many plans of single ops, which the eager runs need.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

import runnel as rn
from runnel import ops

Shape = tuple[int, ...]
Rng = np.random.Generator
_EXTENTS = (1, 2, 3, 4, 5, 7, 8, 16, 17, 33)
_LARGEST = 4096
_SHARING = 64  # seeds with the same extents
_SMOOTH = 8  # one program in as many has exponentials, sines and the like, which are long to compile


class Value(NamedTuple):
    """A name of a program, with what is known of it."""

    name: str
    shape: Shape
    dtype: str = "float32"


class Line(NamedTuple):
    """``name = expression``; ``reads`` are the names in it."""

    name: str
    expression: str

    @property
    def reads(self) -> set[str]:
        return set(re.findall(r"\b[av]\d+\b", self.expression))


@dataclass
class Program:
    """Lines over arguments ``a0`` …, the first of which are differentiated; ``state`` names what is assigned to the
    Variable ``s0`` at the end."""

    seed: int
    arguments: dict[str, Any]  # name → array
    lines: list[Line]
    outputs: list[str]
    variable: str | None = None  # an argument's name that is a Variable
    update: str | None = None  # the name that is assigned to it
    order: int = 0  # of derivatives: 0, 1 or 2
    consts: dict[str, Any] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """The function ``f``."""
        body = [f"    {line.name} = {line.expression}" for line in self.lines]
        free = [name for name in self.arguments if name != self.variable]
        if self.update is not None:
            body.append(f"    {self.variable}.assign({self.update})")
        return "\n".join([f"def f({', '.join(free)}):", *body, f"    return [{', '.join(self.outputs)}]", ""])

    def shortened(self, lines: list[Line], outputs: list[str]) -> Program:
        """The same with other lines and outputs, and without lines that nothing reads."""
        expected = {*outputs, self.update}
        lines_left: list[Line] = []
        for line in reversed(lines):
            if line.name in expected:
                lines_left.append(line)
                expected |= line.reads
        return Program(
            self.seed, self.arguments, lines_left[::-1], outputs, self.variable, self.update, self.order, self.consts
        )


class Writer:
    """Draws a program line by line."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        shared = np.random.default_rng([seed // _SHARING, len(_EXTENTS)])
        self.smooth = seed % _SMOOTH == 0
        self.extents = [int(n) for n in shared.choice(_EXTENTS, size=int(shared.integers(2, 4)), replace=False)]
        self.arguments: dict[str, Any] = {}
        self.values: list[Value] = []
        self.lines: list[Line] = []

    # Drawing ----------------------------------------------------------------------------------------------------------

    def shape(self, ndim: int | None = None) -> Shape:
        rank = int(self.rng.choice([1, 2, 2, 2, 3])) if ndim is None else ndim
        return tuple(int(self.rng.choice(self.extents)) for _ in range(rank))

    def argument(self, shape: Shape, dtype: str = "float32", high: int = 0) -> Value:
        name = f"a{len(self.arguments)}"
        if high:
            array: Any = self.rng.integers(0, high, shape)
        else:
            array = self.rng.uniform(-1.5, 1.5, shape).astype(dtype)
        self.arguments[name] = array
        value = Value(name, shape, str(array.dtype))
        self.values.append(value)
        return value

    def pick(self, expected: Callable[[Value], bool] = lambda v: True) -> Value | None:
        """A floating-point value, rather a recent one."""
        actual = [v for v in self.values if v.dtype == "float32" and expected(v)]
        if not actual:
            return None
        if self.rng.random() < 0.5:
            return actual[-1 - int(self.rng.integers(0, min(4, len(actual))))]
        return actual[int(self.rng.integers(0, len(actual)))]

    def add(self, expression: str, shape: Shape, dtype: str = "float32") -> Value | None:
        if int(np.prod(shape)) > _LARGEST:
            return None
        value = Value(f"v{len(self.lines)}", shape, dtype)
        self.lines.append(Line(value.name, expression))
        self.values.append(value)
        return value

    def number(self) -> float:
        return float(self.rng.choice([0.5, 1.0, -1.0, 2.0, 0.25, 0.0, 3.0, 1.7]))

    # Steps ------------------------------------------------------------------------------------------------------------

    def unary(self) -> None:
        x = self.pick()
        assert x is not None
        form = str(self.rng.choice(_SMOOTH_UNARY if self.smooth else _UNARY))
        self.add(form.format(x=x.name, c=self.number()), x.shape)

    def binary(self) -> None:
        x = self.pick()
        assert x is not None
        y = self.pick(lambda v: _broadcast(v.shape, x.shape) is not None)
        assert y is not None
        if self.rng.random() < 0.5:
            x, y = y, x
        shape = _broadcast(x.shape, y.shape)
        assert shape is not None
        form = str(self.rng.choice(_SMOOTH_BINARY if self.smooth else _BINARY))
        self.add(form.format(x=x.name, y=y.name, c=self.number()), shape)

    def where(self) -> None:
        x = self.pick()
        assert x is not None
        y, z = (self.pick(lambda v: v.shape == x.shape) for _ in range(2))
        assert y is not None and z is not None
        self.add(f"rn.where({x.name} > {self.number()}, {y.name}, {z.name})", x.shape)

    def reduce(self) -> None:
        x = self.pick(lambda v: len(v.shape) > 0)
        if x is None:
            return
        rank = len(x.shape)
        count = 1 if self.rng.random() < 0.75 else int(self.rng.integers(1, rank + 1))
        axes = tuple(sorted(int(a) for a in self.rng.choice(rank, size=count, replace=False)))
        keep = bool(self.rng.random() < 0.4)
        op = str(self.rng.choice(["sum", "mean", "max", "min", "prod", "var", "logsumexp" if self.smooth else "sum"]))
        shape = tuple(1 if a in axes else n for a, n in enumerate(x.shape) if keep or a not in axes)
        axis: Any = axes[0] if len(axes) == 1 else axes
        inner = f"{'rn.tanh' if self.smooth else '_soft'}({x.name})" if op == "prod" else x.name
        self.add(f"rn.{op}({inner}, axis={axis}, keepdims={keep})", shape)

    def rows(self) -> None:
        x = self.pick(lambda v: len(v.shape) > 0)
        if x is None:
            return
        axis = int(self.rng.integers(0, len(x.shape)))
        form = str(self.rng.choice(_SMOOTH_ROWS if self.smooth else _ROWS))
        self.add(form.format(x=x.name, a=axis), x.shape)

    def view(self) -> None:
        x = self.pick(lambda v: len(v.shape) > 0)
        if x is None:
            return
        rank = len(x.shape)
        kind = int(self.rng.integers(0, 7))
        if kind == 0:
            order = [int(a) for a in self.rng.permutation(rank)]
            self.add(f"rn.permute({x.name}, {tuple(order)})", tuple(x.shape[a] for a in order))
        elif kind == 1:
            self.add(f"rn.reshape({x.name}, (-1,))", (int(np.prod(x.shape)),))
        elif kind == 2:
            axis = int(self.rng.integers(0, rank))
            low = int(self.rng.integers(0, x.shape[axis]))
            key = ", ".join(":" if a != axis else f"{low}:" for a in range(rank))
            self.add(f"{x.name}[{key}]", tuple(n if a != axis else n - low for a, n in enumerate(x.shape)))
        elif kind == 3:
            axis = int(self.rng.integers(0, rank + 1))
            if rank < 3:
                self.add(f"rn.expand_dims({x.name}, axis={axis})", (*x.shape[:axis], 1, *x.shape[axis:]))
        elif kind == 4:
            extent = int(self.rng.choice(self.extents))
            if rank < 3:
                self.add(f"rn.broadcast_to({x.name}, {(extent, *x.shape)})", (extent, *x.shape))
        elif kind == 5:
            axis = int(self.rng.integers(0, rank))
            self.add(f"rn.flip({x.name}, axis={axis})", x.shape)
        else:
            flat = self.pick(lambda v: len(v.shape) == 1 and v.shape[0] % self.extents[0] == 0 and v.shape[0] > 0)
            if flat is not None:
                other = flat.shape[0] // self.extents[0]
                self.add(f"rn.reshape({flat.name}, {(self.extents[0], other)})", (self.extents[0], other))

    def matmul(self) -> None:
        x = self.pick(lambda v: len(v.shape) == 2)
        if x is None:
            return
        y = self.pick(lambda v: len(v.shape) == 2 and v.shape[0] == x.shape[1])
        if y is None:
            y = self.argument((x.shape[1], int(self.rng.choice(self.extents))))
        self.add(f"({x.name} @ {y.name}) * {round(1 / (x.shape[1] + 1), 3)}", (x.shape[0], y.shape[1]))

    def batched(self) -> None:
        x = self.pick(lambda v: len(v.shape) == 3)
        if x is None:
            return
        y = self.pick(lambda v: len(v.shape) == 3 and v.shape[:2] == (x.shape[0], x.shape[2]))
        if y is not None:
            self.add(f"({x.name} @ {y.name}) * 0.2", (*x.shape[:2], y.shape[2]))

    def join(self) -> None:
        x = self.pick(lambda v: len(v.shape) > 0)
        if x is None:
            return
        axis = int(self.rng.integers(0, len(x.shape)))
        rest = x.shape[:axis] + x.shape[axis + 1 :]
        y = self.pick(lambda v: len(v.shape) == len(x.shape) and v.shape[:axis] + v.shape[axis + 1 :] == rest)
        assert y is not None
        shape = tuple(n if a != axis else n + y.shape[axis] for a, n in enumerate(x.shape))
        self.add(f"rn.concat([{x.name}, {y.name}], axis={axis})", shape)

    def pad(self) -> None:
        x = self.pick(lambda v: len(v.shape) > 0)
        if x is None:
            return
        widths = tuple((int(self.rng.integers(0, 3)), int(self.rng.integers(0, 3))) for _ in x.shape)
        self.add(f"ops.pad({x.name}, {widths})", tuple(n + a + b for n, (a, b) in zip(x.shape, widths, strict=True)))

    def indexed(self) -> None:
        x = self.pick(lambda v: len(v.shape) > 0 and v.shape[0] > 0)
        if x is None:
            return
        count = int(self.rng.choice(self.extents))
        index = self.argument((count,), high=x.shape[0])
        if self.rng.random() < 0.5:
            self.add(f"rn.take({x.name}, {index.name}, axis=0)", (count, *x.shape[1:]))
            return
        y = self.pick(lambda v: v.shape == (count, *x.shape[1:]))
        if y is not None:
            self.add(f"rn.index_add({x.name}, 0, {index.name}, {y.name})", x.shape)

    def conv(self) -> None:
        x = self.pick(lambda v: len(v.shape) == 3)
        if x is None:
            return
        width = int(self.rng.choice([1, 3]))
        out = int(self.rng.choice(self.extents))
        w = self.argument((out, x.shape[1], width))
        shape = (x.shape[0], out, x.shape[2])
        self.add(f"ops.conv({x.name}, {w.name}, padding={width // 2}) * 0.1", shape)

    def cast(self) -> None:
        x = self.pick()
        assert x is not None
        other = str(self.rng.choice(["float16", "bfloat16", "float64"]))
        self.add(f"{x.name}.astype(rn.{other}).astype(rn.float32)", x.shape)

    def program(self) -> Program:
        rng = self.rng
        for _ in range(int(rng.integers(2, 5))):
            self.argument(self.shape())
        variable = None
        if rng.random() < 0.4:
            variable = self.argument(self.shape())
        target = int(rng.integers(20, 61))
        steps = [(self.unary, 6), (self.binary, 7), (self.where, 1), (self.reduce, 4), (self.rows, 1), (self.view, 4),
                 (self.matmul, 3), (self.batched, 1), (self.join, 1), (self.pad, 1), (self.indexed, 1), (self.conv, 1),
                 (self.cast, 1)]  # fmt: skip
        weights = np.array([w for _, w in steps], float)
        for _ in range(20 * target):
            if len(self.lines) >= target:
                break
            steps[int(rng.choice(len(steps), p=weights / weights.sum()))][0]()
        update = None
        if variable is not None:
            fitting = [v for v in self.values if v.shape == variable.shape and v.name.startswith("v")]
            update = fitting[int(rng.integers(0, len(fitting)))].name if fitting else None
        if update is None and variable is not None:
            variable = None
        read = {name for line in self.lines for name in line.reads}
        loose = [line.name for line in self.lines if line.name not in read]
        extra = [line.name for line in self.lines if line.name in read]
        more = [str(n) for n in rng.choice(extra, size=min(len(extra), int(rng.integers(0, 6))), replace=False)]
        outputs = [n for n in [line.name for line in self.lines] if n in {*loose, *more}]
        order = int(rng.choice([0, 0, 1, 1, 2]))
        return Program(
            self.seed, self.arguments, self.lines, outputs, variable.name if variable else None, update, order
        )


_ANY_UNARY = (
    "rn.relu({x})", "-{x}", "{x} * {c}", "{x} + {c}", "{c} - {x}", "rn.sqrt(rn.abs({x}) + 0.5)", "rn.maximum({x}, {c})",
    "rn.clip({x}, -1.0, 1.0)", "rn.stop_gradient({x})", "rn.sign({x})",
)  # fmt: skip
_SMOOTH_UNARY = (
    *_ANY_UNARY, "rn.tanh({x})", "rn.sin({x})", "rn.exp(-rn.abs({x}))", "rn.log(rn.abs({x}) + 1.0)", "rn.sigmoid({x})",
    "rn.square(rn.tanh({x}))", "rn.gelu({x})",
)  # fmt: skip
_UNARY = (
    *_ANY_UNARY, "_soft({x})", "rn.where({x} > {c}, 0.1 * {x}, {x})", "1.0 / (rn.abs({x}) + 1.0)",
    "rn.rsqrt(rn.square({x}) + 1.0)", "_soft({x}) * 0.5 + 0.5", "rn.square(_soft({x}))", "{x} * rn.clip({x}, 0.0, 1.0)",
)  # fmt: skip
_ANY_BINARY = (
    "{x} + {y}", "{x} - {y}", "{x} / (rn.abs({y}) + 1.0)", "rn.maximum({x}, {y})", "rn.minimum({x}, {y})",
    "{x} * 0.5 + {y} * 0.5", "rn.where({x} < {y}, {x}, {y} * {c})",
)  # fmt: skip
_SMOOTH_BINARY = (*_ANY_BINARY, "{x} * rn.tanh({y})", "rn.tanh({x}) * {y}")
_BINARY = (*_ANY_BINARY, "{x} * _soft({y})", "_soft({x}) * {y}")
_ORDERED = ("rn.sort({x}, axis={a})", "_ranked({x}, {a})")
_SMOOTH_ROWS = ("rn.softmax({x}, axis={a})", "rn.log_softmax({x}, axis={a})", "_norm({x})", *_ORDERED)
_ROWS = ("_share({x}, {a})", "{x} - rn.max({x}, axis={a}, keepdims=True)", "_norm({x})", *_ORDERED)


def _broadcast(a: Shape, b: Shape) -> Shape | None:
    try:
        return tuple(int(n) for n in np.broadcast_shapes(a, b))
    except ValueError:
        return None


def _norm(x: Any) -> Any:
    centred = x - rn.mean(x, axis=-1, keepdims=True)
    return centred * rn.rsqrt(rn.mean(centred * centred, axis=-1, keepdims=True) + 0.1)


def _soft(x: Any) -> Any:
    return x / (rn.abs(x) + 1.0)


def _share(x: Any, axis: int) -> Any:
    return x / (rn.sum(rn.abs(x), axis=axis, keepdims=True) + 1.0)


def _ranked(x: Any, axis: int) -> Any:
    """Both results of one sort."""
    values, places = rn.topk(x, x.shape[axis], axis)
    return values + 0.1 * places.astype(rn.float32)


_HELPERS = {"rn": rn, "ops": ops, "_norm": _norm, "_ranked": _ranked, "_soft": _soft, "_share": _share}


def draw(seed: int) -> Program:
    """The program of ``seed``."""
    return Writer(seed).program()


def function(program: Program) -> tuple[Callable[..., list[Any]], list[Any], Any]:
    """The program as a function of tensors that gives its outputs and derivatives, its arguments, and its Variable."""
    variable = None if program.variable is None else rn.Variable(rn.asarray(program.arguments[program.variable]))
    scope: dict[str, Any] = {**_HELPERS, program.variable or "_": variable}
    exec(compile(program.source, f"<program {program.seed}>", "exec"), scope)
    free = {name: a for name, a in program.arguments.items() if name != program.variable}
    moving = [i for i, a in enumerate(free.values()) if a.dtype == np.float32]
    arguments = [rn.asarray(a) for a in free.values()]
    plain = scope["f"]
    if not moving:
        return plain, arguments, variable

    def with_gradients(f: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        def g(*xs: Any) -> list[Any]:
            def of_floats(*floats: Any) -> Any:
                full = list(xs)
                for i, value in zip(moving, floats, strict=True):
                    full[i] = value
                return tuple(f(*full))

            results, pull = rn.vjp(of_floats, *[xs[i] for i in moving])
            return [*results, *pull(tuple(rn.ones_like(r) for r in results))]

        return g

    for _ in range(program.order):
        plain = with_gradients(plain)
    return plain, arguments, variable
