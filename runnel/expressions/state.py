"""The state while a nest is emitted: open loops, their ranges and constants, and constraints still to be checked."""

from __future__ import annotations

from runnel.core.records import record, replace
from runnel.expressions.affine import Affine, Range, greatest, least, number
from runnel.expressions.schedule import Loop, Schedule


@record
class State:
    """A position in the emission of a nest.

    ``guards`` are ≥ 0 if a point of the result is in range, ``terms`` if one of its terms is. ``constants`` are loops
    and digits of known value. ``open`` maps the others that have a value at run time to their names in the loop IR.
    ``is_empty`` says that no term is left. ``bases`` are the first elements of caches, by operand.
    """

    guards: tuple[Affine, ...]
    terms: tuple[Affine, ...]
    ranges: dict[str, Range]
    constants: dict[str, int]
    open: dict[str, str]
    is_empty: bool = False
    bases: tuple[tuple[str, tuple[Affine, ...]], ...] = ()

    def form(self, form: Affine) -> Affine:
        """Return ``form`` with constants substituted."""
        return form.replaced({name: number(value) for name, value in self.constants.items() if name in form.names})

    def simplified(self) -> State | None:
        """Return the state without constraints that always hold; None if nothing is in range."""
        guards = [c for c in map(self.form, self.guards) if least(c, self.ranges) < 0]
        if any(greatest(c, self.ranges) < 0 for c in guards):
            return None
        terms = [c for c in map(self.form, self.terms) if least(c, self.ranges) < 0]
        is_empty = self.is_empty or any(greatest(c, self.ranges) < 0 for c in terms)
        return replace(self, guards=tuple(guards), terms=() if is_empty else tuple(terms), is_empty=is_empty)

    def with_range(self, loop: str, first: int, last: int) -> State:
        return replace(self, ranges={**self.ranges, loop: (first, last)})

    def fixed(self, loop: str, value: int) -> State:
        return replace(self.with_range(loop, value, value + 1), constants={**self.constants, loop: value})

    def opened(self, name: str, bound: str) -> State:
        return replace(self, open={**self.open, name: bound})

    def waiting(self, form: Affine) -> list[str]:
        """Return the loops and digits of ``form`` that are not open yet."""
        return [name for name in form.names if name not in self.open and name not in self.constants]


def first_state(schedule: Schedule, terms: tuple[Affine, ...]) -> State:
    """Return the state before all loops; ``terms`` are the constraints of the expression."""
    ranges = {x.name: (0, max(x.extent, 1)) for x in schedule.loops}
    ranges |= {name: (0, max(digit.extent, 1)) for name, digit in schedule.digits.items()}
    return State(
        tuple(form for form, is_reduced in schedule.guards if not is_reduced),
        (*terms, *(form for form, is_reduced in schedule.guards if is_reduced)),
        ranges,
        {},
        {},
    )


def loops_of(schedule: Schedule, form: Affine) -> set[str]:
    """Return the loops that ``form`` depends on, also through digits."""
    names: set[str] = set()
    for name in form.names:
        digit = schedule.digits.get(name)
        names |= {name} if digit is None else loops_of(schedule, digit.form)
    return names


def interior(state: State, loop: Loop, forms: list[Affine]) -> Range:
    """Return the values of ``loop`` for which all ``forms`` hold whatever the loops that are not open do."""
    first, last = state.ranges[loop.name]
    for form in forms:
        c = form.coefficient(loop.name)
        rest = least(form.without(loop.name), state.ranges)
        if c > 0:
            first = max(first, -(rest // c))
        else:
            last = min(last, rest // -c + 1)
    return (first, last) if first < last else (state.ranges[loop.name][0],) * 2
