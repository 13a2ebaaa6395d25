"""What the compiler is told beside the graph: what its inputs are bound to, and how much to do for the program."""

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
    """Where command buffers are kept for other processes."""

    def key(self, graph: Graph, context: CompileContext, memory_budget: int | None, is_trained: bool) -> str | None:
        """What the program of a graph is filed under; None if it may not be kept."""

    def load(self, key: str | None) -> tuple[CommandBuffer, ...]:
        """The command buffers filed under ``key``, none if there are none."""

    def save(self, key: str | None, buffers: Sequence[CommandBuffer]) -> None:
        """File command buffers under ``key``."""


@record
class Bindings:
    """What is known of a graph's inputs before it runs.

    ``strides``, in elements, are those of arguments that are not dense. ``are_trained`` says that its Variables change
    between most calls, whoever changes them; then nothing that rests on them is prepared.
    """

    strides: Mapping[Value, Shape] = _NONE
    are_trained: bool = False


@record
class Options:
    """How much is done for a program: by default, what pays off for one that runs often.

    ``memory_budget`` bounds the bytes of intermediate values and results. The program is looked for in the ``store``,
    and left there. With ``any_order`` a result may have its axes in any order in memory. ``keeps_plan``: the program
    keeps its plan, which is much larger than what runs; else it is made again when somebody looks at it. An arena of
    more than ``own_arena`` bytes is not the program's own: who runs it lends it one.
    """

    passes: Pipeline = PIPELINE
    memory_budget: int | None = None
    store: Store | None = None
    any_order: bool = False
    keeps_plan: bool = True
    own_arena: float = math.inf
