"""Differentiation in PyTorch's style: gradients along the tape, functions with derivatives, detection of NaNs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from runnel.core import switches
from runnel.core.errors import GradientError
from runnel.ops import stack, zeros_like
from runnel.tensor.handle import version
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.tape import cotangents, seed_of
from runnel.tensor.tensor import Tensor
from runnel.transforms.custom_vjp import custom_vjp


class FunctionContext:
    """The values that ``forward`` keeps for ``backward``: by ``save_for_backward``, and as attributes."""

    def __init__(self, needs: tuple[bool, ...] = ()) -> None:
        self.needs_input_grad = needs
        self._saved: tuple[Any, ...] = ()
        self._marked: tuple[Any, ...] = ()
        self.constants: frozenset[int] = frozenset()  # the numbers of the results without a gradient

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors (or None) for ``backward``, which reads them as ``saved_tensors``."""
        self._saved = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The values that ``save_for_backward`` kept."""
        return self._saved

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Declare results that have no gradient."""
        self._marked = tensors

    def number_constants(self, result: Any) -> None:
        """Note which results are marked."""
        marked = {id(x) for x in self._marked}
        self.constants = frozenset(i for i, y in enumerate(_as_tuple(result)) if id(y) in marked)

    def save_for_forward(self, *tensors: Any) -> None:
        """Do nothing: forward-mode derivatives follow from ``backward``."""

    def mark_dirty(self, *tensors: Any) -> None:
        """Do nothing: tensors are values, and a function returns new ones."""

    def set_materialize_grads(self, value: bool) -> None:
        """Do nothing: ``backward`` gets zeros for results without a gradient."""


class Function:
    """The base class of functions with a user-defined derivative. Call a subclass by its method ``apply``.

    ``backward`` gets the cotangent of each result and returns the cotangent of each argument, or None. Instead of
    ``forward(ctx, *args)`` a subclass can define ``forward(*args)`` and ``setup_context(ctx, inputs, output)``. If
    ``backward`` computes with functions of tensors, its results are differentiable.

    Example:
        >>> class Cube(rn.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x * x
        ...
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         (x,) = ctx.saved_tensors
        ...         return 3 * x * x * g
        >>> y = Cube.apply(x)
    """

    @staticmethod
    def forward(*args: Any) -> Any:
        """Compute the results."""
        raise NotImplementedError("[Function] a subclass must define forward(ctx, *args).")

    @staticmethod
    def setup_context(ctx: FunctionContext, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep what ``backward`` needs, if ``forward`` has no argument ``ctx``."""
        raise NotImplementedError("[Function] setup_context(ctx, inputs, output) must be defined by a subclass.")

    @staticmethod
    def backward(ctx: FunctionContext, *gradients: Any) -> Any:
        """Return the cotangents of the arguments."""
        raise GradientError("[Function] a subclass must define backward(ctx, *gradients) to be differentiated.")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Return the result of ``forward``, with the derivative ``backward``."""
        context = FunctionContext(tuple(isinstance(x, ArrayMethods) and x.read().requires_grad for x in args))

        def forward(*args: Any) -> tuple[Any, Any]:
            if cls.setup_context is Function.setup_context:
                result = cls.forward(context, *args)
            else:
                result = cls.forward(*args)
                cls.setup_context(context, args, result)
            context.number_constants(result)
            return result, context.saved_tensors

        def backward(saved: tuple[Any, ...], g: Any) -> tuple[Any, ...]:
            context.save_for_backward(*saved)
            cotangents = _as_tuple(cls.backward(context, *_as_tuple(g)))
            extra = cotangents[len(args) :]
            return cotangents[: len(args)] if all(c is None for c in extra) else cotangents

        def compute(*args: Any) -> Any:
            return forward(*args)[0]

        compute.__name__ = cls.__name__
        function = custom_vjp(compute)
        function.defvjp(forward, backward)
        result = function(*args)
        if not context.constants:
            return result
        results = tuple(y.without_tape() if i in context.constants else y for i, y in enumerate(_as_tuple(result)))
        return results if isinstance(result, tuple | list) else results[0]


def _as_tuple(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, tuple | list) else (values,)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a ``backward`` whose results cannot be differentiated again."""

    @functools.wraps(backward)
    def call(ctx: FunctionContext, *gradients: Any) -> Any:
        cotangents = backward(ctx, *(g.without_tape() for g in gradients))
        return tuple(c.without_tape() if isinstance(c, Tensor) else c for c in _as_tuple(cotangents))

    return call


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
    """Return a tuple of the gradients of the sum of ``outputs`` by each of ``inputs``, without changing ``.grad``.

    Args:
        outputs: one or several tensors that require a gradient.
        inputs: one or several Parameters or tensors that require a gradient, computed or not.
        grad_outputs: the seeds, of the shapes of ``outputs``; for an output with one element, None means 1.
        retain_graph: keep the tape for another backward pass; None is ``create_graph``.
        create_graph: make the gradients differentiable.
        allow_unused: return None for an input that the outputs do not depend on, instead of raising GradientError.
        materialize_grads: return zeros for such an input.
        is_grads_batched: ``grad_outputs`` and the gradients have a further first axis, for example over the rows of a
            Jacobian.
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
            f"[grad] the outputs must depend on all inputs, but do not depend on input {unused[0]}; pass "
            "allow_unused=True for None, or materialize_grads=True for zeros."
        )
    missing = [zeros_like(x.without_tape()) if materialize_grads else None for x in leaves]
    return tuple(
        gradients[id(node)][1].handle() if id(node) in gradients else nothing
        for node, nothing in zip(nodes, missing, strict=True)
    )


