"""Reverse-mode differentiation over the tape that hangs on tensors.

A tensor made by an op from inputs that need a gradient remembers ``(op, attrs, inputs)``. :func:`cotangents` walks
those records from results back to leaves and applies the rules of table ``vjp``. The rules are written with ops, so the
same walk computes numbers on eager tensors and records a graph on traced ones. It is iterative: depth is no limit.

The nodes of the tape are values. A tensor is the node of its value until ``x[key] = value`` or an in-place method gives
it another one: then :func:`moved_out` makes a node of the old value, which earlier records mean from then on. Later
ones mean the handle's :func:`version`.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from runnel.core import tables
from runnel.core.errors import GradientError
from runnel.core.tables import Op
from runnel.ops.assembly import Piece, assembled
from runnel.ops.pieces import slice_p
from runnel.tensor.active import ACTIVE
from runnel.tensor.grad_mode import run_recording
from runnel.tensor.methods import ArrayMethods

if TYPE_CHECKING:
    from runnel.tensor.tensor import Tensor


def moved_out(x: Tensor) -> Tensor:
    """A node of its own for the value that ``x`` has now, which no later write changes."""
    if x._is_rebound and x._version is not None:
        return version(x)
    node = x._twin()
    node.requires_grad, node._record = x.requires_grad, x._record
    if x.requires_grad and x._record is None:
        # gradients are accumulated where the user looks for them
        node._leaf = weakref.ref(x) if x._leaf is None else x._leaf
    return node


def version(x: Tensor) -> Tensor:
    """The node of the value that ``x`` has now. While a function is compiled, that of a tensor from outside stands for
    it: the tape of the function ends there."""
    trace = ACTIVE.trace
    if trace is not None and trace.stand_ins is not None and x.requires_grad:
        node = trace.stand_ins.of(x)
        if node is not None:
            return node
    if not x._is_rebound:
        return x
    if x._version is None:
        node = moved_out(x)
        if node.is_traced and not x.is_traced:
            return node  # of a trace that is inside of where the handle belongs
        x._version = node
    elif x._version._is_rebound:  # another handle was the node until it got another value
        x._version = origin(x._version)
    return x._version


def origin(x: Tensor) -> Tensor:
    """The node of the first value that ``x`` had."""
    return x if x._first is None else x._first


class Record:
    """How a tensor was made: the op, its attributes and its inputs. ``freed`` once a backward pass has consumed it."""

    __slots__ = ("_inputs", "attrs", "freed", "op", "rule")

    def __init__(self, op: Op | None, inputs: tuple[Tensor, ...], attrs: dict[str, Any], rule: Any = None) -> None:
        if ACTIVE.trace is not None:
            inputs = tuple(map(version, inputs))
        for x in inputs:
            x._is_recorded = True
            if x._is_rebound:
                inputs = tuple(map(version, inputs))
        self.op = op
        self._inputs = inputs
        self.attrs = attrs
        self.rule = rule  # of a custom_vjp: (g, out) -> cotangents of inputs
        self.freed = False

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The nodes of the values that the op was applied to."""
        for x in self._inputs:
            if x._is_rebound:
                self._inputs = tuple(map(origin, self._inputs))
                break
        return self._inputs

    def free(self) -> None:
        """Let go of the saved values."""
        self.freed = True
        self._inputs = ()
        self.rule = None


def passed_on(g: Any, out: Tensor) -> tuple[Any]:
    """The rule of a record that hands the cotangent on to its one input."""
    return (g,)


class MultiResultRecord(Record):
    """How several results were made at once; ``outs`` are these, without a tape. It hangs on a node of the tape
    that has no value and stands for all of them, the joint node; a :class:`ResultRecord` of each leads there. Where
    there is no op, ``rule`` takes the cotangents by the number of the result."""

    __slots__ = ("outs",)

    def __init__(
        self,
        op: Op | None,
        inputs: tuple[Tensor, ...],
        attrs: dict[str, Any],
        outs: tuple[Tensor, ...],
        rule: Any = None,
    ) -> None:
        super().__init__(op, inputs, attrs, rule)
        self.outs = outs

    def free(self) -> None:
        super().free()
        self.outs = ()


class ResultRecord(Record):
    """A tensor is result number ``index`` of the op that ``joint`` stands for."""

    __slots__ = ("index",)

    def __init__(self, joint: Tensor, index: int) -> None:
        super().__init__(None, (joint,), {})
        self.index = index


class PulledRecord(Record):
    """A record that stands for many: it hands cotangents on by itself."""

    __slots__ = ()

    def pull(self, out: Tensor, g: Tensor, create_graph: bool, alive: set[int] | None) -> Sequence[Any]:
        """The cotangents of the inputs, as of :func:`apply_rule`."""
        raise NotImplementedError

    def accumulate(self, g: Tensor, retain_graph: bool) -> bool:
        """Where the record leads to leaves alone, and once to each: add their cotangents, for the one of its output, to
        their owners' ``.grad``. False, and nothing has happened, where it does not."""
        return False


