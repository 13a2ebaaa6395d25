"""Records: small classes whose fields are declared by annotations, like dataclasses.

Dataclasses compile the text of several methods for each class, which was a third of the time that importing this
package took. Here each method is compiled once for each number of fields, and a class gets that code with the names of
its own fields in it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple, TypeVar, dataclass_transform, overload

T = TypeVar("T")

_NONE: Final[Any] = type("_None", (), {"__repr__": lambda self: "<made anew>"})()
_TEMPLATES: Final[dict[tuple[str, int], CodeType]] = {}  # by method and number of fields


class Field(NamedTuple):
    """A field of a record: its default or factory, and whether it is an argument, compared and shown."""

    name: str
    default: Any = _NONE
    default_factory: Callable[[], Any] | None = None
    init: bool = True
    compare: bool = True
    repr: bool = True


def field(
    *,
    default: Any = _NONE,
    default_factory: Callable[[], Any] | None = None,
    init: bool = True,
    compare: bool = True,
    repr: bool = True,
) -> Any:
    """Declare a field with options, as ``dataclasses.field`` does."""
    return Field("", default, default_factory, init, compare, repr)


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(kind: type[T]) -> type[T]: ...


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(*, frozen: bool = True, eq: bool = True, slots: bool = True) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(kind: Any = None, *, frozen: bool = True, eq: bool = True, slots: bool = True) -> Any:
    """Decorate a class: the annotated names are its fields and the arguments of its constructor.

    Args:
        frozen: records never change and have a hash. Only type checkers check this.
        eq: records of one class are equal when their fields are; otherwise each is equal only to itself.
        slots: records have no other attributes.
    """
    if kind is None:
        return lambda kind: _record(kind, frozen, eq, slots)
    return _record(kind, frozen, eq, slots)


def _record(kind: Any, frozen: bool, eq: bool, slots: bool) -> Any:
    space = dict(vars(kind))
    own = [
        _field(name, space) for name, text in space.get("__annotations__", {}).items() if "ClassVar" not in str(text)
    ]
    inherited = {f.name: f for base in reversed(kind.__mro__[1:]) for f in getattr(base, "__fields__", ())}
    fields = tuple({**inherited, **{f.name: f for f in own}}.values())
    methods: dict[str, Any] = {
        "__fields__": fields,
        "__match_args__": tuple([f.name for f in fields if f.init]),
        "__init__": _initializer(kind, fields),
        "__repr__": _repr,
    }
    if eq:
        compared = [f.name for f in fields if f.compare]
        methods["__eq__"] = _method(kind, "__eq__", compared)
        methods["__hash__"] = _method(kind, "__hash__", compared) if frozen else None
    for name, value in methods.items():
        if name not in space or (name == "__hash__" and space[name] is None):
            space[name] = value
    if not slots:
        for name in methods:
            setattr(kind, name, space[name])
        return kind
    space["__slots__"] = tuple([f.name for f in own if f.name not in inherited])
    for name in (*space["__slots__"], "__dict__", "__weakref__"):
        space.pop(name, None)
    return type(kind)(kind.__name__, kind.__bases__, space)


def _field(name: str, space: dict[str, Any]) -> Field:
    default = space.get(name, _NONE)
    return default._replace(name=name) if type(default) is Field else Field(name, default)


def _initializer(kind: type, fields: tuple[Field, ...]) -> Any:
    """Return ``__init__`` of a class with these fields."""
    accepted = [f for f in fields if f.init]
    initialize = _method(kind, "__init__", [f.name for f in accepted])
    required = next((i for i, f in enumerate(accepted) if f.default is not _NONE or f.default_factory), len(accepted))
    initialize.__defaults__ = tuple([f.default for f in accepted[required:]])
    rest = [f for f in fields if f.default_factory is not None or not f.init]
    if not rest:
        return initialize

    def initialize_all(self: Any, *args: Any, **kwargs: Any) -> None:
        initialize(self, *args, **kwargs)
        for f in rest:
            if not f.init or getattr(self, f.name) is _NONE:
                setattr(self, f.name, f.default if f.default_factory is None else f.default_factory())

    return functools.update_wrapper(initialize_all, initialize)


def _method(kind: type, method: str, names: list[str]) -> FunctionType:
    """Return a method of a class with fields of these names: the template for their number, with these names."""
    code = _TEMPLATES.get((method, len(names)))
    if code is None:
        _TEMPLATES.update(_templates(len(names)))
        code = _TEMPLATES[method, len(names)]
    own = {f"field{i}": name for i, name in enumerate(names)}
    code = code.replace(
        co_varnames=tuple([own.get(name, name) for name in code.co_varnames]),
        co_names=tuple([own.get(name, name) for name in code.co_names]),
        co_qualname=f"{kind.__qualname__}.{method}",
    )
    return FunctionType(code, globals(), method)


def _templates(count: int) -> dict[tuple[str, int], CodeType]:
    """Return the code of the methods for ``count`` fields."""
    names = [f"field{i}" for i in range(count)]
    mine, others = ["".join([f"{of}.{name}, " for name in names]) for of in ("self", "other")]
    text = f"""
def __init__({", ".join(["self", *names])}):
    {"; ".join([f"self.{name} = {name}" for name in names]) or "pass"}

def __eq__(self, other):
    return ({mine}) == ({others}) if other.__class__ is self.__class__ else NotImplemented

def __hash__(self):
    return hash(({mine}))
"""
    space: dict[str, Any] = {}
    exec(text, space)
    return {(method, count): space[method].__code__ for method in ("__init__", "__eq__", "__hash__")}


def _repr(self: Any) -> str:
    fields = ", ".join([f"{f.name}={getattr(self, f.name)!r}" for f in self.__fields__ if f.repr])
    return f"{type(self).__qualname__}({fields})"


def is_record(kind: type) -> bool:
    """Return whether ``kind`` is a class of records."""
    return hasattr(kind, "__fields__")


def fields(kind: Any) -> tuple[Field, ...]:
    """Return the fields of a record, or of a class of records."""
    result: tuple[Field, ...] = kind.__fields__
    return result


def replace(value: T, **changes: Any) -> T:
    """Return a record like ``value`` with other values of some fields."""
    values = {f.name: getattr(value, f.name) for f in fields(value) if f.init and f.name not in changes}
    return type(value)(**values, **changes)


def asdict(value: Any) -> Any:
    """Return a record, and the records inside it, as dicts by field."""
    if is_record(type(value)):
        return {f.name: asdict(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(asdict, value))
    if isinstance(value, list | tuple):
        return type(value)(map(asdict, value))
    if isinstance(value, dict):
        return {asdict(key): asdict(x) for key, x in value.items()}
    return value
