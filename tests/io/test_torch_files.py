"""Files of ``torch.save``: PyTorch's, made by hand, and Runnel's; refusals."""

from __future__ import annotations

import argparse
import collections
import dataclasses
import io
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.compat.torch as torch
from runnel import nn
from runnel.core.errors import DeviceError, FileError

VALUES = np.arange(6, dtype=np.float32)


def text(word: str) -> bytes:
    return b"X" + struct.pack("<I", len(word)) + word.encode()


def sizes(*numbers: int) -> bytes:
    return b"(" + b"".join(b"J" + struct.pack("<i", n) for n in numbers) + b"t"


def storage(kind: str, count: int, key: str = "0", place: str = "cpu", end: bytes = b"") -> bytes:
    module, _, name = f"torch.{kind}Storage".rpartition(".")
    number = b"J" + struct.pack("<i", count)
    return b"(" + text("storage") + f"c{module}\n{name}\n".encode() + text(key) + text(place) + number + end + b"tQ"


def tensor(
    of: bytes, offset: int, size: bytes, strides: bytes, rebuild: str = "torch._utils\n_rebuild_tensor_v2"
) -> bytes:
    tail = b"J" + struct.pack("<i", offset) + size + strides + b"\x89ccollections\nOrderedDict\n)R"
    return f"c{rebuild}\n(".encode() + of + tail + b"tR"


PLAIN = tensor(storage("Float", 6), 0, sizes(2, 3), sizes(3, 1))
PART = tensor(storage("Float", 6), 1, sizes(2, 2), sizes(1, 3))


def archive(pickled: bytes, **storages: bytes) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as content:
        content.writestr("name/data.pkl", b"\x80\x02" + pickled + b".")
        for key, data in (storages or {"0": VALUES.tobytes()}).items():
            content.writestr(f"name/data/{key.removeprefix('_')}", data)
        content.writestr("name/version", b"3\n")
    file.seek(0)
    return file


def old(pickled: bytes, **options: Any) -> io.BytesIO:
    header = b"".join(
        pickle.dumps(x, 2) for x in (options.get("magic", 0x1950A86A20F9469CFC6C), 1001, {"little_endian": True})
    )
    data = struct.pack("<q", options.get("count", 6)) + VALUES.tobytes()
    return io.BytesIO(header + b"\x80\x02" + pickled + b"." + pickle.dumps(["0"], 2) + data)


def test_tensors_of_one_storage_share_their_elements() -> None:
    for file in (
        archive(b"(" + PLAIN + PART + b"t"),
        old(b"(" + PLAIN.replace(b"tQ", b"NtQ") + PART.replace(b"tQ", b"NtQ") + b"t"),
    ):
        whole, part = torch.load(file)
        assert whole.tolist() == VALUES.reshape(2, 3).tolist() and part.tolist() == [[1.0, 4.0], [2.0, 5.0]]
        whole[0] = -1
        assert part.tolist() == [[-1.0, 4.0], [-1.0, 5.0]]
        part.fill_(7)
        assert whole.tolist() == [[-1.0, 7.0, 7.0], [3.0, 7.0, 7.0]]


