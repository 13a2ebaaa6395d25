"""The compiler's arguments besides the graph: properties of its inputs, and the effort of compilation."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from types import MappingProxyType
from typing import Any, Final

from runnel.compiler.memory.arena import MemoryPlanner
from runnel.compiler.passes.pipeline import REQUIRED, USUAL, Pipeline
from runnel.core.arrays import short_repr
from runnel.core.avals import Shape
from runnel.core.errors import ArgumentError
from runnel.core.lengths import Lengths
from runnel.core.records import record
from runnel.graph.node import Value

_NONE: Final[Mapping[Value, Shape]] = MappingProxyType({})


@record
class Bindings:
    """Properties of a graph's inputs that are known before it runs.

    ``strides``, in elements, belong to arguments that are not dense. ``are_trained``: its Variables change between most
    calls, so values that depend only on them are not prepared. ``lengths`` are the sizes in the graph that differ from
    call to call.
    """

    strides: Mapping[Value, Shape] = _NONE
    are_trained: bool = False
    lengths: Lengths | None = None


@record
class Choices:
    """A user's choices: the passes, the memory planner (None: the usual search), and the most bytes of intermediate
    values and results."""

    passes: Pipeline = USUAL
    memory_planner: MemoryPlanner | None = None
    memory_budget: int | None = None

    def stored(self) -> Options:
        """Return the options of a program with these choices that may be stored on disk."""
        return Options(self.passes, self.memory_planner, self.memory_budget, is_stored=True)


NO_CHOICES: Final = Choices()


def chosen_by(
    caller: str,
    passes: Pipeline | None = None,
    memory_planner: MemoryPlanner | None = None,
    memory_budget: int | None = None,
) -> dict[str, Any]:
    """Return the choices among these arguments of ``caller``, by name, checked: PassError where programs cannot be made
    with such passes."""
    chosen: dict[str, Any] = {}
    if passes is not None:
        if not isinstance(passes, Pipeline):
            raise ArgumentError(
                f"[{caller}] passes must be a pipeline, such as rn.passes.USUAL.insert(...); got {short_repr(passes)}."
            )
        passes.require(*REQUIRED)
        chosen["passes"] = passes
    if memory_planner is not None:
        if not callable(memory_planner) or not isinstance(memory_planner, Hashable):
            raise ArgumentError(
                f"[{caller}] memory_planner must be a function (or another object with a hash) from lifetimes to "
                f"offsets, such as rn.memory.search; got {short_repr(memory_planner)}."
            )
        chosen["memory_planner"] = memory_planner
    if memory_budget is not None:
        chosen["memory_budget"] = memory_budget
    return chosen


@record
class Options(Choices):
    """The effort of compilation; the defaults are for a program that runs often.

    With ``is_stored`` the program is loaded from disk, or saved there. With ``any_order`` a result may have its axes in
    any order in memory. With ``keeps_plan`` the program keeps its plan, which is much larger than the program;
    otherwise reports build it again. An arena of more than ``own_arena`` bytes is not part of the program: the caller
    of a run provides it.
    """

    is_stored: bool = False
    any_order: bool = False
    keeps_plan: bool = True
    own_arena: float = math.inf
