"""NumPy's settings: how its errors are treated, and how arrays are printed.

A block or call that sets them would have to hold while a guard computes arrays again, too: such functions run eagerly.
Texts of arrays depend on settings that were made outside, which is checked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from runnel.compile.observe.recorder import Recorder
from runnel.core.pytree import flatten

_SETTING: Final = frozenset(
    {
        "errstate", "seterr", "seterrcall", "setbufsize", "set_printoptions", "printoptions", "geterr", "geterrcall",
        "getbufsize", "get_printoptions",
    }
)  # fmt: skip
_TEXTS: Final = frozenset(
    {"array_str", "array_repr", "array2string", "__str__", "__repr__", "__format__", "format_float_positional"}
)


def require_untouched(rec: Recorder, function: Any, args: tuple[Any, ...]) -> None:
    """A function or class of NumPy's that runs unobserved neither sets nor reads its settings."""
    name = getattr(function, "__qualname__", getattr(function, "__name__", "")).partition(".")[0]
    if name in _SETTING:
        rec.refuse(f"NumPy's settings are set or read (numpy.{name})", "do it around the call of the compiled function")
    if getattr(function, "__name__", "") in _TEXTS:
        check_print_options(rec, args)


def quietly() -> Any:
    """A block in which NumPy warns of nothing: a guard computes the same again, and then it does."""
    silent: dict[str, Any] = {kind: "ignore" for kind, how in np.geterr().items() if how in _TELLING}
    return np.errstate(**silent)


class Errors:
    """A block in which NumPy computes what no later call computes again: an error of floating-point numbers that it
    tells of would be told of once. Whether one that it does not tell of is to be told of is checked."""

    def __init__(self, rec: Recorder) -> None:
        self._rec = rec
        self._settings: dict[str, Any] = dict(np.geterr())
        self._block = np.errstate(all="call", call=self._happened)

    def __enter__(self) -> None:
        self._block.__enter__()

    def __exit__(self, *details: Any) -> None:
        self._block.__exit__(*details)

    def _happened(self, error: str, flags: int) -> None:
        kinds = [kind for bit, kind in _FLAGS.items() if flags & bit]
        if any(self._settings[kind] != "ignore" for kind in kinds):
            self._rec.refuse(
                f"NumPy tells of an error in what it computes ({error})", "compute it outside of the compiled function"
            )
        self._rec.log.check(None, "{0}() != {1}", "how NumPy treats errors", (np.geterr, self._settings))


_TELLING: Final = ("warn", "print", "log")
_FLAGS: Final = {1: "divide", 2: "over", 4: "under", 8: "invalid"}


def check_print_options(rec: Recorder, values: Iterable[Any]) -> None:
    """A text is made of these values: how arrays among them are printed is checked."""
    if any(isinstance(leaf, (np.ndarray, np.generic)) for leaf in flatten(list(values))[0]):
        options = _print_options()
        rec.reach(options, rec.log.source(None, "{0}()", "how NumPy prints arrays", options, (_print_options,)))


def _print_options() -> str:
    return repr(np.get_printoptions())
