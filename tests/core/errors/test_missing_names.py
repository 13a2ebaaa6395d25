"""Names that do not exist: the error says what to write, and protocols that probe for attributes are not disturbed."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import runnel as rn
import runnel.compat.torch as torch
from runnel import nn, optim
from runnel.compat.equivalents import EQUIVALENTS
from runnel.core.errors import MissingNameError, RunnelError
from runnel.nn import functional

X = rn.ones((2, 3))
OWNERS: dict[str, Any] = {
    "runnel": rn, "runnel.nn": nn, "runnel.nn.functional": functional, "runnel.optim": optim, "Tensor": X,
    "runnel.random": rn.random, "runnel.compat.torch": torch,
}  # fmt: skip


def test_no_row_is_about_a_name_that_exists() -> None:
    stale = [f"{owner}.{name}" for owner in OWNERS for name in EQUIVALENTS[owner] if hasattr(OWNERS[owner], name)]
    assert stale == []


def rows() -> Iterator[tuple[str, str, str]]:
    for owner, table in EQUIVALENTS.items():
        for name, instead in table.items():
            yield owner, name, instead


@pytest.mark.parametrize(("owner", "name", "instead"), list(rows()))
def test_the_suggested_names_exist(owner: str, name: str, instead: str) -> None:
    module: Any = rn
    for path in re.findall(r"\brunnel(?:\.\w+)+", instead):
        module, _, attribute = path.rpartition(".")
        if not hasattr(importlib.import_module(module), attribute):
            importlib.import_module(path)
    if isinstance(module, str):  # "runnel.nn.BatchNorm1d, BatchNorm2d or …": the same module's
        for other in re.findall(r"[ ,]([A-Za-z]+\d?d?)(?=,| or |$)", instead.partition("(")[0]):
            if other != "or" and other[0].isupper():
                assert hasattr(importlib.import_module(module), other), other
    for method in re.findall(r"\b[xy]\.(\w+)", instead):
        assert hasattr(X, method), method


@pytest.mark.parametrize("owner", OWNERS)
def test_every_row_is_reported(owner: str) -> None:
    for name, instead in EQUIVALENTS[owner].items():
        with pytest.raises(AttributeError) as caught:
            getattr(OWNERS[owner], name)
        advice = instead.replace("nothing:", "leave it out:") if instead[:8] == "nothing:" else f"write {instead}"
        assert str(caught.value) == f"[{owner}] there is no '{name}'; {advice}."


NEAR: list[tuple[str, str, str]] = [
    ("runnel", "sotfmax", "did you mean softmax"),
    ("runnel", "Softmax", "did you mean softmax"),
    ("runnel", "cross_entrpy", "did you mean cross_entropy"),
    ("runnel.nn", "Conv2D", "did you mean Conv2d"),
    ("runnel.nn", "MultiHeadAttention", "did you mean MultiheadAttention"),
    ("runnel.nn", "LayerNrom", "did you mean LayerNorm"),
    ("runnel.nn.functional", "leakyrelu", "did you mean leaky_relu"),
    ("runnel.optim", "Adamw", "did you mean AdamW"),
    ("Tensor", "reshap", "did you mean reshape"),
    ("Tensor", "requires_gradd", "did you mean requires_grad"),
    ("runnel", "qqqqq", r"dir\(runnel\) lists"),
    ("runnel", "declarative", r"`import runnel\.declarative`"),
    ("runnel.nn.functional", "true_div", r"dir\(runnel\.nn\.functional\) lists"),
]


@pytest.mark.parametrize(("owner", "name", "hint"), NEAR)
def test_near_names_are_offered(owner: str, name: str, hint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "declarative":
        monkeypatch.delattr(rn, "declarative", raising=False)
    with pytest.raises(AttributeError, match=rf"\[{re.escape(owner)}\].*'{name}'.*{hint}"):
        getattr(OWNERS[owner], name)


@pytest.mark.parametrize(("owner", "name", "hint"), NEAR)
def test_a_sentence_ends_once(owner: str, name: str, hint: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(OWNERS[owner], "qqqqq" if name == "declarative" else name)
    assert re.search(r"\w[)`]?( lists the names it has\.|[.?])$", str(caught.value))


def test_the_error_is_an_attribute_error_and_can_be_pickled() -> None:
    with pytest.raises(MissingNameError) as caught:
        _ = rn.zero_s  # type: ignore[attr-defined]
    assert isinstance(caught.value, AttributeError) and isinstance(caught.value, RunnelError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize("owner", OWNERS)
def test_probing_costs_no_sentence(owner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def hint(*args: Any) -> str:
        raise AssertionError("a sentence was made that nobody reads")

    monkeypatch.setattr("runnel.core.missing._instead", hint)
    assert not hasattr(OWNERS[owner], "softmaxx")
    assert getattr(OWNERS[owner], "no_such_name", 3) == 3
    assert not hasattr(OWNERS[owner], "__no_such_protocol__")


def test_protocols_are_not_disturbed() -> None:
    variable = nn.Parameter(np.ones(2, np.float32))
    for value in (X, variable):
        assert np.asarray(value).shape == value.shape
        assert copy.copy(value).shape == copy.deepcopy(value).shape == value.shape
        assert pickle.loads(pickle.dumps(value)).shape == value.shape
        assert not hasattr(value, "__cuda_array_interface__") and not callable(value)
    assert inspect.getmodule(rn.relu) is not None and inspect.signature(rn.sum).parameters["axis"].default is None
    assert pickle.loads(pickle.dumps(rn.relu)) is rn.relu
    assert pickle.loads(pickle.dumps(functional.conv2d)) is functional.conv2d


def test_in_a_compiled_function() -> None:
    with pytest.raises(AttributeError, match=r"\[runnel\] there is no 'swish'"):
        rn.compile(lambda x: rn.swish(x))(X)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"\[Tensor\] there is no 'numell'"):
        rn.compile(lambda x: x * x.numell())(X)
