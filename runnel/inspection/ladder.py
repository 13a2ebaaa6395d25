"""The higher levels of ``RUNNEL_DEBUG``: reports on standard error about each program when it is built.

1 is printed elsewhere (retraces, compilations); 2 adds the graph after each pass, 3 the calls of kernels and the
memory, 4 the loops of each kernel, 5 their LLVM text.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from runnel.core import switches
from runnel.inspection import tables
from runnel.inspection.inspection import Inspection


def announce(inspection: Inspection) -> None:
    """Print the reports of the switch's level for a new program."""
    level = switches.debug.value
    for rung, show in _RUNGS.items():
        if level >= rung:
            for line in show(inspection):
                print(line, file=sys.stderr)


def _passes(inspection: Inspection) -> Iterator[str]:
    before = str(inspection.graph)
    yield _section(inspection, "as traced", before)
    for name, graph in inspection.passes:
        after = str(graph)
        yield _section(inspection, f"after {name}", after if after != before else "unchanged\n")
        before = after


def _calls(inspection: Inspection) -> Iterator[str]:
    yield _section(inspection, "calls", str(inspection.schedule))
    yield _section(inspection, "memory", str(inspection.memory))


def _loops(inspection: Inspection) -> Iterator[str]:
    for kernel in inspection.kernels:
        yield _section(inspection, f"loops, calls: {kernel.calls}", kernel.loops)


def _llvm(inspection: Inspection) -> Iterator[str]:
    for kernel in inspection.kernels:
        yield _section(inspection, f"LLVM text of {kernel.name}", kernel.llvm)


def _section(inspection: Inspection, what: str, text: str) -> str:
    return f"runnel: {inspection.name}, {what}:\n{tables.indented(text)}".rstrip()


_RUNGS: dict[int, Callable[[Inspection], Iterator[str]]] = {2: _passes, 3: _calls, 4: _loops, 5: _llvm}
