"""Tables in CSV, Parquet and Arrow files, read by pyarrow."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from runnel.core.errors import FileError, RunnelError
from runnel.data.datasets import Dataset
from runnel.tensor.creation import asarray

Path = str | os.PathLike[str]
FORMATS = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow"}


class TableDataset(Dataset[dict[str, Any]]):
    """The rows of a table: sample i is a dict of the columns' values.

    Values are NumPy numbers, strings, or arrays for columns of lists. ``table["price"]`` is a column, a NumPy array.
    Batches are made from whole columns.

    Args:
        path: a file ``.csv`` (or ``.tsv``), ``.parquet``, ``.arrow`` or ``.feather``.
        columns: names of columns in order; all by default.
        format: "csv", "parquet" or "arrow", if the file's name does not say.

    Raises:
        FileError: the file is damaged or has another format, lacks one of the columns, has two of the same name, lacks
            a value in a column of ints or bools, or has text that is not UTF-8. A missing float is NaN, a missing
            string None ('' in CSV).
    """

    def __init__(self, path: Path, columns: Sequence[str] | None = None, format: str | None = None) -> None:
        name = os.fspath(path)
        kind = format or FORMATS.get(os.path.splitext(name)[1].lower(), "")
        if kind not in FORMATS.values():
            raise FileError(f"[TableDataset] '{name}' has no known ending; pass format='csv', 'parquet' or 'arrow'.")
        table = _read(name, kind)
        twice = [column for column, count in Counter(table.column_names).items() if count > 1]
        if twice:
            raise FileError(f"[TableDataset] '{name}' has several columns called {', '.join(twice)}.")
        missing = [column for column in columns or () if column not in table.column_names]
        if missing:
            raise FileError(
                f"[TableDataset] '{name}' has no column {', '.join(missing)}; it has {', '.join(table.column_names)}."
            )
        names = list(columns or table.column_names)
        self.columns = {column: _column(name, column, table.column(column)) for column in names}
        self._length: int = table.num_rows

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        """Return the row of a number, or the column of a name."""
        if isinstance(index, str):
            if index not in self.columns:
                raise KeyError(f"[TableDataset] there is no column {index!r}; there are {', '.join(self.columns)}.")
            return self.columns[index]
        return {name: values[index] for name, values in self.columns.items()}

    @property
    def collated(self) -> Any:
        """Function from numbers to a batch, if all columns have numbers or strings."""
        return None if any(_is_ragged(values) for values in self.columns.values()) else self._batch

    def _batch(self, indices: Sequence[int]) -> dict[str, Any]:
        rows = np.asarray(indices, np.int64)
        batch: dict[str, Any] = {}
        for name, values in self.columns.items():
            part = values[rows]
            batch[name] = part.tolist() if part.dtype.hasobject else asarray(part, copy=False)
        return batch


def _read(name: str, kind: str) -> Any:
    arrow = _pyarrow()
    try:
        if kind == "csv":
            options = arrow.csv.ParseOptions(delimiter="\t" if name.lower().endswith(".tsv") else ",")
            return _text(name, arrow.csv.read_csv(name, parse_options=options))
        if kind == "parquet":
            return arrow.parquet.read_table(name)
        table = arrow.feather.read_table(name, memory_map=True)
        table.validate(full=True)  # pyarrow reads memory of others at offsets that lie outside
        return table
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name) from None
    except (arrow.ArrowException, OSError) as error:
        reason = str(error).strip().rstrip(".").splitlines()[0]
        raise FileError(f"[TableDataset] '{name}' cannot be read as {kind}: {reason}.") from error


def _text(name: str, table: Any) -> Any:
    """Check the table of a text file: columns that are not UTF-8 would be bytes."""
    try:
        names = table.column_names
    except UnicodeDecodeError as error:
        raise FileError(f"[TableDataset] the names of the columns of '{name}' are no UTF-8 text: {error}.") from None
    for column, values in zip(names, table.columns, strict=True):
        if str(values.type) == "binary":
            row = next(i for i, value in enumerate(values.to_pylist()) if not _is_text(value))
            raise FileError(
                f"[TableDataset] '{name}' is no UTF-8 text in row {row} of column {column!r}: {values[row].as_py()!r}. "
                "Convert the file (iconv -f latin1 -t utf-8), or read it with its encoding into an ArrayDataset."
            )
    return table


def _is_text(value: bytes | None) -> bool:
    try:
        return value is None or value.decode("utf-8") is not None
    except UnicodeDecodeError:
        return False


def _pyarrow() -> ModuleType:
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.feather
        import pyarrow.parquet
    except ImportError:
        raise RunnelError("[TableDataset] tables are read by pyarrow: pip install 'runnel[data]'") from None
    return pyarrow


def _column(file: str, name: str, column: Any) -> np.ndarray:
    import pyarrow

    kind = column.type
    if pyarrow.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind) or pyarrow.types.is_fixed_size_list(kind):
        return _ragged([None if row is None else np.asarray(row) for row in column.to_pylist()])
    is_number = pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind) or pyarrow.types.is_boolean(kind)
    if is_number and column.null_count:
        if not pyarrow.types.is_floating(kind):
            row = column.to_pylist().index(None)
            raise FileError(
                f"[TableDataset] '{file}' has no value in row {row} of column {name!r}, which is of {kind}: fill "
                "it, or choose columns without it."
            )
        column = column.fill_null(float("nan"))
    array: np.ndarray = column.to_numpy()
    return array if is_number else array.astype(object)


def _ragged(rows: list[Any]) -> np.ndarray:
    array = np.empty(len(rows), object)
    for i, row in enumerate(rows):
        array[i] = row
    return array


def _is_ragged(values: np.ndarray) -> bool:
    return values.dtype.hasobject and any(not isinstance(value, str | None) for value in values[:100])
