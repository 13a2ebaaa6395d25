"""Tensors as text inside a compiled function: shape and dtype, without an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import runnel as rn
from runnel import nn
from runnel.core.errors import TracedValueError

TEXTS: dict[str, Callable[[Any], str]] = {
    "repr": repr,
    "str": str,
    "format": format,
    "an f-string": lambda x: f"{x}",
    "percent": lambda x: "%s" % x,  # noqa: UP031
    "in a list": lambda x: str([x]),
    "in a dict": lambda x: f"{ {'x': x} }",
    "join": lambda x: ", ".join(map(str, (x, x))),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_traced_tensor_has_a_text(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    @rn.compile
    def f(x: Any) -> Any:
        print(TEXTS[name](x))
        return x * 2

    assert f(rn.ones((2, 3))).shape == (2, 3)
    assert "Tensor(traced, float32[2,3])" in capsys.readouterr().out
    assert "traced" not in TEXTS[name](rn.ones((2, 3)))


def test_print_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    @rn.compile
    def f(x: Any) -> Any:
        print("x is", x)
        return x

    f(rn.ones(3))
    assert capsys.readouterr().out == "x is Tensor(traced, float32[3])\n"


def test_a_variable_shows_no_value_of_before(capsys: pytest.CaptureFixture[str]) -> None:
    layer = nn.Linear(2, 1)

    @rn.compile
    def f() -> None:
        layer.bias.assign(layer.bias * 2.0)
        print(repr(layer.bias))

    f()
    assert "traced" in capsys.readouterr().out
    assert "traced" not in repr(layer.bias)


def test_a_format_of_a_number_needs_the_number() -> None:
    assert f"{rn.asarray(1.25):.1f}" == "1.2"
    assert f"{rn.ones(2)}" == str(rn.ones(2))
    with pytest.raises(ValueError, match=r"\[format\].*\(2,\)"):
        format(rn.ones(2), ".1f")
    with pytest.raises(TracedValueError, match=r"\[format\].*test_traced_text.py:\d+.*Print the tensor as it is"):
        rn.compile(lambda x: f"{x:.1f}")(rn.asarray(1.0))
