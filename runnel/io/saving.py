"""``save`` and ``load``: a whole training state in one file. No code is in it, so a file from a stranger runs none."""

from __future__ import annotations

import json
import os
from typing import Any, Final

from runnel.core.errors import FileError
from runnel.io.safetensors import Path, damaged, read, write
from runnel.io.structure import Packer, Unpacker

_KEY: Final = "runnel"  # of the structure, in the file's metadata
_FORMAT: Final = 1


def save(obj: Any, path: Path) -> None:
    """Write ``obj`` to ``path``, for :func:`load`: lists, tuples and dicts, nested, of tensors, NumPy arrays and
    scalars, numbers, strings, bytes, None and dtypes. State dicts of modules, optimizers, schedules and generators are
    made of these.

    The file has the safetensors format: tensors and arrays under names like ``model.0.weight``, and how they stand in
    one another as JSON in the metadata. What is one tensor or one array in ``obj`` is stored once, and is one again. Of
    a tensor the value is stored, of a Variable its value at that moment.

    The new file takes the place of the old one when it is whole and on the disk. A process that is killed meanwhile
    leaves the old one, and nothing else.

    Raises:
        TypeError, ValueError: ``obj`` holds something else, or itself.
        FileError: the file cannot be written. What was there is unchanged.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"[save] takes the object and then the path; received {type(path).__name__} for the path.")
    packer = Packer()
    try:
        packed = packer.pack(obj)
    except (TypeError, ValueError) as error:
        raise type(error)(f"[save] {error}.") from None
    structure = json.dumps({"format": _FORMAT, "value": packed}, separators=(",", ":"), allow_nan=False)
    write("save", path, packer.arrays, {_KEY: structure})


def load(path: Path) -> Any:
    """What :func:`save` wrote to ``path``; all memory is its own.

    Raises:
        FileError: the file is damaged, or was written by something else (:func:`load_file` reads such tensors).
        OSError: it is not there, or may not be read.
    """
    tensors, metadata = read("load", path)
    if _KEY not in metadata:
        raise FileError(f"[load] '{os.fspath(path)}' was not written by save(); load_file() reads its tensors.")
    try:
        return Unpacker(tensors).unpack(_structure(metadata[_KEY]))
    except ValueError as error:
        raise damaged("load", path, str(error)) from None


def _structure(text: str) -> Any:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its structure is no JSON ({error})") from None
    if not isinstance(content, dict) or content.keys() != {"format", "value"}:
        raise ValueError("its structure is not that of save()")
    if content["format"] != _FORMAT:
        raise ValueError(f"its structure has format {content['format']!r}, and this version of Runnel knows {_FORMAT}")
    return content["value"]
