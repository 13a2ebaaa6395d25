"""Random programs that read, write and compute in place, for Runnel and for jets.

A program is a list of statements over named arrays. :func:`run` carries it out on either kind of array, through a
:class:`Machine` that says what the statements mean there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import runnel as rn
from tests.ops.indexing.jets import Array, Jet, chosen

SHAPES = ((3, 4), (5,), (2, 3, 2), ())
STATEMENTS = [*["put"] * 3, *["augmented item", "method"] * 2, "name", "alias", "read", "mask"]


class Statement(NamedTuple):
    """``kind`` on the array ``target``; ``value`` says how to make the operand, ``key`` where it goes."""

    kind: str
    target: str
    key: Any
    value: Value
    extra: str = ""


class Value(NamedTuple):
    """An operand of ``shape``: ``scale`` times elements of ``source`` by flat position, through tanh or not; a plain
    number where there is no source."""

    source: str | None
    positions: Array
    scale: float
    curved: bool


class Program(NamedTuple):
    shapes: dict[str, tuple[int, ...]]  # of the parameters
    statements: tuple[Statement, ...]


# --- making programs ----------------------------------------------------------------------------------------------


def random_key(rng: np.random.Generator, shape: Sequence[int]) -> Any:
    """A key for an array of ``shape``: integers, slices, ``...``, None, arrays and masks, in any mixture."""
    ndim = len(shape)
    if rng.random() < 0.08:
        return rng.random(tuple(shape)) < 0.5
    keys: list[Any] = []
    axis = 0
    while axis < ndim and (rng.random() < 0.85 or not keys):
        n = shape[axis]
        kind = rng.choice(["int", "slice", "slice", "array", "mask"])
        if kind == "int":
            keys.append(int(rng.integers(-n, n)))
        elif kind == "slice":
            bounds = [None if rng.random() < 0.3 else int(rng.integers(-n - 1, n + 2)) for _ in range(2)]
            keys.append(slice(*bounds, rng.choice([None, 1, 2, -1, -2])))
        elif kind == "array":
            size = [(2,), (3,), (2, 1), (1,), (), (0,)][rng.choice(6, p=[0.25, 0.3, 0.2, 0.1, 0.1, 0.05])]
            keys.append(rng.integers(-n, n, size))
        else:
            keys.append(rng.random(n) < 0.6)
        axis += 1
    if rng.random() < 0.2:
        keys.insert(int(rng.integers(len(keys) + 1)), None)
    if rng.random() < 0.3 and len(keys) - sum(k is None for k in keys) < ndim:
        keys.append(...)
    elif rng.random() < 0.3 and len(keys) - sum(k is None for k in keys) <= ndim:
        keys.insert(0, ...)
    return keys[0] if len(keys) == 1 and rng.random() < 0.5 else tuple(keys)


def working_key(rng: np.random.Generator, shape: Sequence[int]) -> Any:
    """A key that NumPy takes for ``shape``."""
    while True:
        key = random_key(rng, shape)
        try:
            chosen(np.zeros(tuple(shape)), key)
        except IndexError:
            continue
        return key


def random_value(rng: np.random.Generator, shapes: dict[str, tuple[int, ...]], shape: tuple[int, ...]) -> Value:
    """An operand that broadcasts to ``shape``."""
    if rng.random() < 0.4:
        shape = tuple(1 if rng.random() < 0.5 else n for n in shape)[int(rng.integers(len(shape) + 1)) :]
    scale = float(rng.choice([0.5, -1.0, 1.5, 2.0]))
    if rng.random() < 0.15:
        return Value(None, np.zeros(shape, int), scale, False)
    source = str(rng.choice(sorted(shapes)))
    return Value(source, rng.integers(0, int(np.prod(shapes[source])), shape), scale, bool(rng.random() < 0.4))


def random_program(rng: np.random.Generator, length: int = 10) -> Program:
    picked = rng.choice(len(SHAPES), int(rng.integers(1, 4)), replace=False)
    arguments = {f"p{i}": SHAPES[i] for i in picked}
    shapes = dict(arguments)
    statements: list[Statement] = []
    for name in list(arguments):  # programs work on copies: parameters are leaves
        shapes[f"x{name}"] = arguments[name]
        statements.append(Statement("copy", name, (), Value(None, np.zeros(()), 1.0, False), f"x{name}"))
    for i in range(length):
        arrays = [name for name in sorted(shapes) if name not in arguments]
        target = str(rng.choice(arrays))
        shape = shapes[target]
        kind = str(rng.choice(STATEMENTS))
        key = working_key(rng, shape)
        inner = chosen(np.zeros(shape), key).shape
        fresh = f"n{i}"
        if kind in ("put", "augmented item"):
            extra = str(rng.choice(["add", "mul", "sub"]))
            statements.append(Statement(kind, target, key, random_value(rng, shapes, inner), extra))
        elif kind in ("method", "name"):
            extra = str(rng.choice(["add", "mul", "sub"]))
            statements.append(Statement(kind, target, (), random_value(rng, shapes, shape), extra))
        elif kind == "mask":
            bound = Value(None, np.zeros(()), float(rng.normal()), False)
            statements.append(Statement(kind, target, (), bound, ""))
        else:
            statements.append(Statement(kind, target, key, random_value(rng, shapes, ()), fresh))
            shapes[fresh] = shape if kind == "alias" else inner
            if 0 in shapes[fresh]:
                del shapes[fresh]
                statements.pop()
    return Program(arguments, tuple(statements))


# --- what statements mean -----------------------------------------------------------------------------------------


class Machine:
    """Runs statements on jets. ``arrays`` maps names to handles; several names may have the same one."""

    def __init__(self, arrays: dict[str, Any], count: int) -> None:
        self.arrays = arrays
        self.count = count

    def operand(self, value: Value) -> Jet:
        if value.source is None:
            return Jet.constant(np.full(value.positions.shape, value.scale), self.count)
        operand = self.arrays[value.source].each(lambda x: x.reshape(-1)[value.positions])
        scaled: Jet = operand * Jet.constant(value.scale, self.count)
        return scaled.tanh() if value.curved else scaled

    def step(self, s: Statement) -> None:
        x, arrays = self.arrays[s.target], self.arrays
        if s.kind in ("copy", "read"):
            arrays[s.extra] = x.copy() if s.kind == "copy" else x.item(s.key)
        elif s.kind == "alias":
            arrays[s.extra] = x
        elif s.kind == "put":
            x.put(s.key, self.operand(s.value))
        elif s.kind == "augmented item":
            x.put(s.key, self.combined(s.extra, x.each(lambda a: chosen(a, s.key)), self.operand(s.value)))
        elif s.kind in ("method", "name"):
            x.put(..., self.combined(s.extra, x, self.operand(s.value)))
        else:
            x.put(x.value > s.value.scale, Jet.constant(0.25, self.count))

    def combined(self, name: str, x: Any, y: Any) -> Any:
        return {"add": lambda: x + y, "mul": lambda: x * y, "sub": lambda: x - y}[name]()

    def loss(self) -> Any:
        """A number in which every array's every element counts."""
        total = Jet.constant(0.0, self.count)
        for number, name in enumerate(sorted(self.arrays)):
            x = self.arrays[name]
            total = total + (x * x * Jet.constant(weights(number, x.value.shape), self.count)).each(np.sum)
        return total


