"""Reverse-mode differentiation over the tape that hangs on tensors.

A tensor made by an op from inputs that need a gradient remembers ``(op, attrs, inputs)``. :func:`cotangents` walks
those records from results back to leaves and applies the rules of table ``vjp``. The rules are written with ops, so the
same walk computes numbers on eager tensors and records a graph on traced ones. It is iterative: depth is no limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from runnel.core import tables
from runnel.core.errors import GradientError, NonFiniteError
from runnel.core.recall import LESSON, Recalled
from runnel.ops.shapes.assembly import SliceGradient
from runnel.ops.shapes.pieces import slice_p
from runnel.tensor import pulling, recalled_runs
from runnel.tensor.cotangents import Cotangent, Pending, ResultCotangent, Step, accumulate, like, summed
from runnel.tensor.grad_hooks import AFTER_ACCUMULATION, ON_GRADIENT, accumulated, hooked, is_hooked
from runnel.tensor.grad_mode import run_recording
from runnel.tensor.handle import (
    MultiResultRecord,
    PulledRecord,
    Record,
    ResultRecord,
    T,
    plain,
    results_of,
    version,
)
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.trace import ACTIVE


class Counter:
    """How often something has happened in this process."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


REPLACED: Final = Counter()  # records were replaced by others that say the same in more detail


def needed_order(roots: Sequence[T], stops: frozenset[int] = frozenset()) -> list[T]:
    """Return the tensors on a path from ``roots`` to leaves that need a gradient, each after everything it was made
    of."""
    return [step.tensor for step in _needed_steps(roots, stops)]


def _needed_steps(roots: Sequence[T], stops: frozenset[int]) -> list[Step]:
    while True:
        before = REPLACED.count
        steps = _steps(roots, stops)
        if before == REPLACED.count:  # else the way may have led through what was replaced when it was met
            return steps


def _steps(roots: Sequence[T], stops: frozenset[int]) -> list[Step]:
    steps: list[Step] = []
    visited: set[int] = set()
    for root in map(version, roots):
        if id(root) in visited or not root.requires_grad:
            continue
        visited.add(id(root))
        first = _step(root, stops)
        stack = [(first, iter(first.inputs))]
        while stack:
            step, rest = stack[-1]
            for x in rest:
                if x.requires_grad and id(x) not in visited:
                    visited.add(id(x))
                    deeper = _step(x, stops)
                    if deeper.inputs:
                        stack.append((deeper, iter(deeper.inputs)))
                        break
                    steps.append(deeper)
            else:
                steps.append(step)
                stack.pop()
    return steps


def _step(tensor: T, stops: frozenset[int]) -> Step:
    """Return the step at ``tensor``, where the walk ends if it is a leaf or one of ``stops``."""
    record = tensor._record
    if record is None or id(tensor) in stops:
        return Step(tensor, record, ())
    if record.freed:
        raise freed(tensor)
    return Step(tensor, record, record.inputs)


def freed(tensor: T) -> GradientError:
    """Return the error for a tape of ``tensor`` that was freed."""
    return GradientError(
        f"[backward] the tape of a tensor of shape {tensor.shape} was freed by an earlier backward(); "
        "call the earlier one with retain_graph=True, or compute the value again."
    )


def cotangents(
    roots: Sequence[T],
    seeds: Sequence[T],
    leaves: Iterable[T] | None = None,
    *,
    create_graph: bool = False,
    retain_graph: bool = False,
) -> dict[int, tuple[T, T]]:
    """Return ``{id(leaf): (leaf, cotangent)}`` for ``leaves`` (None: all leaves of the tape), seeded at ``roots``.

    With ``create_graph`` the cotangents can be differentiated again. Only tensors that lead to a leaf are computed.
    """
    LESSON.spoil()  # the tape is not an argument
    return run_recording(create_graph, _cotangents, roots, seeds, leaves, create_graph, retain_graph)


def leaves_of(inputs: Any) -> list[Any]:
    """Return the nodes of ``inputs``, a leaf or several; GradientError for what is not a leaf."""
    nodes = [version(x.read()) for x in ([inputs] if hasattr(inputs, "read") else inputs)]
    if not nodes or any(node._record is not None or not node.requires_grad for node in nodes):
        raise GradientError("[backward] inputs must be leaves that require a gradient.")
    return nodes


def accumulate_at_once(root: T, seed: T, retain_graph: bool) -> bool:
    """Do what a backward pass does to the leaves, where one record knows how."""
    LESSON.spoil()
    if ON_GRADIENT or AFTER_ACCUMULATION:
        return False
    record = version(root)._record if ACTIVE.trace is None else None
    return isinstance(record, PulledRecord) and not record.freed and record.accumulate(seed, retain_graph)


