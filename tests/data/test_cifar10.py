"""CIFAR-10: the binary version, packed differences, the archive of a mirror, and damaged files."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from runnel import data
from runnel.core.errors import RunnelError
from tests.data.files import binary_cifar, binary_name, cifar_batches, write_packed_cifar
from tests.data.real import folder_of
from tests.data.server import serving

BATCHES = cifar_batches(7)


def check(actual: data.Classification) -> None:
    *training, (test_x, test_y) = BATCHES.values()
    np.testing.assert_array_equal(actual.train_x, np.concatenate([x for x, _ in training]) / np.float32(255))
    np.testing.assert_array_equal(actual.train_y, np.concatenate([y for _, y in training]))
    np.testing.assert_array_equal(actual.test_x, test_x / np.float32(255))
    np.testing.assert_array_equal(actual.test_y, test_y)
    assert (actual.train_x.dtype, actual.test_y.dtype) == (np.float32, np.int64)


def archive(leave_out: str = "") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as files:
        for name, batch in reversed(BATCHES.items()):
            content, entry = binary_cifar(*batch), tarfile.TarInfo(f"cifar-10-batches-bin/{binary_name(name)}")
            entry.size = len(content)
            if name != leave_out:
                files.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


@pytest.mark.parametrize("below", ["", "cifar10", "cifar-10-batches-bin"])
def test_binary_version(tmp_path: Path, below: str) -> None:
    (tmp_path / below).mkdir(exist_ok=True)
    for name, batch in BATCHES.items():
        (tmp_path / below / binary_name(name)).write_bytes(binary_cifar(*batch))
    check(data.cifar10(tmp_path))


def test_packed_differences(tmp_path: Path) -> None:
    write_packed_cifar(tmp_path, BATCHES)
    check(data.cifar10(tmp_path))


def test_the_archive_is_downloaded_once(tmp_path: Path) -> None:
    served, cache = tmp_path / "served", tmp_path / "cache"
    served.mkdir()
    content = archive()
    (served / "cifar-10-binary.tar.gz").write_bytes(content)
    checksum = hashlib.sha256(content).hexdigest()
    with serving(served) as url:
        check(data.cifar10(mirrors=[url], checksum=checksum, cache=cache))
    check(data.cifar10(mirrors=[], checksum=checksum, cache=cache))
    with pytest.raises(RunnelError, match="could not be had from any mirror"):
        data.cifar10(mirrors=[], checksum="0" * 64, cache=cache)


@pytest.mark.parametrize(("content", "message"), [(archive("train_3"), "has no data_batch_3.bin"), (b"x", "no intact")])
def test_a_damaged_archive_is_reported(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(content)
    with pytest.raises(RunnelError, match=message):
        data.cifar10(mirrors=[], checksum=hashlib.sha256(content).hexdigest(), cache=tmp_path)


def test_files_that_do_not_fit_are_reported(tmp_path: Path) -> None:
    with pytest.raises(RunnelError, match=r"has no file data_batch_1.bin .* or train_1.npz"):
        data.cifar10(tmp_path)
    write_packed_cifar(tmp_path, BATCHES)
    np.savez(tmp_path / "train_2.npz", x=np.zeros((3, 3, 32, 32), np.uint8), y=np.zeros(4, np.uint8))
    with pytest.raises(RunnelError, match=r"images \(3, 3, 32, 32\) and labels \(4,\)"):
        data.cifar10(tmp_path)
    np.savez(tmp_path / "train_2.npz", x=np.zeros((3, 3, 32, 32), np.uint8))
    with pytest.raises(RunnelError, match="has no array y; it has x"):
        data.cifar10(tmp_path)
    np.savez(tmp_path / "train_2.npz", x=np.array([{}]), y=np.zeros(1, np.uint8))
    with pytest.raises(RunnelError, match="can be read: Object arrays"):
        data.cifar10(tmp_path)
    (tmp_path / "train_2.npz").write_bytes(b"PK no archive")
    with pytest.raises(RunnelError, match="is no npz file"):
        data.cifar10(tmp_path)
    write_packed_cifar(tmp_path, {"train_2": (np.zeros((1, 3, 32, 32), np.uint8), np.array([11], np.uint8))})
    with pytest.raises(RunnelError, match="a label is 11"):
        data.cifar10(tmp_path)
    (tmp_path / "data_batch_1.bin").write_bytes(bytes(3072))
    with pytest.raises(RunnelError, match="3072 bytes, no multiple of 3073"):
        data.cifar10(tmp_path)


@pytest.mark.suite
def test_the_real_set() -> None:
    actual = data.cifar10(folder_of("cifar10"))
    assert actual.train_x.shape == (50_000, 3, 32, 32) and actual.test_x.shape == (10_000, 3, 32, 32)
    assert np.bincount(actual.train_y).tolist() == [5000] * 10 and np.bincount(actual.test_y).tolist() == [1000] * 10
    mean = actual.train_x.mean((0, 2, 3), dtype=np.float64)
    np.testing.assert_allclose(mean, [0.4914, 0.4822, 0.4465], atol=1e-4)  # as published everywhere
