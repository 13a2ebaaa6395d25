"""Messages and docstrings name nothing of Runnel's that does not exist."""

from __future__ import annotations

import ast
import importlib
import pathlib
import re
from typing import Any

import pytest

import runnel as rn
from tests.test_house import PACKAGE, parsed, sources

NAMES = re.compile(r"(?<![\w.`/])(?:rn|runnel)\.([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")


def exists(path: str) -> bool:
    parts = path.split(".")
    actual: Any = rn
    for i, part in enumerate(parts):
        try:
            actual = getattr(actual, part)
        except AttributeError:
            try:
                actual = importlib.import_module(".".join(["runnel", *parts[: i + 1]]))
            except ImportError:
                return False
    return True


def named_in(file: pathlib.Path) -> list[tuple[int, str]]:
    texts = [n for n in ast.walk(parsed(file)) if isinstance(n, ast.Constant)]
    return [(n.lineno, path) for n in texts if isinstance(n.value, str) for path in NAMES.findall(n.value)]


@pytest.mark.suite
def test_names_exist() -> None:
    actual = [(file, *place) for file in sources() for place in named_in(file)]
    assert len(actual) > 100
    assert [f"{file.relative_to(PACKAGE)}:{line} {path}" for file, line, path in actual if not exists(path)] == []


def test_a_name_that_does_not_exist_is_seen() -> None:
    assert exists("rand") and exists("nn.functional.relu") and exists("compile")
    assert not exists("random_numbers") and not exists("nn.nothing")
