"""Modules that contain modules or Parameters: sequences, lists and dicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Generic, Self, TypeVar, overload

import numpy as np

from runnel.nn.module import Module, require_text
from runnel.nn.parameter import Parameter
from runnel.tensor.methods import ArrayMethods
from runnel.tensor.variable import Variable

Item = TypeVar("Item", Module, Parameter)


class _Row(Module, Generic[Item]):
    """A list whose items are the attributes "0", "1", …."""

    _kind: ClassVar[type[Any]] = Module

    def __init__(self, items: Iterable[Item] = ()) -> None:
        for item in items:
            self.append(item)

    def _items(self) -> list[Item]:
        return [self.__dict__[str(i)] for i in range(len(self))]

    def _named(self, items: list[Item]) -> list[tuple[str, Item]]:
        """Return items of this list with their names in a part of it."""
        return [(str(i), item) for i, item in enumerate(items)]

    def _renumber(self, items: list[Item]) -> None:
        for i in range(len(self)):
            delattr(self, str(i))
        for i, item in enumerate(items):
            self._set(str(i), item)

    def _require_item(self, item: Any) -> None:
        if not _belongs(self._kind, item):
            raise TypeError(f"[{type(self).__name__}] items must be {self._kind.__name__}s; got {type(item).__name__}.")

    def _checked_item(self, item: Any) -> Any:
        """Return ``item`` as it is kept; raise TypeError for another kind."""
        self._require_item(item)
        return item

    def append(self, item: Item) -> Self:
        """Add an item at the end."""
        self._set(str(len(self)), self._checked_item(item))
        return self

    def _set(self, name: str, item: Any) -> None:
        if item is None:
            self._keep_vacant(name, "module")
        setattr(self, name, item)

    def extend(self, items: Iterable[Item]) -> Self:
        """Add items at the end."""
        for item in items:
            self.append(item)
        return self

    def insert(self, index: int, item: Item) -> None:
        """Insert an item before item ``index``."""
        item = self._checked_item(item)
        items = self._items()
        items.insert(index, item)
        self._renumber(items)

    def __len__(self) -> int:
        return sum(name.isdecimal() for name in self.__dict__)

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items())

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Any:
        items = self._items()
        if isinstance(index, slice):
            part = type(self).__new__(type(self))
            for name, item in self._named(items[index]):
                part.__dict__[name] = item  # not set as an attribute: its Variables keep the names of the whole
            return part
        return items[index]

    def __setitem__(self, index: int, item: Item) -> None:
        item = self._checked_item(item)
        items = self._items()
        items[index] = item
        self._renumber(items)

    def __delitem__(self, index: int | slice) -> None:
        items = self._items()
        del items[index]
        self._renumber(items)

    def pop(self, index: int = -1) -> Item:
        """Remove and return an item, by default the last one."""
        item = self[index]
        del self[index]
        return item

    def __iadd__(self, items: Iterable[Item]) -> Self:
        return self.extend(items)

    def __add__(self, items: Iterable[Item]) -> Self:
        both = type(self)()
        return both.extend(self).extend(items)

    def __contains__(self, item: object) -> bool:
        return any(own is item for own in self._items())


class Sequential(_Row[Module]):
    """Modules that are called one after the other: the result of each is the argument of the next.

    Args:
        modules: the modules, or one dict from names to modules.

    Example:
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        >>> model(rn.ones((3, 4))).shape
        (3, 2)
        >>> model[0].out_features
        8
    """

    def __init__(self, *modules: Module | Mapping[str, Module]) -> None:
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self._require_item(module)
                self.register_module(name, module)
        else:
            super().__init__(modules)  # type: ignore[arg-type]

    def _items(self) -> list[Module]:
        return [value for value in self.__dict__.values() if isinstance(value, Module)]

    def _named(self, items: list[Module]) -> list[tuple[str, Module]]:
        names = {id(value): name for name, value in reversed(self.__dict__.items()) if isinstance(value, Module)}
        given = [(names[id(item)], item) for item in items]
        return given if len(dict(given)) == len(items) else super()._named(items)

    def _renumber(self, items: list[Module]) -> None:
        """Keep the names of modules that have one; name new ones, and those with a number, by their index."""
        named = {id(value): name for name, value in self.__dict__.items() if isinstance(value, Module)}
        for name in named.values():
            delattr(self, name)
        for i, item in enumerate(items):
            name = named.get(id(item), str(i))
            setattr(self, str(i) if name.isdecimal() else name, item)

    def __len__(self) -> int:
        return len(self._items())

    def __mul__(self, times: int) -> Sequential:
        if not isinstance(times, int) or times < 1:
            raise ValueError(f"[Sequential] times must be an int of at least 1; got {times!r}.")
        return Sequential(*self._items() * times)

    __rmul__ = __mul__

    def forward(self, x: Any) -> Any:
        for module in self._items():
            x = module(x)
        return x


class ModuleList(_Row[Module]):
    """A list of modules whose Parameters are found, unlike those in a Python list.

    Args:
        modules: the modules.

    Example:
        >>> blocks = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))
        >>> len(blocks), len(list(blocks.parameters()))
        (4, 8)
    """

    def __init__(self, modules: Iterable[Module | None] | None = None) -> None:
        super().__init__(modules or ())  # type: ignore[arg-type]

    def _require_item(self, item: Any) -> None:
        if item is not None:
            super()._require_item(item)


class ParameterList(_Row[Parameter]):
    """A list of Parameters that are found, unlike those in a Python list. Arrays become Parameters.

    Args:
        values: Parameters, arrays, or further lists and dicts of them.
    """

    _kind = Parameter

    def __init__(self, values: Iterable[Parameter] | None = None) -> None:
        super().__init__(values or ())

    def _checked_item(self, item: Any) -> Any:
        return super()._checked_item(as_parameter(item))


class _ByName(Module, Generic[Item]):
    """A dict whose items are attributes."""

    _kind: ClassVar[type[Any]] = Module

    def __init__(self, items: Mapping[str, Item] | Iterable[tuple[str, Item]] | None = None) -> None:
        self.update(items or {})

    def update(self, items: Mapping[str, Item] | Iterable[tuple[str, Item]]) -> None:
        """Add items by name, from a dict or from pairs."""
        for name, item in items.items() if hasattr(items, "items") else items:
            self[name] = item

    def _checked_item(self, item: Any) -> Any:
        """Return ``item`` as it is kept."""
        return item

    def __setitem__(self, name: str, item: Item) -> None:
        kind = type(self).__name__
        item = self._checked_item(item)
        if not _belongs(self._kind, item):
            raise TypeError(f"[{kind}] items must be {self._kind.__name__}s; got {type(item).__name__}.")
        require_text(kind, "a key", name)
        if hasattr(type(self), name) or "." in name:
            raise KeyError(f"[{kind}] a key must not contain a dot or be a method of {kind}; got '{name}'.")
        setattr(self, name, item)

    def __getitem__(self, name: str) -> Item:
        return dict(self.items())[name]

    def __delitem__(self, name: str) -> None:
        delattr(self, name)

    def pop(self, name: str) -> Item:
        """Remove and return the item called ``name``."""
        item = self[name]
        del self[name]
        return item

    def clear(self) -> None:
        """Remove all items."""
        for name in self.keys():
            del self[name]

    def __len__(self) -> int:
        return len(self.items())

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def keys(self) -> list[str]:
        return [name for name, _ in self.items()]

    def values(self) -> list[Item]:
        return [item for _, item in self.items()]

    def items(self) -> list[tuple[str, Item]]:
        return [(name, value) for name, value in self.__dict__.items() if _belongs(self._kind, value)]


class ModuleDict(_ByName[Module]):
    """A dict of modules whose Parameters are found, unlike those in a Python dict.

    Args:
        modules: a dict, or pairs of names and modules.

    Example:
        >>> heads = nn.ModuleDict({"class": nn.Linear(8, 10), "box": nn.Linear(8, 4)})
        >>> heads["box"](rn.ones((2, 8))).shape
        (2, 4)
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__(modules)


