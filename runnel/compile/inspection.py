"""What a compiled function is made of, for reports: an object that holds everything between the trace and the machine code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runnel.core.errors import CaptureError
from runnel.graph.graph import Graph
from runnel.loops.ir import Kernel
from runnel.lowering.plan import Plan
from runnel.lowering.program import Program

if TYPE_CHECKING:
    from runnel.compile.executable import Executable
    from runnel.compile.native import Native


class Inspection:
    """The graph as traced, after each pass, the plan, the program and its kernels."""

    def __init__(self, executable: Executable) -> None:
        self._executable = executable

    @property
    def runs_eagerly(self) -> bool:
        """Whether there is no program: the function's results must be differentiable outside of it."""
        return self._executable.native is None

    @property
    def graph(self) -> Graph:
        """The graph as it was traced."""
        return self._native.captured.graph

    @property
    def optimized(self) -> Graph:
        """The graph after all passes."""
        return self._native.optimized

    @property
    def passes(self) -> list[tuple[str, Graph]]:
        """Each pass's name with the graph after it."""
        return self._native.after_passes()

    @property
    def plan(self) -> Plan:
        return self._native.plan

    @property
    def program(self) -> Program:
        return self._native.program

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels that the program calls, each once."""
        return list(dict.fromkeys(call.kernel for call in self.plan.calls))

    @property
    def _native(self) -> Native:
        native = self._executable.native
        if native is None:
            raise CaptureError("[program] this call runs eagerly, so that its results can be differentiated: no program.")
        return native
