"""Runnel under PyTorch's modules and names: ``import runnel.compat.torch as torch``.

PyTorch's modules have no files here. They are made from the data of ``names`` when this package is imported, so that
``import runnel.compat.torch.nn.functional as F`` finds them in ``sys.modules``.
"""

import sys
from collections.abc import Callable
from functools import partial
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from runnel.compat.torch import refusals
from runnel.compat.torch.names import FORWARDS, NAMES
from runnel.compat.torch.refusals import OPEN_SENTENCES
from runnel.core.namespaces import namespace


def _refused(path: str, found: Callable[[str], Any], name: str) -> Any:
    """Return the name of a module without any: a part of the package, or a class whose call raises."""
    try:
        return found(name)
    except AttributeError:
        return getattr(refusals, f"{path}.{name}")


def _make(path: str, parts: list[str]) -> None:
    """Make the module ``path``, a package if it has ``parts``, with the names of the modules that it forwards."""
    name = f"{__name__}.{path}"
    module = sys.modules[name] = ModuleType(name, f"PyTorch's module ``torch.{path}``.")
    module.__spec__ = ModuleSpec(name, None, is_package=bool(parts))
    module.__package__ = name if parts else name.rpartition(".")[0]
    if parts:
        module.__path__ = []
    names = {part: f"{name}.{part}" for part in parts} | NAMES.get(path, {})
    forwards = tuple(FORWARDS.get(path, "").split())
    module.__all__, module.__getattr__, module.__dir__ = namespace(name, names, forwards=forwards)  # type: ignore[method-assign]
    if path in OPEN_SENTENCES:
        module.__getattr__ = partial(_refused, path, module.__getattr__)  # type: ignore[method-assign]
    if forwards:
        del module.__all__  # includes the forwarded modules' names, so it is computed on request


_PATHS = sorted({*FORWARDS, *NAMES} - {"torch"})
for _path in _PATHS:
    _make(_path, [p.rpartition(".")[2] for p in _PATHS if p.rpartition(".")[0] == _path])
for _path in _PATHS:
    _holder, _, _part = _path.rpartition(".")
    if _part not in NAMES.get(_holder, {}):  # a function of PyTorch hides the module of its name, as gradcheck does
        setattr(sys.modules[f"{__name__}.{_holder}".rstrip(".")], _part, sys.modules[f"{__name__}.{_path}"])

_OWN = {part: f"{__name__}.{part}" for part in _PATHS if "." not in part} | {"torch": __name__} | NAMES["torch"]
__all__, __getattr__, __dir__ = namespace(__name__, _OWN, forwards=("runnel", "runnel.nn.functional"))
del __all__
