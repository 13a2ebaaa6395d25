"""``torch._foreach_add`` and the like: one operation on each tensor of a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

_NAMES: Final = """
    abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min copy cos cosh div erf erfc exp expm1 floor frac
    lerp lgamma log log10 log1p log2 maximum minimum mul neg norm pow reciprocal round rsqrt sigmoid sign sin sinh sqrt
    sub tan tanh trunc zero
"""
NAMES: Final = _NAMES.split()
_ONLY_IN_PLACE: Final = ("copy", "zero")
_VALUES: Final = ("addcdiv", "addcmul")  # the third argument is ``value``


def _each(name: str, tensors: Sequence[Any], args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    """Return the method ``name`` of each tensor, called with the items at its place of arguments that are lists."""
    if name.rstrip("_") in _VALUES and len(args) == 3:
        *args, value = args
        kwargs = kwargs | {"value": value}
    for x in (*args, *kwargs.values()):
        if isinstance(x, (list, tuple)) and len(x) != len(tensors):
            raise ValueError(f"[_foreach_{name}] lists must have {len(tensors)} items; got one of {len(x)}.")

    def at(i: int, x: Any) -> Any:
        return x[i] if isinstance(x, (list, tuple)) else x

    return [
        _called(name, tensor, [at(i, x) for x in args], {key: at(i, x) for key, x in kwargs.items()})
        for i, tensor in enumerate(tensors)
    ]


def _called(name: str, tensor: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if name.endswith("_") and not hasattr(tensor, name):
        return tensor.copy_(getattr(tensor, name.removesuffix("_"))(*args, **kwargs))
    return getattr(tensor, name)(*args, **kwargs)


def _new(name: str) -> Callable[..., Any]:
    def foreach(self: Sequence[Any], *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        return tuple(_each(name, self, args, kwargs))

    foreach.__name__ = foreach.__qualname__ = f"_foreach_{name}"
    foreach.__doc__ = f"Return ``{name}`` of each tensor in a list."
    return foreach


def _in_place(name: str) -> Callable[..., Any]:
    def foreach(self: Sequence[Any], *args: Any, **kwargs: Any) -> None:
        _each(f"{name}_", self, args, kwargs)

    foreach.__name__ = foreach.__qualname__ = f"_foreach_{name}_"
    foreach.__doc__ = f"Give each tensor in a list the value of ``{name}`` of it."
    return foreach


globals().update({f"_foreach_{name}": _new(name) for name in NAMES if name not in _ONLY_IN_PLACE})
globals().update({f"_foreach_{name}_": _in_place(name) for name in NAMES if name != "norm"})

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