class Replaced:
    """How often records were replaced by others that say the same in more detail."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


REPLACED: Final = Replaced()


def needed_order(roots: Sequence[Tensor], stops: frozenset[int] = frozenset()) -> list[Tensor]:
    """The tensors on a path from ``roots`` to leaves that need a gradient, each after everything it was made of."""
    while True:
        before = REPLACED.count
        order = _needed_order(roots, stops)
        if before == REPLACED.count:  # else the way may have led through what was replaced when it was met
            return order


def _needed_order(roots: Sequence[Tensor], stops: frozenset[int]) -> list[Tensor]:
    order: list[Tensor] = []
    seen: set[int] = set()
    for root in map(version, roots):
        if id(root) in seen or not root.requires_grad:
            continue
        seen.add(id(root))
        stack = [(root, iter(_inputs(root, stops)))]
        while stack:
            tensor, rest = stack[-1]
            for x in rest:
                if id(x) not in seen and x.requires_grad:
                    seen.add(id(x))
                    stack.append((x, iter(_inputs(x, stops))))
                    break
            else:
                order.append(tensor)
                stack.pop()
    return order


def _inputs(tensor: Tensor, stops: frozenset[int]) -> tuple[Tensor, ...]:
    """What the tape leads to from ``tensor``."""
    record = tensor._record
    if record is None or id(tensor) in stops:
        return ()
    if record.freed:
        raise freed(tensor)
    return record.inputs


def freed(tensor: Tensor) -> GradientError:
    """The error where the tape of ``tensor`` is asked for and is not there any more."""
    return GradientError(
        f"[backward] the tape of a tensor of shape {tensor.shape} was freed by an earlier backward(); "
        "call the earlier one with retain_graph=True, or compute the value again."
    )


def cotangents(
    roots: Sequence[Tensor],
    seeds: Sequence[Tensor],
    leaves: Iterable[Tensor] | None = None,
    *,
    create_graph: bool = False,
    retain_graph: bool = False,
) -> dict[int, tuple[Tensor, Tensor]]:
    """``{id(leaf): (leaf, cotangent)}`` for ``leaves`` (all leaves of the tape when None), seeded at ``roots``.

    With ``create_graph`` the cotangents can be differentiated again. Only what leads to a leaf is computed.
    """
    return run_recording(create_graph, _cotangents, roots, seeds, leaves, create_graph, retain_graph)


def accumulate_at_once(root: Tensor, seed: Tensor, retain_graph: bool) -> bool:
    """Do what a backward pass does to the leaves, where one record knows how."""
    record = version(root)._record if ACTIVE.trace is None else None
    return isinstance(record, PulledRecord) and not record.freed and record.accumulate(seed, retain_graph)


def _cotangents(
    roots: Sequence[Tensor],
    seeds: Sequence[Tensor],
    leaves: Iterable[Tensor] | None,
    create_graph: bool,
    retain_graph: bool,
) -> dict[int, tuple[Tensor, Tensor]]:
    wanted = None if leaves is None else frozenset(id(t) for t in leaves)
    order = needed_order(roots, wanted or frozenset())
    records = [tensor._record for tensor in order]  # another walk inside of this one may replace them
    alive = _leading_to(order, records, wanted)
    pending: Pending = {}
    for root, seed in zip(roots, seeds, strict=True):
        accumulate(pending, version(root), seed)
    found: dict[int, tuple[Tensor, Tensor]] = {}
    for tensor, record in zip(reversed(order), reversed(records), strict=True):
        g = pending.pop(id(tensor), None)
        if g is None or id(tensor) not in alive:
            continue
        if record is None or (wanted is not None and id(tensor) in wanted):
            found[id(tensor)] = (tensor, settled(g, tensor))
            continue
        for x, dx in zip(record.inputs, apply_rule(record, tensor, g, create_graph, alive), strict=True):
            if dx is not None and id(x) in alive:
                accumulate(pending, x, dx() if callable(dx) else dx)
    if not (retain_graph or create_graph):
        for tensor, record in zip(order, records, strict=True):
            if record is not None and not (wanted is not None and id(tensor) in wanted):
                record.free()
    return found


def seed_of(root: Tensor, gradient: Any) -> Tensor:
    """What ``root.backward(gradient)`` starts from: 1 for one number, where nothing is given."""
    if gradient is None:
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
    found: Tensor = seed.read()
    return found


def add_to_owners(found: Iterable[tuple[Tensor, Tensor]], seed: Tensor) -> None:
    """Add the cotangents of leaves to ``.grad``, where the user looks for it; each is a handle of its own."""
    handed_out = {id(seed)}
    for leaf, g in found:
        owner = leaf if leaf._leaf is None else leaf._leaf()
        if owner is None:  # nobody can ask a Variable that is gone for its gradient
            continue
        before = owner.grad
        if before is not None:
            g = before + g
        owner.grad = g.handle() if id(g) in handed_out else g
        handed_out.add(id(g))


def _leading_to(order: Sequence[Tensor], records: Sequence[Record | None], wanted: frozenset[int] | None) -> set[int]:
    """The tensors of ``order`` from which a wanted leaf can be reached."""
    alive: set[int] = set()
    for tensor, record in zip(order, records, strict=True):
        if wanted is None:
            is_leaf = record is None
        else:
            is_leaf = id(tensor) in wanted
        if is_leaf or (record is not None and any(id(x) in alive for x in record.inputs)):
            alive.add(id(tensor))
    return alive


def linked(x: Tensor, source: Tensor) -> Tensor:
    """A node with the value of ``x``, whose record hands gradients on to ``source``."""
    twin = x._twin()
    twin.requires_grad = True
    twin._record = Record(None, (source,), {}, passed_on)
    return twin


def handle(x: Tensor) -> Tensor:
    """Another handle of the node of ``x``: the tape sees no difference, so that sums of gradients have one order."""
    twin = linked(x, x)
    twin._is_rebound, twin._version = True, version(x)
    return twin


def plain(x: Tensor) -> Tensor:
    """``x`` without a tape: itself, where it has none."""
    return x.untaped() if x.requires_grad else x


def apply_rule(
    record: Record, out: Tensor, g: Cotangent, create_graph: bool, alive: set[int] | None = None
) -> Sequence[Any]:
    """The cotangents of a record's inputs for that of its output; some as functions that make them, some None. What is
    not ``alive`` (by default, what needs no gradient) need not be computed."""
    if isinstance(record, PulledRecord):
        return record.pull(out, settled(g, out), create_graph, alive)
    inputs = record.inputs if create_graph else tuple(map(plain, record.inputs))
    if isinstance(record, MultiResultRecord):
        if not isinstance(g, dict):
            raise GradientError("[backward] the cotangents of an op of several results must come from its results.")
        if record.op is None:
            given = {i: x if create_graph else plain(x) for i, x in g.items()}
            return tuple(record.rule(given, out if create_graph else plain(out)))
        outs = results_of(out, record.outs) if create_graph else record.outs
        wanted = tuple(x.requires_grad if alive is None else id(x) in alive for x in record.inputs)
        gs = tuple(x if x is None or create_graph else plain(x) for x in (g.get(i) for i in range(len(outs))))
        return tuple(tables.vjp[record.op](gs, outs, *inputs, wanted=wanted, **record.attrs))
    settled_g, result = settled(g, out), out
    if not create_graph:
        settled_g, result = plain(settled_g), plain(out)
    if isinstance(record, ResultRecord):
        return (ResultCotangent(record.index, settled_g),)
    if record.op is None:
        return tuple(record.rule(settled_g, result))
    if record.op is slice_p:
        piece = Piece.of(settled_g, inputs[0], **record.attrs)
        if piece is not None:
            return (piece,)
    return tuple(tables.vjp[record.op](settled_g, result, *inputs, **record.attrs))


def results_of(joint: Tensor, outs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The results of an op of several, with records that lead to the joint node."""
    tensors = tuple(out._twin() for out in outs)
    for index, tensor in enumerate(tensors):
        if tensor.dtype.is_float:
            tensor.requires_grad = True
            tensor._record = ResultRecord(joint, index)
    return tensors