KINDS = {
    "Double": np.float64, "Half": np.float16, "Long": np.int64, "Int": np.int32, "Short": np.int16, "Char": np.int8,
    "Byte": np.uint8, "Bool": np.bool_, "ComplexFloat": np.complex64,
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_dtypes(kind: str) -> None:
    values = np.array([1, 0, 1]).astype(KINDS[kind])
    loaded = torch.load(archive(tensor(storage(kind, 3), 0, sizes(3), sizes(1)), _0=values.tobytes()))
    assert loaded.numpy().dtype == values.dtype and np.array_equal(loaded.numpy(), values)


GLOBAL = b"cos\nsystem\n" + text("true") + b"\x85R"
DAMAGED = {
    "reaches element 6": archive(tensor(storage("Float", 6), 1, sizes(2, 3), sizes(3, 1))),
    "impossible size": archive(tensor(storage("Float", 6), -1, sizes(2), sizes(1))),
    "24 bytes, and 28 are expected": archive(tensor(storage("Float", 7), 0, sizes(2), sizes(1))),
    "bools must be 0 or 1": archive(tensor(storage("Bool", 3), 0, sizes(3), sizes(1)), _0=b"\x01\x02\x00"),
    "sets attributes of Tensor": archive(PLAIN + b"}b"),
    "calls Tensor": archive(PLAIN + b")R"),
    "in a way that torch.save does not use": archive(b"(ccollections\nOrderedDict\no"),
    "without the entry data.pkl": io.BytesIO(b"PK\x05\x06" + bytes(18)),
    "not a zip": io.BytesIO(b"PK\x03\x04" + bytes(9)),
    "not a file of torch.save": io.BytesIO(b""),
    "a pickle that torch.save did not write": io.BytesIO(pickle.dumps([1])),
    "has 28 in the file": old(PLAIN.replace(b"tQ", b"NtQ"), count=7),
    "other than a whole storage": old(PLAIN),
}


@pytest.mark.parametrize("reason", DAMAGED)
def test_damaged_files(reason: str) -> None:
    if reason == "without the entry data.pkl":
        with zipfile.ZipFile(DAMAGED[reason], "w") as content:
            content.writestr("a", b"")
    DAMAGED[reason].seek(0)
    with pytest.raises(FileError, match=f"(?i)^\\[load\\] the open file cannot be read: .*{reason}"):
        torch.load(DAMAGED[reason])


def test_every_cut_of_a_file_is_reported() -> None:
    whole = saved({"w": rn.arange(40), "a": [1, 2]}).getvalue()
    for length in range(0, len(whole), 13):
        with pytest.raises(FileError):
            torch.load(io.BytesIO(whole[:length]))


@dataclasses.dataclass
class Settings:
    n: int = 3


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(2, 3), nn.BatchNorm1d(3)
        self.tied = self.first.weight
        self.settings = Settings(4)

    def forward(self, x: Any) -> Any:
        return self.second(self.first(x))


def saved(value: Any, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file, **options)
    file.seek(0)
    return file


def test_objects_need_weights_only_false() -> None:
    net, args = Net(), argparse.Namespace(lr=0.1)
    optimizer = rn.optim.Adam(net.parameters())
    for value, name in (
        (net, "Net"),
        ({"a": [args]}, "argparse.Namespace"),
        (optimizer, "Adam"),
        (np.ones(2), "numpy"),
    ):
        with pytest.raises(pickle.UnpicklingError, match=f"{name}.*weights_only=False.*add_safe_globals"):
            torch.load(saved(value))
    with pytest.raises(pickle.UnpicklingError, match=r"os\.system"):
        torch.load(archive(GLOBAL))
    loaded = torch.load(saved({"net": net, "optimizer": optimizer, "args": args}), weights_only=False)
    twin = loaded["net"]
    assert twin.tied is twin.first.weight and twin.settings == net.settings and loaded["args"] == args
    assert loaded["optimizer"].param_groups[0]["params"][0] is twin.first.weight
    assert twin.first.weight.name == net.first.weight.name
    assert twin(rn.ones((4, 2))).tolist() == net(rn.ones((4, 2))).tolist()
    with torch.serialization.safe_globals([Settings]):
        assert torch.load(saved(Settings(9))) == Settings(9)
    with pytest.raises(pickle.UnpicklingError, match="Settings"):
        torch.load(saved(Settings(9)))
    foreign = b"ctorch.nn.modules.linear\nLinear\n)\x81}" + text("training") + b"\x88sb"
    with pytest.raises(pickle.UnpicklingError, match="state_dict"):
        torch.load(archive(foreign), weights_only=False)


def test_plain_values(tmp_path: Path) -> None:
    w = rn.arange(6, dtype="float32").reshape(2, 3)
    named = rn.ones(2)
    named.note = "hi"
    value = {
        "w": w, "row": w[1], "t": w.T, "bf": rn.ones(2, dtype="bfloat16"), "u": rn.asarray([1], dtype="uint32"),
        "p": nn.Parameter([1.0]), "od": collections.OrderedDict(a=1), "n": collections.Counter("aab"), "s": {1},
        "b": b"raw", "ba": bytearray(b"hi"), "c": 1 + 2j, "dtype": rn.float16, "device": torch.device("cuda:0"),
        "big": 1 << 80, "named": named, "none": None, "empty": rn.zeros((0, 3)),
    }  # fmt: skip
    torch.save(value, tmp_path / "a.b.pt")
    for options in ({}, {"mmap": True}, {"weights_only": False}, {"map_location": "cpu"}):
        loaded = torch.load(tmp_path / "a.b.pt", **options)
        for name, x in value.items():
            y = loaded[name]
            assert type(y) is type(x)
            assert y.tolist() == x.tolist() and y.dtype is x.dtype if hasattr(x, "dtype") else y == x, name
        assert loaded["named"].note == "hi" and loaded["t"].strides == (1, 3) and loaded["p"].requires_grad
        loaded["row"].zero_()
        assert loaded["w"].tolist() == [[0, 1, 2], [0, 0, 0]]


def test_places() -> None:
    pickled = tensor(storage("Float", 6, place="cuda:0"), 0, sizes(6), sizes(1))
    for good in ("cpu", torch.device("cpu"), {"cuda:0": "cpu"}, lambda stored, place: stored):
        assert torch.load(archive(pickled), map_location=good).tolist() == VALUES.tolist()
    for bad in (None, "cuda", {"cuda:1": "cpu"}, lambda stored, place: None):
        with pytest.raises(DeviceError):
            torch.load(archive(pickled), map_location=bad)
