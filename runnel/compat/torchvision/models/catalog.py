"""Networks by name."""

from __future__ import annotations

import fnmatch
from typing import Any

from runnel.compat.torchvision.models import (  # noqa: F401  # their constructors enter BUILDERS
    alexnet,
    convnext,
    densenet,
    efficientnet,
    googlenet,
    inception,
    mobilenetv2,
    mobilenetv3,
    resnet,
    shufflenetv2,
    squeezenet,
    vgg,
    vision_transformer,
)
from runnel.compat.torchvision.models.weights import BUILDERS
from runnel.core.errors import ArgumentError


def list_models(module: Any = None, include: str | list[str] | None = None, exclude: Any = None) -> list[str]:
    """Return the names of networks that match ``include`` and not ``exclude``, patterns such as "resnet*"."""
    chosen = set(BUILDERS)
    for patterns, keep in ((include, True), (exclude, False)):
        if patterns:
            own = [patterns] if isinstance(patterns, str) else patterns
            matching = {name for name in chosen if any(fnmatch.fnmatch(name, p) for p in own)}
            chosen = matching if keep else chosen - matching
    return sorted(chosen)


def get_model(name: str, **config: Any) -> Any:
    """Return the network ``name``."""
    if name.lower() not in BUILDERS:
        raise ArgumentError(f"[get_model] name must be one of {', '.join(sorted(BUILDERS))}; got {name!r}.")
    return BUILDERS[name.lower()](**config)
