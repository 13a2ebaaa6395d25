"""Ops by name, for attributes of ops that exist: a table, and a row for each op that has the attribute."""

from __future__ import annotations

import difflib

from runnel.core.errors import PassError
from runnel.core.showing import short_repr
from runnel.core.tables import Op


def op(name: str | Op) -> Op:
    """The op of this name; an op as it is.

    PassError if none is registered under it: those of a module that is not imported yet are not.
    """
    if isinstance(name, Op):
        return name
    known = Op.registry.get(name) if isinstance(name, str) else None
    if known is None:
        near = difflib.get_close_matches(name, Op.registry) if isinstance(name, str) else []
        hint = f"near are {', '.join(near)}" if near else "`runnel ops` lists all names"
        raise PassError(f"[passes] no op is called {short_repr(name)}; {hint}.")
    return known
