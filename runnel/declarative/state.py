"""State in a declared graph: placeholders, variables, what reads and assigns them, and groups of operations."""

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
    """A value that each run is fed."""

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
    """A value that lasts from run to run, in each session its own. As a tensor it is the value at its place in a run:
    after the assignments that it depends on by control dependencies, and those declared before a ``read()``.
    """

    __slots__ = ()

    def read(self, name: str = "read") -> Declared:
        """The value after all assignments that were declared before, or that it depends on."""
        return Read(self, name).outputs[0]

    def assign(self, value: Any, name: str = "assign") -> Declared:
        """An operation that gives the variable ``value``, which is what it gives."""
        return assign(self, value, name)


class VariableOperation(Operation):
    """What a :class:`Variable` is the output of. ``initial`` is the value that initialisation assigns."""

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
    """The value of a variable at its place in a run."""

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
    """Gives a variable a value, which is its output."""

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
    """Nothing but the operations that it runs after. ``initialises`` says that it gives variables their first values:
    state of optimizers that belongs to these begins anew."""

    __slots__ = ("initialises",)
    kind = "group"

    def __init__(self, graph: Graph, name: str, operations: Iterable[Operation], initialises: bool = False) -> None:
        self.initialises: Final = initialises
        super().__init__(graph, name, (), ())
        self.control_inputs = tuple(dict.fromkeys((*self.control_inputs, *operations)))

    def compute(self, values: Sequence[Any], run: Run) -> Sequence[Any]:
        return []

    def attributes(self) -> dict[str, Any]:
        return {"initialises": self.initialises}


def placeholder(
    dtype: Dtype = "float32", shape: Iterable[int | None] | None = None, name: str = "placeholder"
) -> Declared:
    """A value that each run is fed.

    Args:
        dtype: None if any will do.
        shape: its sizes, None in place of those that differ from run to run; None if nothing is known of them.
        name: of the operation.
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
    """A value that lasts from run to run, in each session its own, and has none before something is assigned.

    Args:
        initial: what initialisation assigns: a number, array or declared tensor; None for a variable without.
        shape: its sizes as far as they are known, by default those of ``initial``.
        dtype: by default that of ``initial``, or float32.
        name: of the operation; sessions save values under it.
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
    """An operation that gives ``target`` the value ``value``, which is what it gives."""
    _require_variable(name, target)
    if not isinstance(value, Declared):
        array = live(value, target.static.dtype).numpy()
        value = Constant(target.operation.graph, f"{name}/value", np.array(array)).outputs[0]
    return Assign(target, value, name).outputs[0]


@whole
def assign_add(target: Variable, value: Any, name: str = "assign_add") -> Declared:
    """An operation that adds ``value`` to ``target``; it gives the sum."""
    _require_variable(name, target)
    return assign(target, _stepped(ops.add, target, value, name), name)


@whole
def assign_sub(target: Variable, value: Any, name: str = "assign_sub") -> Declared:
    """An operation that takes ``value`` from ``target``; it gives the difference."""
    _require_variable(name, target)
    return assign(target, _stepped(ops.subtract, target, value, name), name)


def _stepped(function: Any, target: Variable, value: Any, name: str) -> Declared:
    before = Read(target, f"{name}/read").outputs[0]
    after: Declared = declared_call(function, (before, value), {}, f"{name}/{base_name(function)}")
    return after


def group(*operations: Any, name: str = "group") -> Operation:
    """An operation that runs after all of ``operations`` (or tensors: their operations) and gives nothing."""
    each = [as_operation("group", x) for x in operations]
    graph = each[0].graph if each else default_graph()
    return Group(graph, name, graph.own(each))


@whole
def initializer(variables: Iterable[Variable] | None = None, name: str = "init") -> Operation:
    """An operation that assigns their initial values to ``variables``, by default to all of the graph that have one."""
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
    return Group(graph, name, assigned, initialises=True)


def all_variables(graph: Graph | None = None) -> list[Variable]:
    """The variables of a graph, by default of the one that is being declared, in the order of their declaration."""
    every = (default_graph() if graph is None else graph).operations
    return [x.variable for x in every if isinstance(x, VariableOperation)]


def initial_of(x: Variable) -> Declared | None:
    """What initialisation assigns to a variable."""
    return x.operation.initial if isinstance(x.operation, VariableOperation) else None


def as_operation(name: str, x: Any) -> Operation:
    """An operation, also of a tensor that it gives."""
    if isinstance(x, Declared):
        return x.operation
    if isinstance(x, Operation):
        return x
    raise ArgumentError(f"[{name}] takes operations and declared tensors; received {type(x).__name__}.")


def as_dims(name: str, shape: Iterable[int | None] | None) -> Dims | None:
    """Sizes as users write them: None for the unknown, whole numbers for the rest."""
    if shape is None:
        return None
    sizes = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    if not all(n is None or (isinstance(n, (int, np.integer)) and type(n) is not bool and n >= 0) for n in sizes):
        raise ShapeError(f"[{name}] sizes are whole numbers, or None for one that is not known; received {shape!r}.")
    return tuple([None if n is None else int(n) for n in sizes])


def fits(shape: Iterable[int], dims: Dims | None) -> bool:
    """Whether an array of ``shape`` is one of ``dims``."""
    sizes = tuple(shape)
    return dims is None or (
        len(sizes) == len(dims) and all(m is None or n == m for n, m in zip(sizes, dims, strict=True))
    )


def _require_variable(name: str, x: Any) -> None:
    if not isinstance(x, Variable):
        what = f"'{x.name}'" if isinstance(x, Declared) else type(x).__name__
        raise ArgumentError(f"[{name}] takes a declared Variable; received {what}.")


def _require_fitting(variable: Variable, value: Static) -> None:
    mine = variable.static
    if mine.dtype is not None and value.dtype is not None and mine.dtype is not value.dtype:
        raise DTypeError(f"[assign] '{variable.name}' is {mine}, and the value {value}; cast it first.")
    if mine.shape is not None and value.shape is not None:
        pairs = zip(mine.shape, value.shape, strict=False)
        if len(mine.shape) != len(value.shape) or any(None not in pair and pair[0] != pair[1] for pair in pairs):
            raise ShapeError(f"[assign] '{variable.name}' is {mine}, and the value {value}.")
