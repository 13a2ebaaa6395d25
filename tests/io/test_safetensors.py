"""safetensors files: every dtype goes round, writing is atomic, damage is told."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

import runnel as rn
from runnel import nn
from runnel.core import dtypes
from runnel.core.errors import RunnelError


def test_all_dtypes_and_shapes_go_round(tmp_path: Path) -> None:
    path = tmp_path / "all.safetensors"
    state = {d.name: rn.asarray(np.arange(6).reshape(2, 3), d) for d in dtypes.ALL}
    state |= {"scalar": rn.asarray(2.5), "empty": rn.zeros((0, 3)), "turned": rn.asarray(np.eye(3)[:2]).T}
    rn.save_file(state, path)
    actual = rn.load_file(path)
    assert set(actual) == set(state)
    for name, value in actual.items():
        assert (value.dtype, value.shape) == (state[name].dtype, state[name].shape)
        np.testing.assert_array_equal(value.numpy(), state[name].numpy())


def test_a_module_goes_round_and_others_can_read_it(tmp_path: Path) -> None:
    path = str(tmp_path / "net.safetensors")
    one, two = nn.Linear(3, 2), nn.Linear(3, 2)
    rn.save_file(one.state_dict(), path, {"step": "7"})
    two.load_state_dict(rn.load_file(path))
    np.testing.assert_array_equal(one.weight.numpy(), two.weight.numpy())
    with safe_open(path, framework="numpy") as file:
        assert file.metadata() == {"step": "7"}
        np.testing.assert_array_equal(file.get_tensor("bias"), one.bias.numpy())


@pytest.mark.parametrize("moment", ["replace", "fsync"])
def test_a_crash_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    path = tmp_path / "a.safetensors"
    rn.save_file({"x": rn.ones((2,))}, path)
    before = path.read_bytes()

    def crash(*args: object, **kwargs: object) -> None:
        raise OSError("the power went out")

    with monkeypatch.context() as patch:
        patch.setattr(os, moment, crash)
        with pytest.raises(OSError, match="the power went out"):
            rn.save_file({"x": rn.zeros((2,))}, path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.safetensors"]


def test_permissions_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    rn.save_file({"x": rn.ones((2,))}, path)
    path.chmod(0o640)
    rn.save_file({"x": rn.zeros((2,))}, path)
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("length", [0, 5, 40, -1])
def test_a_truncated_file_is_reported(tmp_path: Path, length: int) -> None:
    path = tmp_path / "a.safetensors"
    rn.save_file({"x": rn.ones((20,))}, path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(RunnelError, match=r"a\.safetensors' cannot be read: "):
        rn.load_file(path)
