"""A kernel of the loop IR to the text of an LLVM module.

The top of loop code generation: function heads, the words of ``args`` and contractions; ``loops`` emits statements. The
module exports one function of the kernel ABI (docs/internals/design.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from runnel.backends.cpu.codegen import products
from runnel.backends.cpu.codegen.loops import Loops
from runnel.backends.cpu.codegen.memory import advance
from runnel.backends.cpu.codegen.text import Emitter
from runnel.backends.cpu.codegen.values import Values
from runnel.backends.cpu.target import InstructionSet
from runnel.core.errors import VerifierError
from runnel.loops import uses
from runnel.loops.ir import TILE_STRIDE, Buffer, Contract, For, Kernel, Stmt

MOST_NUMBERS = 16  # constants that are kept in registers
_ABI = "ptr %thread, ptr %args, i64 %i0, i64 %i1, i64 %j0, i64 %j1"
_LOOP_METADATA = """\
!0 = distinct !{!0, !1, !2}
!1 = !{!"llvm.loop.unroll.disable"}
!2 = !{!"llvm.loop.vectorize.enable", i1 false}
!3 = !{!"branch_weights", i32 1, i32 63}
"""


def emit_kernel(kernel: Kernel, target: InstructionSet) -> str:
    """Return the kernel as a complete module: the function ``@<kernel.name>``, its helpers and declarations."""
    functions: list[str] = []
    emitters: list[Emitter] = []

    def function(name: str, linkage: str, body: tuple[Stmt, ...]) -> None:
        em = Emitter(target)
        emitters.append(em)
        known: dict[int, uses.Accesses] = {}
        accessed = uses.accesses(body, known)
        values = _prologue(em, kernel, body, accessed)
        if body and isinstance(body[0], Contract):
            epilogue = "null"
            if len(body) > 1:
                if body[0].batch is not None:
                    raise VerifierError(f"[{kernel.name}] a batched Contract has an epilogue.")
                epilogue = f"@{name}.epilogue"
                function(f"{name}.epilogue", "internal ", body[1:])
            _contract(values, body[0], epilogue)
        else:
            first = body[0] if linkage and body else None
            Loops(values, known, first.var if isinstance(first, For) else None).function_body(body, accessed)
        em.effect("ret void")
        head = f"define {linkage}void @{name}({_ABI}) nounwind {{\nentry:\n"
        functions.append(head + "\n".join(em.lines) + "\n}\n")

    function(kernel.name, "", kernel.body)
    definitions = {name: text for em in emitters for name, text in em.definitions.items()}
    declarations = sorted({line for em in emitters for line in em.declarations})
    return "\n".join(
        [f'target triple = "{target.triple}"', "", *functions, *definitions.values(), *declarations, "", _LOOP_METADATA]
    )


def _prologue(em: Emitter, kernel: Kernel, body: tuple[Stmt, ...], accessed: uses.Accesses) -> Values:
    """Read the words of ``args`` that the body needs. Constants that are too many for registers are read at each use:
    LLVM would store all of them to the stack and read them from there, and take long to find out."""
    numbers = uses.numbers(body)
    if len(numbers) <= MOST_NUMBERS:
        numbers = set()
    used_buffers, used_params = uses.buffers(body, accessed), uses.params(body, accessed, numbers)
    words: dict[str, int] = {}
    bases: dict[str, str] = {}
    params: dict[str, str] = {}
    if used_buffers:
        table = em.value("load ptr, ptr %thread, align 8")
    for at, buffer in enumerate(kernel.buffers):
        if buffer.mode in ("tile", "scratch") and buffer.name in used_buffers:
            whole = buffer.mode == "scratch" or _has_product(body)
            bases[buffer.name] = _own(em, buffer, _word(em, 2 * at + 1), whole=whole)
        elif buffer.name in used_buffers:
            slot, offset = _word(em, 2 * at), _word(em, 2 * at + 1)
            place = em.value(f"getelementptr ptr, ptr {table}, i64 {slot}")
            base = em.value(f"load ptr, ptr {place}, align 8")
            bases[buffer.name] = em.value(f"getelementptr i8, ptr {base}, i64 {offset}")
    for at, param in enumerate(kernel.params, start=2 * len(kernel.buffers)):
        if param.name in numbers:
            words[param.name] = at
        if param.name in used_params:
            params[param.name] = _word(em, at)
    tiles = frozenset(b.name for b in kernel.buffers if b.mode == "tile")
    return Values(em, bases, {b.name: b.dtype for b in kernel.buffers}, params, words, tiles)


def _has_product(body: tuple[Stmt, ...]) -> bool:
    return bool(body) and isinstance(body[0], Contract)


def _own(em: Emitter, buffer: Buffer, offset: str, *, whole: bool) -> str:
    """Return the base of a buffer in the thread's scratch. An epilogue indexes a tile by rows and columns of the whole
    product, so the base precedes the tile by the offset of the block's first element."""
    scratch = em.value("load ptr, ptr " + em.value("getelementptr i64, ptr %thread, i64 1") + ", align 8")
    base = em.value(f"getelementptr i8, ptr {scratch}, i64 {offset}")
    if whole:
        return base
    row = em.value(f"mul i64 %i0, {TILE_STRIDE // buffer.dtype.itemsize}")
    first = em.value(f"add i64 {row}, %j0")
    return advance(em, buffer.dtype, base, em.value(f"sub i64 0, {first}"))


