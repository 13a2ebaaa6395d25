"""Every public class: copies and pickles of all protocols hold the same, own their memory, and work in a fresh process.

The classes are found by walking the public namespaces, so a new one without an example fails here.
"""

from __future__ import annotations

import copy
import importlib
import pickle
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import runnel as rn
from runnel import nn
from tests.tensor.copying.described import described, memory_of, overlap
from tests.tensor.copying.examples import EXAMPLES, PUBLIC, called, made, public_classes

pytestmark = pytest.mark.suite


ROOT = Path(__file__).resolve().parents[3]
BY_NAME = {f"{kind.__module__}.{kind.__qualname__}": kind for kind in EXAMPLES}


def out_of_band(thing: Any) -> Any:
    """Through protocol 5 with its buffers apart. Tensors must not care what becomes of these; NumPy's arrays do."""
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(thing, 5, buffer_callback=buffers.append)
    lent = [bytearray(b.raw()) for b in buffers]
    loaded = pickle.loads(data, buffers=lent)
    for buffer, lender in zip(lent, buffers, strict=True):
        if memoryview(lender).format == "B":  # no array of NumPy here holds uint8
            buffer[:] = b"\xff" * len(buffer)
    return loaded


WAYS = {
    "deepcopy": copy.deepcopy,
    **{f"protocol {p}": lambda x, p=p: pickle.loads(pickle.dumps(x, p)) for p in range(2, 6)},
    "out of band": out_of_band,
}


def test_every_public_class_has_an_example() -> None:
    assert {kind.__qualname__ for kind in public_classes() - EXAMPLES.keys()} == set()
    assert all(type(made(kind)) is kind for kind in EXAMPLES)


@pytest.mark.parametrize("name", [*PUBLIC, "runnel.nn.functional", "runnel.nn.init", "runnel.ops"])
def test_public_functions_are_known_by_their_names(name: str) -> None:
    """They are attributes of users' modules: ``self.activation = rn.relu``."""
    module = importlib.import_module(name)
    names = getattr(module, "__all__", [n for n in vars(module) if not n.startswith("_")])
    functions = [f for f in (getattr(module, n) for n in names) if isinstance(f, types.FunctionType)]
    for function in functions:
        for protocol in range(2, 6):
            assert pickle.loads(pickle.dumps(function, protocol)) is function


@pytest.mark.parametrize("name", BY_NAME)
def test_copies_hold_the_same_and_own_their_memory(name: str) -> None:
    kind = BY_NAME[name]
    original = made(kind)
    before = described(original)
    for way, copied in WAYS.items():
        actual = copied(original)
        assert type(actual) is kind and described(actual) == before, way
        assert len(memory_of(actual)) == len(memory_of(original)) and not overlap(actual, original), way
    shallow = copy.copy(original)
    assert type(shallow) is kind
    assert described(original) == before == described(shallow)


def test_a_fresh_process_finds_the_same(tmp_path: Path) -> None:
    pickled, messages = [], []
    for i, (name, kind) in enumerate(BY_NAME.items()):
        instance = made(kind)
        pickled.append((name, pickle.dumps(instance, 2 + i % 4)))
        messages.append((described(instance), described(called(kind, instance))))
    (tmp_path / "pickled").write_bytes(pickle.dumps(pickled))
    command = [
        sys.executable,
        "-m",
        "tests.tensor.copying.fresh_process",
        str(tmp_path / "pickled"),
        str(tmp_path / "found"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    actual = pickle.loads((tmp_path / "found").read_bytes())
    assert [name for name, one, two in zip(BY_NAME, actual, messages, strict=True) if one != two] == []


def test_what_is_called_in_the_fresh_process_includes_dropout() -> None:
    """Otherwise equal results would say nothing about random state."""
    instance = made(nn.Dropout)
    rn.manual_seed(1)
    one = called(nn.Dropout, instance)
    assert (one == 0).any() and not (one == 0).all()
