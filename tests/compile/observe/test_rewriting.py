"""Test rewritten code: round trips, depth of the stack, every instruction, long jumps."""

from __future__ import annotations

import gc
import importlib.util
import sys
import types
from typing import Any

import pytest

from runnel.compile.observe import versions
from runnel.compile.observe.assembly import Handler, assemble, disassemble, read_handlers, write_handlers
from runnel.compile.observe.rewriting import HOOKED, bind, template
from runnel.compile.observe.versions import SUPPORTED, VERSION
from runnel.core.errors import CaptureError
from tests.compile.observe.plain_hooks import Plain, hooks, with_hooks
from tests.compile.observe.stack import check_stack, codes, listed

MODULES = (
    "argparse",
    "ast",
    "collections",
    "contextlib",
    "dataclasses",
    "enum",
    "inspect",
    "functools",
    "typing",
    "zipfile",
)
# Instructions that neither read nor change anything but the frame's own variables and the stack, and control flow; or
# that work on what a hooked instruction has looked at before.
HARMLESS = {
    "CACHE", "POP_TOP", "PUSH_NULL", "NOP", "INTERPRETER_EXIT", "END_FOR", "END_SEND", "RESERVED", "RESUME",
    "PUSH_EXC_INFO", "CHECK_EXC_MATCH", "CHECK_EG_MATCH", "WITH_EXCEPT_START", "END_ASYNC_FOR", "CLEANUP_THROW",
    "LOAD_BUILD_CLASS", "LOAD_ASSERTION_ERROR", "RETURN_GENERATOR", "RETURN_VALUE", "RETURN_CONST",
    "SETUP_ANNOTATIONS", "LOAD_LOCALS", "POP_EXCEPT", "STORE_NAME", "DELETE_NAME", "FOR_ITER", "SWAP",
    "LOAD_CONST", "BUILD_TUPLE", "BUILD_LIST", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT",
    "RERAISE", "COPY", "SEND", "LOAD_FAST", "STORE_FAST", "DELETE_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_AND_CLEAR",
    "LOAD_FAST_LOAD_FAST", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST", "POP_JUMP_IF_NONE",
    "POP_JUMP_IF_NOT_NONE", "POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_FORWARD_IF_NOT_NONE",
    "POP_JUMP_BACKWARD_IF_NONE", "POP_JUMP_BACKWARD_IF_NOT_NONE", "MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE",
    "BUILD_SLICE", "MAKE_CELL", "LOAD_CLOSURE", "EXTENDED_ARG", "LIST_APPEND", "COPY_FREE_VARS", "YIELD_VALUE",
    "BUILD_CONST_KEY_MAP", "BUILD_STRING", "CALL_INTRINSIC_2", "LIST_TO_TUPLE", "IMPORT_STAR", "PRINT_EXPR",
    "ASYNC_GEN_WRAP", "PREP_RERAISE_STAR", "GET_ANEXT", "EXIT_INIT_CHECK", "ENTER_EXECUTOR",
    "JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP", "NOT_TAKEN", "POP_ITER", "LOAD_SMALL_INT", "LOAD_COMMON_CONSTANT",
    "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF", "GET_AWAITABLE",
    "GET_AITER", "BEFORE_ASYNC_WITH",
    "LOAD_FAST_BORROW", "LOAD_FAST_BORROW_LOAD_FAST_BORROW", "BUILD_INTERPOLATION", "BUILD_TEMPLATE",
}  # fmt: skip


def module_code(name: str) -> types.CodeType:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    loader: Any = spec.loader
    return loader.get_code(name)  # type: ignore[no-any-return]


def test_version() -> None:
    assert SUPPORTED, f"CPython {VERSION} has not been ported to"


def test_other_versions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "SUPPORTED", False)
    with pytest.raises(CaptureError, match=r"\[compile\] the bytecode of CPython 3\.\d+.* is not known"):
        template((lambda x: x + 1).__code__)


@pytest.mark.parametrize("name", MODULES)
def test_round_trip(name: str) -> None:
    for code in codes(module_code(name)):
        listing = disassemble(code)
        again = assemble(code, [[x] for x in listing.instructions], listing.handlers, code.co_consts, 0)
        assert again.co_code == code.co_code
        assert again.co_exceptiontable == code.co_exceptiontable
        assert list(again.co_positions()) == list(code.co_positions())


