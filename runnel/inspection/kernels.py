"""The kernels of a program (loops, LLVM text and machine code, generated on demand) and the targets they run on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from runnel.backends.base import Target
from runnel.backends.cpu import target
from runnel.backends.cpu.codegen import build, nest
from runnel.compiler.plan_ir.calls import Call
from runnel.inspection import tables
from runnel.loops import printer
from runnel.loops.ir import Kernel

VARIABLE: Final = target.SWITCH.variable  # of the environment, which chooses one
NAMES: Final = tuple(row.name for row in target.TARGETS)


def in_force() -> Target:
    """Return the target of programs of this processor, by the switches."""
    return target.in_force()


def runnable() -> tuple[str, ...]:
    """Return the names of the targets that this processor can run, best first."""
    return tuple(row.name for row in target.TARGETS if row.runs_here)


class KernelReport:
    """One kernel, and how often a run calls it."""

    def __init__(self, kernel: Kernel, calls: int) -> None:
        self.kernel = kernel
        self.calls = calls

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def loops(self) -> str:
        """The loop IR."""
        return printer.text(self.kernel)

    @property
    def llvm(self) -> str:
        """The LLVM module, for the target in force."""
        return nest.emit_kernel(self.kernel, target.in_force())

    @property
    def assembly(self) -> str:
        """The assembly of :attr:`llvm`."""
        return build.assembly(self.llvm)

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "calls": self.calls, "loops": printer.as_json(self.kernel)}

    def __str__(self) -> str:
        return self.loops

    def __repr__(self) -> str:
        return f"<kernel {self.name}, called {self.calls} times>"


class KernelsReport(Sequence[KernelReport]):
    """The kernels in the order of their first calls; looked up by name or by a unique prefix of it."""

    def __init__(self, calls: Sequence[Call]) -> None:
        times = Counter(call.kernel.name for call in calls)
        kernels = {call.kernel.name: call.kernel for call in calls}
        self._reports = [KernelReport(kernel, times[name]) for name, kernel in kernels.items()]

    def find(self, name: str) -> KernelReport:
        """Return the kernel called ``name``, or the only one with that prefix."""
        matches = [r for r in self._reports if r.name == name] or [r for r in self._reports if r.name.startswith(name)]
        if len(matches) != 1:
            how = "No" if not matches else "More than one"
            raise ValueError(f"{how} kernel is called '{name}'; there are {', '.join(r.name for r in self._reports)}.")
        return matches[0]

    def as_json(self) -> list[dict[str, Any]]:
        return [report.as_json() for report in self._reports]

    def __getitem__(self, index: Any) -> Any:
        return self._reports[index]

    def __len__(self) -> int:
        return len(self._reports)

    def __iter__(self) -> Iterator[KernelReport]:
        return iter(self._reports)

    def __str__(self) -> str:
        rows = [(r.name, str(r.calls), _buffers(r.kernel)) for r in self._reports]
        return tables.table(("kernel", "calls", "buffers"), rows, left=("kernel", "buffers"))


def _buffers(kernel: Kernel) -> str:
    return ", ".join(f"{b.mode} {b.dtype.name}" for b in kernel.buffers)
