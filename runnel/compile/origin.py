"""Where a class, function or module comes from: which state ticks the clock, and which code is not the user's.

Code of Python's library, of NumPy and of this package is not searched for what it reads: its own state is not an input of
programs, or it is held in Variables.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Final

_PACKAGE: Final = __name__.partition(".")[0]
_FOREIGN: Final = sys.stdlib_module_names | {"numpy", "ml_dtypes", "llvmlite", "runnel"}


def is_foreign(module: str | None) -> bool:
    """Whether a module's code is left alone."""
    return module is not None and module != "__main__" and module.partition(".")[0] in _FOREIGN


@functools.lru_cache(maxsize=4096)
def ticks_clock(kind: type) -> bool:
    """Whether setting an attribute of such an object ticks the state clock (modules and optimizers)."""
    return any(c.__module__.partition(".")[0] == _PACKAGE and "__setattr__" in c.__dict__ for c in kind.__mro__)


def is_ours(kind: type) -> bool:
    """Whether a class is this package's own, and not a user's subclass."""
    return kind.__module__.partition(".")[0] == _PACKAGE


def is_plain(value: Any) -> bool:
    """Whether a value is compared by value: it cannot change, and nothing hangs on which object it is."""
    return value is None or isinstance(value, _PLAIN)


_PLAIN: Final = (bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented), range, slice)
