"""The targets of pages exist: names of modules, and headings after a `#`."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import PAGES, README, ROOT, prose

MODULES = {
    "rn": "runnel",
    "runnel": "runnel",
    "nn": "runnel.nn",
    "F": "runnel.nn.functional",
    "optim": "runnel.optim",
    "lr_scheduler": "runnel.optim.lr_scheduler",
    "swa_utils": "runnel.optim.swa_utils",
    "data": "runnel.data",
    "train": "runnel.train",
    "dg": "runnel.declarative",
}
_NAME = re.compile(rf"(?<![\w./-])({'|'.join(MODULES)})((?:\.[A-Za-z_]\w*)+)")
_FILE = re.compile(r"[\w-]+\.(txt|py|md|npy|npz)")
WHOLE = [README, *PAGES]


def missing(code: str) -> list[str]:
    """The names in a piece of code that lead nowhere."""
    found = []
    for module, parts in [] if _FILE.fullmatch(code) else _NAME.findall(code):
        value: Any = importlib.import_module(MODULES[module])
        path = MODULES[module]
        for part in parts[1:].split("."):
            path += f".{part}"
            try:
                value = getattr(value, part, None) or importlib.import_module(path)
            except ImportError:
                found.append(path)
                break
    return found


@pytest.mark.parametrize("page", WHOLE, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_in_the_text_exist(page: Path) -> None:
    codes = re.findall(r"`([^`\n]+)`", prose(page.read_text(encoding="utf-8")))
    assert [name for code in codes for name in missing(code)] == []


def test_a_name_that_does_not_exist_is_seen() -> None:
    assert missing("nn.Linar(2, 3)") == ["runnel.nn.Linar"] and missing("rn.optim.Adam(…)") == []


def headings(page: Path) -> set[str]:
    """Return the fragment of each heading, as MkDocs and GitHub make it."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    plain = [re.sub(r"[`*]", "", heading).strip().lower() for heading in re.findall(r"^#+ (.*)$", text, flags=re.M)]
    return {re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", heading)) for heading in plain}


def test_headings_that_are_linked_exist() -> None:
    wrong = []
    for page in WHOLE:
        for link, heading in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", page.read_text(encoding="utf-8")):
            target = (page.parent / link).resolve() if link else page
            if "://" not in link and heading not in headings(target):
                wrong.append(f"{page.name}: {link}#{heading}")
    assert wrong == []
