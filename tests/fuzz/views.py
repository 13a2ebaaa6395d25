"""Random programs of views and writes. The oracles are NumPy, whose views share memory, and PyTorch if it is installed.

A program is a list of steps over a list of arrays. The same methods carry it out with PyTorch, eagerly and compiled.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import runnel as rn


class Step(NamedTuple):
    """A step: a view or a computed array, which is appended to the list, or a write to array ``at``."""

    kind: str
    at: int
    args: tuple[Any, ...] = ()


class Drawing:
    """Draws a program; NumPy's arrays tell the shapes and which views exist."""

    def __init__(self, seed: int, length: int = 10) -> None:
        self.random = np.random.default_rng(seed)
        self.shape = tuple(int(n) for n in self.random.integers(1, 5, self.random.integers(1, 4)))
        self.steps: list[Step] = []
        arrays = started(self.shape)
        while len(self.steps) < length:
            step = self.step(arrays)
            if step is not None:
                in_numpy(step, arrays)
                self.steps.append(step)

    def pick(self, n: int) -> int:
        return int(self.random.integers(n))

    def step(self, arrays: list[np.ndarray]) -> Step | None:
        at = self.pick(len(arrays))
        x = arrays[at]
        if not x.size:
            return None
        kind = [*VIEWS, *WRITES, *WRITES, *COMPUTED][self.pick(len(VIEWS) + 2 * len(WRITES) + len(COMPUTED))]
        if kind in WRITES or kind in COMPUTED:
            same = [i for i, y in enumerate(arrays) if y.shape == x.shape and not np.shares_memory(x, y)]
            if kind in ("copy_", "add_array", "sum_of", "sub_scaled"):
                return Step(kind, at, (same[self.pick(len(same))],)) if same else None
            if kind in ("set_item", "add_item", "set_from"):
                key = self.key(x)
                if key is None:
                    return None
                if kind == "set_from":
                    shape = x[key].shape
                    fits = [i for i, y in enumerate(arrays) if y.shape == shape and not np.shares_memory(x, y)]
                    return Step(kind, at, (key, fits[self.pick(len(fits))])) if fits else None
                return Step(kind, at, (key, float(self.pick(9) - 4)))
            if kind in ("zero_", "clone", "twice", "relu_", "contiguous"):
                return Step(kind, at)
            return Step(kind, at, (float(self.pick(5) - 2),))
        args = self.view(kind, x)
        return None if args is None else Step(kind, at, args)

    def key(self, x: np.ndarray) -> Any:
        if not x.ndim:
            return None
        items: list[Any] = []
        for n in x.shape[: 1 + self.pick(x.ndim)]:
            if self.pick(2):
                items.append(self.pick(n) - n * self.pick(2))
            else:
                first = self.pick(n)
                items.append(slice(first, first + 1 + self.pick(n - first), 1 + self.pick(2)))
        return tuple(items) if len(items) > 1 or self.pick(2) else items[0]

    def view(self, kind: str, x: np.ndarray) -> tuple[Any, ...] | None:
        if kind == "item":
            key = self.key(x)
            return None if key is None else (key,)
        if kind in ("permute",):
            return (tuple(int(a) for a in self.random.permutation(x.ndim)),) if x.ndim else None
        if kind == "transpose":
            return (self.pick(x.ndim), self.pick(x.ndim)) if x.ndim else None
        if kind in ("reshape", "view"):
            return (self.other_shape(x.size),)
        if kind == "unsqueeze":
            return (self.pick(x.ndim + 1),) if x.ndim < 4 else None
        if kind == "squeeze":
            return (self.pick(x.ndim),) if x.ndim else None
        if kind in ("narrow", "chunk", "unbind", "select"):
            if not x.ndim:
                return None
            axis = self.pick(x.ndim)
            n = x.shape[axis]
            first = self.pick(n)
            return {
                "narrow": (axis, first, 1 + self.pick(n - first)),
                "chunk": (axis, 1 + self.pick(3), self.pick(8)),
                "unbind": (axis, first),
                "select": (axis, first),
            }[kind]
        if kind == "diagonal":
            return (self.pick(3) - 1,) if x.ndim == 2 else None
        return ()

    def other_shape(self, size: int) -> tuple[int, ...]:
        shape: list[int] = []
        while size > 1 and len(shape) < 3:
            n = int(self.random.choice([d for d in range(1, size + 1) if size % d == 0]))
            shape.append(n)
            size //= n
        return (*shape, size)


