"""Modules that hold modules: in a row, in a list, by name. Their items are attributes called by position or key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self, overload

from runnel.nn.module import Module


class _Row(Module):
    """Modules numbered from 0, as attributes "0", "1", …."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        for module in modules:
            self.append(module)

    def _items(self) -> list[Module]:
        return [self.__dict__[str(i)] for i in range(len(self))]

    def _renumber(self, modules: list[Module]) -> None:
        for i in range(len(self)):
            delattr(self, str(i))
        for i, module in enumerate(modules):
            setattr(self, str(i), module)

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        if not isinstance(module, Module):
            raise TypeError(f"[{type(self).__name__}] holds Modules; received {type(module).__name__}.")
        setattr(self, str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> None:
        """Put a module in front of number ``index``."""
        items = self._items()
        items.insert(index, module)
        self._renumber(items)

    def __len__(self) -> int:
        return sum(name.isdecimal() for name in self.__dict__)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._items())

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Any:
        items = self._items()
        if isinstance(index, slice):
            part = type(self).__new__(type(self))
            for i, module in enumerate(items[index]):
                part.__dict__[str(i)] = module  # not set as an attribute: its Variables keep the names of the whole
            return part
        return items[index]

    def __setitem__(self, index: int, module: Module) -> None:
        items = self._items()
        items[index] = module
        self._renumber(items)

    def __delitem__(self, index: int | slice) -> None:
        items = self._items()
        del items[index]
        self._renumber(items)


class Sequential(_Row):
    """Modules applied one after the other."""

    def __init__(self, *modules: Module | Mapping[str, Module]) -> None:
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            raise TypeError("[Sequential] takes modules as arguments; for named parts define a Module with attributes.")
        super().__init__(modules)  # type: ignore[arg-type]

    def forward(self, x: Any) -> Any:
        for module in self._items():
            x = module(x)
        return x


class ModuleList(_Row):
    """A list whose modules' Parameters are found."""


class ModuleDict(Module):
    """A dict of modules whose Parameters are found."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        self.update(modules or {})

    def update(self, modules: Mapping[str, Module]) -> None:
        """Add modules by name."""
        for name, module in modules.items():
            self[name] = module

    def __setitem__(self, name: str, module: Module) -> None:
        if not isinstance(module, Module):
            raise TypeError(f"[ModuleDict] holds Modules; received {type(module).__name__}.")
        if hasattr(type(self), name) or "." in name:
            raise KeyError(f"[ModuleDict] '{name}' cannot be a name: it has a dot or is a method of ModuleDict.")
        setattr(self, name, module)

    def __getitem__(self, name: str) -> Module:
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

    def values(self) -> list[Module]:
        return [module for _, module in self.items()]

    def items(self) -> list[tuple[str, Module]]:
        return [(name, value) for name, value in self.__dict__.items() if isinstance(value, Module)]
