"""Subclasses made for single modules that need more than their class does, such as calling hooks.

A module gets such a class, of the same name, when it needs one, and its own back when it needs it no more; so what few
modules need costs the others nothing.
"""

from __future__ import annotations

from typing import Any, ClassVar

_DERIVED: dict[tuple[type, tuple[type, ...]], type] = {}


class Part:
    """What such a class is made of, beside the module's own one."""

    own_class: ClassVar[type]
    parts: ClassVar[tuple[type, ...]] = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        reduced: Any = super().__reduce_ex__(protocol)
        return _remade, (self.own_class, self.parts), *reduced[2:]


def own_class(module: Any) -> type:
    """The class that a module was made of."""
    kind = type(module)
    own: type = kind.own_class if issubclass(kind, Part) else kind
    return own


def with_part(module: Any, part: type[Part]) -> None:
    """Have ``module`` do what ``part`` says, too."""
    parts = getattr(type(module), "parts", ())
    if part not in parts:
        module.__class__ = _derived(own_class(module), (part, *parts))


def without_part(module: Any, part: type[Part]) -> None:
    """Have ``module`` do without ``part``."""
    parts = tuple(p for p in getattr(type(module), "parts", ()) if p is not part)
    module.__class__ = _derived(own_class(module), parts)


def with_own_class(module: Any, kind: type) -> None:
    """Have ``module`` be of class ``kind``, with the parts that it has."""
    module.__class__ = _derived(kind, getattr(type(module), "parts", ()))


def _derived(own: type, parts: tuple[type, ...]) -> type:
    if not parts:
        return own
    kind = _DERIVED.get((own, parts))
    if kind is None:
        space = {"__module__": own.__module__, "__qualname__": own.__qualname__, "own_class": own, "parts": parts}
        kind = _DERIVED[own, parts] = type(own)(own.__name__, (*parts, own), space)
    return kind


def _remade(own: type, parts: tuple[type, ...]) -> Any:
    kind: Any = _derived(own, parts)
    return kind.__new__(kind)