def _cotangents(
    roots: Sequence[T],
    seeds: Sequence[T],
    leaves: Iterable[T] | None,
    create_graph: bool,
    retain_graph: bool,
) -> dict[int, tuple[T, T]]:
    if ACTIVE.trace is not None and ACTIVE.trace.differentiating is not None:
        ACTIVE.trace.differentiating()
    leaf_ids = None if leaves is None else frozenset(id(t) for t in leaves)
    steps = _needed_steps(roots, leaf_ids or frozenset())
    alive = _leading_to(steps, leaf_ids)
    pending: Pending = {}
    for root, seed in zip(roots, seeds, strict=True):
        accumulate(pending, version(root), seed)
    at_leaves: dict[int, tuple[T, T]] = {}
    by_program = not create_graph and pulling.is_plain()
    recalls = by_program and leaf_ids is None and not ON_GRADIENT and Recalled.equip is not None
    order = [step for step in reversed(steps) if id(step[0]) in alive]
    done = apart = 0  # the end of the run before, and of steps that are not to be a run
    for number, (tensor, record, inputs) in enumerate(order):
        if number < done:
            continue
        if recalls and number >= apart:
            count = recalled_runs.pulled(order, number, pending, at_leaves, alive)
            done, apart = number + count, number - count
            if count > 0:
                continue
        g = pending.pop(id(tensor), None)
        if g is None:
            continue
        if ON_GRADIENT and is_hooked(tensor):
            g = hooked(tensor, summed(g, tensor).separate())
        if record is None or (leaf_ids is not None and id(tensor) in leaf_ids):
            at_leaves[id(tensor)] = (tensor, summed(g, tensor).separate())
            continue
        try:
            op = record.op
            if by_program and op is not None and type(record) is Record:
                of_inputs = pulling.pulled(op, record.attrs, inputs, tensor, summed(g, tensor), alive)
            else:
                of_inputs = apply_rule(record, tensor, g, create_graph, alive)
        except NonFiniteError as error:
            _name_forward(error, record)
            raise
        for x, dx in zip(inputs, of_inputs, strict=True):
            if dx is not None and id(x) in alive:
                accumulate(pending, x, dx() if callable(dx) else dx)
    if not (retain_graph or create_graph):
        for tensor, record, _ in steps:
            if record is not None and not (leaf_ids is not None and id(tensor) in leaf_ids):
                record.free()
    return at_leaves


def _name_forward(error: NonFiniteError, record: Record[Any]) -> None:
    """Say which op's gradient was not finite, and where that op was called: ``backward()`` is another line."""
    line = getattr(record, "line", "")
    if record.op is not None and line:
        error.args = (f"{error} It was computing the gradient of [{record.op.name}], which was called at {line}.",)


def seed_of(root: T, gradient: Any) -> T:
    """Return the cotangent that ``root.backward(gradient)`` starts from: 1 for a single number by default."""
    if gradient is None:
        if root.dtype.is_complex:
            raise GradientError(
                f"[backward] a tensor of dtype {root.dtype.name} needs a seed; pass gradient=, or take real(), imag() "
                "or abs() of it."
            )
        if root.size != 1:
            raise GradientError(
                f"[backward] a tensor of shape {root.shape} needs a seed; pass gradient=, or reduce it with sum() or "
                "mean()."
            )
        one = root.lift(1.0, root.dtype)
        return one if not root.shape else one.reshape(root.shape)
    seed: Any = gradient if isinstance(gradient, ArrayMethods) else root.lift(np.asarray(gradient), root.dtype)
    if seed.shape != root.shape:
        raise GradientError(f"[backward] the seed has shape {seed.shape}, the tensor {root.shape}.")
    return like(root, seed.read())


def add_to_owners(pairs: Iterable[tuple[T, T]], seed: T) -> None:
    """Add the cotangents of leaves to the ``.grad`` of their owners; each is a separate handle."""
    handed_out = {id(seed)}
    for leaf, g in pairs:
        owner = leaf if leaf._leaf is None else leaf._leaf()
        if owner is None:  # nobody can ask a Variable that is gone for its gradient
            continue
        if owner._loses_gradients():
            continue
        before = owner.grad
        if before is not None:
            g = before + g
        owner.grad = g.handle() if id(g) in handed_out else g
        handed_out.add(id(g))
        if AFTER_ACCUMULATION:
            accumulated(owner)


def _leading_to(steps: Sequence[Step], leaf_ids: frozenset[int] | None) -> set[int]:
    """Return the tensors of ``steps``, by id, from which a wanted leaf can be reached."""
    alive: set[int] = set()
    for tensor, record, inputs in steps:
        is_leaf = record is None if leaf_ids is None else id(tensor) in leaf_ids
        if is_leaf or not alive.isdisjoint(map(id, inputs)):
            alive.add(id(tensor))
    return alive


def apply_rule(
    record: Record[T], out: T, g: Cotangent, create_graph: bool, alive: set[int] | None = None
) -> Sequence[Any]:
    """Return the cotangents of a record's inputs for a cotangent of its output: tensors, functions that compute them,
    or None. Inputs that are not ``alive`` (by default, those that need no gradient) need not be computed."""
    if isinstance(record, PulledRecord):
        return record.pull(out, summed(g, out), create_graph, alive)
    inputs = record.inputs if create_graph else tuple(map(plain, record.inputs))
    if isinstance(record, MultiResultRecord):
        if not isinstance(g, dict):
            raise GradientError("[backward] the cotangents of an op of several results must come from its results.")
        if record.op is None:
            by_number = {i: x if create_graph else plain(x) for i, x in g.items()}
            return tuple(record.rule(by_number, out if create_graph else plain(out)))
        outs = results_of(out, record.outs) if create_graph else record.outs
        needs_grad = tuple(x.requires_grad if alive is None else id(x) in alive for x in record.inputs)
        gs = tuple(x if x is None or create_graph else plain(x) for x in (g.get(i) for i in range(len(outs))))
        return tuple(tables.vjp[record.op](gs, outs, *inputs, needs_grad=needs_grad, **record.attrs))
    summed_g, result = summed(g, out), out
    if not create_graph:
        summed_g, result = plain(summed_g), plain(out)
    if isinstance(record, ResultRecord):
        return (ResultCotangent(record.index, summed_g),)
    if record.op is None:
        return tuple(record.rule(summed_g, result))
    if record.op is slice_p:
        piece = SliceGradient.of(summed_g, inputs[0], **record.attrs)
        if piece is not None:
            return (piece,)
    return tuple(tables.vjp[record.op](summed_g, result, *inputs, **record.attrs))
