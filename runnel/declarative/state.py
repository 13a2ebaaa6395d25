"""State in a declared graph: placeholders, variables, their reads and assignments, and groups of operations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from runnel import ops
from runnel.core.dtypes import DType, Dtype, as_dtype
from runnel.core.errors import ArgumentError, DTypeError, GraphError, ShapeError
from runnel.declarative.calls import Constant, base_name, declared_call, live
from runnel.declarative.graph import Graph, default_graph, whole
from runnel.declarative.operation import Declared, Dims, Operation, Run, Static


class Placeholder(Operation):
    """A value to be fed in each run."""

    __slots__ = ()
    kind = "placeholder"

    def __init__(self, graph: Graph, name: str, static: Static) -> None:
        super().__init__(graph, name, (), [static])

    def compute(self, values: Sequence[Any], run: Run) -> Sequence[Any]:
        raise GraphError(
            f"[session] the placeholder '{self.name}', declared at {self.where}, is needed and not fed; "
            "run(fetches, feed_dict={it: value})."
        )


class Variable(Declared):
    """A value that persists from run to run, separately in each session.

    As a tensor, it is the value at its position in a run: after the assignments that it depends on by control
    dependencies.
    """

    __slots__ = ()

    def read(self, name: str = "read") -> Declared:
        """Return the value after all assignments that were declared before, or that it depends on."""
        return Read(self, name).outputs[0]

    def assign(self, value: Any, name: str = "assign") -> Declared:
        """Declare an assignment of ``value`` to the variable; it returns ``value``."""
        return assign(self, value, name)


class VariableOperation(Operation):
    """The operation whose output is a :class:`Variable`. Initialization assigns ``initial``."""

    __slots__ = ("initial", "variable")
    kind = "variable"

    def __init__(self, graph: Graph, name: str, static: Static, initial: Declared | None) -> None:
        self.initial: Final = initial
        super().__init__(graph, name, (), ())
        self.variable: Final = Variable(self, 0, static)
        self.outputs = (self.variable,)

    def compute(self, values: Sequence[Any], run: Run) -> Sequence[Any]:
        return [run.read(self)]

    def attributes(self) -> dict[str, Any]:
        return {"initial": None if self.initial is None else self.initial.name}


class Read(Operation):
    """A read of a variable at its position in a run."""

    __slots__ = ("variable",)
    kind = "read"

    def __init__(self, variable: Variable, name: str) -> None:
        self.variable: Final = variable.operation
        super().__init__(variable.operation.graph, name, (), [variable.static])

    def compute(self, values: Sequence[Any], run: Run) -> Sequence[Any]:
        return [run.read(self.variable)]

    def attributes(self) -> dict[str, Any]:
        return {"variable": self.variable.name}


class Assign(Operation):
    """An assignment to a variable, which outputs the value."""

    __slots__ = ("variable",)
    kind = "assign"

    def __init__(self, variable: Variable, value: Declared, name: str) -> None:
        default_graph().require_outermost("assign")
        _require_fitting(variable, value.static)
        self.variable: Final = variable.operation
        super().__init__(variable.operation.graph, name, (value,), [value.static])

    def compute(self, values: Sequence[Any], run: Run) -> Sequence[Any]:
        run.assign(self.variable, values[0])
        return values

    def attributes(self) -> dict[str, Any]:
        return {"variable": self.variable.name}


class Group(Operation):
    """An operation that runs after others and computes nothing.

    ``initializes`` says that it gives variables their first values, so optimizer state for them is reset.
    """

    __slots__ = ("initializes",)
    kind = "group"

    def __init__(self, graph: Graph, name: str, operations: Iterable[Operation], initializes: bool = False) -> None:
        self.initializes: Final = initializes
        super().__init__(graph, name, (), ())
        self.control_inputs = tuple(dict.fromkeys((*self.control_inputs, *operations)))

    def compute(self, values: Sequence[Any], run: Run) -> Sequence[Any]:
        return []

    def attributes(self) -> dict[str, Any]:
        return {"initialises": self.initializes}


def placeholder(
    dtype: Dtype = "float32", shape: Iterable[int | None] | None = None, name: str = "placeholder"
) -> Declared:
    """Declare a value to be fed in each run.

    Args:
        dtype: None for any dtype.
        shape: its sizes, with None for sizes that differ from run to run; None if nothing is known.
        name: name of the operation.
    """
    graph = default_graph()
    graph.require_run("placeholder")
    static = Static(as_dims("placeholder", shape), None if dtype is None else as_dtype(dtype))
    return Placeholder(graph, name, static).outputs[0]


@whole
def variable(
    initial: Any = None,
    *,
    shape: Iterable[int | None] | None = None,
    dtype: Dtype = None,
    name: str = "Variable",
) -> Variable:
    """Declare a value that persists from run to run, separately in each session, and has none until assigned.

    Args:
        initial: the value that initialization assigns: a number, array or declared tensor; None for no initial value.
        shape: its sizes as far as they are known, by default from ``initial``.
        dtype: by default from ``initial``, or float32.
        name: name of the operation, under which sessions save values.
    """
    graph = default_graph()
    graph.require_run("Variable")
    if initial is not None and not isinstance(initial, Declared):
        initial = Constant(graph, f"{name}/initial", live(initial, dtype).numpy()).outputs[0]
    kind: DType | None = None if dtype is None else as_dtype(dtype)
    if initial is None:
        static = Static(as_dims("Variable", shape), kind or as_dtype("float32"))
    else:
        static = Static(initial.static.shape if shape is None else as_dims("Variable", shape), initial.static.dtype)
        if kind is not None and static.dtype is not kind:
            raise DTypeError(f"[Variable] the initial value is {initial.static}, and the dtype {kind.name}; cast it.")
    return VariableOperation(graph, name, static, initial).variable


@whole
def assign(target: Variable, value: Any, name: str = "assign") -> Declared:
    """Declare an assignment of ``value`` to ``target``; it returns ``value``."""
    _require_variable(name, target)
    if not isinstance(value, Declared):
        array = live(value, target.static.dtype).numpy()
        value = Constant(target.operation.graph, f"{name}/value", np.array(array)).outputs[0]
    return Assign(target, value, name).outputs[0]


@whole
def assign_add(target: Variable, value: Any, name: str = "assign_add") -> Declared:
    """Declare an addition of ``value`` to ``target``; it returns the sum."""
    _require_variable(name, target)
    return assign(target, _stepped(ops.add, target, value, name), name)


@whole
def assign_sub(target: Variable, value: Any, name: str = "assign_sub") -> Declared:
    """Declare a subtraction of ``value`` from ``target``; it returns the difference."""
    _require_variable(name, target)
    return assign(target, _stepped(ops.subtract, target, value, name), name)


def _stepped(function: Any, target: Variable, value: Any, name: str) -> Declared:
    before = Read(target, f"{name}/read").outputs[0]
    after: Declared = declared_call(function, (before, value), {}, f"{name}/{base_name(function)}")
    return after


def group(*operations: Any, name: str = "group") -> Operation:
    """Declare an operation that runs after all of ``operations`` (or the operations of tensors) and returns nothing."""
    each = [as_operation("group", x) for x in operations]
    graph = each[0].graph if each else default_graph()
    return Group(graph, name, graph.own(each))


@whole
def initializer(variables: Iterable[Variable] | None = None, name: str = "init") -> Operation:
    """Declare an operation that assigns initial values to ``variables``, by default all that have one."""
    graph = default_graph()
    if variables is None:
        variables = [v for v in all_variables(graph) if initial_of(v) is not None]
    assigned = []
    for v in variables:
        _require_variable(name, v)
        initial = initial_of(v)
        if initial is None:
            raise GraphError(f"[{name}] '{v.name}', declared at {v.operation.where}, has no initial value; assign one.")
        assigned.append(Assign(v, initial, f"{v.name}/assign"))
    return Group(graph, name, assigned, initializes=True)


def all_variables(graph: Graph | None = None) -> list[Variable]:
    """Return the variables of a graph, by default the current one, in declaration order."""
    every = (default_graph() if graph is None else graph).operations
    return [x.variable for x in every if isinstance(x, VariableOperation)]


def initial_of(x: Variable) -> Declared | None:
    """Return the value that initialization assigns to a variable."""
    return x.operation.initial if isinstance(x.operation, VariableOperation) else None


def as_operation(name: str, x: Any) -> Operation:
    """Return an operation, also for a tensor that it outputs."""
    if isinstance(x, Declared):
        return x.operation
    if isinstance(x, Operation):
        return x
    raise ArgumentError(f"[{name}] takes operations and declared tensors; got {type(x).__name__}.")


def as_dims(name: str, shape: Iterable[int | None] | None) -> Dims | None:
    """Return sizes given by the user: ints, or None for unknown ones."""
    if shape is None:
        return None
    sizes = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    if not all(n is None or (isinstance(n, (int, np.integer)) and type(n) is not bool and n >= 0) for n in sizes):
        raise ShapeError(f"[{name}] sizes must be ints, or None if unknown; got {shape!r}.")
    return tuple([None if n is None else int(n) for n in sizes])


def fits(shape: Iterable[int], dims: Dims | None) -> bool:
    """Return True if an array of ``shape`` fits ``dims``."""
    sizes = tuple(shape)
    return dims is None or (
        len(sizes) == len(dims) and all(m is None or n == m for n, m in zip(sizes, dims, strict=True))
    )


def _require_variable(name: str, x: Any) -> None:
    if not isinstance(x, Variable):
        what = f"'{x.name}'" if isinstance(x, Declared) else type(x).__name__
        raise ArgumentError(f"[{name}] takes a declared Variable; got {what}.")


def _require_fitting(variable: Variable, value: Static) -> None:
    mine = variable.static
    if mine.dtype is not None and value.dtype is not None and mine.dtype is not value.dtype:
        raise DTypeError(f"[assign] '{variable.name}' is {mine}, and the value {value}; cast it first.")
    if mine.shape is not None and value.shape is not None:
        pairs = zip(mine.shape, value.shape, strict=False)
        if len(mine.shape) != len(value.shape) or any(None not in pair and pair[0] != pair[1] for pair in pairs):
            raise ShapeError(f"[assign] '{variable.name}' is {mine}, and the value {value}.")
