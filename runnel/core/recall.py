"""Functions whose calls machine code may recall: what a call means follows from the kinds, layouts and numbers of its
arguments.

A call goes through ``Recalled.call``: the function itself, until a backend has machine code for this
(:mod:`runnel.tensor.recall`).
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, ClassVar, Final, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

UNUSUAL: Final[set[int]] = set()  # the threads on which every call runs its function: they trace, cast, or learn
SETTLED: Final[list[type]] = []  # classes of Variables that are read as the tensor that they have settled on
# Modules of functions without state, other than the generators that they draw from.
_OURS: Final = ("runnel.ops.", "runnel.tensor.queries.", "runnel.tensor.methods.", "runnel.tensor.random.")
_PURE: Final = (
    *_OURS, "runnel.tensor.torch_methods.", "runnel.tensor.torch_reductions.", "runnel.tensor.creation.",
    "runnel.nn.functions.", "runnel.nn.windows.", "runnel.nn.activations.", "runnel.nn.losses.", "runnel.nn.distances.",
    "runnel.nn.dropout.", "runnel.random.", "runnel.compat.functions.",
)  # fmt: skip


class Recalled:
    """A function, ``call`` to call it, ``learn`` to call it for the first time with arguments of a kind, and ``key`` to
    compute what calls are told apart by. ``passes`` tells whether a call whose result is an argument may be recalled:
    some functions change what they return; ``makes``, whether new values follow from the numbers among the arguments.
    ``reads`` makes it the function of a number in a tensor."""

    __slots__ = ("__weakref__", "call", "function", "key", "learn", "makes", "passes", "reads")
    every: ClassVar[list[Recalled]] = []
    equip: ClassVar[Callable[[Recalled], None] | None] = None  # gives it machine code, where there is any

    def __init__(
        self,
        function: Callable[..., Any],
        passes: bool = True,
        reads: bool = False,
        makes: bool = False,
        lasting: bool = True,
    ) -> None:
        self.function = self.call = self.learn = self.key = function
        self.passes, self.reads, self.makes = passes, reads, makes
        if lasting:  # else it is equipped now or never
            Recalled.every.append(self)
        if Recalled.equip is not None:
            Recalled.equip(self)


def recalled(method: F) -> F:
    """Decorate a method of one argument, the array, that may be recalled."""
    known = Recalled(method)

    @functools.wraps(method)
    def call(self: Any) -> Any:
        return known.call(self)

    return cast(F, call)


def settles(kind: type[T]) -> type[T]:
    """Decorate a class of Variables that are read as the tensor that they have settled on."""
    SETTLED.append(kind)
    return kind


class Plain:
    """A function whose calls are not recalled."""

    __slots__ = ("call",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.call = function


def is_pure(function: Callable[..., Any]) -> bool:
    """Return whether calls of ``function`` may be recalled."""
    return f"{function.__module__}.".startswith(_PURE)


def passes(function: Callable[..., Any]) -> bool:
    """Return whether ``function`` does nothing to an argument that it returns."""
    return f"{function.__module__}.".startswith(_OURS)


def makes(function: Callable[..., Any]) -> bool:
    """Return whether the values that ``function`` makes follow from the numbers among its arguments."""
    return f"{function.__module__}.".startswith(("runnel.tensor.creation.", "runnel.compat.functions.creation."))


class Lesson:
    """The events of a call that is being learned, on one thread, in order; None while none is.

    An event is a kind and what belongs to it:

    * "op": op, operands, attributes, result
    * "view": view, source, steps (None: no view, but a handle of the same value)
    * "program": function, tensors, result
    * "array": tensor, the NumPy array with its values
    * "write": tensor, key, value, result
    * "moved": handle, the node that keeps its former value
    * "read": Variable, the tensor that it is read as
    * "assign": Variable, the tensor that it was read as, its new value, whether it took that
    * "change": handle, its new value
    """

    __slots__ = ("events", "is_early", "is_spoiled", "thread")

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] | None = None
        self.is_spoiled = False  # the call depends on more than it is told apart by
        self.is_early = False  # a later call will mean other steps
        self.thread = 0

    def note(self, *event: Any) -> None:
        """Add an event of this thread."""
        if self.events is not None and self.thread == threading.get_ident():
            self.events.append(event)

    def alone(self, function: Callable[[], T], *event: Any) -> T:
        """Call ``function``; one event, which its result ends, says all that it does."""
        events = self.events
        if events is None or self.thread != threading.get_ident():
            return function()
        before, was_spoiled = len(events), self.is_spoiled
        result = function()
        del events[before:]
        self.is_spoiled = was_spoiled
        events.append((*event, result))
        return result

    def whole(self, program: Callable[..., Any], tensors: list[Any]) -> Any:
        """Call a program of tensors: one event, unless the program applies ops one by one."""
        events = self.events
        before = 0 if events is None else len(events)
        result = program(*tensors)
        if events is not None and not getattr(program, "applies_ops", False):
            del events[before:]
            self.note("program", program, tuple(tensors), result)
        return result

    def spoil(self) -> None:
        """Note that the call reads values, or changes state."""
        if self.events is not None and self.thread == threading.get_ident():
            self.is_spoiled = True

    def spare(self, was_spoiled: bool) -> None:
        """Let values that were read since ``is_spoiled`` was ``was_spoiled`` not count: an event says what they do."""
        if self.events is not None and self.thread == threading.get_ident():
            self.is_spoiled = was_spoiled

    def wait(self) -> None:
        """Note that another call is to be learned, later."""
        if self.events is not None and self.thread == threading.get_ident():
            self.is_early = True


LESSON: Final = Lesson()


class Usual(threading.local):
    """State of a thread. While an attribute other than ``plain`` ones is set, calls on the thread are unusual."""

    plain: ClassVar[frozenset[str]] = frozenset()

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name not in self.plain:
            marks = self.__dict__.copy()  # a collection of garbage meanwhile sets others
            own = hash((threading.get_ident(), type(self)))
            if any(marks[each] not in (None, False) for each in marks if each not in self.plain):
                UNUSUAL.add(own)
            else:
                UNUSUAL.discard(own)
