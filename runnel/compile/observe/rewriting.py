"""Rewrites code so that each instruction that can read, write or call something goes through a hook.

Frames, locals, control flow, exceptions, generators and ``super()`` stay the interpreter's. A code object is rewritten
once into a template, whose constants hold a :class:`Hook` for each event; ``bind`` replaces these by functions of one
run. A hook takes the values that the instruction would have taken from the stack and returns the one that it would have
left. In between, the stack is at most ``ROOM`` deeper.
"""

from __future__ import annotations

import opcode
import platform
import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any, Final, NamedTuple

from runnel.compile.observe import versions
from runnel.compile.observe.assembly import Instruction, Position, assemble, disassemble
from runnel.compile.observe.empty_self import empty_selves
from runnel.core.errors import CaptureError

ROOM: Final = 6
ASYNCHRONOUS: Final = 0x280  # flags of coroutines and asynchronous generators, which never run observed


class Hook(NamedTuple):
    """A call of rewritten code: the kind of event, and the part of it that is known beforehand."""

    kind: str
    detail: Any = None


_TEMPLATES: dict[int, tuple[weakref.ref[CodeType], CodeType]] = {}  # by id of the code, as long as that lives


def template(code: CodeType) -> CodeType:
    """Return ``code`` with hooks, and the code objects among its constants likewise."""
    if code.co_flags & ASYNCHRONOUS:
        return code
    known = _TEMPLATES.get(id(code))
    if known is not None and known[0]() is code:
        return known[1]
    if not versions.SUPPORTED:
        oldest, newest = (".".join(map(str, version)) for version in (versions.OLDEST, versions.NEWEST))
        raise CaptureError(
            f"[compile] the bytecode of {platform.python_implementation()} {platform.python_version()} is not known, "
            f"so no function can be compiled. Use CPython {oldest} to {newest}; eagerly all runs here, too."
        )
    rewritten = _Writer(code).write()
    key = id(code)
    _TEMPLATES[key] = (weakref.ref(code, lambda _: _TEMPLATES.pop(key, None)), rewritten)
    return rewritten


def bind(code: CodeType, hook: Callable[[Hook], Any]) -> CodeType:
    """Return a template with ``hook(h)`` in place of each Hook h."""
    consts = [hook(x) if type(x) is Hook else bind(x, hook) if type(x) is CodeType else x for x in code.co_consts]
    return code.replace(co_consts=tuple(consts))


