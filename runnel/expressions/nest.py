"""Lower a schedule to the loop IR.

Points outside ranges and constraints are never visited: bounds of loops follow from them, so no element is read or
written out of place. If a vectorized or unrolled loop depends on a constraint, the loops around it are split into an
interior, where the constraint always holds, and a border, where elements are computed one by one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Final

from runnel.core.dtypes import DType, int64
from runnel.core.records import record, replace
from runnel.expressions.affine import Affine, combined, greatest, index, least, number
from runnel.expressions.elements import constant, converted, value_expression
from runnel.expressions.schedule import Digit, Loop, Schedule
from runnel.expressions.state import State, first_state, interior, loops_of
from runnel.expressions.values import Element, elements
from runnel.loops import scalar
from runnel.loops.ir import (
    CHAIN,
    Acc,
    Apply,
    Bound,
    Const,
    Expr,
    For,
    Index,
    Let,
    Load,
    Position,
    RangeBound,
    Ref,
    Stmt,
    Store,
    Update,
    Var,
)

MOST_CACHED: Final = 1 << 21  # elements of all caches together
Inner = Callable[[State], list[Stmt]]


@record
class Array:
    """A buffer of the kernel, with strides in elements along its axes."""

    buffer: str
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@record
class Cache:
    """A dense copy of a part of an operand.

    ``extents`` are its sizes, ``element`` the access that it serves, and ``order`` its axes by decreasing stride: the
    axis of the lanes is last.
    """

    buffer: str
    extents: tuple[int, ...]
    element: Element
    loop: str | None
    order: tuple[int, ...]

    @property
    def strides(self) -> tuple[int, ...]:
        steps, step = [0] * len(self.extents), 1
        for axis in reversed(self.order):
            steps[axis] = step
            step *= self.extents[axis]
        return tuple(steps)

    @property
    def size(self) -> int:
        size = 1
        for extent in self.extents:
            size *= extent
        return size


class Nest:
    """The statements of a kernel. ``operands`` are by name; the aggregation is computed in ``dtype``."""

    def __init__(self, schedule: Schedule, operands: dict[str, Array], result: Array, dtype: DType) -> None:
        self.schedule = schedule
        self.solved = schedule.solved
        self.operands = operands
        self.result = result
        self.dtype = dtype
        self.aggregation = self.solved.expression.aggregation
        self._numbers = itertools.count()
        self._stores_by_digits = False
        self.loops = self._checked(schedule.loops)
        self.caches = {name: self._cache(name, loop) for name, loop in schedule.caches.items()}
        if sum(cache.size for cache in self.caches.values()) > MOST_CACHED:
            schedule.fail(f"caches have {MOST_CACHED} elements at most, all together; fill them further inside")

    @property
    def rows(self) -> int:
        """Number of rows that threads can share."""
        first = self.schedule.loops[:1]
        return first[0].extent if first and first[0].kind == "parallel" else 1

    @property
    def has_rows(self) -> bool:
        """True if an iteration of the parallel loop stores elements whose positions are affine in it."""
        return self.rows > 1 and not self._stores_by_digits

    def body(self) -> tuple[Stmt, ...]:
        terms = tuple(self._in_loops(form) for form in self.solved.constraints)
        state = replace(first_state(self.schedule, terms), is_empty=any(n == 0 for _, n in self.solved.reduced))
        filled, state = self._filled(state, None)
        return (*filled, *self._over(self.loops, state))

    def _checked(self, loops: list[Loop]) -> list[Loop]:
        """Return the loops if sums can stay in registers."""
        reduced = next((i for i, x in enumerate(loops) if x.is_reduced), len(loops))
        for loop in loops[reduced:]:
            if not loop.is_reduced and loop.kind not in ("vec", "unroll"):
                self.schedule.fail(
                    f"'{loop.name}' is inside the reduced loop '{loops[reduced].name}'; unroll or vectorize it, "
                    "so that its aggregates stay in registers, or reorder the loops"
                )
        return list(loops)

    def _in_loops(self, form: Affine) -> Affine:
        return form.replaced(self.schedule.forms)

    def _name(self, hint: str) -> str:
        return f"{hint}.{next(self._numbers)}"

    # Loops of the result ----------------------------------------------------------------------------------------------

    def _over(self, loops: Sequence[Loop], state: State | None) -> list[Stmt]:
        """Return the statements of ``loops``, the result's before reduced ones."""
        if state is None or (state := state.simplified()) is None:
            return []
        ready = [c for c in state.guards if not state.waiting(c)]
        if ready:
            rest = replace(state, guards=tuple(c for c in state.guards if c not in ready))
            return self._guarded(ready, rest, lambda inside: self._over(loops, inside))
        if not loops or loops[0].is_reduced:
            return self._aggregated(loops, state)
        loop, inner = loops[0], loops[1:]
        return self._loop(loop, state, "guards", lambda inside: self._over(inner, inside))

    def _is_lane_wise(self, loop: Loop, state: State) -> bool:
        """Return True if a vectorized loop's body would need the number of the lane."""
        if any(loop.name in loops_of(self.schedule, form) for form in state.terms):
            return True
        guards = [form for form in state.guards if loop.name in loops_of(self.schedule, form)]
        return any(state.waiting(form) != [loop.name] for form in guards)

    def _loop(self, loop: Loop, state: State, bounding: str, inner: Inner) -> list[Stmt]:
        """Return one loop, split where a constraint of a vectorized or unrolled loop starts to hold."""
        first, last = state.ranges[loop.name]
        cutting = [c for c in (*state.guards, *state.terms) if self._cuts(loop, c, state)]
        a, b = interior(state, loop, cutting) if cutting else (first, last)
        stmts: list[Stmt] = []
        for begin, end in ((first, a), (a, b), (b, last)) if a < b else ((first, last),):
            if begin < end:
                stmts += self._part(loop, state.with_range(loop.name, begin, end), bounding, inner)
        return stmts

    def _cuts(self, loop: Loop, form: Affine, state: State) -> bool:
        if not form.coefficient(loop.name) or any(name in state.open for name in form.names):
            return False
        kinds = {x.name: x.kind for x in self.schedule.loops}
        names = loops_of(self.schedule, form)
        return any(kinds[name] in ("vec", "unroll") for name in names) or names == {loop.name}

    def _part(self, loop: Loop, state: State, bounding: str, inner: Inner) -> list[Stmt]:
        """Return a loop over its range in ``state``."""
        begin, end = state.ranges[loop.name]
        simpler = state.simplified()
        if simpler is None:
            return []
        state = simpler
        if loop.kind == "vec" and self._is_lane_wise(loop, state):
            loop = replace(loop, kind="seq")
        forms = state.guards if bounding == "guards" else state.terms
        limits = [c for c in forms if c.coefficient(loop.name) and state.waiting(c) == [loop.name]]
        left = tuple(c for c in forms if c not in limits)
        bounded = replace(state, guards=left) if bounding == "guards" else replace(state, terms=left)
        is_shared = loop.kind == "parallel"
        if not is_shared and (end - begin == 1 or (loop.kind == "unroll" and not limits)):
            return [s for v in range(begin, end) for s in self._entered(loop, state.fixed(loop.name, v), inner)]
        stmts, low, high = self._bounds(loop, begin, end, limits, state)
        if is_shared and end - begin == 1:
            body = self._entered(loop, bounded.fixed(loop.name, begin), inner)
            return [*stmts, For(Var(self._name("once")), low, high, "seq", tuple(body))] if body else []
        body = self._entered(loop, bounded.opened(loop.name, loop.name), inner)
        kind = "vec" if loop.kind == "vec" else "seq"
        return [*stmts, For(Var(loop.name), low, high, kind, tuple(body))] if body else []

    def _bounds(
        self, loop: Loop, begin: int, end: int, limits: list[Affine], state: State
    ) -> tuple[list[Stmt], Bound, Bound]:
        """Return the bounds of a loop, and the statements that compute them."""
        lows: list[Expr] = []
        highs: list[Expr] = []
        for form in limits:
            c, rest = form.coefficient(loop.name), state.form(form.without(loop.name))
            if not rest.names:
                first, last = interior(state.with_range(loop.name, begin, end), loop, [form])
                begin, end = max(begin, first), min(end, last)
            elif c > 0:  # at least -rest / c, rounded up
                lows.append(_quotient(self._integer(rest.scaled(-1).plus(c - 1), state), c))
            else:
                highs.append(_plus_one(_quotient(self._integer(rest, state), -c)))
        if loop.kind == "parallel":
            if not limits and (begin, end) == (0, loop.extent):
                return [], RangeBound.I0, RangeBound.I1
            lows.append(RangeBound.I0)
            highs.append(RangeBound.I1)
        stmts: list[Stmt] = []
        low, high = self._bound(begin, lows, scalar.maximum, stmts), self._bound(end, highs, scalar.minimum, stmts)
        return stmts, low, high

    def _bound(self, value: int, limits: list[Expr], choose: scalar.ScalarOp, stmts: list[Stmt]) -> Bound:
        if not limits:
            return value
        expr: Expr = Const(value, int64)
        for limit in limits:
            expr = Apply(choose, (expr, limit), int64)
        name = self._name("v")
        stmts.append(Let(name, expr))
        return Ref(name, int64)

    def _entered(self, loop: Loop, state: State, inner: Inner) -> list[Stmt]:
        """Return a loop's body: the digits known there, the caches filled there, and the rest."""
        stmts, state = self._digits(state)
        if not loop.is_reduced:
            filled, state = self._filled(state, loop.name)
            stmts += filled
        body = inner(state)
        return [*stmts, *body] if body else []

    def _digits(self, state: State) -> tuple[list[Stmt], State]:
        """Bind the digits that follow from the open loops."""
        stmts: list[Stmt] = []
        before = -1
        while before != len(state.open) + len(state.constants):
            before = len(state.open) + len(state.constants)
            for name, digit in self.schedule.digits.items():
                if name in state.open or name in state.constants or state.waiting(digit.form):
                    continue
                form = state.form(digit.form)
                if form.names:
                    op = scalar.floor_divide if digit.is_quotient else scalar.remainder
                    bound = self._name("v")
                    value = Apply(op, (self._integer(form, state), Const(digit.divisor, int64)), int64)
                    stmts.append(Let(bound, value))
                    state = state.opened(name, bound)
                else:
                    quotient, remainder = divmod(form.constant, digit.divisor)
                    state = state.fixed(name, quotient if digit.is_quotient else remainder)
        return stmts, state

    def _guarded(self, conditions: list[Affine], state: State, inner: Inner) -> list[Stmt]:
        """Return ``inner`` in a loop that runs once if the conditions hold, else not at all."""
        least_of: Expr | None = None
        for form in conditions:
            expr = self._integer(form, state)
            least_of = expr if least_of is None else Apply(scalar.minimum, (least_of, expr), int64)
        body = inner(state)
        if not body or least_of is None:
            return body
        one = Const(1, int64)
        times = Apply(scalar.minimum, (Apply(scalar.add, (least_of, one), int64), one), int64)
        name = self._name("v")
        return [Let(name, times), For(Var(self._name("once")), 0, Ref(name, int64), "seq", tuple(body))]

    # Aggregates -------------------------------------------------------------------------------------------------------

    def _aggregated(self, loops: Sequence[Loop], state: State) -> list[Stmt]:
        """Return the aggregates of the elements that unrolled and vectorized ``loops`` cover."""
        axes, reduced = [x for x in loops if not x.is_reduced], [x for x in loops if x.is_reduced]
        unrolled = [x for x in axes if x.kind == "unroll"]
        vectorized = next((x for x in axes if x.kind == "vec"), None)
        if not axes:
            return self._elements([state], reduced)
        groups = self._points(unrolled, vectorized, state)
        if groups is None:  # a border: one element after the other
            one_by_one = [replace(x, kind="seq") for x in unrolled]
            return self._over([*one_by_one, *([vectorized] if vectorized else []), *reduced], state)
        stmts: list[Stmt] = []
        for points in groups:
            if vectorized is None:
                stmts += self._elements(points, reduced)
                continue
            begin, end = points[0].ranges[vectorized.name]
            digits, inside = self._digits(points[0].opened(vectorized.name, vectorized.name))
            opened = [replace(point, open=inside.open) for point in points]
            body = (*digits, *self._elements(opened, reduced))
            stmts.append(For(Var(vectorized.name), begin, end, "vec", body))
        return stmts

    def _points(self, unrolled: list[Loop], vectorized: Loop | None, state: State) -> list[list[State]] | None:
        """Return a state for each iteration of the unrolled loops in range, grouped if computed together.

        None if a constraint cuts off more than lanes.
        """
        groups: dict[object, list[State]] = {}
        inside = {x.name for x in unrolled} | ({vectorized.name} if vectorized else set())
        for values in itertools.product(*(range(*state.ranges[x.name]) for x in unrolled)):
            point = state
            for loop, value in zip(unrolled, values, strict=True):
                point = point.fixed(loop.name, value)
            stmts, point = self._digits(point)
            if stmts:
                return None
            simplified = point.simplified()
            if simplified is not None and vectorized is not None:
                lanes = [c for c in simplified.guards if c.names == (vectorized.name,)]
                simplified = simplified.with_range(vectorized.name, *interior(simplified, vectorized, lanes))
                simplified = simplified.simplified()
            if simplified is None:
                continue
            if simplified.guards or any(loops_of(self.schedule, c) & inside for c in simplified.terms):
                return None
            lanes_of = simplified.ranges[vectorized.name] if vectorized else ()
            groups.setdefault((simplified.terms, simplified.is_empty, lanes_of), []).append(simplified)
        return list(groups.values())

    def _elements(self, points: list[State], reduced: Sequence[Loop]) -> list[Stmt]:
        """Compute and store an element for each state, together."""
        names = [self._name("r") for _ in points]
        if self.aggregation == "assign":
            return [s for p in points for s in self._assigned(p, reduced)]
        chained = [x for x in reduced if x.cuts]
        inner = [x for x in reduced if not x.cuts]
        if chained:
            work = self._pairwise(chained, inner, points, names)
        else:
            work = self._terms(inner, points[0], points, names)
        chains = self.solved.chains
        order = "chain" if chains == 1 else "short" if chains <= CHAIN else "blocks"
        stores = [
            self._store(p, converted(Ref(name, self.dtype), self.result.dtype))
            for p, name in zip(points, names, strict=True)
        ]
        return [*(self._acc(name, order) for name in names), *work, *stores]

    def _acc(self, name: str, order: str) -> Acc:
        return Acc(name, self.aggregation, self.dtype, order)

    def _pairwise(
        self, chained: Sequence[Loop], inner: Sequence[Loop], points: list[State], totals: list[str]
    ) -> list[Stmt]:
        """Return the loops that count chains, around a chain for each point.

        What they leave out must be the same in every schedule, because a chain's number is its position in the tree. So
        constraints that cut chains are left to the inner loops, and a chain without terms counts too.
        """
        state = points[0]
        rests = {state.form(form) for form, is_reduced in self.schedule.guards if is_reduced}
        within = {x.name for x in inner}
        cutting = tuple(c for c in state.terms if loops_of(self.schedule, c) & within and state.form(c) not in rests)
        outside = replace(state, terms=tuple(c for c in state.terms if c not in cutting))

        def chains(inside: State) -> list[Stmt]:
            names = [self._name("r") for _ in points]
            work = self._terms(inner, replace(inside, terms=(*inside.terms, *cutting)), points, names)
            added = [Update(total, Ref(name, self.dtype)) for total, name in zip(totals, names, strict=True)]
            return [*(self._acc(name, "chain") for name in names), *work, *added]

        return self._reduced(chained, outside, chains)

    def _terms(self, loops: Sequence[Loop], state: State, points: list[State], names: list[str]) -> list[Stmt]:
        def updates(inside: State) -> list[Stmt]:
            return [
                Update(name, self._value(_merged(inside, point))) for point, name in zip(points, names, strict=True)
            ]

        return self._reduced(loops, state, updates)

    def _reduced(self, loops: Sequence[Loop], state: State, inner: Inner) -> list[Stmt]:
        """Return the reduced ``loops`` around ``inner``, where terms are in range."""
        simpler = state.simplified()
        if simpler is None or simpler.is_empty:
            return []
        state = simpler
        ready = [c for c in state.terms if not state.waiting(c)]
        if ready:
            rest = replace(state, terms=tuple(c for c in state.terms if c not in ready))
            return self._guarded(ready, rest, lambda inside: self._reduced(loops, inside, inner))
        if not loops:
            return inner(state)
        return self._loop(loops[0], state, "terms", lambda inside: self._reduced(loops[1:], inside, inner))

    def _assigned(self, state: State, reduced: Sequence[Loop]) -> list[Stmt]:
        """Store 0, then the only term if there is one."""
        value = self._reduced(reduced, state, lambda inside: [self._store(inside, self._as_result(inside))])
        if value and isinstance(value[0], Store) and len(value) == 1:
            return value
        return [self._store(state, constant(0, self.result.dtype)), *value]

    def _as_result(self, state: State) -> Expr:
        return converted(self._value(state), self.result.dtype)

    # Elements ---------------------------------------------------------------------------------------------------------

    def _value(self, state: State) -> Expr:
        return value_expression(self.solved.term, self.dtype, lambda e: self._load(e, state))

    def _load(self, element: Element, state: State) -> Expr:
        array = self.operands[element.name]
        subscripts = [state.form(self._in_loops(s)) for s in element.subscripts]
        buffer, strides = array.buffer, array.strides
        cache, bases = self.caches.get(element.name), dict(state.bases).get(element.name)
        if cache is not None and bases is not None:
            buffer, strides = cache.buffer, cache.strides
            subscripts = [s - state.form(base) for s, base in zip(subscripts, bases, strict=True)]
        return Load(buffer, self._index(subscripts, strides, state), array.dtype)

    def _store(self, state: State, value: Expr) -> Store:
        axes = [state.form(self._in_loops(index(name))) for name, _ in self.solved.axes]
        target = self._index(axes, self.result.strides, state)
        self._stores_by_digits |= bool(target.gathered)
        return Store(self.result.buffer, target, value)

    def _index(self, subscripts: Sequence[Affine], strides: Sequence[int], state: State) -> Index:
        flat = self._joined(combined((stride, s) for stride, s in zip(strides, subscripts, strict=True)), state)
        named = [(state.open.get(name, name), name, c) for name, c in flat.terms]
        terms = tuple((Var(bound), c) for bound, name, c in named if name not in self.schedule.digits)
        gathered = tuple((Ref(bound, int64), c) for bound, name, c in named if name in self.schedule.digits)
        return Index(terms, flat.constant, gathered)

    def _joined(self, form: Affine, state: State) -> Affine:
        """Replace the quotient and remainder of a loop in ``form`` by the loop."""
        for name, digit in reversed(self.schedule.digits.items()):
            c = form.coefficient(name)
            other = next((n for n, d in self.schedule.digits.items() if d == _other(digit, d)), "")
            rest = form.coefficient(other) if c and digit.is_quotient else 0
            if rest and c == rest * digit.divisor:
                form = combined(((1, form.without(name).without(other)), (rest, state.form(digit.form))))
        return form

    def _integer(self, form: Affine, state: State) -> Expr:
        """Return ``form`` as an int64."""
        form = state.form(form)
        total: Expr | None = Const(form.constant, int64) if form.constant or not form.names else None
        for name, c in form.terms:
            bound = state.open.get(name, name)
            part: Expr = Ref(bound, int64) if name in self.schedule.digits else Position(Var(bound), int64)
            if c != 1:
                part = Apply(scalar.mul, (part, Const(c, int64)), int64)
            total = part if total is None else Apply(scalar.add, (total, part), int64)
        return Const(0, int64) if total is None else total

    # Caches -----------------------------------------------------------------------------------------------------------

    def _cache(self, operand: str, loop: str | None) -> Cache:
        """Return the part of ``operand`` that the loops inside ``loop`` read."""
        accesses = [e for e in elements(self.solved.term) if e.name == operand]
        if len(accesses) != 1:
            self.schedule.fail(f"'{operand}' is read at {len(accesses)} points; a cache serves one")
        at = -1 if loop is None else next((i for i, x in enumerate(self.loops) if x.name == loop), None)
        if at is None or any(x.is_reduced or x.kind == "vec" for x in self.loops[: at + 1]):
            self.schedule.fail(f"the cache of '{operand}' is filled at '{loop}', which is not a loop outside all "
                               "reduced and vectorized ones")  # fmt: skip
        if any(x.kind == "unroll" for x in self.loops[: at + 1]):
            self.schedule.fail(f"the cache of '{operand}' is filled in an unrolled loop")
        state = first_state(self.schedule, ())
        outside = {x.name for x in self.loops[: at + 1]}
        lanes = {x.name for x in self.loops if x.kind == "vec"}
        extents, in_lanes = [], []
        for subscript in accesses[0].subscripts:
            inner = self._inside(self._in_loops(subscript), outside)
            extents.append(1 - least(inner, state.ranges) - least(inner.scaled(-1), state.ranges))
            in_lanes.append(bool(loops_of(self.schedule, inner) & lanes))
        order = tuple(sorted(range(len(extents)), key=lambda axis: in_lanes[axis]))
        return Cache(f"{operand}.cache", tuple(extents), accesses[0], loop, order)

    def _inside(self, form: Affine, outside: set[str]) -> Affine:
        """Return the part of ``form`` that loops other than ``outside`` change."""
        return Affine(
            tuple((n, c) for n, c in form.terms if not loops_of(self.schedule, index(n)) <= outside)
        )  # fmt: skip

    def _filled(self, state: State, loop: str | None) -> tuple[list[Stmt], State]:
        """Fill the caches of a loop."""
        stmts: list[Stmt] = []
        for name, cache in self.caches.items():
            if cache.loop != loop:
                continue
            whole = first_state(self.schedule, ()).ranges
            outside = {x.name for x in self.loops[: 1 + next(
                (i for i, x in enumerate(self.loops) if x.name == loop), -1)]}  # fmt: skip
            bases = []
            for subscript in cache.element.subscripts:
                form = self._in_loops(subscript)
                inner = self._inside(form, outside)
                bases.append((form - inner).plus(least(inner, whole)))
            stmts += self._copied(name, cache, [state.form(b) for b in bases], state)
            state = replace(state, bases=(*state.bases, (name, tuple(bases))))
        return stmts, state

    def _copied(self, name: str, cache: Cache, bases: list[Affine], state: State) -> list[Stmt]:
        """Return loops that copy the part inside the array."""
        array = self.operands[name]
        names = [self._name("c") for _ in bases]
        inside = [base + index(at) for base, at in zip(bases, names, strict=True)]
        source = self._index(inside, array.strides, state)
        target = self._index([index(at) for at in names], cache.strides, state)
        body: tuple[Stmt, ...] = (Store(cache.buffer, target, Load(array.buffer, source, array.dtype)),)
        dense = next((d for d, stride in enumerate(array.strides) if stride == 1 and cache.extents[d] > 1), None)
        order = [d for d in range(len(names)) if d != dense] + ([] if dense is None else [dense])
        before: list[Stmt] = []
        reached = self._reached(state)
        for d in reversed(order):
            extent, size = cache.extents[d], array.shape[d]
            limits = [index(names[d]) + bases[d], number(size - 1) - bases[d] - index(names[d])]
            limits = [c for c in limits if least(c, {**reached, names[d]: (0, extent)}) < 0]
            loop = Loop(names[d], extent, is_reduced=False, order=())
            stmts, low, high = self._bounds(loop, 0, extent, limits, state)
            before += stmts
            body = (For(Var(names[d]), low, high, "vec" if d == dense else "seq", body),)
        return [*before, *body]

    def _reached(self, state: State) -> dict[str, tuple[int, int]]:
        """Return the ranges of loops and digits outside the guards of inner loops, where quotients go further."""
        ranges = dict(state.ranges)
        for name, digit in reversed(self.schedule.digits.items()):  # of a digit of a digit the outer one comes later
            if digit.is_quotient:
                low, high = least(digit.form, ranges), greatest(digit.form, ranges)
                ranges[name] = low // digit.divisor, high // digit.divisor + 1
        return ranges


def _other(digit: Digit, candidate: Digit) -> Digit:
    """Return the remainder that belongs to a quotient."""
    return replace(digit, is_quotient=False, extent=candidate.extent)


def _merged(inside: State, point: State) -> State:
    """Return ``inside`` with the constants of the unrolled ``point``."""
    return replace(inside, constants={**inside.constants, **point.constants})


def _quotient(value: Expr, divisor: int) -> Expr:
    return value if divisor == 1 else Apply(scalar.floor_divide, (value, Const(divisor, int64)), int64)


def _plus_one(value: Expr) -> Expr:
    return Apply(scalar.add, (value, Const(1, int64)), int64)
