"""`tensor_expr` compiles a function of tensors from the text of an expression; `reindex` moves elements."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from runnel.core.arrays import short_repr
from runnel.core.avals import Shape
from runnel.core.dispatch import apply
from runnel.core.errors import ArgumentError, ExpressionError
from runnel.core.tables import decompose
from runnel.expressions import lowering, syntax
from runnel.expressions.candidates import automatic
from runnel.expressions.primitive import tensor_expression_p
from runnel.expressions.resolving import operand_names, resolved
from runnel.expressions.schedule import Schedule, Step, Steps
from runnel.expressions.solving import Solved, solved
from runnel.expressions.values import Expression
from runnel.expressions.views import as_view
from runnel.ops.arguments import Array
from runnel.ops.promotion import anchor, common_dtype, is_operand, lifted

decompose.register(tensor_expression_p, as_view)


class TensorExpression:
    """A function of tensors, the operands of its text in order of appearance.

    :meth:`schedule` returns its loops for you to change, and :meth:`scheduled` the same function in these loops, with
    the same results.
    """

    def __init__(self, text: str, sizes: dict[str, int], steps: Steps | None = None) -> None:
        self.text = text
        self.sizes = sizes
        self.steps = steps
        self._texts: dict[tuple[Shape, ...], str] = {}
        self.names = operand_names(text, tuple(sizes))
        if not self.names:
            raise ExpressionError("[tensor_expr] got an expression without arrays; name one in its value.")

    def __call__(self, *operands: Array, **named: Array) -> Array:
        received = tuple(self._in_order(operands, named))
        like, dtype = anchor(tensor_expression_p, received), common_dtype(tensor_expression_p, received)
        xs = [lifted(like, x, dtype, 0) for x in received]
        return apply(tensor_expression_p, *xs, text=self._text(*xs), schedule=self.steps)

    def expression(self, *operands: Any) -> Expression:
        """Return the expression for ``operands``: arrays, or their shapes."""
        shapes = _shapes(operands)
        return resolved(self.text, shapes, tuple(sorted(self.sizes.items())))

    def canonical(self, *operands: Any) -> Expression:
        """Return the expression from its own text, in which all sizes are numbers, as programs have it."""
        return resolved(self._text(*operands), self.expression(*operands).shapes)

    def schedule(self, *operands: Any) -> Schedule:
        """Return the initial loops for ``operands`` (arrays or shapes): one for each index."""
        return Schedule(self._solved(operands))

    def automatic(self, *operands: Any) -> Schedule:
        """Return the default schedule."""
        return automatic(self._solved(operands))

    def scheduled(self, schedule: Schedule | Sequence[Step] | None) -> TensorExpression:
        """Return the same function in the loops of ``schedule``, or of its ``steps``; None for the default.

        It accepts operands of the schedule's shapes.
        """
        steps = schedule.steps if isinstance(schedule, Schedule) else schedule
        if steps is None:
            return TensorExpression(self.text, self.sizes)
        if not isinstance(steps, (tuple, list)) or not all(map(_is_step, steps)):
            raise ArgumentError(
                "[scheduled] takes a schedule, or its steps: tuples of a primitive's name, names of loops and numbers; "
                f"got {short_repr(schedule)}."
            )
        return TensorExpression(self.text, self.sizes, tuple(map(tuple, steps)))

    def nest(self, *operands: Any) -> str:
        """Return the loops for ``operands`` (arrays or shapes of float32) as text of the loop IR."""
        solution = self._solved(operands)
        return lowering.written(automatic(solution) if self.steps is None else Schedule(solution, self.steps))

    def _solved(self, operands: tuple[Any, ...]) -> Solved:
        return solved(self.canonical(*operands))

    def _text(self, *operands: Any) -> str:
        shapes = _shapes(operands)
        text = self._texts.get(shapes)
        if text is None:
            text = self._texts[shapes] = self.expression(*shapes).text
        return text

    def _in_order(self, operands: tuple[Array, ...], named: dict[str, Array]) -> list[Array]:
        received = dict(zip(self.names, operands, strict=False))
        expected = ", ".join(self.names)
        twice = sorted(set(received) & set(named))
        unknown = sorted(set(named) - set(self.names))
        missing = [n for n in self.names if n not in received and n not in named]
        if len(operands) > len(self.names) or twice or unknown or missing:
            raise ArgumentError(
                f"[tensor_expr] takes the operands {expected}; got {len(operands)} by position"
                + (f" and {', '.join(named)} by name." if named else ".")
            )
        every = {**received, **named}
        for name, x in every.items():
            if not is_operand(x):
                raise ArgumentError(
                    f"[tensor_expr] the operand {name} must be a tensor, number or NumPy array; got {short_repr(x)}."
                )
        return [every[name] for name in self.names]

    def __repr__(self) -> str:
        sizes = "".join(f", {name}={size}" for name, size in self.sizes.items())
        return f"tensor_expr({self.text!r}{sizes})"


def _is_step(step: Any) -> bool:
    return isinstance(step, (tuple, list)) and len(step) > 0 and all(type(x) in (str, int) for x in step)


def _shapes(operands: Sequence[Any]) -> tuple[Shape, ...]:
    """Return the shapes of operands, which may be shapes themselves."""
    shapes = [getattr(x, "shape", x) for x in operands]
    for x, shape in zip(operands, shapes, strict=True):
        if not isinstance(shape, (tuple, list)) or not all(type(n) is int and n >= 0 for n in shape):
            raise ArgumentError(f"[tensor_expr] operands must be arrays or shapes; got {short_repr(x)}.")
    return tuple(map(tuple, shapes))


def tensor_expr(text: str, **sizes: int) -> TensorExpression:
    """Return a function of tensors that computes the tensor expression ``text`` as one kernel.

    ``O[n, k] += I[n, c] * W[k, c]`` says that each element of the result is a sum over all values of the other indices.
    Aggregations are ``=``, ``+=``, ``*=``, ``max=`` and ``min=``; constraints follow after ``where``. Subscripts are
    affine in indices; their ranges are inferred from the shapes of operands. ``docs/extend/expressions.md`` describes
    the language and the order in which terms are added.

    Args:
        text: the expression.
        sizes: integers for names in it, such as strides and dilations.

    Raises:
        ExpressionError: the text is not an expression, or subscripts leave the arrays; the message has the position.
    """
    if not isinstance(text, str):
        raise ArgumentError(f"[tensor_expr] got {type(text).__name__} as the expression; pass a string.")
    for name, size in sizes.items():
        if type(size) is not int:
            raise ArgumentError(f"[tensor_expr] got {size!r} as the size {name}; pass an integer.")
    return TensorExpression(text, sizes)


_AGGREGATIONS: Final = {"sum": "+=", "prod": "*=", "max": "max=", "min": "min="}


def reindex(x: Array, shape: Sequence[int], indices: Sequence[str]) -> Array:
    """Return y[i0, i1, …] = x[indices] of ``shape``, with 0 for indices outside ``x``.

    ``indices`` has a string for each axis of ``x``, affine in ``i0``, ``i1``, …, the positions along the axes of the
    result, as in ``reindex(x, (n, c, h, w, 3, 3), ["i0", "i1", "i2 + i4 - 1", "i3 + i5 - 1"])``. Its gradient is
    ``reindex_reduce``. In a program it is a view that is fused into the kernels that read it.
    """
    axes = ", ".join(f"i{a}: {n}" for a, n in enumerate(_sizes("reindex", shape)))
    inside = _inside("reindex", x.shape, indices, len(shape))
    return tensor_expr(f"y[{axes}] = x[{', '.join(indices)}]" + (f" where {inside}" if inside else ""))(x)


def reindex_reduce(y: Array, op: str, shape: Sequence[int], indices: Sequence[str]) -> Array:
    """Return x[indices] = ``op`` ("sum", "prod", "max" or "min") of all y[i0, i1, …] with these indices.

    The result has ``shape``. ``indices`` has a string for each of its axes, affine in ``i0``, ``i1``, …; elements whose
    indices are outside are ignored. The gradient of a sum is ``reindex``.
    """
    if op not in _AGGREGATIONS:
        raise ArgumentError(f"[reindex_reduce] got {op!r}; the operations are {', '.join(_AGGREGATIONS)}.")
    sizes = _sizes("reindex_reduce", shape)
    inside = _inside("reindex_reduce", sizes, indices, y.ndim)
    axes = ", ".join(f"{text}: {n}" for text, n in zip(indices, sizes, strict=True))
    source = ", ".join(f"i{a}" for a in range(y.ndim))
    return tensor_expr(f"x[{axes}] {_AGGREGATIONS[op]} y[{source}]" + (f" where {inside}" if inside else ""))(y)


def _sizes(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    if not isinstance(shape, Sequence) or not all(type(n) is int and n >= 0 for n in shape):
        raise ArgumentError(f"[{name}] got the shape {short_repr(shape)}; pass integers of 0 or more.")
    return tuple(shape)


def _inside(name: str, shape: Sequence[int], indices: Sequence[str], rank: int) -> str:
    """Return the constraints that keep ``indices``, of ``rank`` positions, inside an array of ``shape``."""
    is_list = isinstance(indices, Sequence) and not isinstance(indices, str)
    if not is_list or len(indices) != len(shape) or not all(isinstance(text, str) for text in indices):
        raise ArgumentError(
            f"[{name}] got {short_repr(indices)} for the shape {tuple(shape)}; pass a string for each axis."
        )
    for text in indices:
        syntax.parse(f"x[{text}] = 0")  # one subscript each
        unknown = sorted({*re.findall(r"[^\W\d]\w*", text)} - {f"i{axis}" for axis in range(rank)})
        if unknown:
            raise ArgumentError(
                f"[{name}] the index {text!r} has the name '{unknown[0]}'; the positions are called i0 to i{rank - 1}."
            )
    return ", ".join(f"0 <= {text} < {n}" for text, n in zip(indices, shape, strict=True))
