"""``torch.autograd.functional`` and ``torch.autograd.forward_ad``, built on :func:`runnel.jvp` and its kin."""

from __future__ import annotations

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

Function = Callable[..., Any]


def _several(values: Any) -> tuple[Any, ...]:
    return (values,) if isinstance(values, ArrayMethods) else tuple(values)


def _as_given(inputs: Any, answers: tuple[Any, ...]) -> Any:
    return answers[0] if isinstance(inputs, ArrayMethods) else answers


def _total(fn: Function) -> Function:
    """``fn`` with its one element as a number."""
    return lambda *args: ops.sum(fn(*args))


def _seed(y: Any, v: Any) -> Any:
    """``v`` as a cotangent of ``y``; 1 where nothing is given."""
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
    """The Jacobian of ``func`` at ``inputs``, a tensor or a tuple of arguments: of a result of shape (*m) by an
    argument of shape (*n) it has shape (*m, *n). Of several results a tuple, each of several arguments one."""
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
    """The second derivatives of ``func``, which gives one number, at ``inputs``: for arguments i and j of shapes (*m)
    and (*n) a tensor of shape (*m, *n), in a tuple of tuples if ``inputs`` is a tuple."""
    arguments = _several(inputs)
    answer = jacobians.hessian(_total(func), argnums=tuple(range(len(arguments))))(*arguments)
    return answer[0][0] if isinstance(inputs, ArrayMethods) else answer


def vjp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """``func`` at ``inputs``, and the product of ``v`` with its Jacobian there. ``v`` is 1 for one number."""
    y, pull = gradients.vjp(func, *_several(inputs))
    return y, _as_given(inputs, pull(_seed(y, v)))


def jvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """``func`` at ``inputs``, and the product of its Jacobian there with ``v``, of the form of ``inputs``."""
    return forward(func, _several(inputs), _several(_seed(inputs, v)))


def vhp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """``func``, which gives one number, at ``inputs``, and the product of ``v`` with its second derivatives there."""
    return hvp(func, inputs, v)


def hvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """``func``, which gives one number, at ``inputs``, and the product of its second derivatives there with ``v``."""
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
    """Inside ``with dual_level():`` what is computed from the tensors of :func:`make_dual` has tangents."""

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
    """``tensor`` with a tangent of its shape and dtype."""
    x = asarray(tensor)
    return _innermost("make_dual").dual(x.handle(), direction_of("make_dual", x, tangent))


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """The tensor without its tangent, and that."""
    return UnpackedDualTensor(*_innermost("unpack_dual").split(asarray(tensor)))
