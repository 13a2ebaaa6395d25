"""Graphs built by names: nodes that apply an op to other nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from runnel.core.errors import GraphError
from runnel.declarative.calls import declared_call
from runnel.declarative.gradients import gradients
from runnel.declarative.graph import Graph
from runnel.declarative.operation import Declared
from runnel.declarative.packing import function_called
from runnel.declarative.session import Session
from runnel.declarative.state import Placeholder, Variable, initializer, placeholder, variable

_SIGNS: Final = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "@": "matmul", "neg": "negative"}


class NamedGraph:
    """A declared graph and its session, with all nodes accessed by name.

    GraphError, which is a ValueError, for a name that is taken, an op or node that does not exist, and a feed that is
    missing or not for a placeholder; nothing changes then.
    """

    def __init__(self, name: str = "graph") -> None:
        self._graph: Final = Graph(name)
        self._session: Final = Session(self._graph)
        self._nodes: Final[dict[str, Declared]] = {}
        self._fresh: list[Variable] = []  # variables that are not initialized yet
        self._gradients: dict[str, dict[str, Declared]] = {}  # by loss

    def placeholder(self, name: str, shape: Sequence[int | None] = (), dtype: Any = "float32") -> Declared:
        """Add a value to be fed in each run."""
        self._require_free(name)
        with self._graph:
            return self._keep(name, placeholder(dtype, shape, name))

    def variable(self, name: str, value: Any) -> Declared:
        """Add a value that persists and starts as ``value``."""
        self._require_free(name)
        with self._graph:
            cell = variable(value, name=name)
        self._fresh.append(cell)
        return self._keep(name, cell)

    def node(self, name: str, op: str, *inputs: Any) -> Declared:
        """Add the function ``op`` of ``rn`` (or a sign: + - * / @) of the nodes named by ``inputs``.

        Numbers among the inputs are constants.
        """
        self._require_free(name)
        try:
            function = function_called(f"runnel:{_SIGNS.get(op, op)}")
        except ValueError:
            raise GraphError(f"[node] rn has no op {op!r}, which '{name}' needs.") from None
        arguments = tuple([self._node(x) if isinstance(x, str) else x for x in inputs])
        with self._graph:
            return self._keep(name, declared_call(function, arguments, {}, name))

    def assign(self, name: str, value: Any) -> None:
        """Set the value of a variable."""
        target = self._node(name)
        if not isinstance(target, Variable):
            raise GraphError(f"[assign] '{name}' is not a variable.")
        self._initialize()
        self._session.variable(target).assign(value)

    def run(self, outputs: Sequence[str], feeds: Mapping[str, Any] | None = None) -> dict[str, np.ndarray]:
        """Return the values of ``outputs`` by name."""
        fetches = {name: self._node(name) for name in outputs}
        return self._run(fetches, feeds)

    def backward(self, loss: str, feeds: Mapping[str, Any] | None = None) -> dict[str, np.ndarray]:
        """Return the gradient of ``loss`` by each variable that it depends on, by name."""
        top = self._node(loss)
        if loss not in self._gradients:
            variables = {name: x for name, x in self._nodes.items() if isinstance(x, Variable)}
            slopes = gradients(top, list(variables.values())) if variables else []
            self._gradients[loss] = {name: g for name, g in zip(variables, slopes, strict=True) if g is not None}
        return self._run(self._gradients[loss], feeds)

    def _run(self, fetches: Mapping[str, Declared], feeds: Mapping[str, Any] | None) -> dict[str, np.ndarray]:
        fed = {self._placeholder(name): value for name, value in ({} if feeds is None else feeds).items()}
        self._initialize()
        results = self._session.run(list(fetches.values()), fed)
        return {name: x.numpy() for name, x in zip(fetches, results, strict=True)}

    def _initialize(self) -> None:
        if self._fresh:
            with self._graph:
                self._session.run(initializer(self._fresh))
            self._fresh = []

    def _keep(self, name: str, x: Declared) -> Declared:
        self._nodes[name] = x
        self._gradients = {}
        return x

    def _node(self, name: str) -> Declared:
        if name not in self._nodes:
            raise GraphError(f"[graph] no node '{name}'; the nodes are {', '.join(self._nodes) or 'none'}.")
        return self._nodes[name]

    def _placeholder(self, name: str) -> Declared:
        x = self._node(name)
        if not isinstance(x.operation, Placeholder):
            raise GraphError(f"[graph] '{name}' is fed, but is not a placeholder.")
        return x

    def _require_free(self, name: str) -> None:
        if name in self._nodes:
            raise GraphError(f"[graph] there is a node '{name}' already; a name is used once.")
