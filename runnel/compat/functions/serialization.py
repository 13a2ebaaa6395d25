"""``torch.save`` and ``torch.load``, with the rules of ``weights_only``; ``torch.serialization``."""

from __future__ import annotations

import importlib
import os
import pickle
from collections.abc import Iterable, Mapping
from typing import IO, Any, Final

from runnel.compat.functions.types import _named_device
from runnel.core.arrays import short_repr
from runnel.core.devices import Device, as_device
from runnel.core.errors import ArgumentError
from runnel.io.torch_files import objects, reading, writing
from runnel.io.torch_files.objects import Place, Stored
from runnel.nn.module import Module
from runnel.optim.lr_scheduler.scheduler import LRScheduler
from runnel.optim.optimizer import Optimizer

DEFAULT_PROTOCOL: Final = 2
_ALLOWED: Final = {"torch.device": _named_device}
_SAFE: Final[dict[str, Any]] = {}  # by the names that users have allowed


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write an object to a path or an open file, as the archive that PyTorch writes.

    PyTorch reads files of tensors, containers and plain values. Files of modules and other objects of Runnel's classes
    are for :func:`load`. A file at a path replaces an old one when it is complete.

    Args:
        obj: a state dict, a module, or any object that pickle accepts.
        f: a path, or a file that is open for writing bytes.
        pickle_module: must be ``pickle``.
        pickle_protocol: the protocol of the pickle.
        _use_new_zipfile_serialization: has no effect.

    Example:
        >>> torch.save({"model": model.state_dict(), "args": args}, "checkpoint.pt")
    """
    _require_pickle("save", pickle_module)
    if not hasattr(f, "write") and not isinstance(f, (str, os.PathLike)):
        raise ArgumentError(f"[save] f must be a path or a file that is open for writing; got {short_repr(f)}.")
    writing.save(obj, f, pickle_protocol)


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = pickle,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Return the object in a file of :func:`save` or of PyTorch.

    Args:
        f: a path, or a file that is open for reading bytes.
        map_location: where tensors go: a device, a dict from devices in the file to devices, or a function of a storage
            and its device that returns the storage. Without it, the file may have tensors of the CPU only.
        pickle_module: must be ``pickle``.
        weights_only: accept only tensors, containers and plain values (the default). With False the file can contain
            any object, and loading it can run any code.
        mmap: read the values from the file when they are used.
        pickle_load_args: ``encoding`` and ``errors`` of :class:`pickle.Unpickler`.

    Raises:
        FileError: the file is damaged, or of another kind.
        pickle.UnpicklingError: the file has an object that ``weights_only`` refuses.
        DeviceError: the file has tensors of a device that does not exist here.

    Example:
        >>> model.load_state_dict(torch.load("checkpoint.pt", map_location="cpu")["model"])
    """
    _require_pickle("load", pickle_module)
    if not hasattr(f, "read") and not isinstance(f, (str, os.PathLike)):
        raise ArgumentError(f"[load] f must be a path or a file that is open for reading; got {short_repr(f)}.")
    place = None if map_location is None else _place(map_location)
    if weights_only is None or weights_only:
        return reading.load(f, place=place, allowed=_ALLOWED, trusted=_SAFE, mmap=bool(mmap))

    def unpickler(stream: IO[bytes]) -> pickle.Unpickler:
        return _Unpickler(stream, **({"encoding": "utf-8"} | pickle_load_args))

    return reading.load(f, place=place, unpickler=unpickler, mmap=bool(mmap))


def _require_pickle(name: str, module: Any) -> None:
    if module is not pickle and module is not None:
        raise ArgumentError(f"[{name}] pickle_module must be pickle; got {getattr(module, '__name__', module)}.")


def _place(map_location: Any) -> Place:
    """Return where storages go by an argument ``map_location``."""
    if isinstance(map_location, Mapping):
        places = {str(key): value for key, value in map_location.items()}
        return lambda stored, location: _on(stored, places.get(location, location))
    if not callable(map_location):
        as_device(map_location if isinstance(map_location, Device) else str(map_location))
        return lambda stored, location: _on(stored, map_location)

    def chosen(stored: Stored, location: str) -> Stored:
        result = map_location(stored, location)
        if result is None:
            return _on(stored, location)
        if not isinstance(result, Stored):
            raise ArgumentError(f"[load] map_location must return the storage that it got; got {short_repr(result)}.")
        return result

    return chosen


def _on(stored: Stored, device: Any) -> Stored:
    place = as_device(device if isinstance(device, Device) else str(device))
    return stored if place is stored.device else Stored(stored.memory, stored.dtype, place)


class _Unpickler(pickle.Unpickler):
    """Unpickles any object; names of PyTorch mean the names of ``runnel.compat.torch``."""

    def find_class(self, module: str, name: str) -> Any:
        place = f"{module}.{name}"
        if place in _ALLOWED or place in objects.SAFE:
            return _ALLOWED.get(place) or objects.SAFE[place]
        if module.partition(".")[0] != "torch":
            return super().find_class(module, name)
        try:
            found = getattr(importlib.import_module(f"runnel.compat.{module}"), name)
        except (AttributeError, ImportError):
            found = None
        if found is None or (isinstance(found, type) and issubclass(found, (Module, Optimizer, LRScheduler))):
            raise reading.RefusedError(
                f"[load] the file has an object of PyTorch's class {place}, whose contents are not Runnel's. Save its "
                "state_dict() in PyTorch, and load that into an object made here."
            )
        return found


def add_safe_globals(safe_globals: Iterable[Any]) -> None:
    """Let :func:`load` make objects of these classes and call these functions with ``weights_only=True``.

    Args:
        safe_globals: classes and functions, or pairs of one and its name in the files.
    """
    for each in safe_globals:
        value, name = each if isinstance(each, tuple) else (each, f"{each.__module__}.{each.__qualname__}")
        _SAFE[name] = value


def get_safe_globals() -> list[Any]:
    """Return what :func:`add_safe_globals` has added."""
    return list(_SAFE.values())


def clear_safe_globals() -> None:
    """Undo :func:`add_safe_globals`."""
    _SAFE.clear()


class safe_globals:
    """Do what :func:`add_safe_globals` does in a ``with`` block."""

    def __init__(self, safe_globals: Iterable[Any]) -> None:
        self._added: Final = list(safe_globals)
        self._before: dict[str, Any] = {}

    def __enter__(self) -> None:
        self._before = dict(_SAFE)
        add_safe_globals(self._added)

    def __exit__(self, *error: object) -> None:
        _SAFE.clear()
        _SAFE.update(self._before)
