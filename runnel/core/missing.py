"""Messages for missing names: what to write instead, or which names are near.

The sentence is made when somebody reads it, so that ``hasattr`` costs what it did.
"""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Callable, Iterable

from runnel.core.equivalents import ABSENT, EQUIVALENTS
from runnel.core.errors import MissingNameError


def missing(
    owner: str, name: str, names: Callable[[], Iterable[str]], elsewhere: Callable[[], str] = str
) -> AttributeError:
    """Return the error for ``owner.name``, where ``owner``, a module or a class, has ``names()``, and ``elsewhere()``
    is what to write instead, if another module has the name."""
    if name.startswith("_"):  # asked by protocols such as copying and pickling
        return AttributeError(f"[{owner}] there is no attribute '{name}'.")
    return MissingNameError(lambda: f"[{owner}] there is no '{name}'{_instead(owner, name, names(), elsewhere())}")


def _instead(owner: str, name: str, names: Iterable[str], elsewhere: str) -> str:
    known = EQUIVALENTS.get(owner, {}).get(name) or ABSENT.get(owner) or elsewhere
    if known:
        return f"; write {known}."
    if _is_module(owner, name):
        return f" before `import {owner}.{name}`: it is a module of its own."
    offered = [n for n in names if not n.startswith("_")]
    folded = {n.lower(): n for n in offered}
    near = [folded[n] for n in difflib.get_close_matches(name.lower(), folded, 3)]
    if near:
        return f"; did you mean {' or '.join(near)}?" if len(near) < 3 else f"; did you mean {', '.join(near)}?"
    others = [space for space, table in EQUIVALENTS.items() if space != owner and name in table]
    return f"; write {EQUIVALENTS[others[0]][name]}." if others else f"; dir({owner}) lists what there is."


def _is_module(owner: str, name: str) -> bool:
    try:
        return importlib.util.find_spec(f"{owner}.{name}") is not None
    except ModuleNotFoundError:  # the owner is no package
        return False
