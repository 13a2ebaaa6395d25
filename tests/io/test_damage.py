"""Files that are damaged, cut or forged: one clear error, whatever they contain, and no huge allocation."""

from __future__ import annotations

import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy

import runnel as rn
from runnel.backends.host import memory
from runnel.core.errors import FileError

READERS: dict[str, Callable[[Any], Any]] = {"load": rn.load, "load_file": rn.load_file}


def written(folder: Path) -> bytes:
    state = {"w": rn.asarray(np.arange(6.0).reshape(2, 3)), "n": [1, 2.5, (None, b"xyz")], "mask": rn.asarray([True])}
    rn.save(state, folder / "whole")
    return (folder / "whole").read_bytes()


def forged(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def refused(path: Path, content: bytes) -> None:
    """Both readers refuse it, and allocate no more than a few times what the file holds."""
    path.write_bytes(content)
    for op, read in READERS.items():
        memory.reset_peak()
        before = memory.statistics().live
        with pytest.raises(FileError, match=rf"^\[{op}\] '.*' (cannot be read: .*\.|was not written by save)"):
            read(path)
        assert memory.statistics().peak - before <= 4096 + 2 * len(content)


def test_a_file_cut_anywhere(tmp_path: Path) -> None:
    whole = written(tmp_path)
    for length in range(len(whole)):
        refused(tmp_path / "cut", whole[:length])
    refused(tmp_path / "long", whole + b"\0")


def test_a_file_with_any_byte_of_its_header_changed(tmp_path: Path) -> None:
    """Check that a file is either read as a well-formed state or refused in a sentence."""
    whole = bytearray(written(tmp_path))
    end = 8 + struct.unpack("<Q", whole[:8])[0]
    numbers = np.random.default_rng(0)
    outcomes = set()
    for place in range(end):
        spoilt = bytearray(whole)
        spoilt[place] ^= int(numbers.integers(1, 256))
        (tmp_path / "spoilt").write_bytes(spoilt)
        for read in READERS.values():
            try:
                read(tmp_path / "spoilt")
                outcomes.add("read")
            except FileError:
                outcomes.add("refused")
    assert outcomes == {"read", "refused"}, "a changed letter of a name is no damage"


F32 = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
FORGED: dict[str, bytes] = {
    "a huge header": forged(b"{}", length=1 << 62),
    "a header longer than the file": forged(b"{}", length=3),
    "no JSON": forged(b"{oops}"),
    "no text": forged(b"\xff\xfe"),
    "an array": forged([]),
    "a number": forged(5),
    "deep brackets": forged(b"[" * 100_000),
    "deep objects": forged(b'{"a":' * 50_000),
    "a number of 10,000 digits": forged(b'{"x":' + b"9" * 10_000 + b"}"),
    "one name twice": forged(b'{"x":1,"x":2}'),
    "an entry that is a number": forged({"x": 1}),
    "an entry with less": forged({"x": {"dtype": "F32", "shape": [2]}}, bytes(8)),
    "a dtype that is a number": forged({"x": {**F32, "dtype": 5}}, bytes(8)),
    "a dtype nobody has": forged({"x": {**F32, "dtype": "F1000"}}, bytes(8)),
    "a dtype Runnel does not hold": forged({"x": {"dtype": "F8_E4M3", "shape": [8], "data_offsets": [0, 8]}}, bytes(8)),
    "a shape that is a number": forged({"x": {**F32, "shape": 2}}, bytes(8)),
    "a negative extent": forged({"x": {**F32, "shape": [-1, -2]}}, bytes(8)),
    "an extent that is true": forged({"x": {**F32, "shape": [2, True]}}, bytes(8)),
    "a broken extent": forged({"x": {**F32, "shape": [2.0]}}, bytes(8)),
    "a huge shape": forged({"x": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]}}, bytes(8)),
    "a shape that overflows": forged({"x": {**F32, "shape": [1 << 62, 8]}}, bytes(8)),
    "huge and empty": forged({"x": {"dtype": "F32", "shape": [1 << 62, 0], "data_offsets": [0, 0]}}),
    "a thousand axes": forged({"x": {"dtype": "F32", "shape": [1] * 1000, "data_offsets": [0, 4]}}, bytes(4)),
    "offsets that are words": forged({"x": {**F32, "data_offsets": ["0", "8"]}}, bytes(8)),
    "three offsets": forged({"x": {**F32, "data_offsets": [0, 8, 8]}}, bytes(8)),
    "offsets backwards": forged({"x": {**F32, "data_offsets": [8, 0]}}, bytes(8)),
    "other bytes than the shape says": forged({"x": {**F32, "shape": [3]}}, bytes(8)),
    "a gap": forged({"x": {**F32, "data_offsets": [4, 12]}}, bytes(12)),
    "an overlap": forged({"x": F32, "y": {**F32, "data_offsets": [4, 12]}}, bytes(12)),
    "the same place twice": forged({"x": F32, "y": F32}, bytes(8)),
    "bytes for nobody": forged({"x": F32}, bytes(9)),
    "bytes past the end": forged({"x": F32}, bytes(7)),
    "metadata that are a list": forged({"__metadata__": [], "x": F32}, bytes(8)),
    "metadata that are numbers": forged({"__metadata__": {"a": 1}, "x": F32}, bytes(8)),
    "truths other than 0 and 1": forged({"x": {"dtype": "BOOL", "shape": [2], "data_offsets": [0, 2]}}, b"\x01\x02"),
    "nothing": b"",
    "text": b"hello, this is no such file at all",
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_forged_headers(name: str, tmp_path: Path) -> None:
    refused(tmp_path / "forged", FORGED[name])