class RunnelMachine(Machine):
    """Runs statements on Runnel's tensors, with its own assignment and in-place forms."""

    def operand(self, value: Value) -> Any:
        if value.source is None:
            return value.scale if value.positions.ndim == 0 else rn.full(value.positions.shape, value.scale, "float64")
        operand = self.arrays[value.source].reshape(-1)[value.positions] * value.scale
        return operand.tanh() if value.curved else operand

    def step(self, s: Statement) -> None:
        x, arrays = self.arrays[s.target], self.arrays
        if s.kind in ("copy", "read"):
            arrays[s.extra] = x.clone() if s.kind == "copy" else x[s.key]
        elif s.kind == "alias":
            arrays[s.extra] = x
        elif s.kind == "put":
            x[s.key] = self.operand(s.value)
        elif s.kind == "augmented item":
            value = self.operand(s.value)
            if s.extra == "add":
                x[s.key] += value
            elif s.extra == "sub":
                x[s.key] -= value
            else:
                x[s.key] *= value
        elif s.kind == "method":
            getattr(x, f"{s.extra}_")(self.operand(s.value))
        elif s.kind == "name":
            value = self.operand(s.value)
            if s.extra == "add":
                x += value
            elif s.extra == "sub":
                x -= value
            else:
                x *= value
            arrays[s.target] = x
        else:
            x[x > s.value.scale] = 0.25

    def loss(self) -> Any:
        total = 0.0
        for number, name in enumerate(sorted(self.arrays)):
            x = self.arrays[name]
            total = total + (x * x * weights(number, x.shape)).sum()
        return total


def weights(number: int, shape: tuple[int, ...]) -> Array:
    return 1.0 + np.cos(number + np.arange(int(np.prod(shape)), dtype=np.float64)).reshape(shape) / 2


def run(machine: Machine, program: Program) -> Any:
    for statement in program.statements:
        machine.step(statement)
    return machine.loss()
