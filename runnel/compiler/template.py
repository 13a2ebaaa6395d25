"""Plans with lengths: the calls of a graph, lowered once, become the plan of each call's lengths.

Lowering computes sizes, offsets and extents as expressions (:mod:`runnel.core.lengths`). For new lengths these are
evaluated, and only what depends on them as a whole is made again: the arena, the partition among threads, barriers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

from runnel.compiler.plan import finished
from runnel.compiler.plan_ir.calls import Allocation, BufferAccess, Call
from runnel.compiler.plan_ir.plan import AnyRegion, Interface, Lowered, Plan, Section
from runnel.core.caching import lazy
from runnel.core.errors import VerifierError
from runnel.core.lengths import Length, Lengths
from runnel.core.records import fields


class Template:
    """The calls of a graph with ``lengths``."""

    def __init__(self, code: Lowered, lengths: Lengths) -> None:
        self.code: Final = code
        self.lengths: Final = lengths
        found: dict[Length, int] = {}
        self._first: Final = _Settled(lambda x: found.setdefault(x, x.value)).of(code)  # for the first lengths
        self._lengths: Final = list(found)

    @lazy
    def _evaluate(self) -> Callable[[Sequence[int]], tuple[int, ...] | None]:
        return self.lengths.evaluator(self._lengths)

    def plan(self, values: Sequence[int], threads: int) -> Plan | None:
        """Return the plan for these values of the symbols; None if a condition does not hold."""
        evaluated = self._evaluate(values)
        if evaluated is None:
            return None
        value_of = dict(zip(self._lengths, evaluated, strict=True))
        code = _Settled(value_of.__getitem__).of(self.code)
        for call, first in zip(code.section.calls, self._first.section.calls, strict=True):
            call.expect_like(first)  # predictions take longer than everything else
        return finished(code, threads)

    def planned(self, values: Sequence[int], threads: int) -> Plan:
        """Return the plan for values that are known to satisfy the conditions."""
        plan = self.plan(values, threads)
        if plan is None:
            raise VerifierError(
                f"[compile_graph] the lengths {tuple(values)} must satisfy the conditions of the trace."
            )
        return plan


_SIZED: Final = frozenset({Length, tuple, list})


@functools.cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple([f.name for f in fields(kind) if f.init])


class _Settled:
    """Copies of lowered code with ints in place of lengths. Each allocation is copied once."""

    def __init__(self, value_of: Callable[[Length], int]) -> None:
        self._value_of = value_of
        self._allocations: dict[Allocation, Allocation] = {}

    def of(self, code: Lowered) -> Lowered:
        interface, allocation = code.interface, self._allocation
        section = Section(list(map(self._call, code.section.calls)), list(map(self._region, code.section.regions)))
        places = Interface(
            list(map(allocation, interface.inputs)),
            {node: allocation(place) for node, place in interface.variables.items()},
            list(map(allocation, interface.outputs)),
            interface.output_of,
            list(map(allocation, interface.constants)),
        )
        return Lowered(code.graph, section, places, list(map(self._sizes, code.bounded)))

    def _size(self, x: Any) -> Any:
        if isinstance(x, Length):
            return self._value_of(x)
        return type(x)([self._size(y) if type(y) is not int else y for y in x]) if type(x) in (tuple, list) else x

    def _sizes(self, part: Any, **known: Any) -> Any:
        """Return a copy of a record with ints for lengths, and with the fields ``known``."""
        values = {}
        kind: Any = type(part)
        for name in _names(kind):
            x = getattr(part, name)
            values[name] = self._size(x) if type(x) in _SIZED else x
        return type(part)(**(values | known))

    def _allocation(self, allocation: Allocation) -> Allocation:
        settled = self._allocations.get(allocation)
        if settled is None:
            content, value = allocation.content, allocation.value
            if content is not None:
                value = content.make(*map(self._size, content.arguments))
            settled = self._allocations[allocation] = self._sizes(allocation, value=value, content=None)
        return settled

    def _access(self, access: BufferAccess) -> BufferAccess:
        return self._sizes(access, allocation=self._allocation(access.allocation))

    def _call(self, call: Call) -> Call:
        return self._sizes(call, accesses=list(map(self._access, call.accesses)), nodes=call.nodes)

    def _region(self, region: AnyRegion) -> AnyRegion:
        flag = None if region.flag is None else self._access(region.flag)
        return self._sizes(region, inner=list(map(self._region, region.inner)), flag=flag)
