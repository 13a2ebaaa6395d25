"""``print``: it happens at each call, with the text of that call. Where the file is an object of the user's, or was put
into ``sys.stdout`` by the run, its ``write`` is code of the function, and runs observed."""

from __future__ import annotations

import io
import sys
from typing import Any

from runnel.compile.observe import attributes, operators
from runnel.compile.observe.changes import Printing
from runnel.compile.observe.classes import is_python_class, lookup
from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.values import is_users_method


def printed(rec: Recorder, *args: Any, **kwargs: Any) -> None:
    """``print(*args, **kwargs)``."""
    file = _standard_output(rec) if kwargs.get("file") is None else kwargs["file"]
    if file is not None and writes_by_own_code(file):
        _write(rec, file, args, **{k: v for k, v in kwargs.items() if k != "file"})
        return
    if file is None and (id(vars(sys)), "stdout") in rec.effects.written:  # redirect_stdout(None)
        return
    texts = tuple([operators.text(rec, str, x) for x in args])
    options = {k: v for k, v in kwargs.items() if k != "file"}
    if type(file) is io.StringIO and rec.source_of(file) is None:
        named = {k: rec.concrete_number(v) for k, v in options.items()}
        print(*map(rec.concrete_number, texts), file=file, **named)
        return
    if file is not None and rec.source_of(file) is None:
        rec.refuse("print() writes to a file that the function made", "make the file outside, or join the texts")
    rec.effects.show(Printing(), file, (texts, options), "print()")


def writes_by_own_code(file: Any) -> bool:
    """Whether ``write`` of a file is code of the user's."""
    kind = type(file)
    return is_python_class(kind) and is_users_method(kind, "write", lookup(kind, "write"))


def _standard_output(rec: Recorder) -> Any:
    """What stands in ``sys.stdout``, where that matters to the function; None: whatever stands there at each call."""
    if (id(vars(sys)), "stdout") in rec.effects.written:
        return sys.stdout
    is_own = _is_plain_object()
    rec.reach(is_own, rec.log.source(None, "{0}()", "the class of sys.stdout", is_own, (_is_plain_object,)))
    if not is_own:
        return None
    return rec.reach(sys.stdout, rec.log.source(None, "{0}.stdout", "sys.stdout", sys.stdout, (sys,)))


def _is_plain_object() -> bool:
    """Whether ``sys.stdout`` is an object that only looks like a file. Those of notebooks and test runners inherit from
    the classes of ``io``, and nobody's function reads what they keep."""
    return writes_by_own_code(sys.stdout) and not isinstance(sys.stdout, io.IOBase)


def _write(
    rec: Recorder, file: Any, args: tuple[Any, ...], sep: Any = " ", end: Any = "\n", flush: Any = False
) -> None:
    """What ``print`` does with a file, piece by piece."""
    for name, value in (("sep", sep), ("end", end)):
        if value is not None and not issubclass(rec.policy.kind_of(value), str):
            raise TypeError(f"{name} must be None or a string, not {type(value).__name__}")
    write = attributes.read(rec, file, "write")
    for i, value in enumerate(args):
        if i:
            rec.passed(write, (" " if sep is None else sep,))
        rec.passed(write, (operators.text(rec, str, value),))
    rec.passed(write, ("\n" if end is None else end,))
    if operators.truth(rec, flush):
        rec.passed(attributes.read(rec, file, "flush"), ())
