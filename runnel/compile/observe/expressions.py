"""Values as texts over sources and constants: what a guard computes again at each call."""

from __future__ import annotations

from typing import Any

from runnel.compile.observe.recorder import Recorder
from runnel.compile.observe.sources import Source
from runnel.compile.observe.values import PLAIN, SYMBOLIC

_LARGEST = 64  # parts of a container that is written out


class NotWritten(Exception):
    """A value that a guard cannot be given."""


class Expression:
    """A call as a text over the values of sources and constants; containers that the run made are written out."""

    def __init__(self, rec: Recorder) -> None:
        self.rec = rec
        self.operands: list[Source] = []
        self.constants: list[Any] = []

    def of(self, value: Any) -> str:
        rec, kind = self.rec, type(value)
        if kind in PLAIN or kind in SYMBOLIC:
            symbol = rec.symbols.get(id(value))
            return self.constant(value) if symbol is None else self.operand(symbol)
        if kind is slice:
            return f"slice({self.of(value.start)}, {self.of(value.stop)}, {self.of(value.step)})"
        at = rec.followed(value)
        if at is not None:
            return self.operand(at)
        if kind in (tuple, list) and len(value) <= _LARGEST and self.is_written_out(value):
            inner = "".join([f"{self.of(x)}, " for x in value])
            return f"({inner})" if kind is tuple else f"[{inner}]"
        raise NotWritten

    def is_written_out(self, container: Any) -> bool:
        """Whether the parts of a container say what it is."""
        return self.rec.source_of(container) is None

    def operand(self, at: Source) -> str:
        self.operands.append(at)
        return f"{{a{len(self.operands) - 1}}}"

    def constant(self, value: Any) -> str:
        self.constants.append(value)
        return f"{{{len(self.constants) - 1}}}"
