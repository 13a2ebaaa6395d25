"""Schedules: the loops of an expression, and which are split, vectorized, unrolled or shared among threads.

A schedule never changes a result.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

from runnel.core.arrays import short_repr
from runnel.core.errors import ExpressionError
from runnel.core.records import record, replace
from runnel.expressions.affine import Affine, index, number
from runnel.expressions.solving import Solved

Step = tuple[str | int, ...]
Steps = tuple[Step, ...]
MOST_COPIES: Final = 64  # of a loop's body, by all unrolled loops together
KINDS: Final = ("seq", "vec", "unroll", "parallel")


@record
class Loop:
    """A loop of a schedule.

    ``order`` is its original position: terms of a sum are added in that order of reduced loops. ``cuts`` says that each
    iteration starts new chains (``solving.LONGEST``).
    """

    name: str
    extent: int
    is_reduced: bool
    order: tuple[int, ...]
    kind: str = "seq"
    cuts: bool = False


@record
class Digit:
    """A loop that was fused: the quotient or remainder of ``form`` by ``divisor``."""

    form: Affine
    divisor: int
    is_quotient: bool
    extent: int


class Schedule:
    """The loops of an expression, from outermost to innermost, and the primitives that change them.

    Each primitive names loops, changes the schedule in place and returns the names of new loops. At first, the schedule
    has a loop for each axis of the result, in order, then one for each reduced index; a sum of more than 1024 terms
    also has a loop ``<index>_block`` over its chains. Terms of a sum or a product are added in that order of the
    reduced loops, so primitives that would change it raise an error.
    """

    def __init__(self, solved: Solved, steps: Sequence[Step] = ()) -> None:
        self.solved = solved
        self.steps: list[Step] = []
        self.loops: list[Loop] = []
        self.forms: dict[str, Affine] = {}  # index -> form over loops and digits
        self.digits: dict[str, Digit] = {}
        self.guards: list[tuple[Affine, bool]] = []  # ≥ 0 where split loops are in range, and whether it is reduced
        self.caches: dict[str, str | None] = {}  # operand -> loop inside which it is filled
        chain = solved.chain
        cut = [name for name, _ in solved.reduced].index(chain[0]) if chain else -1
        for i, (name, extent) in enumerate((*solved.axes, *solved.reduced)):
            at = i - len(solved.axes)
            self.forms[name] = index(name)
            if chain and at == cut:
                block = self._fresh(f"{name}_block")
                count = -(-extent // chain[1])
                self.loops.append(Loop(block, count, True, (i, 0), cuts=True))
                self.forms[name] = index(block).scaled(chain[1]) + index(name)
                self._guard(self.forms[name], extent, count * chain[1], is_reduced=True)
                self.loops.append(Loop(name, chain[1], True, (i, 1)))
            else:
                self.loops.append(Loop(name, extent, at >= 0, (i,), cuts=0 <= at < cut))
        for step in steps:
            self.apply(step)

    # Primitives -------------------------------------------------------------------------------------------------------

    def split(self, loop: str, factor: int, names: tuple[str, str] | None = None) -> tuple[str, str]:
        """Replace ``loop`` by two loops with loop = outer·factor + inner, with inner below ``factor``."""
        old = self._loop(loop)
        if type(factor) is not int or factor < 1:
            self.fail(f"'{loop}' is split by {factor!r}; a factor is an integer of 1 or more")
        if names is None:
            names = (self._fresh(f"{loop}_0"), self._fresh(f"{loop}_1"))
        if not isinstance(names, (tuple, list)) or len(names) != 2:
            self.fail(f"'{loop}' is split into loops called {short_repr(names)}; pass two names")
        outer, inner = names
        if outer == inner:
            self.fail(f"the two loops that '{loop}' is split into are both called '{outer}'")
        for name in (outer, inner):
            if not isinstance(name, str) or not name.isidentifier() or (self._is_taken(name) and name != loop):
                self.fail(f"a loop cannot be called {name!r}; choose an identifier that is not taken")
        factor = min(factor, max(old.extent, 1))
        count = -(-old.extent // factor)
        form = index(outer).scaled(factor) + index(inner)
        self._replace_loop(loop, (
            replace(old, name=outer, extent=count, order=(*old.order, 0), kind="seq"),
            replace(old, name=inner, extent=factor, order=(*old.order, 1), kind="seq"),
        ))  # fmt: skip
        self._substitute({loop: form})
        self._guard(form, old.extent, count * factor, is_reduced=old.is_reduced)
        self._note("split", loop, factor, outer, inner)
        return outer, inner

    def tile(self, first: str, second: str, rows: int, columns: int) -> tuple[str, str, str, str]:
        """Split two loops and put the inner ones inside: ``first_0, second_0, first_1, second_1``."""
        if first == second:
            self.fail(f"'{first}' cannot be tiled with itself")
        before = self._state()
        try:
            outer, inner = self.split(first, rows), self.split(second, columns)
            order = (outer[0], inner[0], outer[1], inner[1])
            self.reorder(*order)
        except ExpressionError:
            self._return_to(before)
            raise
        return order

    def reorder(self, *loops: str) -> None:
        """Put ``loops`` in this order, at their positions among all loops."""
        chosen = [self._loop(name) for name in loops]
        if len(set(loops)) != len(loops):
            self.fail(f"a loop is named twice in {', '.join(loops)}")
        places = sorted(self.loops.index(loop) for loop in chosen)
        changed = list(self.loops)
        for place, loop in zip(places, chosen, strict=True):
            changed[place] = loop
        self._check_order(changed)
        self.loops = changed
        self._note("reorder", *loops)

    def fuse(self, outer: str, inner: str, name: str | None = None) -> str:
        """Replace two adjacent loops by one."""
        first, second = self._loop(outer), self._loop(inner)
        at = self.loops.index(first)
        if self.loops[at + 1 : at + 2] != [second]:
            self.fail(f"'{inner}' is not the loop inside '{outer}'; reorder them first")
        if first.is_reduced != second.is_reduced or first.cuts != second.cuts:
            self.fail(f"'{outer}' and '{inner}' cannot be fused: one of them is reduced, or counts chains")
        fused = self._fresh(f"{outer}_{inner}") if name is None else name
        if not isinstance(fused, str) or not fused.isidentifier() or self._is_taken(fused):
            self.fail(f"a loop cannot be called {fused!r}; choose an identifier that is not taken")
        whole = index(fused)
        self.loops[at : at + 2] = [replace(first, name=fused, extent=first.extent * second.extent, kind="seq")]
        self.digits[outer] = Digit(whole, max(second.extent, 1), True, first.extent)
        self.digits[inner] = Digit(whole, max(second.extent, 1), False, second.extent)
        self._moved(outer, fused)
        self._moved(inner, fused)
        self._note("fuse", outer, inner, fused)
        return fused

    def vectorize(self, loop: str) -> None:
        """Compute the iterations of ``loop`` in the lanes of vectors."""
        chosen = self._loop(loop)
        if chosen.is_reduced:
            self.fail(f"'{loop}' is reduced, and lanes would change the order of its terms; vectorize an axis")
        if any(x.kind == "vec" and x.name != loop for x in self.loops):
            self.fail("another loop is already vectorized")
        self._set_kind(chosen, "vec", "vectorize")

    vectorise = vectorize  # the name in earlier releases and logs

    def unroll(self, loop: str) -> None:
        """Repeat the body of ``loop`` for each iteration. Inside a reduced loop, each gets a register."""
        chosen = self._loop(loop)
        copies = chosen.extent
        for other in self.loops:
            copies *= other.extent if other.kind == "unroll" and other.name != loop else 1
        if copies > MOST_COPIES:
            self.fail(f"unrolling '{loop}' makes {copies} copies of the body; {MOST_COPIES} are the most")
        self._set_kind(chosen, "unroll", "unroll")

    def parallel(self, loop: str) -> None:
        """Share the iterations of ``loop``, the outermost, among threads."""
        chosen = self._loop(loop)
        if chosen.is_reduced:
            self.fail(f"'{loop}' is reduced, and threads would change the order of its terms")
        if self.loops[0] != chosen:
            self.fail(f"'{loop}' is not the outermost loop; reorder the loops first")
        self._set_kind(chosen, "parallel", "parallel")

    def cache(self, operand: str) -> None:
        """Read ``operand`` from a dense copy, made before all loops unless :meth:`compute_at` moves it."""
        if operand not in self.solved.expression.names:
            self.fail(f"no operand is called '{operand}'; the names are {', '.join(self.solved.expression.names)}")
        self.caches[operand] = None
        self._note("cache", operand)

    def compute_at(self, operand: str, loop: str) -> None:
        """Copy, in each iteration of ``loop``, the part of the cached ``operand`` that the inner loops read."""
        if not isinstance(operand, str) or operand not in self.caches:
            self.fail(f"'{operand}' has no cache; make one with cache('{operand}')")
        if self._loop(loop).is_reduced:
            self.fail(f"'{loop}' is reduced; caches are filled outside reduced loops")
        self.caches[operand] = loop
        self._note("compute_at", operand, loop)

    # As data ----------------------------------------------------------------------------------------------------------

    def apply(self, step: Step) -> None:
        """Apply a step of ``steps``: the name of a primitive and its arguments."""
        if not isinstance(step, (tuple, list)) or not step:
            self.fail(f"a step must be the name of a primitive and its arguments; got {short_repr(step)}")
        name, *arguments = step
        primitive = PRIMITIVES.get(name) if isinstance(name, str) else None
        if primitive is None:
            self.fail(f"no primitive is called {name!r}; the names are {', '.join(PRIMITIVES)}")
        try:
            primitive(self, *arguments)
        except (TypeError, ValueError) as error:
            if isinstance(error, ExpressionError):
                raise
            self.fail(f"the step {step!r} has other arguments than '{name}' takes")

    def __str__(self) -> str:
        """Return the loops, one per line, each inside the one above."""
        lines = []
        for depth, loop in enumerate(self.loops):
            words = " reduced" * loop.is_reduced + (f" {loop.kind}" if loop.kind != "seq" else "")
            lines.append(f"{'  ' * depth}for {loop.name} in 0..{loop.extent}:{words}")
        lines += [f"cache {name} at {loop or 'the beginning'}" for name, loop in self.caches.items()]
        return "\n".join(lines)

    def fail(self, why: str) -> NoReturn:
        raise ExpressionError(f"[schedule] {why} (loops: {', '.join(x.name for x in self.loops) or 'none'}).")

    # Parts ------------------------------------------------------------------------------------------------------------

    def _state(self) -> tuple[Any, ...]:
        return (*self.steps,), (*self.loops,), self.forms, self.digits.copy(), (*self.guards,), self.caches.copy()

    def _return_to(self, state: tuple[Any, ...]) -> None:
        """Restore the result of :meth:`_state`."""
        steps, loops, self.forms, self.digits, guards, self.caches = state
        self.steps, self.loops, self.guards = list(steps), list(loops), list(guards)

    def _loop(self, name: str) -> Loop:
        for loop in self.loops:
            if loop.name == name:
                return loop
        self.fail(f"no loop is called {name!r}")

    def _is_taken(self, name: str) -> bool:
        expression = self.solved.expression
        arrays = (*expression.names, expression.name)
        return name in self.digits or name in self.forms or name in arrays or any(x.name == name for x in self.loops)

    def _fresh(self, name: str) -> str:
        while self._is_taken(name):
            name += "_"
        return name

    def _note(self, *step: str | int) -> None:
        self.steps.append(step)

    def _set_kind(self, loop: Loop, kind: str, primitive: str) -> None:
        self.loops[self.loops.index(loop)] = replace(loop, kind=kind)
        self._note(primitive, loop.name)

    def _guard(self, form: Affine, extent: int, covered: int, *, is_reduced: bool) -> None:
        if covered > extent:
            self.guards.append((number(extent - 1) - form, is_reduced))

    def _substitute(self, values: dict[str, Affine]) -> None:
        self.forms = {name: form.replaced(values) for name, form in self.forms.items()}
        self.digits = {name: replace(d, form=d.form.replaced(values)) for name, d in self.digits.items()}
        self.guards = [(form.replaced(values), is_reduced) for form, is_reduced in self.guards]

    def _replace_loop(self, name: str, loops: tuple[Loop, Loop]) -> None:
        at = next(i for i, x in enumerate(self.loops) if x.name == name)
        self.loops[at : at + 1] = loops
        self._moved(name, loops[1].name)

    def _moved(self, old: str, new: str) -> None:
        """Fill caches of ``old`` in ``new``."""
        self.caches = {operand: new if loop == old else loop for operand, loop in self.caches.items()}

    def _check_order(self, loops: list[Loop]) -> None:
        reduced = [x for x in loops if x.is_reduced]
        if self.solved.rounds and any(a.order > b.order for a, b in itertools.pairwise(reduced)):
            order = ", ".join(x.name for x in sorted(reduced, key=lambda x: x.order))
            self.fail(f"the order of a sum's terms would change; its loops stay in the order {order}")
        if any(x.kind == "parallel" for x in loops[1:]):
            self.fail("a parallel loop is the outermost")


def _split(schedule: Schedule, loop: str, factor: int, outer: str = "", inner: str = "") -> Any:
    return schedule.split(loop, factor, (outer, inner) if outer or inner else None)


PRIMITIVES: Final[dict[str, Callable[..., Any]]] = {
    "split": _split,
    "tile": Schedule.tile,
    "reorder": Schedule.reorder,
    "fuse": Schedule.fuse,
    "vectorise": Schedule.vectorize,
    "vectorize": Schedule.vectorize,
    "unroll": Schedule.unroll,
    "parallel": Schedule.parallel,
    "cache": Schedule.cache,
    "compute_at": Schedule.compute_at,
}
