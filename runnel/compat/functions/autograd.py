"""``torch.autograd.functional``, ``torch.autograd.forward_ad`` and ``torch.func``, built on Runnel's transforms."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from runnel import ops
from runnel.core.errors import GradientError
from runnel.tensor.creation import asarray
from runnel.tensor.forward import Forward
from runnel.tensor.grad_mode import recording
from runnel.tensor.methods import ArrayMethods
from runnel.transforms import gradients, jacobians
from runnel.transforms.jvp import direction_of, jvp as forward
from runnel.transforms.vmap import vmap as vectorized

Function = Callable[..., Any]


def _several(values: Any) -> tuple[Any, ...]:
    return (values,) if isinstance(values, ArrayMethods) else tuple(values)


def _as_given(inputs: Any, answers: tuple[Any, ...]) -> Any:
    return answers[0] if isinstance(inputs, ArrayMethods) else answers


def _total(fn: Function) -> Function:
    """Return ``fn`` with its one-element result as a number."""
    return lambda *args: ops.sum(fn(*args))


def _seed(y: Any, v: Any) -> Any:
    """Return ``v`` as a cotangent of ``y``; ones if it is omitted."""
    if v is not None:
        return v
    return ops.ones_like(y) if isinstance(y, ArrayMethods) else tuple(map(ops.ones_like, y))


def jacobian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the Jacobian of ``func`` at ``inputs``, a tensor or a tuple of arguments.

    For a result of shape (*m) and an argument of shape (*n), it has shape (*m, *n). Several results make a tuple, and
    several arguments a tuple inside each of its items.
    """
    jacobian_of = jacobians.jacfwd if strategy == "forward-mode" else jacobians.jacrev
    arguments = _several(inputs)
    answer = jacobian_of(func, argnums=tuple(range(len(arguments))))(*arguments)
    if isinstance(inputs, ArrayMethods):
        several = isinstance(answer, tuple | list) and answer and isinstance(answer[0], tuple | list)
        return tuple(block[0] for block in answer) if several else answer[0]
    return answer


def hessian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the second derivatives of ``func``, which returns one number, at ``inputs``.

    For arguments i and j of shapes (*m) and (*n) it is a tensor of shape (*m, *n), in a tuple of tuples if ``inputs``
    is a tuple.
    """
    arguments = _several(inputs)
    answer = jacobians.hessian(_total(func), argnums=tuple(range(len(arguments))))(*arguments)
    return answer[0][0] if isinstance(inputs, ArrayMethods) else answer


def vjp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return ``func(inputs)`` and the product of ``v`` with its Jacobian. ``v`` is 1 by default."""
    y, pull = gradients.vjp(func, *_several(inputs))
    return y, _as_given(inputs, pull(_seed(y, v)))


def jvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return ``func(inputs)`` and the product of its Jacobian with ``v``, which is structured like ``inputs``."""
    return forward(func, _several(inputs), _several(_seed(inputs, v)))


def vhp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return ``func(inputs)``, one number, and the product of ``v`` with its Hessian."""
    return hvp(func, inputs, v)


def hvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return ``func(inputs)``, one number, and the product of its Hessian with ``v``."""
    arguments = _several(inputs)
    slope = gradients.grad(_total(func), argnums=tuple(range(len(arguments))))
    _, product = forward(slope, arguments, _several(_seed(inputs, v)))
    return func(*arguments), _as_given(inputs, product)


_OPEN: list[Forward] = []  # the blocks that are running, the innermost one last


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent, None where it has none."""

    primal: Any
    tangent: Any


class dual_level:
    """Propagate tangents from the tensors of :func:`make_dual` inside ``with dual_level():``."""

    def __enter__(self) -> None:
        self._recording = recording(True)
        self._recording.__enter__()
        _OPEN.append(Forward())
        _OPEN[-1].__enter__()

    def __exit__(self, *error: Any) -> None:
        _OPEN.pop().__exit__(*error)
        self._recording.__exit__(*error)


def _innermost(name: str) -> Forward:
    if not _OPEN:
        raise GradientError(f"[{name}] tensors have tangents inside `with dual_level():` alone.")
    return _OPEN[-1]


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """Return ``tensor`` with a tangent of its shape and dtype."""
    x = asarray(tensor)
    return _innermost("make_dual").dual(x.handle(), direction_of("make_dual", x, tangent))


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """Return the tensor without its tangent, and the tangent."""
    return UnpackedDualTensor(*_innermost("unpack_dual").split(asarray(tensor)))


# --- torch.func ---


def vmap(
    func: Function, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Function:
    """Vectorize ``func`` over the axes ``in_dims`` of its arguments, with results along ``out_dims``.

    Random draws differ from element to element, whatever ``randomness`` says.
    """
    return vectorized(func, in_dims, out_dims)


def grad_and_value(func: Function, argnums: Any = 0, has_aux: bool = False) -> Function:
    """Return a function that returns the gradient of ``func`` and its value.

    With ``has_aux`` it returns the gradient and the pair (value, auxiliary output).
    """
    both = gradients.value_and_grad(func, argnums, has_aux)

    @functools.wraps(func)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return gradient, value

    return differentiated