def _batched(
    outputs: Sequence[Any], inputs: Any, seeds: Sequence[Any], keep: bool, options: tuple[bool, bool | None, bool]
) -> tuple[Any, ...]:
    """Return the stacked gradients for each position of the first axis of the seeds."""
    count = len(seeds[0])
    rows = [grad(outputs, inputs, [seed[i] for seed in seeds], keep or i < count - 1, *options) for i in range(count)]
    return tuple(None if column[0] is None else stack(column) for column in zip(*rows, strict=True))


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    *,
    inputs: Any = None,
) -> None:
    """Add the gradients of the sum of several tensors to ``.grad`` of the leaves, or only of the leaves ``inputs``."""
    roots = [_recorded("tensors", y) for y in _several(tensors)]
    keep = create_graph if retain_graph is None else retain_graph
    for number, (root, seed) in enumerate(zip(roots, _seeds(roots, grad_tensors), strict=True)):
        keeps = keep or number + 1 < len(roots)
        root.backward(seed, retain_graph=keeps, create_graph=create_graph, inputs=inputs)


def _walks(nodes: Sequence[Tensor]) -> list[list[Tensor]]:
    """Return groups of nodes for one walk each. A walk ends at its nodes, so each computed node is in a group alone."""
    computed = [[node] for node in nodes if node._record is not None]
    leaves = [node for node in nodes if node._record is None]
    return [*computed, leaves] if leaves else computed


def _several(values: Any) -> Sequence[Any]:
    return [values] if isinstance(values, ArrayMethods) else list(values)


def _recorded(name: str, x: Any) -> Tensor:
    if not isinstance(x, ArrayMethods) or not x.read().requires_grad:
        what = "a tensor that does not" if isinstance(x, ArrayMethods) else f"a {type(x).__name__}"
        raise GradientError(f"[grad] {name} must be tensors that require a gradient; got {what}.")
    return x.read()


def _seeds(roots: Sequence[Tensor], chosen: Any) -> list[Tensor]:
    seeds = [None] * len(roots) if chosen is None else _several(chosen)
    if len(seeds) != len(roots):
        raise GradientError(f"[grad] grad_outputs must have a seed for each of {len(roots)} outputs; got {len(seeds)}.")
    return [seed_of(root, seed) for root, seed in zip(roots, seeds, strict=True)]


class detect_anomaly:
    """Raise an error at the first op in a block that makes a NaN or infinity from finite numbers.

    The error names its line, in forward and backward passes, eager and compiled. This is the switch ``check_nans``. It
    makes runs slower.

    Args:
        check_nan: whether to check. Errors name the user's line without it, too.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self._value = bool(check_nan)
        self._before = switches.check_nans.value

    def __enter__(self) -> None:
        self._before = switches.check_nans.value
        switches.check_nans.set(self._value)

    def __exit__(self, *_: Any) -> None:
        switches.check_nans.set(self._before)


class set_detect_anomaly(detect_anomaly):
    """Turn the checks of :class:`detect_anomaly` on or off, in a ``with`` statement until its block ends."""

    def __init__(self, mode: bool = True, check_nan: bool = True) -> None:
        super().__init__(check_nan and mode)
        switches.check_nans.set(self._value)

    def __enter__(self) -> None:
        switches.check_nans.set(self._value)