VIEWS = (
    "item", "item", "permute", "transpose", "reshape", "view", "unsqueeze", "squeeze", "narrow", "chunk", "unbind",
    "select", "diagonal", "detach", "flatten",
)  # fmt: skip
WRITES = (
    "fill_", "zero_", "add_", "mul_", "iadd", "copy_", "add_array", "set_item", "add_item", "set_from", "relu_",
    "sub_scaled",
)  # fmt: skip
COMPUTED = ("clone", "twice", "sum_of", "contiguous")


def started(shape: tuple[int, ...]) -> list[np.ndarray]:
    return [np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape) - 3]


def in_numpy(step: Step, arrays: list[np.ndarray]) -> None:
    """Carry a step out with NumPy."""
    kind, x, args = step.kind, arrays[step.at], step.args
    made: Any = None
    if kind == "item":
        made = x[args[0]]
        made = made if isinstance(made, np.ndarray) else x[(*np.atleast_1d(args[0]), ...)]
    elif kind == "permute":
        made = x.transpose(args[0])
    elif kind == "transpose":
        made = x.swapaxes(*args)
    elif kind in ("reshape", "view"):
        made = x.reshape(args[0])
    elif kind == "flatten":
        made = x.reshape(-1)
    elif kind == "unsqueeze":
        made = np.expand_dims(x, args[0])
    elif kind == "squeeze":
        made = x.squeeze(args[0]) if x.shape[args[0]] == 1 else x[...]
    elif kind == "narrow":
        axis, start, size = args
        made = x[(slice(None),) * axis + (slice(start, start + size),)]
    elif kind == "chunk":
        axis, count, which = args
        size = -(-x.shape[axis] // count)
        starts = range(0, x.shape[axis], size)
        start = starts[which % len(starts)]
        made = x[(slice(None),) * axis + (slice(start, start + size),)]
    elif kind in ("unbind", "select"):
        made = x[(slice(None),) * args[0] + (args[1], ...)]
    elif kind == "diagonal":
        # a writable view of the diagonal
        made = np.lib.stride_tricks.as_strided(
            x[max(-args[0], 0) :, max(args[0], 0) :], np.diagonal(x, args[0]).shape, (sum(x.strides),), writeable=True
        )
    elif kind == "detach":
        made = x[...]
    elif kind == "clone":
        made = np.array(x, order="C")
    elif kind == "contiguous":
        made = x[...] if x.flags.c_contiguous else np.array(x, order="C")
    elif kind == "twice":
        made = np.array(x * 2 + 1, order="C").reshape(x.shape)
    elif kind == "sum_of":
        made = np.array(x + arrays[args[0]] * 0.5, order="C").reshape(x.shape)
    elif kind == "fill_":
        x[...] = args[0]
    elif kind == "zero_":
        x[...] = 0
    elif kind in ("add_", "iadd"):
        x[...] = x + args[0]
    elif kind == "mul_":
        x[...] = x * args[0]
    elif kind == "relu_":
        x[...] = np.maximum(x, 0)
    elif kind == "copy_":
        x[...] = arrays[args[0]]
    elif kind == "add_array":
        x[...] = x + arrays[args[0]]
    elif kind == "sub_scaled":
        x[...] = x - arrays[args[0]] * 0.5
    elif kind == "set_item":
        x[args[0]] = args[1]
    elif kind == "add_item":
        x[args[0]] += args[1]
    elif kind == "set_from":
        x[args[0]] = arrays[args[1]].copy()
    else:
        raise AssertionError(kind)
    if made is not None:
        arrays.append(made)


def in_tensors(step: Step, arrays: list[Any]) -> None:
    """Carry a step out with tensors of Runnel or PyTorch."""
    kind, x, args = step.kind, arrays[step.at], step.args
    made: Any = None
    if kind == "item":
        made = x[args[0]]
    elif kind == "squeeze":
        made = x.squeeze(args[0])
    elif kind in ("permute", "reshape", "view"):
        method = "reshape" if kind == "view" else kind  # x.view() refuses what is not a view
        made = getattr(x, method)(args[0])
    elif kind == "flatten":
        made = x.reshape(-1)
    elif kind in ("transpose", "unsqueeze", "narrow", "select", "diagonal", "detach", "clone"):
        made = getattr(x, kind)(*args)
    elif kind == "contiguous":
        made = x.contiguous()
        made = made.view(made.shape) if made is x else made
    elif kind == "chunk":
        chunks = x.chunk(args[1], args[0])
        made = chunks[args[2] % len(chunks)]
    elif kind == "unbind":
        made = x.unbind(args[0])[args[1]]
    elif kind == "twice":
        made = (x * 2 + 1).contiguous()
    elif kind == "sum_of":
        made = (x + arrays[args[0]] * 0.5).contiguous()
    elif kind in ("fill_", "zero_", "add_", "mul_", "relu_"):
        getattr(x, kind)(*args)
    elif kind == "iadd":
        x += args[0]
    elif kind == "copy_":
        x.copy_(arrays[args[0]])
    elif kind == "add_array":
        x += arrays[args[0]]
    elif kind == "sub_scaled":
        x.sub_(arrays[args[0]], alpha=0.5)
    elif kind == "set_item":
        x[args[0]] = args[1]
    elif kind == "add_item":
        x[args[0]] += args[1]
    elif kind == "set_from":
        x[args[0]] = arrays[args[1]]
    else:
        raise AssertionError(kind)
    if made is not None:
        arrays.append(made)


def ran(steps: list[Step], start: Any, inside: Callable[..., Any] = lambda f: f) -> list[Any]:
    """Return all tensors of a program, the first two thirds of which ``inside`` compiles."""
    first = len(steps) * 2 // 3

    def begin(start: Any) -> list[Any]:
        arrays = [start]
        for step in steps[:first]:
            in_tensors(step, arrays)
        return arrays

    arrays = list(inside(begin)(start))
    for step in steps[first:]:
        in_tensors(step, arrays)
    return arrays


def weighted(arrays: list[Any], numpy_of: Callable[[np.ndarray], Any]) -> Any:
    """Return one number that depends on each element of each array in its own way."""
    total: Any = 0.0
    for i, x in enumerate(arrays):
        count = int(np.prod(tuple(x.shape)))
        weights = (np.arange(count, dtype=np.float32) * (i + 1) % 7 - 3).reshape(tuple(x.shape))
        total = total + (x * numpy_of(weights)).sum()
    return total


def shifted(step: Step) -> tuple[Any, ...]:
    """Return the arguments of a step in a list that has one array more in front."""
    if step.kind in ("copy_", "add_array", "sum_of", "sub_scaled"):
        return (step.args[0] + 1,)
    return (step.args[0], step.args[1] + 1) if step.kind == "set_from" else step.args


def fault(seed: int, compiled: bool = True) -> str | None:
    """Return what differs between NumPy and the program of ``seed``, eager or compiled."""
    drawn = Drawing(seed)
    expected = started(drawn.shape)
    for step in drawn.steps:
        in_numpy(step, expected)
    first = started(drawn.shape)[0]
    ways = {
        "eager": lambda: ran(drawn.steps, rn.asarray(first.copy())),
        "compiled": lambda: ran(drawn.steps, rn.asarray(first.copy()), rn.compile),
        "compiled with a copy": lambda: ran(
            [Step("clone", 0), *[Step(s.kind, s.at + 1, shifted(s)) for s in drawn.steps]],
            rn.asarray(first.copy()),
            rn.compile,
        )[1:],
    }
    if not compiled:
        ways = {"eager": ways["eager"]}
    for name, way in ways.items():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                actual = way()
            except Exception as error:
                return f"{name}: {type(error).__name__}: {error}\n{listed(drawn)}"
        for i, (x, y) in enumerate(zip(expected, actual, strict=True)):
            if x.shape != tuple(y.shape) or not np.array_equal(x, y.numpy()):
                return f"{name}: array {i} is\n{y.numpy()}\nand must be\n{x}\n{listed(drawn)}"
    return None


def listed(drawn: Drawing) -> str:
    return f"shape {drawn.shape}\n" + "\n".join(map(str, drawn.steps))


def gradient_fault(seed: int, torch: Any) -> str | None:
    """Return what differs between PyTorch's gradient of the program of ``seed`` and ours; None where it has none."""
    drawn = Drawing(seed)
    first = started(drawn.shape)[0]
    theirs = torch.tensor(first, requires_grad=True)
    try:
        weighted(ran(drawn.steps, theirs * 1), torch.tensor).backward()
    except RuntimeError as error:
        if "modified by an inplace operation" in str(error) or "does not require grad" in str(error):
            return None
        if "is a view" in str(error) or "views" in str(error):
            return None
        return f"PyTorch: {error}\n{listed(drawn)}"
    for compiled in (False, True):
        ours = rn.asarray(first.copy()).requires_grad_()

        def loss(x: Any) -> Any:
            return weighted(ran(drawn.steps, x * 1), rn.asarray)

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                (rn.compile(loss) if compiled else loss)(ours).backward()
        except Exception as error:
            return f"compiled={compiled}: {type(error).__name__}: {error}\n{listed(drawn)}"
        if ours.grad is None or not np.array_equal(theirs.grad.numpy(), ours.grad.numpy()):
            return f"compiled={compiled}: gradient\n{ours.grad}\nand must be\n{theirs.grad}\n{listed(drawn)}"
    return None
