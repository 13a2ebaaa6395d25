"""Graphs put together by names alone: nodes that say which op they apply to which other nodes."""

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
    """A declared graph with one session, both behind names.

    A name that is taken, an op or node that is not there, and a feed that is missing or for no placeholder are a
    GraphError, which is a ValueError; nothing has changed then.
    """

    def __init__(self, name: str = "graph") -> None:
        self._graph: Final = Graph(name)
        self._session: Final = Session(self._graph)
        self._nodes: Final[dict[str, Declared]] = {}
        self._fresh: list[Variable] = []  # variables that have not been initialised
        self._gradients: dict[str, dict[str, Declared]] = {}  # by the loss, of the nodes that there are

    def placeholder(self, name: str, shape: Sequence[int | None] = (), dtype: Any = "float32") -> Declared:
        """A value that each run is fed."""
        self._require_free(name)
        with self._graph:
            return self._keep(name, placeholder(dtype, shape, name))

    def variable(self, name: str, value: Any) -> Declared:
        """A value that lasts, and begins as ``value``."""
        self._require_free(name)
        with self._graph:
            cell = variable(value, name=name)
        self._fresh.append(cell)
        return self._keep(name, cell)

    def node(self, name: str, op: str, *inputs: Any) -> Declared:
        """The function ``op`` of ``rn`` (or its sign: + - * / @) on the nodes named by ``inputs``; numbers are
        constants."""
        self._require_free(name)
        try:
            function = function_called(f"runnel:{_SIGNS.get(op, op)}")
        except ValueError:
            raise GraphError(f"[node] there is no op {op!r}, which '{name}' asks for.") from None
        arguments = tuple([self._node(x) if isinstance(x, str) else x for x in inputs])
        with self._graph:
            return self._keep(name, declared_call(function, arguments, {}, name))

    def assign(self, name: str, value: Any) -> None:
        """Give a variable another value."""
        target = self._node(name)
        if not isinstance(target, Variable):
            raise GraphError(f"[assign] '{name}' is no variable.")
        self._initialize()
        self._session.variable(target).assign(value)

    def run(self, outputs: Sequence[str], feeds: Mapping[str, Any] | None = None) -> dict[str, np.ndarray]:
        """The values of ``outputs`` by name."""
        fetches = {name: self._node(name) for name in outputs}
        return self._run(fetches, feeds)

    def backward(self, loss: str, feeds: Mapping[str, Any] | None = None) -> dict[str, np.ndarray]:
        """The gradient of ``loss`` by each variable that it depends on, by name."""
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
            raise GraphError(f"[graph] there is no node '{name}'; there are {', '.join(self._nodes) or 'none'}.")
        return self._nodes[name]

    def _placeholder(self, name: str) -> Declared:
        x = self._node(name)
        if not isinstance(x.operation, Placeholder):
            raise GraphError(f"[graph] '{name}' is fed, and is no placeholder.")
        return x

    def _require_free(self, name: str) -> None:
        if name in self._nodes:
            raise GraphError(f"[graph] there is a node '{name}' already; a name is used once.")
