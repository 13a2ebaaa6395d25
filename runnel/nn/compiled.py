"""Compiled modules: ``rn.compile(model)`` returns the model once more, with calls that run as programs."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final, Self

from runnel.nn.derived import Part, derived, own_class

PREFIX: Final = "_orig_mod."  # of PyTorch's compiled modules, in their state dicts


class CompiledModule(Part):
    """A module whose attributes, Parameters, submodules and mode are the ones of another module, ``_orig_mod``.

    Its class derives from the class of that module. Its calls run as programs, and calls of the other module do not.
    State dicts have the same names for both, and ``load_state_dict`` also takes names with PyTorch's ``_orig_mod.``.
    ``program``, ``explain``, ``retraces`` and ``statistics`` are about the programs.
    """

    __slots__ = ("_calls", "_orig_mod")

    _calls: Any
    _orig_mod: Any

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._calls(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in CompiledModule.__slots__:  # while a copy is made
            raise AttributeError(name)
        return getattr(self._calls, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __copy__(self) -> Any:
        return compiled_module(copy.copy(self._orig_mod), self._calls.wrapper)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return compiled_module, (self._orig_mod, self._calls.wrapper)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return compiled_module(copy.deepcopy(self._orig_mod, memo), self._calls.wrapper)

    def _attached(self, *hook: Any) -> Any:
        return self._orig_mod._attached(*hook)

    def choosing(self, choices: Mapping[str, Any], keep_grads: bool, name: str | None) -> Any:
        """Return the same module compiled with these options as well."""
        return compiled_module(self._orig_mod, self._calls.wrapper.choosing(choices, keep_grads, name))

    def falling_back(self) -> Any:
        """Return the same module, whose calls run eagerly where a value is asked for, and say so once."""
        return compiled_module(self._orig_mod, self._calls.wrapper.falling_back())

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **options: Any) -> Any:
        """Load a state dict of the module, or of a compiled module of PyTorch, into the module."""
        plain = {name.removeprefix(PREFIX): value for name, value in state_dict.items()}
        return self._orig_mod.load_state_dict(plain, *args, **options)

    def to(self, *args: Any, **options: Any) -> Self:
        """Move or convert the module."""
        self._orig_mod.to(*args, **options)
        return self


def compiled_module(module: Any, compiled: Any) -> Any:
    """Return ``module`` with calls that ``compiled`` makes, a compiled function of the module and its arguments."""
    kind: Any = derived(own_class(module), (CompiledModule,))
    twin = kind.__new__(kind)
    object.__setattr__(twin, "__dict__", module.__dict__)
    object.__setattr__(twin, "_orig_mod", module)
    object.__setattr__(twin, "_calls", compiled.bound_to(module))
    return twin
