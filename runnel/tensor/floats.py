"""Trace Python floats as run-time inputs of a program.

Python's arithmetic on floats is float64, so sums, differences and products of traced floats are float64. Next to a
tensor they take its dtype, as Python floats do. An operation that needs the number itself (``if lr > 0``,
``math.sqrt(lr)``, formatting, powers) raises :class:`ConcretizationError`; the function is then called again with the
number. A traced float is not a tensor: it has the attributes of a float, and ``isinstance`` says float. (Only
``type()`` tells the difference.)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runnel import ops
from runnel.core import dtypes, tracebacks
from runnel.core.avals import aval
from runnel.core.dispatch import RunTimeNumber, TensorLike
from runnel.core.dtypes import DType
from runnel.core.errors import TracedValueError
from runnel.core.tables import Op
from runnel.graph.node import InputKind, Value
from runnel.ops.elementwise import arithmetic
from runnel.tensor import tensor as tensors, tracing
from runnel.tensor.tensor import Tensor
from runnel.tensor.traced_values import counted
from runnel.tensor.variable import Variable

_NUMBERS = (bool, int, float)
_UFUNCS = {np.add: ops.add, np.subtract: ops.subtract, np.multiply: ops.multiply, np.true_divide: ops.divide}
_ARRAYS = (TensorLike, np.ndarray, np.generic)


class RunTimeNumbers:
    """A mapping whose numbers are inputs of programs, read at each run.

    Only whether a number is 0 shapes a program, which leaves a term out where its factor is 0. Flags, texts, and the
    numbers named in ``shaping`` shape it by their values.

    Attributes:
        plain: the dict that holds the values. Programs read numbers here.
    """

    __slots__ = ()

    plain: dict[str, Any]
    shaping: frozenset[str] = frozenset()

    def read(self, key: str) -> Any:
        """Return a value; in a trace, an input of the program in place of a number."""
        value = self.plain[key]
        if tracing.ACTIVE.trace is None or key in self.shaping:
            return value
        if isinstance(value, tuple):
            getters = [functools.partial(_item, self.plain, key, i) for i in range(len(value))]
            return tuple(_in_trace(x, g, f"{key}[{i}]") for i, (x, g) in enumerate(zip(value, getters, strict=True)))
        return _in_trace(value, functools.partial(dict.__getitem__, self.plain, key), key)

    def shapes(self) -> tuple[str, ...]:
        """Return how the values shape a program, in words."""
        return tuple(f"{name} {self.shape_of(name, value)}" for name, value in sorted(self.plain.items()))

    def shape_of(self, name: str, value: Any) -> str:
        """Return how one value shapes a program, in words, since messages about a retrace show it."""
        if _is_plain_number(value) and name not in self.shaping:
            return "is not 0" if value else "is 0"
        if isinstance(value, Sequence) and not isinstance(value, str):
            return f"({', '.join(self.shape_of(name, v) for v in value)})"
        return f"is {value!r}"


def _in_trace(value: Any, getter: Callable[[], float], name: str) -> Any:
    return run_time_number(getter, name) if _is_plain_number(value) else value


def _item(plain: dict[str, Any], key: str, i: int) -> float:
    return float(plain[key][i])


def _is_plain_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class ConcretizationError(TracedValueError):
    """The value of a run-time float was asked for."""

    def __init__(self, what: str) -> None:
        super().__init__(f"[{what}] the value of a float argument was asked for at {tracebacks.user_line()}.")


class TracedFloat(RunTimeNumber):
    """A float argument while its function is traced, or what Python arithmetic made of such ones."""

    __slots__ = ("_tensor",)
    __array_priority__ = 1000  # NumPy arrays on the left leave binary operators to us

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor  # weak, of dtype float64

    def as_array(self, dtype: DType, ndim: int) -> Tensor:
        if dtype.is_integer:
            raise self._looked(dtype.name)  # which may lack the number
        strong: Tensor = ops.reshape(ops.cast(self._tensor, dtype), (1,) * ndim)
        return strong._twin() if strong is self._tensor else strong

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return float  # so that isinstance(lr, float) holds, in a trace as in eager code

    # Arithmetic that is the same in float64 machine code -----------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        return _binary(arithmetic.add_p, ops.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return _binary(arithmetic.add_p, ops.add, other, self)

    def __sub__(self, other: Any) -> Any:
        return _binary(arithmetic.sub_p, ops.subtract, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _binary(arithmetic.sub_p, ops.subtract, other, self)

    def __mul__(self, other: Any) -> Any:
        return _binary(arithmetic.mul_p, ops.multiply, self, other)

    def __rmul__(self, other: Any) -> Any:
        return _binary(arithmetic.mul_p, ops.multiply, other, self)

    def __truediv__(self, other: Any) -> Any:
        if _is_number(other) and (type(other) is TracedFloat or other == 0):
            raise self._looked("division by a float")  # Python raises ZeroDivisionError where machine code gives inf
        return _binary(arithmetic.div_p, ops.divide, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        if _is_number(other):
            raise self._looked("division by a float")
        return _binary(arithmetic.div_p, ops.divide, other, self)

    def __neg__(self) -> Any:
        return _unary(arithmetic.neg_p, self)

    def __abs__(self) -> Any:
        return _unary(arithmetic.abs_p, self)

    def __pos__(self) -> Any:
        return self

    # What needs the number itself ------------------------------------------------------------------------------------

    def _looked(self, what: str) -> ConcretizationError:
        """Return the error for reading the number."""
        return counted(ConcretizationError(what))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise self._looked("numpy()")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        operator = _UFUNCS.get(ufunc)
        if operator is None or method != "__call__" or kwargs:
            raise self._looked(f"NumPy's {ufunc.__name__}")
        return operator(*[x._tensor if type(x) is TracedFloat else x for x in inputs])

    def __float__(self) -> float:
        raise self._looked("float")

    def __int__(self) -> int:
        raise self._looked("int")

    def __bool__(self) -> bool:
        raise self._looked("bool")

    def __index__(self) -> int:
        raise self._looked("index")

    def __round__(self, digits: int | None = None) -> Any:
        raise self._looked("round")

    def __trunc__(self) -> int:
        raise self._looked("trunc")

    def __floor__(self) -> int:
        raise self._looked("floor")

    def __ceil__(self) -> int:
        raise self._looked("ceil")

    def __hash__(self) -> int:
        raise self._looked("hash")

    def __copy__(self) -> TracedFloat:
        return self  # floats are never copied

    def __deepcopy__(self, memo: dict[int, Any]) -> TracedFloat:
        return self

    def __repr__(self) -> str:
        raise self._looked("repr")

    def __str__(self) -> str:
        raise self._looked("str")

    def __format__(self, spec: str) -> str:
        raise self._looked("format")

    def __getattr__(self, name: str) -> Any:
        if hasattr(float, name):
            raise self._looked(name)
        raise AttributeError(f"'float' object has no attribute '{name}'")


def _operator(name: str, function: Any) -> Any:
    """Return an operator that applies Python's operation to numbers and the op next to tensors."""

    def operator(self: TracedFloat, other: Any) -> Any:
        if not isinstance(other, _ARRAYS):
            raise self._looked(name)
        return function(self._tensor, other)

    operator.__name__ = name
    return operator


