"""Statements and loops of the loop IR to LLVM text, inside one function.

A vec loop becomes a loop over full blocks of LANES lanes and one more block for the rest; accumulators are phis, never
memory. ``values`` emits expressions, ``nest`` whole kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from runnel.backends.cpu.codegen import accumulators, memory, products
from runnel.backends.cpu.codegen.accumulators import Accumulator, Tally
from runnel.backends.cpu.codegen.memory import ALL_LANES, Active, advance
from runnel.backends.cpu.codegen.text import Emitter
from runnel.backends.cpu.codegen.values import Values, Vec
from runnel.backends.host.layout import FAULT
from runnel.core.errors import VerifierError
from runnel.loops import uses
from runnel.loops.ir import LANES, Acc, Bound, Check, For, Host, Let, Product, RangeBound, Ref, Stmt, Store, Update, Var
from runnel.loops.scalar import REDUCERS

LOOP_MARK = ", !llvm.loop !0"  # ``nest`` defines !0: leave the loop as it is


Carried = Accumulator | Tally

LONG: Final = 64  # statements of a vec loop's body that is emitted only once, if they are
RARE: Final = 8  # times as many as its loads and stores


class Join:
    """A block with several predecessors: each edge carries the operands of accumulators."""

    def __init__(self, em: Emitter, hint: str, carried: list[Carried]) -> None:
        self.em = em
        self.label = em.new_label(hint)
        self.carried = carried
        self.edges: list[tuple[str, list[str]]] = []

    def edge(self, operands: list[str] | None = None) -> str:
        """Note an edge from the current block, with the accumulators as they are; returns the label."""
        self.edges.append((self.em.block, [a.operand for a in self.carried] if operands is None else operands))
        return self.label

    def start(self) -> None:
        """Begin the block."""
        self.em.start(self.label)
        for at, acc in enumerate(self.carried):
            arrivals = [(operands[at], block) for block, operands in self.edges]
            if len({operand for operand, _ in arrivals}) == 1:
                acc.operand = arrivals[0][0]
            else:
                acc.operand = self.em.phi(acc.type, *arrivals)


class Loops:
    """Writes statements into ``values.em``. An epilogue prefetches the next row: the rows of its blocks are short and
    far apart, which hardware prefetchers do not follow."""

    def __init__(self, values: Values, known: dict[int, uses.Accesses], rows: Var | None = None) -> None:
        self.values = values
        self.em = values.em
        self.rows = rows  # an epilogue's variable over rows
        self._known = known  # the accesses of the kernel's loops, by their ids
        self.uncounted: list[str] = []  # accumulators just declared whose updates are accumulated in blocks

    def function_body(self, body: tuple[Stmt, ...], accessed: uses.Accesses) -> None:
        self.values.start_pointers(accessed)
        self.block(body)

    def block(self, body: tuple[Stmt, ...]) -> None:
        values = self.values
        for at, stmt in enumerate(body):
            rest = body[at + 1 :]
            if isinstance(stmt, Let):
                values.scope.names[stmt.name] = values.evaluate(stmt.value)
            elif isinstance(stmt, Store):
                values.store(stmt)
            elif isinstance(stmt, Update):
                self._update(stmt)
            elif isinstance(stmt, Acc):
                self._declare(stmt, rest)
                if not (rest and isinstance(rest[0], Acc)):
                    self._count(rest)
            elif isinstance(stmt, Check):
                self._check(stmt)
            elif isinstance(stmt, Product):
                self._product(stmt)
            elif isinstance(stmt, Host):
                function = self.em.value(f"inttoptr i64 {self.values.stride(stmt.function)} to ptr")
                self.em.effect(f"call void {function}(ptr %thread, ptr %args)")
            elif isinstance(stmt, For):
                self.loop(stmt)
                self._complete(stmt, body[:at], rest)
            else:
                raise VerifierError(f"{type(stmt).__name__} may only be the first statement of a kernel.")

    def _check(self, stmt: Check) -> None:
        em = self.em
        holds = self.values.evaluate(stmt.value).operand
        fault, on = em.new_label("fault"), em.new_label("on")
        em.branch(holds, on, fault)
        em.start(fault)
        word = em.value(f"getelementptr i64, ptr %thread, i64 {FAULT}")
        em.effect(f"store i64 {self.values.stride(stmt.code)}, ptr {word}, align 8")
        em.jump(on)
        em.start(on)

    def _declare(self, acc: Acc, rest: tuple[Stmt, ...]) -> None:
        scope = self.values.scope
        is_partial = scope.vec is None and acc.name in uses.updated_in_lanes(rest)
        lanes = LANES if is_partial else 1 if scope.vec is None else scope.vec.active.width
        scope.accumulators[acc.name] = accumulators.begin(self.em, acc, lanes, is_partial=is_partial)
        if acc.order == "blocks" and REDUCERS[acc.op].has_blocks(acc.dtype):
            self.uncounted.append(acc.name)

    def _count(self, rest: tuple[Stmt, ...]) -> None:
        """Count the updates of the accumulators just declared, with one counter for those that are updated together."""
        together: dict[tuple[int, ...], list[Accumulator]] = {}
        runs = list(uses.update_runs(rest)) if self.uncounted else []
        for name in self.uncounted:
            numbers = tuple(number for number, run in enumerate(runs) for _ in range(run.count(name)))
            own = (-1 - len(together),) if len(set(numbers)) < len(numbers) else numbers
            together.setdefault(own, []).append(self.values.scope.accumulators[name])
        for group in together.values():
            accumulators.count(self.em, group)
        self.uncounted.clear()

    def _update(self, stmt: Update) -> None:
        scope = self.values.scope
        value = self.values.evaluate(stmt.value)
        acc = scope.accumulators[stmt.name]
        acc.update(self.em, value, None if scope.vec is None else scope.vec.active)
        if acc.tally is not None:
            acc.tally.updated(self.em)
        scope.results.clear()  # some may have read the accumulator

    def _complete(self, loop: For, before: tuple[Stmt, ...], rest: tuple[Stmt, ...]) -> None:
        """Combine the partial results of this block's own accumulators whose last update is in ``loop``."""
        declared = {s.name for s in before if isinstance(s, Acc)}
        done = (declared & uses.updated(loop.body)) - uses.updated(rest)
        for name, acc in self.values.scope.accumulators.items():
            if name in done and acc.is_partial and uses.reads(rest, name):
                acc.total = acc.result(self.em)

    def loop(self, loop: For) -> None:
        begin, end = loop.begin, loop.end
        if isinstance(begin, int) and isinstance(end, int) and begin >= end:
            return
        if loop.kind == "seq":
            self._seq(loop)
        elif self.values.scope.vec is not None:
            raise VerifierError(
                f"The vec loop over {loop.var.name} is inside the one over {self.values.scope.vec.var.name}."
            )
        elif isinstance(begin, int) and isinstance(end, int):
            self._vec_known(loop, begin, end)
        else:
            self._vec(loop)
        scope = self.values.scope
        scope.results.clear()
        if uses.stored_buffers(loop.body):
            scope.forget_loads()

    # sequential loops

    def _seq(self, loop: For) -> None:
        em = self.em
        begin, end = self._bound(loop.begin), self._bound(loop.end)
        done = Join(em, "done", self._carried(loop))
        if not (isinstance(loop.begin, int) and isinstance(loop.end, int)):
            body = em.new_label("body")
            some = em.value(f"icmp slt i64 {begin}, {end}")
            em.branch(some, body, done.edge())
            em.start(body)
        self._repeat(loop, begin, end, 1, None, done)
        done.start()

    def _repeat(self, loop: For, begin: str, end: str, step: int, active: Active | None, done: Join) -> None:
        """Run the loop's body for begin, begin + step, … below ``end``, at least once; continue at ``done``. For a vec
        loop ``active`` are the active lanes; None: the lanes below ``end``."""
        em, carried = self.em, done.carried
        top, before = em.new_label("loop"), em.block
        em.jump(top)
        em.start(top)
        counter = em.phi("i64", (begin, before))
        phis = [em.phi(a.type, (a.operand, before)) for a in carried]
        for acc, phi in zip(carried, phis, strict=True):
            acc.operand = phi
        if loop.kind == "vec" and active is None:
            left = em.value(f"sub i64 {end}, {counter}")
            is_last = em.value(f"icmp slt i64 {left}, {LANES}")
            active = memory.run_time(em, em.value(f"select i1 {is_last}, i64 {left}, i64 {LANES}"))
        self._once(loop, counter, active)
        following = em.value(f"add nsw i64 {counter}, {step}")
        more = em.value(f"icmp slt i64 {following}, {end}")
        for phi, operand in [(counter, following), *zip(phis, (a.operand for a in carried), strict=True)]:
            em.add_edge(phi, operand, em.block)
        em.branch(more, top, done.edge(), LOOP_MARK)

    def _once(self, loop: For, counter: str, active: Active | None) -> None:
        """Run the loop's body for one value of its variable, or one block of lanes from there on."""
        with self._inside():
            if active is not None:
                self.values.scope.vec = Vec(loop.var, active)
            self.values.bind_variable(loop.var, counter, self._known[id(loop)])
            if active is ALL_LANES and self.rows is not None:
                self._prefetch(loop)
            self.block(loop.body)

    def _prefetch(self, loop: For) -> None:
        """Prefetch the elements of the next row at these columns; a hint, whose address may be invalid."""
        em, values = self.em, self.values
        prefetched: set[str] = set()
        for buffer, index in self._known[id(loop)]:
            steps = dict(index.terms)
            row = steps.get(self.rows) if self.rows is not None else None
            if row is not None and steps.get(loop.var) == 1 and buffer not in prefetched and buffer not in values.tiles:
                prefetched.add(buffer)
                here = values.scope.pointers[buffer, index]
                ahead = advance(em, values.dtypes[buffer], here, values.stride(row))
                em.declare("llvm.prefetch.p0", "void", "ptr", "i32", "i32", "i32")
                em.effect(f"call void @llvm.prefetch.p0(ptr {ahead}, i32 0, i32 3, i32 1)")

    @contextmanager
    def _inside(self) -> Iterator[None]:
        outer = self.values.scope
        self.values.scope = outer.inner()
        yield
        self.values.scope = outer

    def _carried(self, loop: For) -> list[Carried]:
        """Return the outer accumulators that the loop updates, and the counters of their updates; clears
        their totals."""
        names = uses.updated(loop.body)
        updated = [a for name, a in self.values.scope.accumulators.items() if name in names]
        for acc in updated:
            acc.total = None
        tallies = {id(a.tally): a.tally for a in updated if a.tally is not None}
        return [*updated, *tallies.values()]

    def _bound(self, bound: Bound) -> str:
        if isinstance(bound, Ref):
            return self.values.evaluate(bound).operand
        return f"%{bound.value}" if isinstance(bound, RangeBound) else self.values.stride(bound)

    def _product(self, stmt: Product) -> None:
        values = self.values
        if values.scope.vec is not None:
            raise VerifierError("A Product is inside a vec loop.")
        places = [values.place(b, at) for b, at in ((stmt.a, stmt.a_at), (stmt.b, stmt.b_at), (stmt.c, stmt.c_at))]
        strides = [values.stride(s) for s in (stmt.a_row, stmt.a_k, stmt.b_k, stmt.b_col, stmt.c_row)]
        m, n, k = (self._bound(x) for x in (stmt.m, stmt.n, stmt.k))
        products.call(self.em, stmt.dtype, places, [*strides, k], ["0", m, "0", n], accumulate=stmt.accumulate)
        values.scope.forget_loads()

    # loops over lanes

    def _vec_known(self, loop: For, begin: int, end: int) -> None:
        """Emit full blocks and the rest, both of known number: a short rest uses fewer lanes."""
        full, rest = divmod(end - begin, LANES)
        stop = begin + full * LANES
        carried = self._carried(loop)
        with self._inside():
            self._hoist(loop)
            if full == 1:
                self._once(loop, str(begin), ALL_LANES)
            elif full:
                after = Join(self.em, "after", carried)
                self._repeat(loop, str(begin), str(stop), LANES, ALL_LANES, after)
                after.start()
            if rest:
                width = next(w for w in (4, 8, LANES) if rest <= w)
                self._once(loop, str(stop), Active(width, rest))

    def _vec(self, loop: For) -> None:
        em = self.em
        carried = self._carried(loop)
        begin, end = self._bound(loop.begin), self._bound(loop.end)
        if self._is_long(loop):
            self._vec_once(loop, begin, end, carried)
            return
        done, after = Join(em, "done", carried), Join(em, "after", carried)
        work, main, tail = em.new_label("work"), em.new_label("main"), em.new_label("tail")
        some = em.value(f"icmp slt i64 {begin}, {end}")
        em.branch(some, work, done.edge())
        em.start(work)
        with self._inside():
            self._hoist(loop)
            count = em.value(f"sub i64 {end}, {begin}")
            rest = em.value(f"and i64 {count}, {LANES - 1}")
            stop = em.value(f"sub i64 {end}, {rest}")
            has_full = em.value(f"icmp slt i64 {begin}, {stop}")
            em.branch(has_full, main, after.edge())
            em.start(main)
            self._repeat(loop, begin, stop, LANES, ALL_LANES, after)
            after.start()
            has_rest = em.value(f"icmp ne i64 {rest}, 0")
            em.branch(has_rest, tail, done.edge())
            em.start(tail)
            self._once(loop, stop, memory.run_time(em, rest))
            em.jump(done.edge())
        done.start()

    def _is_long(self, loop: For) -> bool:
        """Return whether the loop computes much for each load and store, so that slower loads and stores do
        not matter."""
        return len(loop.body) >= LONG and len(self._known[id(loop)]) * RARE <= len(loop.body)

    def _vec_once(self, loop: For, begin: str, end: str, carried: list[Carried]) -> None:
        """Emit all blocks by the code for a partial one, so that a long body is emitted and compiled only once."""
        em = self.em
        done, work = Join(em, "done", carried), em.new_label("work")
        em.branch(em.value(f"icmp slt i64 {begin}, {end}"), work, done.edge())
        em.start(work)
        with self._inside():
            self._hoist(loop)
            self._repeat(loop, begin, end, LANES, None, done)
        done.start()

    def _hoist(self, loop: For) -> None:
        """Hoist loop-invariant values."""
        scope = self.values.scope
        for name, expr in uses.invariant(loop):
            if not name and self.values.read_at_use(expr) is not None:
                continue
            value = scope.hoisted[id(expr)] = self.values.evaluate(expr)
            if name:
                scope.names[name] = value
