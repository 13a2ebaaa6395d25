"""A trace with lengths, and the programs that it becomes: one for the lengths of each call, without another trace."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any, Final

from runnel.compile.calling import NEVER, Written
from runnel.compile.executable import Executable
from runnel.compile.observe.observation import Observation
from runnel.core.avals import ShapedArray
from runnel.core.caching import Recent, lazy
from runnel.core.lengths import Length, Lengths, expected

PROGRAMS: Final = 128  # of one trace, for the lengths seen last, in each of two generations
_COMPARED: Final = re.compile(r"(v\d+|\(v\d+ := [^)]*\))\._aval is not (k\d+)")


class Template:
    """The trace of ``executable``, whose guard has lengths in its constants."""

    def __init__(self, executable: Executable, lengths: Lengths) -> None:
        self.executable: Final = executable
        self.lengths: Final = lengths
        self._codes: Final[dict[Any, Written]] = {}
        self._programs: Final[Recent[tuple[int, ...], Executable]] = Recent(PROGRAMS)
        self._constants: Final = {k: x for k, x in executable.guard.namespace.items() if _has_lengths(x)}
        self._found: Final = list(dict.fromkeys(x for value in self._all() for x in _lengths_in(value)))

    def _all(self) -> Iterator[Any]:
        native = self.executable.native
        yield from self._constants.values()
        if native is not None:
            graph = native.captured.graph
            yield from (x.aval for x in (*graph.inputs, *graph.outputs))

    @lazy
    def _evaluate(self) -> Callable[[Sequence[int]], tuple[int, ...] | None]:
        return self.lengths.evaluator(self._found)

    @lazy
    def _read(self) -> Callable[..., tuple[int, ...]]:
        captured = self.executable.captured
        return self.executable.guard.reader(() if captured is None else captured.length_places)

    @lazy
    def _bind(self) -> Callable[..., Any]:
        """Return the guard, with a call of ``bind(expected, found)`` where shapes are compared."""
        avals = {name: value for name, value in self._constants.items() if isinstance(value, ShapedArray)}
        others = {name: _ANYTHING for name in self._constants if name not in avals}
        return self.executable.guard.binder(_COMPARED, r"not bind(\2, \1._aval)", others)

    def programs(self) -> list[Executable]:
        """Return the programs for the lengths seen last."""
        return self._programs.values()

    def settled(self) -> Executable:
        """Return the executable for the first lengths."""
        return self._with(self.executable.native, expected)

    def instance(self, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Executable | None:
        """Return the executable for the lengths of a call; None if it differs from the trace in more than lengths, or
        if their conditions do not hold. One that was made before may not fit."""
        try:
            known = self._programs.get(self._read(function, args, kwargs))
        except Exception:  # the call has other arguments
            return None
        if known is not None and not known.is_over:
            return known
        values: dict[Length, int] = {}
        if not self._bind(function, args, kwargs, lambda known, found: _bound(known, found, values)):
            return None
        lengths = tuple([values.get(symbol, 0) for symbol in self.lengths.symbols])
        executable = self._made(lengths)
        if executable is not None:
            self._programs[lengths] = executable
        return executable

    def _made(self, lengths: tuple[int, ...]) -> Executable | None:
        evaluated = self._evaluate(lengths)
        if evaluated is None or self.executable.native is None:
            return None
        value_of = dict(zip(self._found, evaluated, strict=True)).__getitem__
        native = self.executable.native.at(lengths, value_of)
        if native is None:
            return None
        executable = self._with(native, value_of)
        executable.counter.audit_at = NEVER  # the program for the first lengths is audited
        return executable

    def _with(self, native: Any, value_of: Callable[[Length], int]) -> Executable:
        one = self.executable
        guard = one.guard.replaced({name: _settled(value, value_of) for name, value in self._constants.items()})
        observation = one.observation
        if observation is not None:
            observation = Observation(guard, observation.effects, observation.result, "", observation.program)
        return Executable(one.function_name, guard, observation, native, varying=one.varying, codes=self._codes)


class _Anything:
    """Equal to everything. It takes the place of constants that each program compares itself."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False


_ANYTHING: Final = _Anything()


def _bound(known: ShapedArray, found: ShapedArray, values: dict[Length, int]) -> bool:
    """Return whether an aval is ``known`` but for its lengths, and note their values."""
    if known is found:
        return True
    if known.dtype is not found.dtype or known.device is not found.device or known.ndim != found.ndim:
        return False
    return all(
        values.setdefault(n, size) == size if isinstance(n, Length) else n == size
        for n, size in zip(known.shape, found.shape, strict=True)
    )


def _lengths_in(value: Any) -> Iterator[Length]:
    for x in value.shape if isinstance(value, ShapedArray) else value if isinstance(value, tuple) else ():
        if isinstance(x, Length):
            yield x


def _has_lengths(value: Any) -> bool:
    return next(_lengths_in(value), None) is not None


def _settled(value: Any, value_of: Callable[[Length], int]) -> Any:
    if isinstance(value, ShapedArray):
        return value.settled(value_of)
    return tuple([value_of(x) if isinstance(x, Length) else x for x in value])
