"""Functions of declared tensors that can be called with values: Theano's ``function``, with updates and givens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from runnel.core import pytree
from runnel.core.arrays import short_repr
from runnel.core.errors import ArgumentError, GraphError
from runnel.declarative.calls import constant, declared_call
from runnel.declarative.control import Body
from runnel.declarative.graph import Graph, whole
from runnel.declarative.operation import Declared, Operation
from runnel.declarative.order import ancestors, ordered
from runnel.declarative.session import Session
from runnel.declarative.state import Assign, Placeholder, Read, Variable, VariableOperation, assign
from runnel.declarative.training import Minimize


class Function:
    """What :func:`function` gives. ``session`` has the values of the variables."""

    def __init__(
        self, session: Session, inputs: Sequence[Declared], outputs: Any, updates: Sequence[Operation]
    ) -> None:
        self.session: Final = session
        self._inputs = tuple(inputs)
        self._fetches = [outputs, list(updates)]

    def __call__(self, *values: Any) -> Any:
        """The outputs for ``values`` of the inputs; then the updates take effect."""
        if len(values) != len(self._inputs):
            names = ", ".join(x.name for x in self._inputs)
            raise ArgumentError(f"[function] takes {len(self._inputs)} values ({names}); received {len(values)}.")
        return self.session.run(self._fetches, dict(zip(self._inputs, values, strict=True)))[0]


@whole
def function(
    inputs: Sequence[Declared],
    outputs: Any,
    *,
    updates: Mapping[Variable, Any] | None = None,
    givens: Mapping[Declared, Any] | None = None,
    session: Session,
) -> Function:
    """A function of values of ``inputs`` that gives those of ``outputs``.

    Args:
        inputs: what is fed: placeholders, or any other tensors.
        outputs: a declared tensor, or a tree of them; [] for a function of updates alone.
        updates: the new values of variables, computed from the old ones with the outputs.
        givens: what stands in place of tensors that outputs and updates depend on: a part of a data set in place of a
            placeholder, for instance. The graph itself stays as it is.
        session: has the values of the variables.

    GraphError where a given value cannot stand there: between it and the outputs variables are changed.
    """
    if not isinstance(session, Session):
        raise ArgumentError(f"[function] takes a session; received {short_repr(session)}.")
    twice = next((x for i, x in enumerate(inputs) if any(x is y for y in inputs[:i])), None)
    if twice is not None:
        raise ArgumentError(f"[function] '{twice.name}' is an input twice; it has one value.")
    changes = {} if updates is None else dict(updates)
    leaves, structure = pytree.flatten((outputs, list(changes.values())))
    if givens:
        leaves = _with(session.graph, givens, leaves)
    results, values = pytree.unflatten(structure, leaves)
    with session.graph:
        assignments = [assign(v, value, "update").operation for v, value in zip(changes, values, strict=True)]
    return Function(session, inputs, results, assignments)


def _with(graph: Graph, givens: Mapping[Declared, Any], tops: Sequence[Any]) -> list[Any]:
    """``tops`` computed anew, with ``givens`` in place of what they stand for: one call of the operations between."""
    here = set(givens)
    declared = [x for x in tops if isinstance(x, Declared)]
    between = ordered(ancestors([x.operation for x in declared if x not in here], here))
    for x in between:
        if isinstance(x, (Assign, Read, Minimize)):
            raise GraphError(
                f"[function] '{x.name}' changes or reads variables behind a given value; fetch it by itself."
            )
    sources = [
        x.outputs[0] for x in between if isinstance(x, (Placeholder, VariableOperation)) and x.outputs[0] not in here
    ]
    body = Body(graph, [*givens, *sources], declared, pytree.flatten(declared)[1])
    with graph:
        values = [x if isinstance(x, Declared) else constant(x) for x in givens.values()]
        anew = iter(declared_call(body, (*values, *sources), {}, "given"))
    return [next(anew) if isinstance(x, Declared) else x for x in tops]