class ResultCotangent(NamedTuple):
    """The cotangent of result ``number`` of an op of several."""

    number: int
    g: Tensor


# What is pending for a tensor: a cotangent; those of slices of it, to be put together; or, for a joint node, those
# of the results by index.
Cotangent = Any
Pending = dict[int, Cotangent]


def settled(g: Cotangent, tensor: Tensor) -> Tensor:
    """A pending cotangent of ``tensor`` as one tensor."""
    total: Tensor = assembled(g, tensor.shape) if isinstance(g, list) else g
    return total


def accumulate(pending: Pending, tensor: Tensor, g: Cotangent) -> None:
    """Add ``g`` to what is pending for ``tensor``."""
    before = pending.get(id(tensor))
    if isinstance(g, ResultCotangent):
        gs = pending.setdefault(id(tensor), {})
        gs[g.number] = gs[g.number] + g.g if g.number in gs else g.g
        return
    if isinstance(g, Piece):
        if before is None:
            pending[id(tensor)] = [g]
        elif isinstance(before, list):
            before.append(g)
        else:
            pending[id(tensor)] = before + assembled([g], tensor.shape)
        return
    if g.shape != tensor.shape:
        raise GradientError(
            f"[backward] a cotangent of shape {g.shape} reached a tensor of shape {tensor.shape}; "
            "the vjp rule of the op that read it is wrong."
        )
    pending[id(tensor)] = g if before is None else settled(before, tensor) + g


def as_gradient(value: Any) -> Tensor | None:
    """What is set as ``.grad``: None or a tensor. Whether it fits is seen where it is used."""
    if value is None:
        return None
    if not isinstance(value, ArrayMethods):
        raise GradientError(f"[grad] a gradient is a tensor or None; received {type(value).__name__}. Use asarray().")
    return value.read()
