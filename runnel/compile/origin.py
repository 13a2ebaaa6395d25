"""Where a class, function or module comes from: which state ticks the clock, and which code is not the user's.

Code of Python's library, of NumPy and of this package is not searched for what it reads: its own state is not an input
of programs, or it is held in Variables.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Final

from runnel.core.lifetime import ByIdentity

_PACKAGE: Final = __name__.partition(".")[0]
_LIBRARIES: Final = frozenset({_PACKAGE, "numpy", "ml_dtypes", "llvmlite"})
_STDLIB: Final = os.path.dirname(os.__file__) + os.sep


@functools.lru_cache(maxsize=4096)
def is_foreign(module: str | None) -> bool:
    """Whether the code of this module is left alone."""
    top = (module or "__main__").partition(".")[0]
    if top in _LIBRARIES:
        return True
    if top == "__main__" or top not in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(top), "__file__", None)
    return file is None or file.startswith(_STDLIB)  # a user's file may have the name of one in the library


_TICKS: Final[ByIdentity[type, bool]] = ByIdentity()


def ticks_clock(kind: type) -> bool:
    """Whether setting an attribute of such an object ticks the state clock (modules and optimizers)."""
    return _TICKS.setdefault(kind, lambda: any(is_ours(c) and "__setattr__" in c.__dict__ for c in kind.__mro__))


def is_ours(kind: type) -> bool:
    """Whether a class is this package's own, and not a user's subclass."""
    return kind.__module__.partition(".")[0] == _PACKAGE


_PLAIN: Final = (bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented), range, slice)


def is_plain(value: Any) -> bool:
    """Whether a value is compared by value: it cannot change, and nothing hangs on which object it is."""
    return value is None or isinstance(value, _PLAIN)
