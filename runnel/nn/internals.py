"""PyTorch's private names of a Module, which subclasses override and programs read.

``_parameters``, ``_buffers`` and ``_modules`` are live: they show the attributes of the module, and changes of them set
and delete attributes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from runnel.core.errors import ArgumentError, DTypeError, ShapeError, StateError
from runnel.nn.parameter import Parameter
from runnel.nn.saving import LOADING, inside, readings
from runnel.tensor.state import fitting
from runnel.tensor.storages import share_memory_
from runnel.tensor.variable import Variable


class Members(MutableMapping[str, Any]):
    """The attributes of a module that are Parameters, buffers or modules, by name. Names reserved for one hold None."""

    def __init__(self, module: Any, kind: str) -> None:
        self._module = module
        self._kind = kind

    def _is_member(self, name: str, value: Any) -> bool:
        if value is None:
            return name in self._module.vacant(self._kind)
        return kind_of(value) == self._kind

    def __getitem__(self, name: str) -> Any:
        value = self._module.__dict__[name]
        if not self._is_member(name, value):
            raise KeyError(name)
        return value

    def __setitem__(self, name: str, value: Any) -> None:
        register = getattr(self._module, f"register_{self._kind}")
        if value is None or name not in self._module.__dict__ or kind_of(self._module.__dict__[name]) != self._kind:
            register(name, value)
        elif self._kind == "buffer" or kind_of(value) == self._kind:
            setattr(self._module, name, value)
        else:
            raise ArgumentError(
                f"[{type(self._module).__name__}] '{name}' of _{self._kind}s must be a {self._kind} or None; got "
                f"{type(value).__name__}. Delete it there first, then set the attribute."
            )

    def __delitem__(self, name: str) -> None:
        self[name]
        delattr(self._module, name)

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, value in self._module.__dict__.items() if self._is_member(name, value)])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        members = self._module.__dict__
        return isinstance(name, str) and name in members and self._is_member(name, members[name])

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)

    def copy(self) -> dict[str, Any]:
        """Return a dict of the members, which the module does not see."""
        return dict(self)


def kind_of(value: Any) -> str:
    """Return what an attribute is: a "parameter", "buffer", "module", or ""."""
    if isinstance(value, Variable):
        return "parameter" if isinstance(value, Parameter) else "buffer"
    return "module" if isinstance(value, Internals) else ""


class Internals:
    """The private methods of modules in PyTorch."""

    _version = 1

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    @property
    def _parameters(self) -> Members:
        return Members(self, "parameter")

    @property
    def _buffers(self) -> Members:
        return Members(self, "buffer")

    @property
    def _modules(self) -> Members:
        return Members(self, "module")

    @property
    def _non_persistent_buffers_set(self) -> set[str]:
        return set(self._transient)

    def _get_name(self) -> str:
        return type(self).__name__

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """Iterate over what ``get_members_fn`` returns for each module, pairs of names and objects, by dotted path."""
        visited: set[int] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, member in get_members_fn(module):
                if member is not None and id(member) not in visited:
                    if remove_duplicate:
                        visited.add(id(member))
                    yield inside(path) + name, member

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Any:
        """Replace the value of each Parameter and buffer by ``fn`` of it."""
        for variable in (*self.parameters(recurse), *self.buffers(recurse)):
            variable.become(fn(variable.value).read().clone(), variable.grad)
        return self

    def share_memory(self) -> Any:
        """Return the module, and refuse to start processes by ``torch.multiprocessing`` as long as it lives."""
        share_memory_(self)
        return self

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Put the values of this module's own Parameters and persistent buffers into ``destination``."""
        variables = {prefix + name: variable for name, variable in self._persistent(recurse=False).items()}
        destination.update(variables if keep_vars else readings(variables))

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module's own Parameters and buffers from the entries that begin with ``prefix``.

        During ``load_state_dict()`` all modules load together, when everything fits.
        """
        loading = LOADING.get()
        if loading is not None:
            loading.add(prefix)
            return
        for name, variable in self._persistent(recurse=False).items():
            key = prefix + name
            if key not in state_dict:
                missing_keys.extend([key] if strict else [])
                continue
            try:
                variable.assign(fitting(type(self).__name__, key, variable.aval, state_dict[key]))
            except (DTypeError, ShapeError, StateError) as error:
                error_msgs.append(str(error))

    def _register_load_state_dict_pre_hook(self, hook: Callable[..., Any], with_module: bool = False) -> Any:
        """Call ``hook`` before ``load_state_dict()``, without the module as its first argument by default."""
        return self.register_load_state_dict_pre_hook(hook if with_module else functools.partial(_without_module, hook))

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> Any:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after ``state_dict()``; it may change the dict."""
        return self.register_state_dict_post_hook(hook)


def _without_module(hook: Callable[..., Any], module: Any, *args: Any) -> Any:
    return hook(*args)
