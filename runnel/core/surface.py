"""Where users find a function or a class: said where it is defined, and read from the source by ``scripts/surface.py``,
which writes the namespaces, the methods of Tensor and Variable, and the reference of the documentation.

A place is a namespace, and the names there after a colon, the aliases behind the name itself: ``"rn"``,
``"Tensor: mul multiply"``. Without a colon it is there under its own name. The places are those of
``scripts/surface.py`` (``rn``, ``functional``, ``linalg``, ``nn``, ``optim``, ``lr_scheduler``, …), and

* ``Tensor``: a method of tensors and Variables, which are the first argument;
* ``Tensor_``: a method with ``_`` behind its name, which gives its array the value of the function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def offered(
    *places: str, views: bool = False, spread: bool = False, function: str = "", alone: str = ""
) -> Callable[[T], T]:
    """A decorator, which leaves what it decorates as it is.

    Args:
        places: where it is found.
        views: the result may be the argument itself; the method gives another handle then.
        spread: the method also takes the last argument, a sequence, as several arguments.
        function: of a layer, the function of ``nn.functional`` that it computes.
        alone: of a layer without one, why there is none.
    """
    return _as_it_is


def offered_names(place: str, *names: str) -> None:
    """The same for what a module holds under ``names`` and no ``def`` or ``class`` made."""


def _as_it_is(value: T) -> T:
    return value
