"""Run compositions (:mod:`runnel.core.composed`) eagerly, as one program for each signature.

A signature is what a program depends on: the shapes, dtypes, strides and devices of tensors, whether gradients are
wanted, and the values of all other arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from runnel.backends import context as contexts
from runnel.core import switches
from runnel.core.caching import Recent
from runnel.core.composed import Composition
from runnel.core.conversion import CASTING
from runnel.core.dtypes import DType
from runnel.core.errors import RunnelError
from runnel.core.namespaces import imported
from runnel.core.recall import LESSON
from runnel.core.switches import RESOLVED
from runnel.core.tables import Op
from runnel.tensor.grad_mode import RECORDING
from runnel.tensor.handle import Handle
from runnel.tensor.stand_in import StandIn
from runnel.tensor.trace import ACTIVE

PROGRAMS: Final = 256  # of a composition, in each of two generations
_SETTINGS: Final = frozenset({bool, int, str, type(None), type(...), DType})

Run = Callable[..., Any]  # of the tensors among the arguments

_PROGRAMS: Final[dict[Composition[Any, Any], Recent[Any, Run]]] = {}  # by signature
OF_RULES: Final[dict[Op, Recent[Any, Run]]] = {}  # of derivatives (:mod:`runnel.tensor.pulling`)


def known_programs() -> int:
    """Return the number of programs of all compositions."""
    return sum(map(len, _PROGRAMS.values()))


def clear() -> None:
    """Forget all programs. The next calls of a composition make new ones."""
    _PROGRAMS.clear()
    OF_RULES.clear()


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
    programs = _PROGRAMS.get(composition)
    if programs is None:
        programs = _PROGRAMS.setdefault(composition, Recent(PROGRAMS))
    program = programs.young.get(signature) or programs.get(signature)
    try:
        if program is None:
            LESSON.wait()
            imported("runnel.tensor.recall:begin")(self)
            program = programs[signature] = imported("runnel.tensor.compositions:compiled")(composition, args, kwargs)
        if LESSON.events is not None:
            return LESSON.whole(program, tensors)
        return program(*tensors)
    except RunnelError:
        pass  # the op that fails names the values, and its error has no context
    return composition.function(*args, **kwargs)


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
