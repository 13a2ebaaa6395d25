"""Random programs of views and writes: ``python -m tests.fuzz views``. The oracle of values is NumPy, whose views share
memory. The oracle of gradients is PyTorch, which ``python -m tests.fuzz gradients`` imports.

A program is a list of steps over a list of arrays, of which the first three are given. A row of a table carries a step
out with NumPy, and with tensors of Runnel or PyTorch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import runnel as rn
from runnel import nn

Array = Any  # of NumPy, Runnel or PyTorch


class At(NamedTuple):
    """An argument: the array of this number."""

    number: int


class Step(NamedTuple):
    """A row of a table, the array it is applied to, and further arguments."""

    kind: str
    at: int
    args: tuple[Any, ...] = ()


class Row(NamedTuple):
    """Draw a step's arguments (None if the array has none), and carry the step out. NumPy returns a view,
    or what is written."""

    draw: Callable[[Drawing, np.ndarray], tuple[Any, ...] | None]
    numpy: Callable[..., np.ndarray]
    tensor: Callable[..., Any]


class Drawing:
    """Draws a program; NumPy's arrays tell the shapes and which views exist."""

    def __init__(self, seed: int, length: int = 10) -> None:
        self.random = np.random.default_rng(seed)
        self.dtype = np.dtype(("f4", "f4", "f8", "i4", "i8")[self.pick(5)])
        shape = tuple(int(n) for n in self.random.integers(1, 5, self.random.integers(1, 4)))
        self.shapes = [shape, shape[self.pick(len(shape)) :], shape]
        self.steps: list[Step] = []
        self.arrays = self.started()
        while len(self.steps) < length:
            table = (VIEWS, WRITES, WRITES, COMPUTED)[self.pick(4)]
            kind, at = list(table)[self.pick(len(table))], self.pick(len(self.arrays))
            x = self.arrays[at]
            if not x.size or (table is WRITES and not x.flags.writeable):
                continue
            args = table[kind].draw(self, x)
            if args is not None:
                self.steps.append(Step(kind, at, args))
                in_numpy(self.steps[-1], self.arrays)

    def started(self) -> list[np.ndarray]:
        counts = [int(np.prod(s)) for s in self.shapes]
        return [
            (np.arange(n) % 7 - i - 2).astype(self.dtype).reshape(s)
            for i, (n, s) in enumerate(zip(counts, self.shapes, strict=True))
        ]

    def pick(self, n: int) -> int:
        return int(self.random.integers(n))

    def number(self, x: np.ndarray) -> tuple[int]:
        return (self.pick(5) - 2,)

    def axis(self, x: np.ndarray) -> tuple[int] | None:
        return (self.pick(x.ndim),) if x.ndim else None

    def axes(self, x: np.ndarray) -> tuple[int, int] | None:
        return (self.pick(x.ndim), self.pick(x.ndim)) if x.ndim else None

    def other(self, x: np.ndarray) -> tuple[At] | None:
        """Draw an array that can be broadcast to ``x`` and lies elsewhere."""
        return self.fitting(x.shape, x)

    def fitting(self, shape: tuple[int, ...], x: np.ndarray) -> tuple[At] | None:
        fits = [i for i, y in enumerate(self.arrays) if broadcasts(y.shape, shape) and not np.shares_memory(x, y)]
        return (At(fits[self.pick(len(fits))]),) if fits else None

    def key(self, x: np.ndarray) -> tuple[Any] | None:
        if not x.ndim:
            return None
        items: list[Any] = []
        last = 1 + self.pick(x.ndim)
        of_last = not self.pick(4)
        for n in x.shape[-last:] if of_last else x.shape[:last]:
            if self.pick(2):
                items.append(self.pick(n) - n * self.pick(2))
            else:
                first = self.pick(n)
                items.append(slice(first, first + 1 + self.pick(n - first), 1 + self.pick(2)))
        if not self.pick(4):
            items.insert(self.pick(len(items) + 1), None)
        if of_last:
            items.insert(0, ...)
        return (tuple(items) if len(items) > 1 or self.pick(2) else items[0],)

    def part(self, x: np.ndarray) -> tuple[int, int, int] | None:
        if not x.ndim:
            return None
        axis = self.pick(x.ndim)
        first = self.pick(x.shape[axis])
        return axis, first, 1 + self.pick(x.shape[axis] - first)

    def piece(self, x: np.ndarray) -> tuple[int, int, int] | None:
        return (self.pick(x.ndim), 1 + self.pick(3), self.pick(8)) if x.ndim else None

    def rows(self, x: np.ndarray) -> tuple[int, list[int]] | None:
        """Draw an axis and indices along it, each once."""
        if not x.ndim:
            return None
        axis = self.pick(x.ndim)
        n = x.shape[axis]
        return axis, [int(i) for i in self.random.permutation(n)[: 1 + self.pick(n)]]

    def rows_of(self, x: np.ndarray) -> tuple[int, list[int], At] | None:
        found = self.rows(x)
        if found is None:
            return None
        shape = np.take(x, found[1], found[0]).shape
        fits = [i for i, y in enumerate(self.arrays) if y.shape == shape and not np.shares_memory(x, y)]
        return (*found, At(fits[self.pick(len(fits))])) if fits else None

    def shape(self, x: np.ndarray) -> tuple[tuple[int, ...]]:
        shape: list[int] = []
        size = x.size
        while size > 1 and len(shape) < 3:
            n = int(self.random.choice([d for d in range(1, size + 1) if size % d == 0]))
            shape.append(n)
            size //= n
        return ((*shape, size),)

    def wider(self, x: np.ndarray) -> tuple[tuple[int, ...]] | None:
        shape = tuple(2 if n == 1 and self.pick(2) else n for n in x.shape)
        return (shape if self.pick(2) or x.ndim > 3 else (2, *shape),)

    def unfolded(self, x: np.ndarray) -> tuple[int, int, int] | None:
        if not x.ndim or x.ndim > 3:
            return None
        axis = self.pick(x.ndim)
        size = 1 + self.pick(x.shape[axis])
        return axis, size, size + self.pick(2)  # windows that do not overlap can be written


