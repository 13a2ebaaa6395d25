"""Test random reductions and products: equal bits in every mode, errors within docs/internals/numerics.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import runnel as rn
from runnel import ops
from runnel.core.dtypes import DType
from runnel.loops.ir import CHAIN, K_BLOCK, LANES
from runnel.nn import functional as F
from tests.fuzz.running import Choices, check
from tests.loops.summation import bound

Array = np.ndarray[Any, Any]
EXTENTS = (0, 1, 1, 2, 3, 5, 7, LANES - 1, LANES, LANES + 1, 33, 50, CHAIN - 1, CHAIN, CHAIN + 1, 2 * CHAIN + 1, 200)
LONG = (K_BLOCK - 1, K_BLOCK, K_BLOCK + 1, CHAIN * LANES * 2 + 3, 2 * K_BLOCK, 3 * K_BLOCK + 5, 9 * CHAIN * LANES)
MOST = 60_000  # elements
INTERPRETED = 3_000
EPS = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


@dataclass
class Case:
    """``fn`` of tensors with these values; ``truth`` gives its value in float64, and how far off it may be."""

    fn: Callable[..., Any]
    inputs: list[rn.Tensor]
    truth: Callable[..., tuple[Any, Any]] | None
    what: str


@dataclass(frozen=True)
class Producer:
    """A sum in Runnel, in float64, and magnitudes of which its error is a few units."""

    name: str
    apply: Callable[[Any], Any]
    terms: Callable[[Array], Array]
    sizes: Callable[[Array], Array]


PRODUCERS = (
    Producer("x", lambda x: x, lambda x: x, np.abs),
    Producer("x*x", lambda x: x * x, lambda x: x * x, np.square),
    Producer("x*0.5+1", lambda x: x * 0.5 + 1, lambda x: x * 0.5 + 1, lambda x: np.abs(x) * 0.5 + 1),
    Producer("relu", ops.relu, lambda x: np.maximum(x, 0), np.abs),
    Producer("|x|", ops.abs, np.abs, np.abs),
    Producer("x/(1+x*x)", lambda x: x / (x * x + 1), lambda x: x / (x * x + 1), lambda x: np.abs(x) / (x * x + 1)),
)
CONSUMERS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("", lambda y: y),
    ("*2", lambda y: y * 2),
    ("neg", lambda y: -y),
)


class Draw(Choices):
    """The choices of one case."""

    def dtype(self) -> DType:
        return self.of((rn.float32, rn.float32, rn.float32, rn.float64, rn.bfloat16, rn.float16))

    def shape(self, ndim: int) -> tuple[int, ...]:
        shape = [self.of(EXTENTS) for _ in range(ndim)]
        if ndim and self.chance(0.4):
            shape[int(self.rng.integers(ndim))] = self.of(LONG)
        while math.prod(shape) > MOST:
            shape[int(np.argmax([n if n not in LONG else n / 100 for n in shape]))] = self.of((1, 2, 3))
            if math.prod(shape) > MOST and max(shape) == min(shape, default=0):
                break
        return tuple(shape)

    def axes(self, ndim: int) -> Any:
        if self.chance(0.2):
            return None
        chosen = tuple(a for a in range(ndim) if self.chance(0.5))
        return chosen if len(chosen) != 1 or self.chance(0.5) else chosen[0] - self.of((0, ndim))

    def values(self, shape: tuple[int, ...]) -> Array:
        """All alike, random signs, or magnitudes far apart."""
        kind = self.of(("same", "normal", "positive", "wide", "cancelling"))
        if kind == "same":
            return np.full(shape, self.of((0.1, 1 / 3, 0.7)))
        x = self.rng.standard_normal(shape)
        if kind == "positive":
            return np.abs(x)
        if kind == "wide":
            return x * 10.0 ** self.rng.integers(-3, 4, shape)
        if kind == "cancelling":
            return np.where(self.rng.random(shape) < 0.5, 100.0, -100.0) + x
        return x

    def tensor(self, shape: tuple[int, ...], dtype: DType) -> rn.Tensor:
        """Dense, or a view of something that is not."""
        if dtype is rn.float16:  # of which the squares must not overflow
            return ops.clip(self.tensor(shape, rn.float32), -100, 100).astype(dtype)
        view = self.of(("dense", "dense", "permuted", "stepped", "broadcast", "flipped"))
        if view == "permuted" and len(shape) > 1:
            order = self.rng.permutation(len(shape))
            base = rn.asarray(self.values(tuple(shape[a] for a in order)), dtype)
            return ops.permute(base, tuple(int(a) for a in np.argsort(order)))
        if view == "stepped" and shape:
            return rn.asarray(self.values((*shape[:-1], 2 * shape[-1])), dtype)[..., ::2]
        if view == "broadcast" and shape:
            axis = int(self.rng.integers(len(shape)))
            base = rn.asarray(self.values((*shape[:axis], 1, *shape[axis + 1 :])), dtype)
            return ops.broadcast_to(base, shape)
        if view == "flipped" and shape:
            return ops.flip(rn.asarray(self.values(shape), dtype), 0)
        return rn.asarray(self.values(shape), dtype)


def reductions(draw: Draw) -> Case:
    """Sums and what is built on them, of producers, over any axes, with consumers."""
    dtype = draw.dtype()
    shape = draw.shape(int(draw.rng.integers(1, 4)))
    axes, keepdims = draw.axes(len(shape)), draw.chance(0.5)
    x = draw.tensor(shape, dtype)
    producer, (after, consumer) = draw.of(PRODUCERS), draw.of(CONSUMERS)
    kind = draw.of(("sum", "sum", "mean", "norm", "norm1", "var", "two"))
    functions = {
        "sum": lambda y: ops.sum(y, axes, keepdims),
        "mean": lambda y: ops.mean(y, axes, keepdims),
        "norm": lambda y: ops.norm(y, axis=axes, keepdims=keepdims),
        "norm1": lambda y: ops.norm(y, 1, axes, keepdims),
        "var": lambda y: ops.var(y, axes, keepdims=keepdims),
        "two": lambda y: (ops.sum(y, axes, keepdims), ops.max(y) if y.size else y, ops.sum(y * 0.5, axes, keepdims)),
    }

    def fn(x: Any) -> Any:
        actual = functions[kind](producer.apply(x))
        return tuple(map(consumer, actual)) if isinstance(actual, tuple) else consumer(actual)

    def truth(x: Array) -> tuple[Any, Any]:
        along: Any = tuple(range(x.ndim)) if axes is None else axes
        count = math.prod(np.array(shape)[np.r_[along].astype(int)].tolist()) if np.size(along) else 1
        eps, work = EPS[dtype.name], max(EPS[dtype.name], 0.0)
        tree = bound(count, np.float64 if dtype is rn.float64 else np.float32)
        terms, sizes = producer.terms(x), producer.sizes(x)
        total = np.sum(terms, along, keepdims=keepdims)
        slack = (tree + 8 * work) * np.sum(sizes, along, keepdims=keepdims)
        if kind in ("mean", "var"):
            total, slack = total / max(count, 1), slack / max(count, 1)
        if kind == "var":
            middle = terms.mean(along, keepdims=True)
            spread = np.abs(sizes) + np.mean(sizes, along, keepdims=True)
            total = np.mean(np.square(terms - middle), along, keepdims=keepdims)
            slack = (5 * tree + 40 * work) * np.mean(np.square(spread), along, keepdims=keepdims)
        if kind == "norm1":
            total = np.sum(np.abs(terms), along, keepdims=keepdims)
        if kind == "norm":
            squares = np.sum(np.square(terms), along, keepdims=keepdims)
            total = np.sqrt(squares)
            slack = np.sqrt((tree + 40 * work) * np.sum(np.square(sizes), along, keepdims=keepdims) + 1e-38)
        factor = {"": 1, "*2": 2, "neg": -1}[after]
        return total * factor, 2 * (slack + 4 * eps * np.abs(total)) + 1e-6

    compared = None if kind == "two" or (kind in ("mean", "var") and 0 in shape) else truth
    return Case(fn, [x], compared, f"{kind} of {producer.name} over {axes} of {shape} {dtype.name} {after}")


def products(draw: Draw) -> Case:
    """Matrices, vectors, stacks; transposed, fused with what follows."""
    dtype = draw.of((rn.float32, rn.float32, rn.float64, rn.bfloat16, rn.float16))
    k = draw.of((*LONG, *EXTENTS))
    few = (1, 1, 2, 3, 6, 17, 33)
    m, n = draw.of(few), draw.of(few)
    batch = (draw.of((1, 2, 3)),) if draw.chance(0.25) else ()
    a, b = draw.tensor((*batch, m, k), dtype), draw.tensor((*batch, k, n), dtype)
    after, consumer = draw.of((*CONSUMERS, ("relu", ops.relu), ("rows", lambda y: ops.sum(y, -1))))

    def fn(a: Any, b: Any) -> Any:
        return consumer(a @ b)

    def truth(a: Array, b: Array) -> tuple[Any, Any]:
        total, sizes = a @ b, np.abs(a) @ np.abs(b)
        wide = bound(k, np.float64 if dtype is rn.float64 else np.float32, products=True)
        slack = (wide + 4 * EPS[dtype.name]) * sizes
        total = {"relu": np.maximum(total, 0), "*2": total * 2, "neg": -total}.get(after, total)
        if after == "rows":
            total, slack = total.sum(-1), (slack + (bound(n, np.float32) + 4 * EPS[dtype.name]) * sizes).sum(-1)
        return total, 2 * slack + 2 * EPS[dtype.name] * np.abs(total) + 1e-6

    return Case(fn, [a, b], truth, f"{batch}{m}x{k}x{n} {dtype.name} {after}")


def scattered(draw: Draw) -> Case:
    """Rows added up by label, as the gradient of an embedding does."""
    rows, count = draw.of((1, 2, 5, 40)), draw.of((1, 3, CHAIN, 3 * CHAIN + 1, 2000))
    columns = draw.of(((), (1,), (2,), (17,), (3, 5)))
    dtype = draw.of((rn.float32, rn.float64, rn.bfloat16))
    labels = rn.asarray(draw.rng.integers(0, rows, count))
    updates = rn.asarray(draw.values((count, *columns)), dtype)
    kind = draw.of(("scatter_add", "index_add", "embedding"))

    def fn(labels: Any, updates: Any) -> Any:
        if kind == "scatter_add":
            return ops.scatter_add(labels, updates, rows)
        zeros = rn.zeros((rows, *columns), dtype)
        if kind == "index_add":
            return ops.index_add(zeros, 0, labels, updates)
        return rn.grad(lambda w: ops.sum(cast(ops.embedding(w, labels)) * cast(updates)))(zeros)

    def cast(x: Any) -> Any:
        return ops.cast(x, rn.float64 if dtype is rn.float64 else rn.float32)

    def truth(labels: Array, updates: Array) -> tuple[Any, Any]:
        total, sizes = np.zeros((rows, *columns)), np.zeros((rows, *columns))
        np.add.at(total, labels.astype(int), updates)
        np.add.at(sizes, labels.astype(int), np.abs(updates))
        tree = bound(count, np.float64 if dtype is rn.float64 else np.float32)
        return total, 2 * (tree + 4 * EPS[dtype.name]) * sizes + 1e-9

    return Case(fn, [labels, updates], truth, f"{kind} {count} to {rows} of {columns} {dtype.name}")


def broadcast_gradients(draw: Draw) -> Case:
    """Return the gradient of a broadcast operand: the sum over the axes along which it was repeated."""
    shape = draw.shape(int(draw.rng.integers(1, 4)))
    small = tuple(1 if draw.chance(0.5) else n for n in shape)[int(draw.rng.integers(len(shape))) :]
    dtype = draw.of((rn.float32, rn.float64))
    x, w, b = draw.tensor(shape, dtype), draw.tensor(shape, dtype), rn.asarray(draw.values(small), dtype)

    def fn(x: Any, w: Any, b: Any) -> Any:
        return rn.grad(lambda b: ops.sum(w * (x + b)))(b)

    def truth(x: Array, w: Array, b: Array) -> tuple[Any, Any]:
        wide = (1,) * (w.ndim - b.ndim) + b.shape
        along = tuple(a for a, n in enumerate(wide) if n == 1)
        total, sizes = (np.sum(y, along, keepdims=True).reshape(b.shape) for y in (w, np.abs(w)))
        tree = bound(max(w.size, 1), np.float64 if dtype is rn.float64 else np.float32)
        return total, 2 * (tree + 4 * EPS[dtype.name]) * sizes + 1e-9

    return Case(fn, [x, w, b], truth, f"gradient of {small} in {shape} {dtype.name}")


def composed(draw: Draw) -> Case:
    """Functions of which only the bits are compared: softmax, layers, losses, convolutions, attention, gradients."""
    rows, width = draw.of((1, 2, 5, 9)), draw.of((1, 2, 3, 17, 64, 200, 1025, 3000))
    kind = draw.of(("softmax", "logsumexp", "layer_norm", "loss", "entropy", "conv", "attention", "batch_norm", "std"))
    dtype = draw.of((rn.float32, rn.float32, rn.float64, rn.bfloat16))
    if kind == "attention":
        heads, time, keys, depth = draw.of((1, 2)), draw.of((1, 3, 70)), draw.of((1, 5, 513, 1100)), draw.of((1, 8, 17))
        q, k, v = (rn.asarray(draw.values((1, heads, t, depth)), rn.float32) for t in (time, keys, keys))
        return Case(_with_gradient(lambda q, k, v: ops.scaled_dot_product_attention(q, k, v)), [q, k, v], None, kind)
    if kind == "conv":
        channels, filters = draw.of((1, 3, 16)), draw.of((1, 5, 16))
        sizes = (draw.of((1, 2)), channels, *draw.of(((7, 9), (16, 16), (30, 13))))
        taps = draw.of(((1, 1), (3, 3), (2, 3)))
        x, w = (rn.asarray(draw.values(s), rn.float32) for s in (sizes, (filters, channels, *taps)))
        return Case(_with_gradient(lambda x, w: F.conv2d(x, w, padding=1)), [x, w], None, f"conv {sizes} {taps}")
    x, y = draw.tensor((rows, width), dtype), rn.asarray(draw.values((rows, width)), dtype)

    def picked(y: Any) -> Any:
        return ops.stop_gradient(ops.argmax(y, -1))

    functions: dict[str, Callable[..., Any]] = {
        "softmax": lambda x, y: ops.softmax(x, draw_axis),
        "logsumexp": lambda x, y: ops.logsumexp(x, draw_axis),
        "layer_norm": lambda x, y: ops.layer_norm(x, width),
        "loss": lambda x, y: ops.mse_loss(x, y),
        "entropy": lambda x, y: ops.cross_entropy(x, picked(y)),
        "batch_norm": lambda x, y: F.batch_norm(x, None, None, training=True) if rows > 1 else x,
        "std": lambda x, y: ops.std(x, draw_axis) + ops.mean(y, draw_axis),
    }
    draw_axis = draw.of((0, 1, -1))
    fn = functions[kind]
    inner = _with_gradient(fn) if draw.chance(0.5) and kind != "std" else fn
    return Case(inner, [x, y], None, f"{kind} {rows}x{width} {dtype.name} axis {draw_axis}")


def _with_gradient(fn: Callable[..., Any]) -> Callable[..., Any]:
    def program(*xs: Any) -> Any:
        out, pull = rn.vjp(fn, *xs)
        return (out, *pull(out))

    return program


FAMILIES = (reductions, reductions, products, scattered, broadcast_gradients, composed)


def run(seed: int) -> str:
    """Check the case of ``seed``; says what it was."""
    draw = Draw(seed)
    case = draw.of(FAMILIES)(draw)
    size = sum(x.size for x in case.inputs)
    actual = check(case.fn, case.inputs, draw.rng, interpreted=size <= INTERPRETED and draw.chance(0.2))
    if case.truth is not None:
        exact, slack = case.truth(*[x.numpy().astype(np.float64) for x in case.inputs])
        off = np.abs(actual[0].astype(np.float64) - exact)
        if actual[0].dtype == np.float16:
            off = np.where(np.isfinite(off), off, 0)  # its range is narrow
        assert (off <= slack).all(), f"{case.what}: off by {np.max(off)}, at most {np.max(slack)}"
    return case.what