@pytest.mark.parametrize("name", [n for n in FORGED if n not in ("truths other than 0 and 1",)])
def test_refusals_here_are_refused_by_the_library_or_do_not_hold(name: str) -> None:
    """So nothing that others may write is refused, but for what Runnel has no dtype or no shape for."""
    try:
        safetensors.deserialize(FORGED[name])
    except Exception:
        return
    assert name in ("a dtype Runnel does not hold", "huge and empty", "a thousand axes", "one name twice")


STRUCTURES: list[Any] = [
    "no JSON at all", "[" * 5000, [], {}, {"format": 1}, {"format": 2, "value": 1},
    {"format": 1, "value": 1, "more": 1},
    *[
        {"format": 1, "value": value}
        for value in (
            {}, {"tensor": "x", "tuple": []}, {"tensor": "missing"}, {"tensor": 5}, {"tensor": None}, {"code": "os"},
            {"tuple": 5}, {"dict": [1]}, {"dict": [[1, 2, 3]]}, {"dict": {"a": 1}}, {"dict": [[[1], 2]]}, {"int": 5},
            {"int": "zz"}, {"float": "00"}, {"float": 1}, {"complex": [1]}, {"complex": ["a", "b"]}, {"dtype": "int7"},
            {"dtype": []}, {"numpy_dtype": "nothing"}, {"numpy_dtype": "i4,("}, {"numpy_dtype": 5},
            {"array": "missing"},
            {"array": ["x", "O", [1]]}, {"array": ["x", "U100000000", [1]]}, {"array": ["x", "i4", [5, 5]]},
            {"array": ["x"]}, {"array": ["x", "i4", "abc"]}, {"scalar": ["O", "00" * 8]}, {"scalar": ["f4", "00"]},
            {"scalar": ["f4", "zz"]}, {"scalar": ["U1000000000", ""]}, {"scalar": 5}, {"scalar": ["f4"]},
            {"bytes": "missing"}, {"bytes": ["x"]}, {"bytearray": None}, {"ordered_dict": 3},
        )
    ],
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(STRUCTURES)))
def test_forged_structures(place: int, tmp_path: Path) -> None:
    structure = STRUCTURES[place]
    text = structure if isinstance(structure, str) else json.dumps(structure)
    header = {"__metadata__": {"runnel": text}, "x": F32}
    (tmp_path / "forged").write_bytes(forged(header, bytes(8)))
    with pytest.raises(FileError, match=r"^\[load\] '.*' cannot be read: .*structure.*\."):
        rn.load(tmp_path / "forged")


def test_files_of_other_kinds_are_reported(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as archive:  # as torch.save writes
        archive.writestr("archive/data.pkl", b"x" * 100)
    (tmp_path / "old.pt").write_bytes(pickle.dumps({"weight": list(range(100))}, protocol=2))
    np.save(tmp_path / "x.npy", np.zeros(100))
    (tmp_path / "notes.txt").write_text("These are notes, and no tensors. " * 10)
    (tmp_path / "model.onnx").write_bytes(b"\x08\x07\x12\x07pytorch" + bytes(range(200)))
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"a": "model-00001-of-00002.safetensors"}}')
    (tmp_path / "model.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(range(200)))
    (tmp_path / "model.gguf").write_bytes(b"GGUF\x03\0\0\0" + bytes(range(200)))
    kinds = {
        "model.onnx": "ONNX",
        "model.safetensors.index.json": "index of a model in several files, load each file",
        "model.h5": "HDF5",
        "model.gguf": "GGUF.*convert it",
        "model.pt": "ZIP archive.*torch.load",
        "old.pt": "a pickle.*torch.load",
        "x.npy": "NumPy",
        "notes.txt": "not a safetensors file",
    }
    for name, kind in kinds.items():
        for load in (rn.load, rn.load_file):
            with pytest.raises(FileError, match=kind):
                load(tmp_path / name)


def test_paths_that_are_not_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        for read in READERS.values():
            with pytest.raises(FileError, match="it is not a regular file"):
                read(path)


def test_a_file_of_holes_is_not_allocated_for(tmp_path: Path) -> None:
    with open(tmp_path / "holes", "wb") as file:
        file.truncate(40 << 30)
    for read in READERS.values():
        with pytest.raises(FileError, match="its header is not JSON"):
            read(tmp_path / "holes")


def test_the_librarys_files_are_read_and_ours_by_it(tmp_path: Path) -> None:
    numbers = np.random.default_rng(3)
    for _ in range(30):
        arrays = {
            f"n{i}": np.asarray(numbers.integers(0, 2, shape)).astype(kind)
            for i, (shape, kind) in enumerate(
                (tuple(numbers.integers(0, 4, numbers.integers(0, 4))), kind)
                for kind in numbers.permutation(["f4", "f8", "i1", "u2", "i8", "bool", "f2", "u1"])
            )
        }
        safetensors.numpy.save_file(arrays, tmp_path / "theirs", {"a": "ü\n"})
        rn.save_file(arrays, tmp_path / "ours", {"a": "ü\n"})
        for actual in (rn.load_file(tmp_path / "theirs"), safetensors.numpy.load_file(tmp_path / "ours")):
            assert actual.keys() == arrays.keys()
            for name, array in arrays.items():
                got = np.asarray(actual[name])
                assert (got.dtype, got.shape, got.tobytes()) == (array.dtype, array.shape, array.tobytes())