class _Writer:
    """Writes one code object."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.consts = [template(x) if type(x) is CodeType else x for x in code.co_consts]
        self._places: dict[Any, int] = {}
        self.out: list[Instruction] = []
        self.at: Position = (None, None, None, None)
        self.names: tuple[str, ...] | None = None  # of the keywords of the next call, up to 3.12

    def write(self) -> CodeType:
        listing = self.listing = disassemble(self.code)
        self.has_empty_self = empty_selves(listing)
        blocks: list[list[Instruction]] = []
        for number, instruction in enumerate(listing.instructions):
            self.out, self.at, self.number = [], instruction.position, number
            rule = _RULES.get(instruction.name)
            if rule is None or rule(self, instruction) is False:
                self.out = [instruction]
            blocks.append(self.out)
        return assemble(self.code, blocks, listing.handlers, tuple(self.consts), ROOM)

    # Pieces ---------------------------------------------------------------------------------------------------------

    def emit(self, name: str, arg: int = 0, target: int = -1) -> None:
        self.out.append(Instruction(name, arg, target, self.at))

    def const(self, value: Any) -> None:
        """Push a constant."""
        key = value if type(value) is Hook else (type(value), value)
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self.consts)
            self.consts.append(value)
        self.emit("LOAD_CONST", place)

    def hook(self, count: int, kind: str, detail: Any = None) -> None:
        """Replace the topmost ``count`` values by what the hook gives for them, the deepest first.

        The lowest of them is passed as a self: such a call needs no NULL. A hook of nothing takes a None.
        """
        self.const(Hook(kind, detail))
        if count == 0:
            self.const(None)
        for depth in range(count + 1, 1, -1):
            self.emit("SWAP", depth)
        others = max(count - 1, 0)
        if versions.HAS_PRECALL:
            self.emit("PRECALL", others)
        self.emit("CALL", others)

    def with_empty_self(self) -> None:
        """Make the value on top a function to call."""
        self.emit("PUSH_NULL")
        if not versions.EMPTY_SELF_ABOVE:
            self.emit("SWAP", 2)

    def with_manager(self) -> None:
        """Replace a context manager by its exit and, above, the value of its entry."""
        self.hook(1, "enter")
        self.emit("UNPACK_SEQUENCE", 2)

    def call(self, kind: str, has_empty_self: bool) -> None:
        """Replace a call, with a NULL or without, by a call of what the hook returns, in this frame."""
        if not has_empty_self:
            self.emit("SWAP", 2)
            self.hook(2, kind)
        else:  # the NULL serves as the self of the hook
            self.const(Hook(kind))
            self.emit("SWAP", 4 if versions.EMPTY_SELF_ABOVE else 3)
            if versions.HAS_PRECALL:
                self.emit("PRECALL", 2)
            self.emit("CALL", 2)
        if versions.EMPTY_SELF_ABOVE:  # ((keywords, arguments), function)
            self.emit("UNPACK_SEQUENCE", 2)
            self.emit("PUSH_NULL")
            self.emit("SWAP", 2)
            self.emit("UNPACK_SEQUENCE", 2)
        else:  # (keywords, arguments, function)
            self.emit("PUSH_NULL")
            self.emit("SWAP", 2)
            self.emit("UNPACK_SEQUENCE", 3)
        self.emit("CALL_FUNCTION_EX", 0 if versions.KEYWORDS_MAY_BE_NULL else 1)

    def beside(self, distance: int) -> tuple[str, int]:
        """Return the name and argument of the instruction at this distance."""
        number = self.number + distance
        return self.listing.instructions[number][:2] if number >= 0 else ("", 0)

    def before_unpacked_call(self) -> bool:
        """Return whether a NULL on top is the place of keywords of the unpacked call that follows. It is left out."""
        return versions.KEYWORDS_MAY_BE_NULL and self.beside(1)[0] == "CALL_FUNCTION_EX"

    def cell(self, index: int) -> str | None:
        """Return the name of the variable in a cell, or None for a cell that this frame made."""
        code = self.code
        own = [*code.co_varnames, *(x for x in code.co_cellvars if x not in code.co_varnames)]
        return None if index < len(own) else code.co_freevars[index - len(own)]


def _replaced(count: int, kind: str, detail: Callable[[_Writer, int], Any] | None = None, drops: bool = False) -> Any:
    """Make a rule whose hook does what the instruction did."""

    def rule(w: _Writer, i: Instruction) -> None:
        w.hook(count, kind, detail(w, i.arg) if detail is not None else None)
        if drops:
            w.emit("POP_TOP")

    return rule


def _before(kind: str) -> Any:
    """Make a rule whose hook looks at the value on top, and may return another one for the instruction."""

    def rule(w: _Writer, i: Instruction) -> None:
        w.hook(1, kind)
        w.out.append(i)

    return rule


def _name(w: _Writer, arg: int) -> str:
    return w.code.co_names[arg]


def _load_global(w: _Writer, i: Instruction) -> None:
    if i.arg & 1 and not versions.EMPTY_SELF_ABOVE:
        w.emit("PUSH_NULL")
    w.hook(0, "load_global", w.code.co_names[i.arg >> 1])
    if i.arg & 1 and versions.EMPTY_SELF_ABOVE and not w.before_unpacked_call():
        w.emit("PUSH_NULL")


def _load_attr(w: _Writer, i: Instruction) -> None:
    flagged = versions.METHOD_FLAG_IN_LOAD_ATTR
    w.hook(1, "load_attr", w.code.co_names[i.arg >> 1 if flagged else i.arg])
    if flagged and i.arg & 1:
        w.with_empty_self()


def _load_method(w: _Writer, i: Instruction) -> None:
    w.hook(1, "load_attr", w.code.co_names[i.arg])
    w.with_empty_self()


def _load_super(w: _Writer, i: Instruction) -> None:
    w.hook(3, "load_super", (w.code.co_names[i.arg >> 2], bool(i.arg & 2)))
    if i.arg & 1:
        w.with_empty_self()


def _of_cell(kind: str, count: int) -> Any:
    def rule(w: _Writer, i: Instruction) -> bool | None:
        name = w.cell(i.arg)
        if name is None:
            return False
        w.emit(versions.LOAD_CELL, i.arg)
        w.hook(count, kind, name)
        if kind != "load_cell":
            w.emit("POP_TOP")
        return None

    return rule


def _sliced(count: int, kind: str) -> Any:
    def rule(w: _Writer, i: Instruction) -> None:
        w.emit("BUILD_SLICE", 2)
        w.hook(count, kind)
        if kind != "get_item":
            w.emit("POP_TOP")

    return rule


def _compare(w: _Writer, i: Instruction) -> None:
    operator = opcode.cmp_op[i.arg >> versions.COMPARISON_SHIFT]
    w.hook(2, "compare", (operator, bool(i.arg & versions.COMPARISON_GIVES_BOOL)))


def _short_circuit(w: _Writer, i: Instruction) -> None:
    w.emit("COPY", 1)
    w.hook(1, "truth")
    w.emit(versions.SHORT_CIRCUIT[i.name], 0, i.target)
    w.emit("POP_TOP")


def _conditional(w: _Writer, i: Instruction) -> bool | None:
    if versions.NEEDS_TO_BOOL:
        return False  # a bool since an instruction before
    w.hook(1, "truth")
    w.out.append(i)
    return None


def _beside(kind: str, count: int, replaces: bool) -> Any:
    """Make a rule for an instruction that leaves what it looks at on the stack."""

    def rule(w: _Writer, i: Instruction) -> None:
        for _ in range(count):
            w.emit("COPY", count)
        w.hook(count, kind)
        if not replaces:
            w.emit("POP_TOP")
            w.out.append(i)

    return rule


def _with(w: _Writer, i: Instruction) -> None:
    w.with_manager()


def _format(w: _Writer, i: Instruction) -> None:
    has_spec = bool(i.arg & 4)
    w.hook(1 + has_spec, "format", i.arg & 3)


def _import_name(w: _Writer, i: Instruction) -> None:
    w.hook(2, "import_name", w.code.co_names[i.arg])


def _import_from(w: _Writer, i: Instruction) -> None:
    w.emit("COPY", 1)
    w.hook(1, "import_from", w.code.co_names[i.arg])


def _intrinsic(w: _Writer, i: Instruction) -> bool | None:
    if i.arg != versions.UNARY_POSITIVE:
        return False
    w.hook(1, "unary", "+")
    return None


def _kw_names(w: _Writer, i: Instruction) -> None:
    w.names = w.code.co_consts[i.arg]


def _precall(w: _Writer, i: Instruction) -> bool | None:
    return None if w.number + 1 in w.has_empty_self else False


def _push_null(w: _Writer, i: Instruction) -> bool | None:
    """Leave out the place of keywords that an unpacked call does not have."""
    return None if w.before_unpacked_call() else False


def _load_special(w: _Writer, i: Instruction) -> bool | None:
    """Enter a ``with`` block.

    Its code copies the manager, loads its exit, moves that below the manager, loads its entry and calls it.

    The hook of the first load enters. Its results take the places of the manager and of its exit; nothing is left to
    do for the second load and its call.
    """
    name = versions.SPECIAL_METHODS[i.arg]
    if name == "__exit__":
        w.with_manager()
        w.emit("SWAP", 3)
        w.emit("POP_TOP")
        w.emit("PUSH_NULL")
    elif name != "__enter__":
        return False  # of asynchronous code, which never runs observed
    return None


def _call(w: _Writer, i: Instruction) -> bool | None:
    before = w.beside(-1)
    if before[0] == "LOAD_SPECIAL" and versions.SPECIAL_METHODS[before[1]] == "__enter__":
        return None  # entered
    empty = w.has_empty_self.get(w.number)
    if empty is None:
        return False  # never reached
    count = i.arg + (not empty)
    if w.names is not None:
        w.const(w.names)
        w.names = None
        w.emit("BUILD_TUPLE", count + 1)
        w.call("call_with_names", empty)
    else:
        w.emit("BUILD_TUPLE", count)
        w.call("call", empty)
    return None


def _call_kw(w: _Writer, i: Instruction) -> bool | None:
    empty = w.has_empty_self.get(w.number)
    if empty is None:
        return False
    w.emit("BUILD_TUPLE", i.arg + 1 + (not empty))
    w.call("call_with_names", empty)
    return None


def _call_ex(w: _Writer, i: Instruction) -> None:
    has_keywords = bool(i.arg & 1)
    if versions.KEYWORDS_MAY_BE_NULL:
        name, arg = w.beside(-1)
        has_keywords = not (name == "PUSH_NULL" or (name == "LOAD_GLOBAL" and arg & 1))
    w.emit("BUILD_TUPLE", 1 + has_keywords)
    w.call("call_unpacked", True)


def _gathered(kind: str, size: int) -> Any:
    """Make a rule for an instruction that makes a set or dict, whose members are hashed."""

    def rule(w: _Writer, i: Instruction) -> bool | None:
        if i.arg == 0:
            return False
        w.emit("BUILD_TUPLE", i.arg * size)
        w.hook(1, kind)
        return None

    return rule


def _added(kind: str, size: int) -> Any:
    """Make a rule for an instruction that adds to a set or dict further down on the stack."""

    def rule(w: _Writer, i: Instruction) -> None:
        w.emit("COPY", i.arg + size)
        w.hook(size + 1, kind)
        w.emit("POP_TOP")

    return rule


def _raise(w: _Writer, i: Instruction) -> bool | None:
    if i.arg == 0:
        return False
    if i.arg == 2:
        w.hook(1, "raised")
        w.emit("SWAP", 2)
    w.hook(1, "raised")
    if i.arg == 2:
        w.emit("SWAP", 2)
    w.out.append(i)
    return None


def _binary(w: _Writer, i: Instruction) -> None:
    symbol = versions.BINARY_OPERATORS[i.arg]
    if symbol == "[]":
        w.hook(2, "get_item")
    else:
        w.hook(2, "binary", symbol)


_TESTED: Final = (
    "POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_FALSE",
    "POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "UNARY_NOT",
)  # fmt: skip
_RULES: Final[dict[str, Callable[[_Writer, Instruction], Any]]] = {
    "LOAD_GLOBAL": _load_global,
    "STORE_GLOBAL": _replaced(1, "store_global", _name, drops=True),
    "DELETE_GLOBAL": _replaced(0, "delete_global", _name, drops=True),
    "LOAD_DEREF": _of_cell("load_cell", 1),
    "STORE_DEREF": _of_cell("store_cell", 2),
    "DELETE_DEREF": _of_cell("delete_cell", 1),
    "LOAD_ATTR": _load_attr,
    "LOAD_METHOD": _load_method,
    "LOAD_SUPER_ATTR": _load_super,
    "STORE_ATTR": _replaced(2, "store_attr", _name, drops=True),
    "DELETE_ATTR": _replaced(1, "delete_attr", _name, drops=True),
    "BINARY_SUBSCR": _replaced(2, "get_item"),
    "BINARY_SLICE": _sliced(2, "get_item"),
    "STORE_SUBSCR": _replaced(3, "set_item", drops=True),
    "STORE_SLICE": _sliced(3, "set_item"),
    "DELETE_SUBSCR": _replaced(2, "delete_item", drops=True),
    "BINARY_OP": _binary,
    "UNARY_POSITIVE": _replaced(1, "unary", lambda w, arg: "+"),
    "UNARY_NEGATIVE": _replaced(1, "unary", lambda w, arg: "-"),
    "UNARY_INVERT": _replaced(1, "unary", lambda w, arg: "~"),
    "CALL_INTRINSIC_1": _intrinsic,
    "COMPARE_OP": _compare,
    "IS_OP": _replaced(2, "identity", lambda w, arg: bool(arg)),
    "CONTAINS_OP": _replaced(2, "contains", lambda w, arg: bool(arg)),
    "TO_BOOL": _replaced(1, "truth"),
    **dict.fromkeys(versions.SHORT_CIRCUIT, _short_circuit),
    **dict.fromkeys(_TESTED, _conditional),
    "GET_ITER": _before("iterate"),
    "GET_YIELD_FROM_ITER": _before("delegate"),
    "UNPACK_SEQUENCE": _before("spread"),
    "UNPACK_EX": _before("spread_in_two"),
    "LIST_EXTEND": _before("listed"),
    "SET_UPDATE": _before("unpack"),
    "DICT_UPDATE": _before("unpack_mapping"),
    "DICT_MERGE": _before("unpack_mapping"),
    "BUILD_STRING": _gathered("build_string", 1),
    "BUILD_SET": _gathered("build_set", 1),
    "BUILD_MAP": _gathered("build_map", 2),
    "SET_ADD": _added("set_add", 1),
    "MAP_ADD": _added("map_add", 2),
    "RAISE_VARARGS": _raise,
    "GET_LEN": _beside("length", 1, replaces=True),
    "MATCH_MAPPING": _beside("matched", 1, replaces=False),
    "MATCH_SEQUENCE": _beside("matched", 1, replaces=False),
    "CHECK_EXC_MATCH": _beside("caught", 2, replaces=False),
    "CHECK_EG_MATCH": _beside("caught", 2, replaces=False),
    "MATCH_KEYS": _beside("match_keys", 2, replaces=True),
    "MATCH_CLASS": _replaced(3, "match_class", lambda w, arg: arg),
    "BEFORE_WITH": _with,
    "LOAD_SPECIAL": _load_special,
    "FORMAT_VALUE": _format,
    "CONVERT_VALUE": _replaced(1, "convert", lambda w, arg: arg),
    "FORMAT_SIMPLE": _replaced(1, "format", lambda w, arg: 0),
    "FORMAT_WITH_SPEC": _replaced(2, "format", lambda w, arg: 0),
    "IMPORT_NAME": _import_name,
    "IMPORT_FROM": _import_from,
    "KW_NAMES": _kw_names,
    "PRECALL": _precall,
    "PUSH_NULL": _push_null,
    "CALL": _call,
    "CALL_KW": _call_kw,
    "CALL_FUNCTION_EX": _call_ex,
}  # fmt: skip
HOOKED: Final = frozenset(_RULES)
