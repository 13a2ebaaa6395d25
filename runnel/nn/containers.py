"""Modules that hold modules or Parameters, in a row, in a list or by name, as attributes called by position or key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Generic, Self, TypeVar, overload

from runnel.core.surface import offered
from runnel.nn.module import Module
from runnel.nn.parameter import Parameter

Item = TypeVar("Item", Module, Parameter)


class _Row(Module, Generic[Item]):
    """Items numbered from 0, as attributes "0", "1", …."""

    _kind: ClassVar[type[Any]] = Module

    def __init__(self, items: Iterable[Item] = ()) -> None:
        for item in items:
            self.append(item)

    def _items(self) -> list[Item]:
        return [self.__dict__[str(i)] for i in range(len(self))]

    def _renumber(self, items: list[Item]) -> None:
        for i in range(len(self)):
            delattr(self, str(i))
        for i, item in enumerate(items):
            setattr(self, str(i), item)

    def _require_item(self, item: Any) -> None:
        if not isinstance(item, self._kind):
            raise TypeError(f"[{type(self).__name__}] holds {self._kind.__name__}s; received {type(item).__name__}.")

    def append(self, item: Item) -> Self:
        """Add an item at the end."""
        self._require_item(item)
        setattr(self, str(len(self)), item)
        return self

    def extend(self, items: Iterable[Item]) -> Self:
        """Add items at the end."""
        for item in items:
            self.append(item)
        return self

    def insert(self, index: int, item: Item) -> None:
        """Put an item in front of number ``index``."""
        self._require_item(item)
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
            for i, item in enumerate(items[index]):
                part.__dict__[str(i)] = item  # not set as an attribute: its Variables keep the names of the whole
            return part
        return items[index]

    def __setitem__(self, index: int, item: Item) -> None:
        self._require_item(item)
        items = self._items()
        items[index] = item
        self._renumber(items)

    def __delitem__(self, index: int | slice) -> None:
        items = self._items()
        del items[index]
        self._renumber(items)


@offered("nn", alone="a container")
class Sequential(_Row[Module]):
    """Modules applied one after the other."""

    def __init__(self, *modules: Module | Mapping[str, Module]) -> None:
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            raise TypeError("[Sequential] takes modules as arguments; for named parts define a Module with attributes.")
        super().__init__(modules)  # type: ignore[arg-type]

    def forward(self, x: Any) -> Any:
        for module in self._items():
            x = module(x)
        return x


@offered("nn", alone="a container")
class ModuleList(_Row[Module]):
    """A list whose modules' Parameters are found."""


@offered("nn", alone="a container")
class ParameterList(_Row[Parameter]):
    """A list of Parameters that are found."""

    _kind = Parameter


class _ByName(Module, Generic[Item]):
    """Items as attributes of their names."""

    _kind: ClassVar[type[Any]] = Module

    def __init__(self, items: Mapping[str, Item] | None = None) -> None:
        self.update(items or {})

    def update(self, items: Mapping[str, Item]) -> None:
        """Add items by name."""
        for name, item in items.items():
            self[name] = item

    def __setitem__(self, name: str, item: Item) -> None:
        kind = type(self).__name__
        if not isinstance(item, self._kind):
            raise TypeError(f"[{kind}] holds {self._kind.__name__}s; received {type(item).__name__}.")
        if hasattr(type(self), name) or "." in name:
            raise KeyError(f"[{kind}] '{name}' cannot be a name: it has a dot or is a method of {kind}.")
        setattr(self, name, item)

    def __getitem__(self, name: str) -> Item:
        return dict(self.items())[name]

    def __delitem__(self, name: str) -> None:
        delattr(self, name)

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
        return [(name, value) for name, value in self.__dict__.items() if isinstance(value, self._kind)]


@offered("nn", alone="a container")
class ModuleDict(_ByName[Module]):
    """A dict of modules whose Parameters are found."""


@offered("nn", alone="a container")
class ParameterDict(_ByName[Parameter]):
    """A dict of Parameters that are found."""

    _kind = Parameter
