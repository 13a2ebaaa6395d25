"""Constructors of networks, which refuse weights that would be downloaded, and the names of these weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from runnel.core.errors import UnsupportedError
from runnel.nn.module import Module
from runnel.ops.shapes.pieces import stack

BUILDERS: Final[dict[str, Callable[..., Any]]] = {}
_IMAGENET: Final = ((0.485, 0.229), (0.456, 0.224), (0.406, 0.225))  # mean and deviation of each channel


def refuse(name: str, *weights: Any) -> None:
    """Raise UnsupportedError if any weights are asked for."""
    if any(weights):
        raise UnsupportedError(
            f"[{name}] trained weights are not downloaded: pass weights=None, then "
            f"model.load_state_dict(torch.load(path)) with torchvision's file for {name}."
        )


def constructor(name: str, build: Callable[..., Module]) -> Callable[..., Any]:
    """Return the function ``name`` that makes a network by ``build(name, **options)``."""

    def make(*, weights: Any = None, progress: bool = True, pretrained: bool = False, **kwargs: Any) -> Module:
        refuse(name, weights, pretrained, kwargs.pop("weights_backbone", None), kwargs.pop("pretrained_backbone", None))
        return build(name, **kwargs)

    make.__name__ = make.__qualname__ = name
    make.__module__ = build.__module__
    make.__doc__ = f"Return the network {name} with initial weights."
    BUILDERS[name] = make
    return make


def imagenet_to_halves(x: Any) -> Any:
    """Return images normalized with means and deviations of 0.5 in place of ImageNet's."""
    scaled = [x[:, i] * (std / 0.5) + (mean - 0.5) / 0.5 for i, (mean, std) in enumerate(_IMAGENET)]
    return stack(scaled, axis=1)


class _Weights:
    """Names of trained weights, such as ``ResNet18_Weights.DEFAULT``: true values that constructors refuse."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, part: str) -> str:
        if part.startswith("_"):
            raise AttributeError(part)
        return f"{self.name}.{part}"

    def __repr__(self) -> str:
        return f"<torchvision's names of weights {self.name}>"


def __getattr__(name: str) -> Any:
    """Return the names of weights ``NAME_Weights``."""
    if not name.endswith("_Weights"):
        raise AttributeError(name)
    found = globals()[name] = _Weights(name)
    return found
