"""Functions of declared tensors that you call with values: Theano's ``function``, with updates and givens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from runnel.core import pytree
from runnel.core.arrays import short_repr
from runnel.core.errors import ArgumentError, GraphError
from runnel.declarative.calls import constant, declared_call
from runnel.declarative.control import Body
from runnel.declarative.graph import Graph, whole
from runnel.declarative.operation import Declared, Operation, ancestors, ordered
from runnel.declarative.session import Session
from runnel.declarative.state import Assign, Placeholder, Read, Variable, VariableOperation, assign
from runnel.declarative.training import Minimize


class Function:
    """The result of :func:`function`. ``session`` has the values of the variables."""

    def __init__(
        self, session: Session, inputs: Sequence[Declared], outputs: Any, updates: Sequence[Operation]
    ) -> None:
        self.session: Final = session
        self._inputs = tuple(inputs)
        self._fetches = [outputs, list(updates)]

    def __call__(self, *values: Any) -> Any:
        """Return the outputs for ``values`` of the inputs, and apply the updates."""
        if len(values) != len(self._inputs):
            names = ", ".join(x.name for x in self._inputs)
            raise ArgumentError(f"[function] takes {len(self._inputs)} values ({names}); got {len(values)}.")
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
    """Return a function from values of ``inputs`` to values of ``outputs``.

    Args:
        inputs: tensors to feed: placeholders or any others.
        outputs: a declared tensor, or a tree of them; [] for a function with only updates.
        updates: new values of variables, computed from the old ones together with the outputs.
        givens: replacements for tensors that outputs and updates depend on, such as a part of a data set for a
            placeholder. The graph itself does not change.
        session: has the values of the variables.

    GraphError if variables are changed or read between a given value and the outputs.
    """
    if not isinstance(session, Session):
        raise ArgumentError(f"[function] takes a session; got {short_repr(session)}.")
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
    """Return ``tops`` recomputed with ``givens`` replaced, by one call of the operations in between."""
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
