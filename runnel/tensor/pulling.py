"""Pull cotangents back through ops of the tape, by programs of the rules of table ``vjp``.

A rule applies a few ops to a cotangent, the result and the operands. So it is a composition, and runs like one
(:mod:`runnel.tensor.composing`), with the bits of its ops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from runnel.core import switches, tables
from runnel.core.caching import Recent
from runnel.core.composed import Composition
from runnel.core.errors import GradientError, RunnelError
from runnel.core.namespaces import imported
from runnel.core.recall import LESSON
from runnel.core.switches import RESOLVED
from runnel.core.tables import Op
from runnel.ops.shapes.assembly import SliceGradient
from runnel.ops.shapes.pieces import slice_p
from runnel.tensor.composing import OF_RULES, PROGRAMS, Run
from runnel.tensor.handle import T, plain
from runnel.tensor.trace import ACTIVE

_BY_RULE: Final[Run] = tuple  # marks a signature whose rule computes nothing, or cannot be a program


def is_plain() -> bool:
    """Return whether rules may run as programs: no trace or transform sees their ops, and no NaNs are looked for."""
    active = ACTIVE
    if active.trace is not None or active.level is not None or active.is_by_op:
        return False
    return not (switches.check_nans.value or switches.eager.value)


def pulled(op: Op, attrs: dict[str, Any], inputs: tuple[T, ...], out: T, g: T, alive: set[int]) -> Sequence[Any]:
    """Return the cotangents of the ``inputs`` of ``op``, given the cotangent of its result ``out``; None for those not
    ``alive``."""
    if op is slice_p:
        piece = SliceGradient.of(plain(g), inputs[0], **attrs)
        return _by_rule(op, _plain(g, out, *inputs), attrs, (True,)) if piece is None else (piece,)
    wanted = tuple([id(x) in alive for x in inputs])
    key = (
        wanted, RESOLVED.state.context, g._aval, g._layout[1], out._layout[1], *attrs.values(),
        *[(x._aval, x._layout[1]) for x in inputs],
    )  # fmt: skip
    programs = OF_RULES.get(op)
    if programs is None:
        programs = OF_RULES.setdefault(op, Recent(PROGRAMS))
    run = programs.young.get(key) or programs.get(key)
    if run is None:
        run = programs[key] = _program(op, _plain(g, out, *inputs), attrs, wanted)
    if run is _BY_RULE or g._level is not None or out._level is not None:
        return _by_rule(op, _plain(g, out, *inputs), attrs, wanted)
    try:
        made = run(g, out, *inputs) if LESSON.events is None else LESSON.whole(run, [g, out, *inputs])
    except RunnelError:  # the op that fails names the values
        return _by_rule(op, _plain(g, out, *inputs), attrs, wanted)
    if len(wanted) == 1:
        return (made,)
    rest = iter(made if isinstance(made, tuple) else (made,))
    return [next(rest) if ask else None for ask in wanted]


def _plain(*tensors: Any) -> tuple[Any, ...]:
    return tuple(map(plain, tensors))


def _by_rule(op: Op, tensors: tuple[Any, ...], attrs: dict[str, Any], wanted: tuple[bool, ...]) -> list[Any]:
    rows = tables.vjp[op](*tensors, **attrs)
    return [
        None if dx is None or not ask else dx() if callable(dx) else dx for dx, ask in zip(rows, wanted, strict=True)
    ]


def _program(op: Op, tensors: tuple[Any, ...], attrs: dict[str, Any], wanted: tuple[bool, ...]) -> Run:
    """Return the program of a rule; ``_BY_RULE`` if it computes nothing, or cannot be a program."""
    if any(x.dtype.is_complex or x._level is not None for x in tensors):
        return _BY_RULE

    def rule(*tensors: Any) -> Any:
        rows = [dx for dx, ask in zip(_by_rule(op, tensors, attrs, wanted), wanted, strict=True) if ask]
        if any(dx is None for dx in rows):
            raise GradientError(f"[{op.name}] an operand has no gradient.")
        return tuple(rows) if len(rows) > 1 else rows[0]

    compiled: Callable[..., Run] = imported("runnel.tensor.compositions:compiled")
    run = compiled(Composition(rule), tensors, {})
    return run if getattr(run, "is_program", True) else _BY_RULE
