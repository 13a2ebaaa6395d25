"""Generated functions: equal texts are compiled by Python once, and each function has its own namespace and code."""

from __future__ import annotations

from typing import Any

from runnel.core import functions

TEXT = "def scaled(x):\n    return [x * factor for _ in range(2)]\n"


def test_equal_texts_are_compiled_once() -> None:
    functions.bytecode.cache_clear()
    spaces: list[dict[str, Any]] = [{"factor": 2}, {"factor": 3}]
    two, three = (functions.from_text(TEXT, "<scaled>", space) for space in spaces)
    assert functions.bytecode.cache_info().misses == 1
    assert two(5) == [10, 10] and three(5) == [15, 15]
    assert two.__code__ is not three.__code__, "the interpreter specializes code for one namespace"
    spaces[0]["factor"] = 7
    assert two(5) == [35, 35] and "scaled" not in spaces[0], "a function does not keep itself alive"


def test_expressions_and_statements_of_one_text_differ() -> None:
    space: dict[str, Any] = {"a": 1}
    assert eval(functions.bytecode("a", "<a>", "eval"), space) == 1
    assert eval(functions.bytecode("a", "<a>"), space) is None
