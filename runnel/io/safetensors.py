"""Named tensors in a file of the safetensors format (github.com/huggingface/safetensors), through that library."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from runnel.core import dtypes
from runnel.core.atomic_files import write_atomically
from runnel.core.dtypes import DType
from runnel.core.errors import RunnelError
from runnel.tensor.creation import asarray
from runnel.tensor.tensor import Tensor, from_numpy


def _code(dtype: DType) -> str:
    """The format's name of a dtype: F32, BF16, I64, U8, BOOL."""
    if dtype is dtypes.bool_:
        return "BOOL"
    if dtype is dtypes.bfloat16:
        return "BF16"
    return f"{dtype.kind[0].upper()}{8 * dtype.itemsize}"


_BY_CODE = {_code(dtype): dtype for dtype in dtypes.ALL}


def _library() -> tuple[Any, Any]:
    try:
        import safetensors
        import safetensors.numpy
    except ImportError:
        raise RunnelError(
            "Reading and writing safetensors files needs the safetensors library: pip install 'runnel[safetensors]'"
        ) from None
    return safetensors, safetensors.numpy


def save_file(
    tensors: Mapping[str, Any], path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None
) -> None:
    """Write named tensors (as ``state_dict()`` gives them) to ``path``. On an error, what was there stays there.

    Args:
        tensors: tensors, Variables or NumPy arrays by name.
        path: the file.
        metadata: strings by name, kept in the file's header.
    """
    _, numpy_api = _library()
    arrays: dict[str, np.ndarray] = {}
    for name, value in tensors.items():
        array = asarray(value).numpy()
        arrays[name] = np.ascontiguousarray(array).reshape(array.shape)
    data: bytes = numpy_api.save(arrays, metadata=None if metadata is None else dict(metadata))
    write_atomically(path, [data])


def load_file(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """The named tensors of the file at ``path``."""
    library, _ = _library()
    data = Path(path).read_bytes()
    try:
        entries = library.deserialize(data)
    except Exception as error:  # the library has its own class of errors, and raises others for other damage
        raise RunnelError(f"[load_file] '{path}' is no intact safetensors file: {error}.") from None
    return {name: _tensor(str(path), name, entry) for name, entry in entries}


def _tensor(path: str, name: str, entry: Mapping[str, Any]) -> Tensor:
    dtype = _BY_CODE.get(entry["dtype"])
    if dtype is None:
        raise RunnelError(
            f"[load_file] '{name}' in '{path}' has element type {entry['dtype']}, which Runnel does not hold."
        )
    array = np.frombuffer(entry["data"], dtype.numpy).reshape(tuple(entry["shape"]))
    return from_numpy(array, dtype, copy=True)
