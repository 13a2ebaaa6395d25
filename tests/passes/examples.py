"""The files of examples/passes and examples/memory_planners, imported as a user would."""

from __future__ import annotations

import ast
import functools
import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2] / "examples"


@functools.cache
def example(name: str) -> ModuleType:
    """A file by its path in the folder, without ``.py``. Attributes are registered once."""
    spec = importlib.util.spec_from_file_location(name.replace("/", "."), ROOT / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def imported(path: Path) -> set[str]:
    """The modules that a file imports, and what it imports from ``runnel`` itself."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            modules |= {f"runnel.{x.name}" for x in node.names} if node.module == "runnel" else {node.module}
    return {name for name in modules if name.split(".")[0] == "runnel"}