def _word(em: Emitter, at: int) -> str:
    place = em.value(f"getelementptr i64, ptr %args, i64 {at}")
    return em.value(f"load i64, ptr {place}, align 8")


def _contract(values: Values, spec: Contract, epilogue: str) -> None:
    """Call the generic contraction, for a batch once for each matrix of the block."""
    em = values.em
    tile = spec.c in values.tiles
    indirect = spec.indirect
    tables = ("null", "null") if indirect is None else (values.bases[indirect.rows], values.bases[indirect.ks])
    names = (spec.a, spec.b, spec.c)
    strides = [values.stride(p) for p in (spec.a_row, spec.a_k, spec.b_k, spec.b_col, spec.c_row, spec.k)]

    panel = "0"
    if spec.panels is not None and spec.panels.width == em.target.panel_columns(spec.dtype):
        panel = values.stride(spec.panels.step)

    def call(matrices: list[str], block: list[str]) -> None:
        products.call(em, spec.operands, matrices, strides, block, epilogue, tile=tile, tables=tables, panel=panel)

    bases = [values.bases[name] for name in names]
    if spec.panels is not None and panel == "0":  # packed for another machine's tiles
        width = spec.panels.width
        with _counting(em, "%j0", "%j1", width) as first:
            step = em.value(f"sub i64 {values.stride(spec.panels.step)}, {width}")
            forward = em.value(f"mul i64 {em.value(f'udiv i64 {first}, {width}')}, {step}")
            last = em.value(f"add i64 {first}, {width}")
            end = em.value(f"call i64 @llvm.smin.i64(i64 {last}, i64 %j1)")
            em.declare("llvm.smin.i64", "i64", "i64", "i64")
            call([bases[0], advance(em, spec.operands, bases[1], forward), bases[2]], ["%i0", "%i1", first, end])
        return
    if spec.batch is None:
        call(bases, ["%i0", "%i1", "%j0", "%j1"])
        return
    batch = spec.batch
    with _counting(em, "%i0", "%i1", 1) as matrix:
        steps = [em.value(f"mul i64 {matrix}, {values.stride(p)}") for p in (batch.a_step, batch.b_step, batch.c_step)]
        kinds = (spec.operands, spec.operands, spec.dtype)
        matrices = [advance(em, *each) for each in zip(kinds, bases, steps, strict=True)]
        call(matrices, ["0", values.stride(batch.m), "0", values.stride(batch.n)])


@contextmanager
def _counting(em: Emitter, begin: str, end: str, step: int) -> Iterator[str]:
    """Loop over begin, begin + step, … below ``end`` around the code emitted inside."""
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