for _name, _function in {
    "__floordiv__": ops.floor_divide,
    "__rfloordiv__": lambda x, y: ops.floor_divide(y, x),
    "__mod__": ops.remainder,
    "__rmod__": lambda x, y: ops.remainder(y, x),
    "__pow__": ops.pow,
    "__rpow__": lambda x, y: ops.pow(y, x),
    "__lt__": ops.less,
    "__le__": ops.less_equal,
    "__gt__": ops.greater,
    "__ge__": ops.greater_equal,
    "__eq__": ops.equal,
    "__ne__": ops.not_equal,
}.items():
    setattr(TracedFloat, _name, _operator(_name, _function))


def run_time_number(getter: Callable[[], float], name: str = "number") -> float | TracedFloat:
    """Return the number that ``getter`` returns; in a trace, an input of the program that calls ``getter`` at each run.

    Either way it takes the dtype of the tensor it meets, so the results are bitwise identical.
    """
    trace = tracing.ACTIVE.trace
    if trace is None:
        return float(getter())
    node = trace.input(aval((), dtypes.float64), InputKind.SCALAR, name)
    trace.scalars.append((getter, node))
    return traced_float(node)


def is_traceable(kind: type) -> bool:
    """Return whether values of a class are tensors, Variables or run-time floats."""
    return kind is Tensor or kind is TracedFloat or issubclass(kind, Variable)


def traced_float(node: Value) -> TracedFloat:
    """Return a float for ``node``."""
    tensor = tensors.symbolic(node)
    tensor._weak = True
    return TracedFloat(tensor)


def _is_number(x: Any) -> bool:
    return type(x) is TracedFloat or type(x) in _NUMBERS


def _binary(op: Op, function: Any, x: Any, y: Any) -> Any:
    """Apply ``op`` to numbers, or ``function`` next to arrays."""
    if _is_number(x) and _is_number(y):
        return _combined(op, x, y)
    if not (isinstance(x, _ARRAYS) or isinstance(y, _ARRAYS)):
        return NotImplemented
    return function(*[v._tensor if type(v) is TracedFloat else v for v in (x, y)])


def _combined(op: Op, *operands: Any) -> TracedFloat:
    """Apply ``op`` to floats, at least one of which is traced."""
    trace = tracing.ACTIVE.trace
    traced = [x for x in operands if type(x) is TracedFloat]
    if trace is None:
        raise traced[0]._looked("arithmetic outside its call")
    nodes: list[Any] = [
        x._tensor._node if type(x) is TracedFloat else trace.constant(np.asarray(x, np.float64), dtypes.float64)
        for x in operands
    ]
    return traced_float(trace.record(op, tuple(nodes), {})[0])


def _unary(op: Op, x: TracedFloat) -> TracedFloat:
    return _combined(op, x)