@pytest.mark.parametrize("name", MODULES)
def test_stack(name: str) -> None:
    for code in codes(template(module_code(name))):
        check_stack(code)


def test_checker_notices() -> None:
    def f(a: int) -> int:
        return a + 1

    check_stack(f.__code__)
    listing = disassemble(f.__code__)
    blocks = [[x, x] if x.name in ("LOAD_CONST", "LOAD_SMALL_INT") else [x] for x in listing.instructions]
    broken = assemble(f.__code__, blocks, listing.handlers, f.__code__.co_consts, 0)
    with pytest.raises(AssertionError, match="of"):
        check_stack(broken)


def test_every_instruction_is_known() -> None:
    unknown = listed() - HOOKED - HARMLESS
    assert not unknown, f"instructions that nobody has looked at: {sorted(unknown)}"


def test_handlers_round_trip() -> None:
    entries = [Handler(0, 5, 70, 1, True), Handler(5, 5000, 300_000, 70, False)]
    assert read_handlers(write_handlers(entries)) == entries


def test_long_jumps_and_many_constants() -> None:
    body = "\n".join(f"    total += a{i} if a{i} > {i + 300} else {i} * x" for i in range(400))
    names = "\n".join(f"a{i} = {i * 2}" for i in range(400))
    space: dict[str, Any] = {}
    exec(
        f"{names}\ndef f(x):\n    total = 0\n    while x:\n        x -= 1\n"
        f"{body.replace('    total', '        total')}\n    return total",
        space,
    )
    f = space["f"]
    result = with_hooks(f, Plain())
    check_stack(result)
    assert types.FunctionType(result, space)(5) == f(5)


def test_positions_stay() -> None:
    def f(x: Any) -> Any:
        y = x + 1
        return y.missing

    result = types.FunctionType(with_hooks(f, Plain()), globals(), closure=f.__closure__)
    for function in (f, result):
        try:
            function(1)
        except AttributeError as problem:
            trace = problem.__traceback__
            while trace is not None and trace.tb_frame.f_code.co_name != "f":
                trace = trace.tb_next
            assert trace is not None
            assert trace.tb_lineno == f.__code__.co_firstlineno + 2


def test_template_is_made_once_and_dies_with_its_code() -> None:
    from runnel.compile.observe import rewriting

    space: dict[str, Any] = {}
    exec("def f(): return [x for x in range(3)]", space)
    code = space["f"].__code__
    assert template(code) is template(code)
    key = id(code)
    assert key in rewriting._TEMPLATES
    del space, code
    gc.collect()
    assert key not in rewriting._TEMPLATES


def test_hooks_of_each_run_are_its_own() -> None:
    def f(x: Any) -> Any:
        return x.real

    class Loud(Plain):
        def __init__(self, name: str) -> None:
            self.name = name

        def load_attr(self, name: str, value: Any) -> Any:
            return self.name, name

    one, other = (bind(template(f.__code__), hooks(Loud(n), globals())) for n in "ab")
    assert types.FunctionType(one, {})(3) == ("a", "real")
    assert types.FunctionType(other, {})(3) == ("b", "real")
    assert f(3) == 3


def test_library_runs_rewritten() -> None:
    """A module whose every function is rewritten works; the script `rewritten_stdlib.py` does this at length."""
    for name, use in (
        ("textwrap", lambda m: m.fill("a b c d " * 9, 20)),
        ("statistics", lambda m: (m.mean([1, 2, 4]), m.quantiles([1, 2, 3, 4]))),
        ("difflib", lambda m: list(m.unified_diff(["a", "b"], ["a", "c"]))),
        ("fractions", lambda m: m.Fraction(3, 4) + 2),
        ("string", lambda m: m.Template("$a").substitute(a=1)),
        ("shlex", lambda m: m.split("a 'b c'")),
    ):
        real = importlib.import_module(name)
        result = types.ModuleType(name)
        result.__dict__.update(__file__=real.__file__, __package__="", __name__=f"rewritten_{name}")
        sys.modules[result.__name__] = result
        try:
            exec(bind(template(module_code(name)), hooks(Plain(), result.__dict__)), result.__dict__)
            assert str(use(result)) == str(use(real))
        finally:
            del sys.modules[result.__name__]
