"""Functions of the driver, written as Python functions that emit LLVM text.

A :class:`Routine` is a Python function whose parameters and result have the kinds of values in its annotations: calling
it from another routine emits a call. :func:`module_text` returns the module of some routines and all that they call.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, NamedTuple

from runnel.backends.cpu.codegen.text import Body, Operand

# kinds of values
Ptr = str
Bit = str  # a condition
I64 = Operand  # a word
I32 = Operand  # a word that threads wait for
_KINDS: Final = {"Ptr": "ptr", "I64": "i64", "I32": "i32", "Bit": "i1", "None": "void"}


def architecture(triple: str) -> str:
    """Return ``"x86_64"`` or ``"aarch64"``."""
    first = triple.split("-")[0].lower()
    return {"arm64": "aarch64", "amd64": "x86_64"}.get(first, first)


class Platform(NamedTuple):
    """The processor and the operating system that routines are for: ``sys.platform``."""

    triple: str
    system: str


class Code(Body):
    """The body of a routine. Words are int64."""

    def __init__(self, platform: Platform) -> None:
        super().__init__()
        self.platform = platform
        self.used: dict[Routine, None] = {}

    def at(self, pointer: Ptr, nbytes: Operand) -> str:
        """Move ``pointer`` by ``nbytes``."""
        return self.value(f"getelementptr i8, ptr {pointer}, i64 {nbytes}")

    def beyond(self, pointer: Ptr, words: Operand) -> str:
        """Move ``pointer`` by ``words``."""
        return self.value(f"getelementptr i64, ptr {pointer}, i64 {words}")

    def word(self, pointer: Ptr, number: Operand = 0, kind: str = "i64") -> str:
        """Load a word."""
        return self.value(f"load {kind}, ptr {self.beyond(pointer, number)}")

    def pointer(self, pointer: Ptr, number: Operand = 0) -> str:
        """Load a word that is an address."""
        return self.word(pointer, number, "ptr")

    def put(self, pointer: Ptr, number: Operand, value: Operand, kind: str = "i64") -> None:
        """Store a word."""
        self.effect(f"store {kind} {value}, ptr {self.beyond(pointer, number)}")

    def load(self, pointer: Ptr, order: str, kind: str = "i32") -> str:
        """Load a word that other threads may change."""
        return self.value(f"load atomic {kind}, ptr {pointer} {order}, align {8 if kind == 'i64' else 4}")

    def store(self, pointer: Ptr, value: Operand, order: str, kind: str = "i32") -> None:
        """Store a word that other threads may read."""
        self.effect(f"store atomic {kind} {value}, ptr {pointer} {order}, align {8 if kind == 'i64' else 4}")

    def fetch(self, operation: str, pointer: Ptr, value: Operand, order: str = "seq_cst") -> str:
        """Change an int32 by ``operation``, such as add; returns its previous value."""
        return self.value(f"atomicrmw {operation} ptr {pointer}, i32 {value} {order}")

    def swapped(self, pointer: Ptr, old: Operand, new: Operand, orders: str) -> str:
        """Store ``new`` in an int32 if it is ``old``; returns whether it was."""
        pair = self.value(f"cmpxchg ptr {pointer}, i32 {old}, i32 {new} {orders}")
        return self.value(f"extractvalue {{ i32, i1 }} {pair}, 1")

    def address(self, routine: Routine) -> str:
        """Return the address of a routine of the module."""
        self.used[routine] = None
        return f"@{routine.name}"

    def external(self, result: str, name: str, *arguments: tuple[str, Operand]) -> str:
        """Call a C function, with (kind, value) of each argument."""
        self.declare(name, result, *(kind for kind, _ in arguments))
        return self._call(result, f"@{name}", arguments)

    def _call(self, result: str, function: str, arguments: Iterable[tuple[str, Operand]]) -> str:
        text = f"call {result} {function}({', '.join(f'{kind} {value}' for kind, value in arguments)})"
        if result != "void":
            return self.value(text)
        self.effect(text)
        return ""

    def ret(self, value: Operand | None = None, kind: str = "i64") -> None:
        """Return from the routine."""
        self.effect("ret void" if value is None else f"ret {kind} {value}")

    @contextlib.contextmanager
    def cycle(self, kind: str, start: Operand) -> Iterator[Cycle]:
        """Run the body again and again with the values that :meth:`Cycle.again` passes on; the code after the loop is
        reached by :meth:`Cycle.leave` only."""
        cycle = Cycle(self, kind, start)
        yield cycle
        self.start(cycle.done)

    @contextlib.contextmanager
    def count(self, end: Operand, start: int = 0) -> Iterator[str]:
        """Run the body for each number from ``start`` to ``end``, exclusive."""
        with self.cycle("i64", start) as cycle:
            with self.when(self.test("uge", cycle.value, end)):
                cycle.leave()
            yield cycle.value
            cycle.again(self.add(cycle.value, 1))


class Cycle:
    """A loop that carries one ``value``."""

    def __init__(self, code: Code, kind: str, start: Operand) -> None:
        self._code = code
        self._head = code.new_label("head")
        self.done: Final = code.new_label("done")
        before = code.block
        code.jump(self._head)
        code.start(self._head)
        self.value: Final = code.phi(kind, (str(start), before))

    def again(self, value: Operand) -> None:
        """Run the body again."""
        self._code.add_edge(self.value, str(value), self._code.block)
        self._code.jump(self._head)

    def leave(self) -> None:
        """Go on after the loop."""
        self._code.jump(self.done)


class Routine:
    """A function of generated code. ``body`` gets the :class:`Code` and the names of its arguments, and returns the
    result."""

    def __init__(self, body: Callable[..., Operand | None]) -> None:
        kinds = {name: _KINDS[kind] for name, kind in body.__annotations__.items() if kind != "Code"}
        self.name: Final[str] = body.__name__
        self.result: Final = kinds.pop("return")
        self.parameters: Final = kinds
        self._body = body

    def __call__(self, code: Code, *arguments: Operand) -> str:
        """Emit a call; returns the name of its result."""
        return code._call(self.result, code.address(self), zip(self.parameters.values(), arguments, strict=True))

    def write(self, platform: Platform) -> tuple[str, Code]:
        """Return its text, and its code, which names what it uses."""
        code = Code(platform)
        value = self._body(code, *(f"%{name}" for name in self.parameters))
        if not code.has_ended:
            code.ret(value, self.result)
        parameters = ", ".join(f"{kind} %{name}" for name, kind in self.parameters.items())
        head = f"define internal {self.result} @{self.name}({parameters}) {{"
        return "\n".join([head, "entry:", *code.lines, "}"]), code


def module_text(routines: Iterable[Routine], triple: str, system: str = sys.platform) -> str:
    """Return internal functions: ``routines`` and all that they call."""
    platform = Platform(triple, system)
    waiting, texts, declarations = list(routines), dict[Routine, str](), set[str]()
    while waiting:
        routine = waiting.pop()
        if routine not in texts:
            texts[routine], code = routine.write(platform)
            declarations |= code.declarations
            waiting += code.used
    return "\n".join([*sorted(declarations), *texts.values(), ""])


def table_text(symbol: str, routines: Collection[Routine], triple: str, system: str = sys.platform) -> str:
    """Return a module whose only global symbol is the table of the addresses of ``routines``."""
    addresses = ", ".join(f"ptr @{routine.name}" for routine in routines)
    table = f"@{symbol} = constant [{len(routines)} x ptr] [{addresses}]"
    return f"{table}\n{module_text(routines, triple, system)}"
