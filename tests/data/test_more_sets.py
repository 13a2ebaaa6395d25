"""Fashion-MNIST, CIFAR-100 and the treebank from a mirror, and the folder that ``RUNNEL_DATA_DIR`` names."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import struct
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from runnel import data
from runnel.core import switches
from runnel.core.errors import RunnelError
from runnel.data.classification import FASHION_CHECKSUMS, PARTS
from tests.data.server import serving

TREES = {"train": "(3 (2 good) (2 fun))\n(1 no)\n", "dev": "(2 so)\n", "test": "(4 yes)\n"}


def idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def fashion() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [(9, 28, 28), (9,), (4, 28, 28), (4,)]
    return {part: rng.integers(0, 10, shape, dtype=np.uint8) for part, shape in zip(PARTS, shapes, strict=True)}


def test_fashion_mnist(tmp_path: Path) -> None:
    arrays = fashion()
    contents = {part: gzip.compress(idx(array)) for part, array in arrays.items()}
    served = tmp_path / "served"
    served.mkdir()
    for part, content in contents.items():
        (served / f"{part}.gz").write_bytes(content)
    sums = {part: digest(content) for part, content in contents.items()}
    with serving(served) as url:
        actual = data.fashion_mnist(mirrors=[url], checksums=sums, cache=tmp_path / "kept")
        (served / f"{PARTS[0]}.gz").write_bytes(contents[PARTS[0]][:-9])  # as a mirror may cut it
        with pytest.raises(RunnelError, match=r"train-images-idx3-ubyte.gz could not be had .*\n.*checksum"):
            data.fashion_mnist(mirrors=[url], checksums=sums, cache=tmp_path / "other")
    np.testing.assert_array_equal(actual.train_x, arrays[PARTS[0]].reshape(9, -1) / np.float32(255))
    raw = data.fashion_mnist(tmp_path / "kept", scaled=False)
    assert raw.train_x.shape == (9, 1, 28, 28) and raw.test_x.dtype == np.uint8
    np.testing.assert_array_equal(raw.test_y, arrays[PARTS[3]])
    assert set(FASHION_CHECKSUMS) == set(PARTS)


def test_cifar100(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    records = {name: rng.integers(0, 100, (n, 2 + 3072), dtype=np.uint8) for name, n in (("train", 6), ("test", 3))}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as files:
        for name, array in records.items():
            entry = tarfile.TarInfo(f"cifar-100-binary/{name}.bin")
            entry.size = array.nbytes
            files.addfile(entry, io.BytesIO(array.tobytes()))
    archive = packed.getvalue()
    (tmp_path / "cifar-100-binary.tar.gz").write_bytes(archive)
    actual = data.cifar100(mirrors=[], checksum=digest(archive), cache=tmp_path, scaled=False)
    np.testing.assert_array_equal(actual.train_x.reshape(6, -1), records["train"][:, 2:])
    np.testing.assert_array_equal(actual.test_y, records["test"][:, 1])
    cut = archive[: len(archive) // 2]
    (tmp_path / "cifar-100-binary.tar.gz").write_bytes(cut)
    with pytest.raises(RunnelError, match="no intact archive"):
        data.cifar100(mirrors=[], checksum=digest(cut), cache=tmp_path)
    for name, array in records.items():
        (tmp_path / f"{name}.bin").write_bytes(array.tobytes())
    np.testing.assert_array_equal(data.cifar100(tmp_path).train_x, actual.train_x / np.float32(255))


def treebank() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as files:
        for split, lines in TREES.items():
            files.writestr(f"trees/{split}.txt", lines)
    return packed.getvalue()


def test_the_treebank_is_downloaded_once(tmp_path: Path) -> None:
    content = treebank()
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "trainDevTestTrees_PTB.zip").write_bytes(content)
    with serving(tmp_path / "served") as url:
        train = data.sst(mirrors=[url], checksum=digest(content), cache=tmp_path / "kept")
    assert [tree.words for tree in train] == [["good", "fun"], ["no"]]
    assert data.sst(None, "test", mirrors=[], checksum=digest(content), cache=tmp_path / "kept")[0].label == 4
    (tmp_path / "kept" / "trainDevTestTrees_PTB.zip").write_bytes(b"PK damaged")
    with pytest.raises(RunnelError, match=r"has no intact trees/dev\.txt"):
        data.sst(None, "dev", mirrors=[], checksum=digest(b"PK damaged"), cache=tmp_path / "kept")
    with pytest.raises(ValueError, match=r"no folder 'dev'; for the split write sst\(split='dev'\)"):
        data.sst("dev")


def test_the_folder_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "sst" / "trees").mkdir(parents=True)
    (tmp_path / "sst" / "trees" / "dev.txt").write_text(TREES["dev"])
    (tmp_path / "input.txt").write_text("to be or not to be")
    with switches.override(data_dir=str(tmp_path)):
        assert data.sst(split="dev")[0].words == ["so"]
        assert len(data.tiny_shakespeare(held_out=0).train) == 18
        content = treebank()
        (tmp_path / "sst" / "trainDevTestTrees_PTB.zip").write_bytes(content)
        # it has no training trees by themselves: they are taken from the archive that is kept there
        assert len(data.sst(mirrors=[], checksum=digest(content))) == 2


@pytest.mark.suite
def test_a_full_disk_is_a_warning_and_leaves_nothing(tmp_path: Path) -> None:
    content = treebank() + bytes(0)
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "trainDevTestTrees_PTB.zip").write_bytes(content)
    script = """
import resource, sys, warnings
from runnel import data
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    trees = data.sst(mirrors=[sys.argv[1]], checksum=sys.argv[2])
print(len(trees), caught[0].message)
"""
    with serving(tmp_path / "served") as url:
        environment = {**os.environ, "RUNNEL_DATA_DIR": str(tmp_path / "kept")}
        command = [sys.executable, "-c", script, url, digest(content)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("2 ") and "cannot be kept" in done.stdout
    assert os.listdir(tmp_path / "kept" / "sst") == []
