"""Read the files that ``torch.save`` writes, here or in PyTorch, without running code that they name.

A file of weights is unpickled by an interpreter that calls only the functions in ``objects.SAFE`` and what the caller
allows. The caller may pass another unpickler, which runs all that the file says.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import struct
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import IO, Any, Final

from runnel.core.errors import DeviceError, FileError
from runnel.io.torch_files import archive, legacy, objects
from runnel.io.torch_files.objects import Place, Stored

_DAMAGE: Final = (
    ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, MemoryError, OSError, RecursionError,
    NotImplementedError, TypeError, ValueError, pickle.UnpicklingError, struct.error, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


class RefusedError(pickle.UnpicklingError):
    """A file names a class or function that is not allowed."""


_PythonUnpickler: Any = vars(pickle)["_Unpickler"]  # the one whose steps can be replaced


class SafeUnpickler(_PythonUnpickler):  # type: ignore[misc]
    """Unpickles calls of ``allowed`` functions and classes, by name. Objects of ``trusted`` classes get attributes."""

    def __init__(self, file: IO[bytes], allowed: Mapping[str, Any], trusted: Mapping[str, Any], described: str) -> None:
        super().__init__(file, encoding="utf-8")
        self._allowed = {**objects.SAFE, **allowed, **trusted}
        self._trusted = tuple(x for x in trusted.values() if isinstance(x, type))
        self._described = described

    def find_class(self, module: str, name: str) -> Any:
        """Return what a name means; RefusedError if it is not allowed."""
        place = f"{module}.{name}"
        if place not in self._allowed:
            raise RefusedError(
                f"[load] {self._described} has the class or function {place}, and weights_only=True allows tensors, "
                "containers and plain values only, since others can run code. If you trust the file, pass "
                f"weights_only=False, or first call torch.serialization.add_safe_globals([{name.rpartition('.')[2]}])."
            )
        return self._allowed[place]

    def _require_allowed(self, function: Any) -> None:
        if not any(function is x for x in self._allowed.values()):
            raise ValueError(f"it calls {getattr(function, '__name__', type(function).__name__)}, which is no class")

    def load_reduce(self) -> None:
        args = self.stack.pop()
        self._require_allowed(self.stack[-1])
        self.stack[-1] = self.stack[-1](*args)

    def load_newobj(self) -> None:
        args = self.stack.pop()
        kind = self.stack[-1]
        self._require_allowed(kind)
        if kind not in self._trusted and kind not in (OrderedDict, set):
            raise ValueError(f"it makes an object of {getattr(kind, '__name__', kind)} without a call")
        self.stack[-1] = kind.__new__(kind, *args)

    def load_build(self) -> None:
        state = self.stack.pop()
        target = self.stack[-1]
        if type(target) is OrderedDict and isinstance(state, dict):
            target.__dict__.update(state)
        elif type(target) in self._trusted:
            self.stack.append(state)
            super().load_build()
        else:
            raise ValueError(f"it sets attributes of {type(target).__name__}")

    def load_other(self) -> None:
        raise ValueError("it makes objects in a way that torch.save does not use")

    dispatch: Final = {
        **_PythonUnpickler.dispatch,
        pickle.REDUCE[0]: load_reduce,
        pickle.NEWOBJ[0]: load_newobj,
        pickle.BUILD[0]: load_build,
        **dict.fromkeys((pickle.EXT1[0], pickle.EXT2[0], pickle.EXT4[0], pickle.NEWOBJ_EX[0]), load_other),
        **dict.fromkeys((pickle.INST[0], pickle.OBJ[0]), load_other),
    }


def load(
    file: Any,
    *,
    place: Place | None = None,
    allowed: Mapping[str, Any] | None = None,
    trusted: Mapping[str, Any] | None = None,
    unpickler: Callable[[IO[bytes]], Any] | None = None,
    mmap: bool = False,
) -> Any:
    """Return the object in a file of ``torch.save``.

    Args:
        file: a path, or a file that is open for reading bytes.
        place: a function of each storage and the name of its device that returns where it goes; None: to the CPU.
        allowed: further values by the names that they have in the file.
        trusted: classes and functions by these names that may run while they are unpickled.
        unpickler: a function that returns an unpickler of a file, which need not be safe.
        mmap: read storages from the file when they are used.

    Raises:
        FileError: the file is damaged, or of another kind.
        pickle.UnpicklingError: the file has an object that is not allowed.
    """
    described = "the open file" if hasattr(file, "read") else f"'{os.fsdecode(file)}'"

    def safe(stream: IO[bytes]) -> Any:
        return SafeUnpickler(stream, allowed or {}, trusted or {}, described)

    with contextlib.ExitStack() as files:
        is_open = hasattr(file, "read")
        opened: Any = _seekable(file) if is_open else files.enter_context(open(file, "rb"))
        start = opened.tell()
        beginning = opened.read(4)
        opened.seek(start)
        try:
            if beginning == archive.START:
                path = os.fspath(file) if mmap and not is_open else None
                return _from_archive(opened, unpickler or safe, place or _to_cpu, path)
            if mmap:
                raise ValueError("mmap=True needs an archive, and it is older")
            return legacy.load(opened, unpickler or safe, place or _to_cpu)
        except (RefusedError, DeviceError):
            raise
        except _DAMAGE as error:
            if unpickler is not None and not isinstance(error, _OF_FILES):
                raise  # an error of the user's classes
            reason = "it ends too early" if isinstance(error, EOFError) else str(error) or type(error).__name__
            raise FileError(f"[load] {described} cannot be read: {reason}.") from error


_OF_FILES: Final = (
    EOFError,
    ValueError,
    pickle.UnpicklingError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    KeyError,
)


def _seekable(file: Any) -> Any:
    return file if hasattr(file, "seek") and hasattr(file, "tell") else io.BytesIO(file.read())


def _from_archive(file: IO[bytes], make: Callable[[IO[bytes]], Any], place: Place, path: str | None) -> Any:
    content = archive.Archive(file)
    if content.is_script:
        raise ValueError("it is a program of torch.jit.save; save its state_dict() by torch.save in PyTorch")
    stored: dict[str, Stored] = {}

    def persistent_load(reference: Any) -> Stored:
        kind, key, location, count = objects.reference(reference)
        if key not in stored:
            size = 1 if kind.dtype is None else kind.dtype.itemsize
            memory = content.mapped(key, count * size, path) if path else content.storage(key, count * size)
            if kind.dtype is not None and not content.is_little and size > 1:
                numpy = kind.dtype.numpy
                parts = memory.ndarray((memory.nbytes // numpy.itemsize,), numpy, writeable=True)
                parts.byteswap(inplace=True)
            stored[key] = place(Stored(memory, kind.dtype), location)
            objects.require_bools(stored[key])
        return stored[key]

    unpickler = make(io.BytesIO(content.pickled()))
    unpickler.persistent_load = persistent_load
    return unpickler.load()


def _to_cpu(stored: Stored, location: str) -> Stored:
    """Leave a storage on the CPU; DeviceError for one that was on another device."""
    if location != "cpu":
        raise DeviceError(
            f"[load] the file has tensors of device {location!r}, which does not exist here; pass map_location='cpu'."
        )
    return stored
