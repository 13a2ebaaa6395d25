"""What of a watched thing changed, as part of a sentence: the first element that differs, not just "another tuple"."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Set
from typing import Any

import numpy as np

from runnel.compile.checks import MISSING, differs, shown
from runnel.core.lifetime import Weak
from runnel.tensor.tensor import Tensor


def changed(name: str, before: Any, after: Any) -> str:
    """``"x changed from 1 to 2"``, or ``"x[3] changed from 1 to 2"`` for the first difference of two containers."""
    if type(before) is type(after):
        if isinstance(before, (list, tuple, deque)):
            return _changed_items(name, before, after)
        if isinstance(before, Set):
            return _changed_members(name, before, after)
        if isinstance(before, np.ndarray) and before.shape == after.shape and before.dtype == after.dtype:
            return _changed_elements(name, before, after)
        if isinstance(before, Tensor) and before.requires_grad != after.requires_grad:
            return changed(f"{name}.requires_grad", before.requires_grad, after.requires_grad)
    return f"{name} changed from {told(before)} to {told(after)}"


def keys_changed(name: str, before: tuple[Any, ...], after: tuple[Any, ...]) -> str:
    """The same for the keys of a dict."""
    for old, new in itertools.zip_longest(before, after, fillvalue=MISSING):
        if old is MISSING:
            return f"{name} got the key {shown(new)}"
        if new is MISSING:
            return f"{name} lost the key {shown(old)}"
        if _differ(old, new):
            return f"{name} has the key {shown(new)} where {shown(old)} was"
    return f"{name} changed in the order of its keys"


def _changed_items(name: str, before: Any, after: Any) -> str:
    for i, (old, new) in enumerate(itertools.zip_longest(before, after, fillvalue=MISSING)):
        if old is not new and _differ(old, new):
            return changed(f"{name}[{i}]", old, new)
    return f"{name} changed to another one with the same items"


def _changed_members(name: str, before: Set[Any], after: Set[Any]) -> str:
    moves = (("lost", before - after), ("got", after - before))
    told = [f"{verb} {', '.join(sorted(map(shown, items)))}" for verb, items in moves if items]
    return f"{name} {' and '.join(told)}" if told else f"{name} changed to another one with the same members"


def _changed_elements(name: str, before: np.ndarray, after: np.ndarray) -> str:
    places = np.argwhere((before != after) & ((before == before) | (after == after)))
    if not len(places):
        return f"{name} changed in the bits of zeros or NaNs"
    place = tuple(map(int, places[0]))
    return f"{name}{list(place)} changed from {before[place]} to {after[place]}"


def _differ(old: Any, new: Any) -> bool:
    if isinstance(old, (np.ndarray, Tensor)) or isinstance(new, (np.ndarray, Tensor)):
        return old is not new
    return differs(old, new)


def told(value: Any) -> str:
    """A value in a sentence; what is held weakly as what it is."""
    if type(value) is Weak:
        value = value()
        if value is None:
            return "something that is gone"
    return value.__name__ if isinstance(value, type) else shown(value)
