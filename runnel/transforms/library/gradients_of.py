"""``autograd.grad`` and ``autograd.backward``: gradients along the tape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runnel.core.errors import GradientError
from runnel.ops import stack, zeros_like
from runnel.tensor.handle import version
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tape import cotangents, seed_of
from runnel.tensor.tensor import Tensor


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
    *,
    is_grads_batched: bool = False,
) -> tuple[Any, ...]:
    """The gradients of the sum of ``outputs`` by each of ``inputs``: a tuple. ``.grad`` stays as it is.

    Args:
        outputs: a tensor that was computed, or several.
        inputs: what gradients are computed for: a Parameter, a tensor with ``requires_grad``, one that was computed of
            such, or several.
        grad_outputs: the seeds, of the shapes of ``outputs``; None for an output of one element means 1.
        retain_graph: keep the tape for another walk; by default as ``create_graph`` says.
        create_graph: make the gradients differentiable.
        allow_unused: give None for an input that the outputs do not depend on, in place of GradientError.
        materialize_grads: give zeros for it.
        is_grads_batched: ``grad_outputs`` have a first axis more, and so have the gradients: one for each of its
            positions, such as the rows of a Jacobian.
    """
    if is_grads_batched:
        keep = create_graph if retain_graph is None else retain_graph
        options = (create_graph, allow_unused, materialize_grads)
        return _batched(_several(outputs), inputs, _several(grad_outputs), keep, options)
    roots = [_recorded("outputs", y) for y in _several(outputs)]
    leaves = [_recorded("inputs", x) for x in _several(inputs)]
    nodes = [version(x) for x in leaves]
    seeds = _seeds(roots, grad_outputs)
    keep = create_graph if retain_graph is None else retain_graph
    gradients: dict[int, tuple[Tensor, Tensor]] = {}
    walks = _walks(nodes)
    for number, ends in enumerate(walks, 1):
        keep_now = keep or number < len(walks)
        gradients |= cotangents(roots, seeds, ends, create_graph=create_graph, retain_graph=keep_now)
    unused = [i for i, node in enumerate(nodes) if id(node) not in gradients]
    if unused and not (allow_unused or materialize_grads):
        raise GradientError(
            f"[grad] the outputs do not depend on input {unused[0]}; pass allow_unused=True for None, or "
            "materialize_grads=True for zeros."
        )
    missing = [zeros_like(x.detach()) if materialize_grads else None for x in leaves]
    return tuple(
        gradients[id(node)][1].handle() if id(node) in gradients else nothing
        for node, nothing in zip(nodes, missing, strict=True)
    )


def _batched(
    outputs: Sequence[Any], inputs: Any, seeds: Sequence[Any], keep: bool, options: tuple[bool, bool | None, bool]
) -> tuple[Any, ...]:
    """The gradients for each position of the first axis of the seeds, stacked."""
    count = len(seeds[0])
    rows = [grad(outputs, inputs, [seed[i] for seed in seeds], keep or i < count - 1, *options) for i in range(count)]
    return tuple(None if column[0] is None else stack(column) for column in zip(*rows, strict=True))


def backward(
    tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False
) -> None:
    """``backward`` of several tensors: adds the gradients of their sum to ``.grad`` of the leaves."""
    roots = [_recorded("tensors", y) for y in _several(tensors)]
    keep = create_graph if retain_graph is None else retain_graph
    for number, (root, seed) in enumerate(zip(roots, _seeds(roots, grad_tensors), strict=True)):
        root.backward(seed, retain_graph=keep or number + 1 < len(roots), create_graph=create_graph)


def _walks(nodes: Sequence[Tensor]) -> list[list[Tensor]]:
    """Which nodes are looked for together: a walk ends at each of them, so those that were computed go alone."""
    computed = [[node] for node in nodes if node._record is not None]
    leaves = [node for node in nodes if node._record is None]
    return [*computed, leaves] if leaves else computed


def _several(values: Any) -> Sequence[Any]:
    return [values] if isinstance(values, ArrayMethods) else list(values)


def _recorded(name: str, x: Any) -> Tensor:
    if not isinstance(x, ArrayMethods) or not x.read().requires_grad:
        what = "a tensor that does not" if isinstance(x, ArrayMethods) else f"a {type(x).__name__}"
        raise GradientError(f"[grad] {name} are tensors that require a gradient; received {what}.")
    return x.read()


def _seeds(roots: Sequence[Tensor], chosen: Any) -> list[Tensor]:
    seeds = [None] * len(roots) if chosen is None else _several(chosen)
    if len(seeds) != len(roots):
        raise GradientError(f"[grad] {len(roots)} outputs need as many seeds; received {len(seeds)}.")
    return [seed_of(root, seed) for root, seed in zip(roots, seeds, strict=True)]
