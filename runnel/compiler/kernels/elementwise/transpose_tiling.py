"""The analysis of ``tiled_transpose``: which map kernels read along another axis than they write, and their blocks."""

from __future__ import annotations

from typing import Final

from runnel.compiler.kernels.allocations import Allocation, Call
from runnel.core.records import record
from runnel.loops import uses
from runnel.loops.ir import Bound, For, Let, RangeBound, Stmt, Store, Var

_WIDTHS: Final = (16, 8)  # columns of a block
_SHORTEST: Final = 16  # least extent of an axis to vectorise along
_SHORT: Final = 32  # an axis of at most this extent is combined with the next one
_MANY_ROWS: Final = 32  # enough to partition among threads

Steps = dict[Var, int]


@record
class Nest:
    """A kernel that is a perfect nest around a loop over vectors: the extent of each variable, outermost first, and the
    step of each access along them."""

    call: Call
    loops: tuple[For, ...]
    extents: Steps
    steps: dict[uses.Access, Steps]

    @property
    def body(self) -> tuple[Stmt, ...]:
        return self.loops[-1].body

    @property
    def column(self) -> Var:
        return self.loops[-1].var


@record
class Tiling:
    """``turned`` are the accesses through scratch memory: along ``along``, or along the whole of ``unit`` and then
    ``along``. A ``width`` of 0 means that there are too few columns for that."""

    turned: tuple[uses.Access, ...]
    along: Var
    unit: Var | None
    rows: Var  # partitioned among threads
    width: int


def nest_of(call: Call) -> Nest | None:
    """The kernel's loops, if it is a nest."""
    loops: list[For] = []
    body = call.kernel.body
    while len(body) == 1 and isinstance(body[0], For):
        loops.append(body[0])
        body = body[0].body
    if len(loops) < 2 or loops[-1].kind != "vec" or not all(isinstance(s, Let | Store) for s in body):
        return None
    values = dict(zip(call.kernel.params, call.params, strict=True))
    ends: dict[Bound, int] = {RangeBound.I1: call.rows, RangeBound.J1: call.columns}
    ends.update(values.items())
    accesses = uses.accesses(body)
    if any(loop.end not in ends for loop in loops) or any(index.gathered for _, index in accesses):
        return None
    steps: dict[uses.Access, Steps] = {}
    for access in accesses:
        along = steps[access] = {}
        for var, step in access[1].terms:
            along[var] = along.get(var, 0) + (step if isinstance(step, int) else values[step])
    return Nest(call, tuple(loops), {loop.var: ends[loop.end] for loop in loops}, steps)


def blocks_of(nest: Nest) -> Tiling | None:
    """The tiling for the operands with the same axes as the first one that is transposed against the result."""
    extents, column = nest.extents, nest.column
    if any(a.writes and a.allocation in _read(nest.call) for a in nest.call.accesses):
        return None  # an in-place update must not be done twice
    stored = uses.stored_buffers(nest.body)
    across = {
        access: steps
        for access, steps in nest.steps.items()
        if access[0] not in stored and abs(steps.get(column, 0)) > 1 and 1 in steps.values()
    }
    if not across:
        return None
    along = max((v for v, step in next(iter(across.values())).items() if step == 1), key=lambda v: extents[v])
    turned = tuple(access for access, steps in across.items() if steps.get(along) == 1)
    width = _width(extents[column])
    unit: Var | None = None
    if width and extents[along] < _SHORT:
        beyond = [v for v in extents if all(across[a].get(v) == extents[along] for a in turned) and v != column]
        unit, along = (along, beyond[0]) if beyond else (None, along)
    if extents[along] * (1 if unit is None else extents[unit]) < _SHORTEST:
        return None
    shared = [v for v in extents if v not in (column, unit)]
    rows = shared[0] if extents[shared[0]] >= _MANY_ROWS else max(shared, key=lambda v: extents[v])
    return Tiling(turned if width else (), along, unit, rows, width)


def _width(columns: int) -> int:
    """The largest width with which few columns are computed twice."""
    fitting = [n for n in _WIDTHS if n <= columns]
    return min(fitting, key=lambda n: (-(-columns // n) * n - columns) * 8 // columns, default=0)


def _read(call: Call) -> list[Allocation]:
    return [a.allocation for b, a in zip(call.kernel.buffers, call.accesses, strict=True) if b.mode != "out"]
