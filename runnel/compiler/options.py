"""The compiler's arguments besides the graph: properties of its inputs, and the effort of compilation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Protocol

from runnel.backends.commands import CommandBuffer
from runnel.backends.context import CompileContext
from runnel.compiler.passes.pipeline import PIPELINE, Pipeline
from runnel.core.avals import Shape
from runnel.core.records import record
from runnel.graph.graph import Graph
from runnel.graph.node import Value

_NONE: Final[Mapping[Value, Shape]] = MappingProxyType({})


class Store(Protocol):
    """A store of command buffers for other processes."""

    def key(self, graph: Graph, context: CompileContext, memory_budget: int | None, is_trained: bool) -> str | None:
        """The key of a graph's program; None if it must not be stored."""

    def load(self, key: str | None) -> tuple[CommandBuffer, ...]:
        """The command buffers stored under ``key``; empty if there are none."""

    def save(self, key: str | None, buffers: Sequence[CommandBuffer]) -> None:
        """Store command buffers under ``key``."""


@record
class Bindings:
    """Properties of a graph's inputs that are known before it runs.

    ``strides``, in elements, are those of arguments that are not dense. ``are_trained``: its Variables change between
    most calls, so values that depend on them alone are not prepared.
    """

    strides: Mapping[Value, Shape] = _NONE
    are_trained: bool = False


@record
class Options:
    """The effort of compilation; the defaults are for a program that runs often.

    ``memory_budget`` bounds the bytes of intermediate values and results. The program is loaded from the ``store``, or
    saved there. With ``any_order`` a result may have its axes in any order in memory. ``keeps_plan``: the program keeps
    its plan, which is much larger than the program; else it is built again for reports. An arena of more than
    ``own_arena`` bytes is not part of the program: the caller of a run provides it.
    """

    passes: Pipeline = PIPELINE
    memory_budget: int | None = None
    store: Store | None = None
    any_order: bool = False
    keeps_plan: bool = True
    own_arena: float = math.inf
