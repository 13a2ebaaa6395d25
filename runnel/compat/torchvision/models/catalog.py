"""Networks by name."""

from __future__ import annotations

import fnmatch
from typing import Any

from runnel.compat.torchvision.models import resnet, squeezenet, vgg
from runnel.compat.torchvision.models.alexnet import alexnet
from runnel.core.errors import ArgumentError

_MODULES = (resnet, squeezenet, vgg)
_BUILDERS = {"alexnet": alexnet} | {
    name: value
    for module in _MODULES
    for name, value in vars(module).items()
    if callable(value) and getattr(value, "__code__", None) is resnet.resnet18.__code__
}


def list_models(module: Any = None, include: str | list[str] | None = None, exclude: Any = None) -> list[str]:
    """Return the names of networks that match ``include`` and not ``exclude``, patterns such as "resnet*"."""
    chosen = set(_BUILDERS)
    for patterns, keep in ((include, True), (exclude, False)):
        if patterns:
            own = [patterns] if isinstance(patterns, str) else patterns
            matching = {name for name in chosen if any(fnmatch.fnmatch(name, p) for p in own)}
            chosen = matching if keep else chosen - matching
    return sorted(chosen)


def get_model(name: str, **config: Any) -> Any:
    """Return the network ``name``."""
    if name.lower() not in _BUILDERS:
        raise ArgumentError(f"[get_model] name must be one of {', '.join(sorted(_BUILDERS))}; got {name!r}.")
    return _BUILDERS[name.lower()](**config)