class ParameterDict(_ByName[Parameter]):
    """A dict of Parameters that are found, unlike those in a Python dict. Arrays become Parameters.

    Args:
        parameters: a dict, or pairs of names and values: Parameters, arrays, or further lists and dicts of them.
    """

    _kind = Parameter

    def __init__(self, parameters: Any = None) -> None:
        super().__init__(parameters)

    def _checked_item(self, item: Any) -> Any:
        return as_parameter(item)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the Parameter called ``name``, or ``default``."""
        return dict(self.items()).get(name, default)

    def setdefault(self, name: str, default: Any = None) -> Parameter:
        """Return the Parameter called ``name``; set it to ``default`` first if it does not exist."""
        if name not in self:
            self[name] = default
        return self[name]

    def popitem(self) -> tuple[str, Parameter]:
        """Remove and return the last Parameter, with its name."""
        name = self.keys()[-1]
        return name, self.pop(name)

    def copy(self) -> ParameterDict:
        """Return another dict of the same Parameters."""
        return ParameterDict(dict(self.items()))

    def fromkeys(self, names: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a new dict with ``default`` under each of ``names``."""
        return ParameterDict(dict.fromkeys(names, default))

    def __or__(self, other: ParameterDict) -> ParameterDict:
        return ParameterDict({**dict(self.items()), **dict(other.items())})

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other.items())
        return self


def _belongs(kind: type[Any], item: Any) -> bool:
    """Return whether ``item`` may be in a container of this kind. Lists and dicts of Parameters nest."""
    return isinstance(item, kind) or (kind is Parameter and isinstance(item, (ParameterList, ParameterDict)))


def as_parameter(value: Any) -> Any:
    """Return an array as a Parameter, and anything else unchanged."""
    return (
        Parameter(value) if isinstance(value, (ArrayMethods, np.ndarray)) and not isinstance(value, Variable) else value
    )
