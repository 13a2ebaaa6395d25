"""Run compositions (:mod:`runnel.core.composed`) eagerly: op by op at first, then as one program.

A signature is what a program depends on: the shapes, dtypes, strides and devices of tensors, whether gradients are
wanted, and the values of all other arguments. A signature is compiled at the call after ``PATIENCE``, and after as many
calls as the function has programs, up to ``MOST_CALLS``: lengths of a text that is being generated compile less and
less. Training comes back to its shapes: calls before the third backward pass are enough.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from runnel.backends import context as contexts
from runnel.core import switches
from runnel.core.caching import Recent
from runnel.core.composed import Composition
from runnel.core.conversion import CASTING
from runnel.core.dtypes import DType
from runnel.core.errors import RunnelError
from runnel.core.namespaces import imported
from runnel.core.switches import RESOLVED
from runnel.tensor import tape
from runnel.tensor.grad_mode import RECORDING
from runnel.tensor.handle import Handle
from runnel.tensor.stand_in import StandIn
from runnel.tensor.trace import ACTIVE

PATIENCE: Final = 2  # calls of a signature that run op by op; or backward passes between its calls
MOST_CALLS: Final = 64  # a compilation takes as long as 10 to 100 calls op by op
PROGRAMS: Final = 256  # of a composition, in each of two generations
SIGNATURES: Final = 1024  # that are counted, the same

_SETTINGS: Final = frozenset({bool, int, str, type(None), type(...), DType})

Run = Callable[..., Any]  # of the tensors among the arguments


class _Calls(NamedTuple):
    """The calls of a signature that ran op by op: their number, the number of times that a backward pass was between
    them, and the passes before the last one."""

    number: int = 0
    separated: int = 0
    passes: int = -1


class Signatures:
    """The signatures of one composition: the ``programs`` of some, and how often the others were called."""

    __slots__ = ("calls", "compiled", "programs")

    def __init__(self) -> None:
        self.programs: Recent[Any, Run] = Recent(PROGRAMS)
        self.calls: Recent[Any, _Calls] = Recent(SIGNATURES)
        self.compiled = 0

    def is_due(self, key: Any) -> bool:
        """Count a call, and return whether ``key`` is to be compiled."""
        number, separated, passes = self.calls.get(key) or _Calls()
        separated += passes not in (-1, tape.PASSES.count)
        self.calls[key] = _Calls(number + 1, separated, tape.PASSES.count)
        return separated >= PATIENCE or number >= min(max(PATIENCE, self.compiled), MOST_CALLS)


_SIGNATURES: Final[dict[Composition[Any, Any], Signatures]] = {}


def known_signatures() -> list[Signatures]:
    """Return the signatures of all compositions that were called."""
    return list(_SIGNATURES.values())


def clear() -> None:
    """Forget all programs. The next calls of a composition run op by op."""
    _SIGNATURES.clear()


class _Inside(threading.local):
    """The composition that runs op by op on this thread; compositions that it calls are not counted."""

    composition: Composition[Any, Any] | None = None


_INSIDE: Final = _Inside()


def run(self: Handle[Any], composition: Composition[Any, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run ``composition``, whose first tensor is ``self``: the method ``apply_composed`` of tensors."""
    active = ACTIVE
    if active.trace is not None or active.level is not None or active.is_by_op or self._level is not None:
        return composition.function(*args, **kwargs)
    if switches.check_nans.value or switches.eager.value:
        return composition.function(*args, **kwargs)
    key: list[Any] = [RESOLVED.state.context or contexts.switched(), CASTING.dtype, *kwargs]
    tensors: list[Handle[Any]] = []
    if not _add((*args, *kwargs.values()) if kwargs else args, self.__class__, RECORDING.get(), key, tensors):
        return composition.function(*args, **kwargs)
    signature = tuple(key)
    known = _SIGNATURES.get(composition)
    if known is None:
        known = _SIGNATURES.setdefault(composition, Signatures())
    program = known.programs.young.get(signature) or known.programs.get(signature)
    if program is None:
        return _op_by_op(known, signature, composition, args, kwargs)
    try:
        return program(*tensors)
    except RunnelError:
        return composition.function(*args, **kwargs)  # the op that fails names the values


def _add(values: Sequence[Any], own: type, records: bool, key: list[Any], tensors: list[Handle[Any]]) -> bool:
    """Add ``values`` to a signature, and the tensors among them to ``tensors``; return False if they have none."""
    for x in values:
        kind = x.__class__
        if kind is not own and issubclass(kind, StandIn):
            x = x.read()
            kind = x.__class__
        if kind is own:
            key += (x._aval, x._layout[1], records and x.requires_grad)
            tensors.append(x)
        elif kind in _SETTINGS:
            key += (kind, x)
        elif kind is float:
            key += (kind, x or repr(x))  # 0.0 is not -0.0
        elif kind is tuple or kind is list:
            key += (kind, len(x))
            if not _add(x, own, records, key, tensors):
                return False
        elif kind is slice:
            key.append(kind)
            if not _add((x.start, x.stop, x.step), own, records, key, tensors):
                return False
        else:
            return False
    return True


def _op_by_op(
    known: Signatures, signature: Any, composition: Composition[Any, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Run the function op by op, and compile it afterwards if it is due."""
    if _INSIDE.composition is not None:
        return composition.function(*args, **kwargs)
    _INSIDE.composition = composition
    try:
        result = composition.function(*args, **kwargs)
        if known.is_due(signature):
            known.compiled += 1
            compiled = imported("runnel.tensor.compositions:compiled")
            known.programs[signature] = compiled(composition, args, kwargs, result)
    finally:
        _INSIDE.composition = None
    return result