def broadcasts(shape: tuple[int, ...], onto: tuple[int, ...]) -> bool:
    return len(shape) <= len(onto) and all(a in (1, b) for a, b in zip(shape[::-1], onto[::-1], strict=False))


def nothing(d: Drawing, x: np.ndarray) -> tuple[()]:
    return ()


def along(x: np.ndarray, axis: int, key: Any) -> np.ndarray:
    return x[(slice(None),) * axis + (key, ...)]


def pieces(x: np.ndarray, axis: int, size: int) -> list[np.ndarray]:
    return [along(x, axis, slice(i, i + size)) for i in range(0, x.shape[axis], size)]


def diagonal(x: np.ndarray, offset: int) -> np.ndarray:
    shape = np.diagonal(x, offset).shape  # which NumPy gives as a view that cannot be written
    return strided(x[max(-offset, 0) :, max(offset, 0) :], shape, (sum(x.strides),))


def strided(x: np.ndarray, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=x.flags.writeable)


def unfolded(x: np.ndarray, axis: int, size: int, step: int) -> np.ndarray:
    shape = (*x.shape[:axis], (x.shape[axis] - size) // step + 1, *x.shape[axis + 1 :], size)
    strides = (*x.strides[:axis], x.strides[axis] * step, *x.strides[axis + 1 :], x.strides[axis])
    return strided(x, shape, strides)


def items(x: np.ndarray, key: Any) -> np.ndarray:
    made = x[key]
    return made if isinstance(made, np.ndarray) else x[(*(key if isinstance(key, tuple) else (key,)), ...)]


def with_item(x: np.ndarray, key: Any, value: Any) -> np.ndarray:
    y = x.copy()
    y[key] = value
    return y


def with_rows(x: np.ndarray, axis: int, rows: list[int], value: Any) -> np.ndarray:
    return with_item(x, (slice(None),) * axis + (rows,), value)


def _set(x: Array, key: Any, value: Any) -> None:
    x[key] = value


def _add_to(x: Array, key: Any, value: Any) -> None:
    x[key] += value


def _iadd(x: Array, value: Any) -> None:
    x += value


def _imul(x: Array, value: Any) -> None:
    x *= value


def _swap(x: Array, i: int, j: int) -> None:
    x[i], x[j] = x[j].clone(), x[i].clone()


def _replace(x: Array, y: Array) -> None:
    x.data = y.clone()


def _indices(x: Array, rows: list[int]) -> Array:
    return rn.asarray(rows) if isinstance(x, rn.Tensor | rn.Variable) else x.new_tensor(rows).long()


def _mask(x: Array, above: int) -> Array:
    return x.detach() > above


def _same(x: Array) -> Array:
    made = x.contiguous()
    return made.view(made.shape) if made is x else made


VIEWS: dict[str, Row] = {
    "item": Row(Drawing.key, items, lambda x, key: x[key]),
    "item again": Row(Drawing.key, items, lambda x, key: x[key]),
    "permute": Row(
        lambda d, x: ([int(a) for a in d.random.permutation(x.ndim)],) if x.ndim else None,
        lambda x, axes: x.transpose(axes),
        lambda x, axes: x.permute(*axes),
    ),
    "transpose": Row(Drawing.axes, np.swapaxes, lambda x, a, b: x.transpose(a, b)),
    "movedim": Row(Drawing.axes, np.moveaxis, lambda x, a, b: x.movedim(a, b)),
    "reshape": Row(Drawing.shape, np.reshape, lambda x, shape: x.reshape(shape)),  # a copy, at times
    "flatten": Row(nothing, lambda x: x.reshape(-1), lambda x: x.reshape(-1)),
    "unsqueeze": Row(
        lambda d, x: (d.pick(x.ndim + 1),) if x.ndim < 4 else None, np.expand_dims, lambda x, a: x.unsqueeze(a)
    ),
    "squeeze": Row(Drawing.axis, lambda x, a: x.squeeze(a) if x.shape[a] == 1 else x[...], lambda x, a: x.squeeze(a)),
    "squeeze all": Row(nothing, lambda x: x.squeeze()[...], lambda x: x.squeeze()),
    "narrow": Row(Drawing.part, lambda x, a, i, n: along(x, a, slice(i, i + n)), lambda x, *p: x.narrow(*p)),
    "chunk": Row(
        Drawing.piece,
        lambda x, a, n, i: (found := pieces(x, a, -(-x.shape[a] // n)))[i % len(found)],
        lambda x, a, n, i: (found := x.chunk(n, a))[i % len(found)],
    ),
    "split": Row(
        Drawing.piece,
        lambda x, a, n, i: (found := pieces(x, a, n))[i % len(found)],
        lambda x, a, n, i: (found := x.split(n, a))[i % len(found)],
    ),
    "unbind": Row(Drawing.part, lambda x, a, i, n: along(x, a, i), lambda x, a, i, n: x.unbind(a)[i]),
    "select": Row(Drawing.part, lambda x, a, i, n: along(x, a, i), lambda x, a, i, n: x.select(a, i)),
    "diagonal": Row(
        lambda d, x: (d.pick(3) - 1,) if x.ndim == 2 else None, diagonal, lambda x, offset: x.diagonal(offset)
    ),
    "unfold": Row(Drawing.unfolded, unfolded, lambda x, *p: x.unfold(*p)),
    "expand": Row(Drawing.wider, np.broadcast_to, lambda x, shape: x.expand(shape)),
    "unflatten": Row(
        Drawing.axis,
        lambda x, a: x.reshape(*x.shape[:a], 1, *x.shape[a:]) if x.ndim < 4 else x[...],
        lambda x, a: x.unflatten(a, (1, x.shape[a])) if x.ndim < 4 else x.view(x.shape),
    ),
    "view_as": Row(nothing, lambda x: x[...], lambda x: x.view_as(x)),
    "detach": Row(nothing, lambda x: x[...], lambda x: x.detach()),
    "data": Row(nothing, lambda x: x[...], lambda x: x.data),
    "contiguous": Row(nothing, lambda x: x[...] if x.flags.c_contiguous else np.array(x, order="C"), _same),
}
WRITES: dict[str, Row] = {
    "fill_": Row(Drawing.number, np.full_like, lambda x, v: x.fill_(v)),
    "zero_": Row(nothing, np.zeros_like, lambda x: x.zero_()),
    "add_": Row(Drawing.number, np.add, lambda x, v: x.add_(v)),
    "mul_": Row(Drawing.number, np.multiply, lambda x, v: x.mul_(v)),
    "neg_": Row(nothing, np.negative, lambda x: x.neg_()),
    "iadd": Row(Drawing.number, np.add, _iadd),
    "imul": Row(Drawing.number, np.multiply, _imul),
    "relu_": Row(nothing, lambda x: np.maximum(x, 0), lambda x: x.relu_()),
    "clamp_": Row(Drawing.number, np.maximum, lambda x, v: x.clamp_(min=v)),
    "copy_": Row(Drawing.other, lambda x, y: y, lambda x, y: x.copy_(y)),
    "add array": Row(Drawing.other, np.add, _iadd),
    "mul array": Row(Drawing.other, np.multiply, lambda x, y: x.mul_(y.clone())),
    "sub scaled": Row(Drawing.other, lambda x, y: x - y * 2, lambda x, y: x.sub_(y, alpha=2)),
    "lerp": Row(Drawing.other, lambda x, y: x + y * y, lambda x, y: x.addcmul_(y.clone(), y.clone())),
    "set item": Row(
        lambda d, x: None if (key := d.key(x)) is None else (*key, *d.number(x)), with_item, _set
    ),
    "add to item": Row(
        lambda d, x: None if (key := d.key(x)) is None else (*key, *d.number(x)),
        lambda x, key, v: with_item(x, key, x[key] + v),
        _add_to,
    ),
    "set item from": Row(
        lambda d, x: None if (k := d.key(x)) is None or (y := d.fitting(x[k[0]].shape, x)) is None else (*k, *y),
        with_item,
        _set,
    ),
    "set mask": Row(Drawing.number, lambda x, v: np.where(x > v, v, x), lambda x, v: _set(x, _mask(x, v), v)),
    "masked_fill_": Row(
        Drawing.number, lambda x, v: np.where(x > v, v, x), lambda x, v: x.masked_fill_(_mask(x, v), v)
    ),
    "set rows": Row(
        lambda d, x: None if (rows := d.rows(x)) is None else (*rows, *d.number(x)),
        with_rows,
        lambda x, a, rows, v: _set(x, (slice(None),) * a + (rows,), v),
    ),
    "index_fill_": Row(
        lambda d, x: None if (rows := d.rows(x)) is None else (*rows, *d.number(x)),
        with_rows,
        lambda x, a, rows, v: x.index_fill_(a, _indices(x, rows), v),
    ),
    "index_copy_": Row(
        Drawing.rows_of, with_rows, lambda x, a, rows, y: x.index_copy_(a, _indices(x, rows), y)
    ),
    "index_add_": Row(
        Drawing.rows_of,
        lambda x, a, rows, y: with_rows(x, a, rows, np.take(x, rows, a) + y),
        lambda x, a, rows, y: x.index_add_(a, _indices(x, rows), y),
    ),
    "swap": Row(
        lambda d, x: (d.pick(x.shape[0]), d.pick(x.shape[0])) if x.ndim else None,
        lambda x, i, j: with_item(with_item(x, i, x[j]), j, x[i]),
        _swap,
    ),
}  # fmt: skip
COMPUTED: dict[str, Row] = {
    "clone": Row(nothing, lambda x: x, lambda x: x.clone().contiguous()),
    "twice": Row(nothing, lambda x: x * 2 + 1, lambda x: (x * 2 + 1).contiguous()),
    "sum of": Row(Drawing.other, lambda x, y: x + y * 2, lambda x, y: (x + y * 2).contiguous()),
    "product": Row(
        Drawing.other, np.multiply, lambda x, y: (x.clone() * y.clone()).contiguous()  # PyTorch keeps both
    ),
    "where": Row(
        Drawing.other, lambda x, y: np.where(x > 0, x, y), lambda x, y: y.where(x.detach() <= 0, x).contiguous()
    ),
    "max": Row(nothing, lambda x: np.maximum(x, 0), lambda x: x.relu().contiguous()),
}  # fmt: skip
TABLES = {**VIEWS, **WRITES, **COMPUTED}


def arguments(step: Step, arrays: list[Array]) -> list[Any]:
    return [arrays[a.number] if isinstance(a, At) else a for a in step.args]


def in_numpy(step: Step, arrays: list[np.ndarray]) -> None:
    """Carry a step out with NumPy."""
    x = arrays[step.at]
    with np.errstate(over="ignore"):
        made = TABLES[step.kind].numpy(x, *arguments(step, arrays))
    if step.kind in WRITES:
        x[...] = made
    else:
        arrays.append(made if step.kind in VIEWS else np.array(made, x.dtype, order="C").reshape(made.shape))


def in_tensors(step: Step, arrays: list[Array]) -> None:
    """Carry a step out with tensors of Runnel or PyTorch."""
    made = TABLES[step.kind].tensor(arrays[step.at], *arguments(step, arrays))
    if step.kind not in WRITES:
        arrays.append(made)


def ran(steps: list[Step], start: list[Array], inside: Callable[..., Any] = lambda f: f) -> list[Array]:
    """Return all tensors of a program, the first two thirds of which ``inside`` compiles."""
    first = len(steps) * 2 // 3

    def begin(*start: Array) -> list[Array]:
        arrays = list(start)
        for step in steps[:first]:
            in_tensors(step, arrays)
        return arrays

    arrays = list(inside(begin)(*start))
    for step in steps[first:]:
        in_tensors(step, arrays)
    return arrays


def weighted(arrays: list[Array], numpy_of: Callable[[np.ndarray], Array]) -> Array:
    """Return one number that depends on each element of each array in its own way."""
    total: Any = 0.0
    for i, x in enumerate(arrays):
        count = int(np.prod(tuple(x.shape)))
        weights = (np.arange(count, dtype=np.float32) * (i + 1) % 7 - 3).reshape(tuple(x.shape))
        total = total + (x * numpy_of(weights)).sum()
    return total


def _of_variables(drawn: Drawing) -> list[Array]:
    with rn.no_grad():
        return ran(drawn.steps, [nn.Parameter(rn.asarray(x)) for x in drawn.started()])


def _of_copies(drawn: Drawing) -> list[Array]:
    steps = [Step("view_as", i) for i in range(3)]
    moved = [
        Step(s.kind, s.at + 3, tuple(At(a.number + 3) if isinstance(a, At) else a for a in s.args)) for s in drawn.steps
    ]
    return ran([*steps, *moved], [rn.asarray(x) for x in drawn.started()], rn.compile)[3:]


WAYS: dict[str, Callable[[Drawing], list[Array]]] = {
    "eager": lambda drawn: ran(drawn.steps, [rn.asarray(x) for x in drawn.started()]),
    "of Parameters": lambda drawn: _of_variables(drawn) if drawn.dtype.kind == "f" else WAYS["eager"](drawn),
    "compiled": lambda drawn: ran(drawn.steps, [rn.asarray(x) for x in drawn.started()], rn.compile),
    "compiled with views": _of_copies,
}


def fault(seed: int, compiled: bool = True) -> str | None:
    """Return what differs between NumPy and the program of ``seed``, eager or compiled."""
    drawn = Drawing(seed)
    for name in list(WAYS)[: len(WAYS) if compiled else 2]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                actual = WAYS[name](drawn)
        except Exception as error:
            return f"{name}: {type(error).__name__}: {error}\n{listed(drawn)}"
        for i, (x, y) in enumerate(zip(drawn.arrays, actual, strict=True)):
            if x.shape != tuple(y.shape) or not np.array_equal(x, y.numpy()):
                return f"{name}: array {i} is\n{y.numpy()}\nand must be\n{x}\n{listed(drawn)}"
    return None


def listed(drawn: Drawing) -> str:
    return f"shapes {drawn.shapes} of {drawn.dtype}\n" + "\n".join(map(str, drawn.steps))


REFUSED = (
    "modified by an inplace operation",
    "does not require grad",
    "is a view",
    "views",
    "a leaf Variable",
)  # by PyTorch


def gradient_fault(seed: int, torch: Any, compiled: bool = True) -> str | None:
    """Return what differs between PyTorch's gradients of the program of ``seed`` and ours; None where it has none."""
    drawn = Drawing(seed)
    if drawn.dtype.kind != "f":
        return None

    def started(of: Callable[[np.ndarray], Array]) -> list[Array]:
        """Return three arrays, of which the last one has no gradient."""
        return [of(x.astype(np.float64)) for x in drawn.started()]

    # PyTorch does not notice that x.data changes what a backward pass needs, and computes a wrong gradient.
    steps = [s._replace(kind="detach") if s.kind == "data" else s for s in drawn.steps]

    def loss(*leaves: Array) -> Array:
        return weighted(ran(steps, [leaves[0] * 1, leaves[1] * 1, leaves[2].clone()]), to)

    to = torch.tensor
    theirs = started(torch.tensor)
    for x in theirs[:2]:
        x.requires_grad_()
    try:
        loss(*theirs).backward()
    except RuntimeError as error:
        return None if any(text in str(error) for text in REFUSED) else f"PyTorch: {error}\n{listed(drawn)}"
    to = rn.asarray
    for mode in (False, True)[: 1 + compiled]:
        ours = started(rn.asarray)
        for x in ours[:2]:
            x.requires_grad_()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                (rn.compile(loss) if mode else loss)(*ours).backward()
        except Exception as error:
            return f"compiled={mode}: {type(error).__name__}: {error}\n{listed(drawn)}"
        for i, (x, y) in enumerate(zip(theirs[:2], ours[:2], strict=True)):
            expected = np.zeros(x.shape) if x.grad is None else x.grad.numpy()
            actual = np.zeros(x.shape) if y.grad is None else y.grad.numpy()
            if not np.allclose(expected, actual, rtol=1e-9):
                return f"compiled={mode}: gradient {i}\n{actual}\nand must be\n{expected}\n{listed(drawn)}"
    return None
