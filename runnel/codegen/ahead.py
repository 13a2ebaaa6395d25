"""What an epilogue will read, asked for while the product is computed: a function of hints beside each epilogue.

An optimizer's update, fused to the product that makes its gradient, reads weights and state from memory, which takes
as long as a part of the product. The contraction calls ``<name>.ahead`` for each tile before it computes it; when the
epilogue runs over the whole block, its lines have come.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from runnel.codegen import uses
from runnel.codegen.memory import advance
from runnel.codegen.text import Emitter
from runnel.codegen.values import Values
from runnel.loops.ir import For, Load, Stmt, Stride

_LINE: Final = 64  # bytes
_LEVEL: Final = 2  # of the caches: the first is the product's


def matrices(epilogue: tuple[Stmt, ...]) -> dict[str, tuple[Stride, Stride]]:
    """The buffers that an epilogue loads at its rows and columns, to the stride of rows and the offset."""
    if not epilogue or not isinstance(epilogue[0], For):
        return {}
    rows = epilogue[0].var
    found: dict[str, tuple[Stride, Stride]] = {}
    for loop in uses.statements(epilogue[0].body):
        if isinstance(loop, For) and loop.kind == "vec":
            for load in _loads(loop.body):
                steps = dict(load.index.terms)
                if set(steps) == {rows, loop.var} and steps[loop.var] == 1 and not load.index.gathered:
                    found.setdefault(load.buffer, (steps[rows], load.index.offset))
    return found


def _loads(body: tuple[Stmt, ...]) -> Iterator[Load]:
    for stmt in uses.statements(body):
        for value in uses.operands(stmt):
            yield from (part for part in uses.parts(value) if isinstance(part, Load))


def emit(values: Values, found: dict[str, tuple[Stride, Stride]]) -> None:
    """The hints for the block I0…J1 of each buffer."""
    em = values.em
    em.declare("llvm.prefetch.p0", "void", "ptr", "i32", "i32", "i32")
    with counting(em, "%i0", "%i1", 1) as row:
        for buffer, (step, offset) in found.items():
            dtype = values.dtypes[buffer]
            first = em.value(f"mul i64 {row}, {values.stride(step)}")
            start = advance(em, dtype, values.bases[buffer], em.value(f"add i64 {first}, {values.stride(offset)}"))
            with counting(em, "%j0", "%j1", _LINE // dtype.itemsize) as column:
                place = advance(em, dtype, start, column)
                em.effect(f"call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 {_LEVEL}, i32 1)")


@contextmanager
def counting(em: Emitter, begin: str, end: str, step: int) -> Iterator[str]:
    """A loop around what is written inside, over begin, begin + step, … below ``end``."""
    loop, done = em.new_label("loop"), em.new_label("done")
    some = em.value(f"icmp slt i64 {begin}, {end}")
    before = em.block
    em.branch(some, loop, done)
    em.start(loop)
    here = em.phi("i64", (begin, before))
    yield here
    following = em.value(f"add i64 {here}, {step}")
    em.add_edge(here, following, em.block)
    more = em.value(f"icmp slt i64 {following}, {end}")
    em.branch(more, loop, done)
    em.start(done)
