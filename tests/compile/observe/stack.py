"""Check code objects: paths that meet agree on the depth of the stack, which stays below the stated size."""

from __future__ import annotations

import dis
import opcode
from types import CodeType

from runnel.compile.observe.assembly import disassemble, stack_effect

ENDS = {"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"}
ALWAYS = {"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"}


def codes(code: CodeType) -> list[CodeType]:
    """A code object and those among its constants, all the way down."""
    return [code, *(inner for x in code.co_consts if isinstance(x, CodeType) for inner in codes(x))]


def check_stack(code: CodeType) -> None:
    """Follow all paths. Raises AssertionError with the place."""
    instructions, handlers = disassemble(code)
    depths: dict[int, int] = {}
    work = [(0, 0)]
    while work:
        number, depth = work.pop()
        if number in depths:
            assert depths[number] == depth, f"{code.co_qualname}: {number} has depths {depths[number]} and {depth}"
            continue
        depths[number] = depth
        assert 0 <= depth <= code.co_stacksize, f"{code.co_qualname}: {number}: {depth} of {code.co_stacksize}"
        for handler in handlers:
            if handler.start <= number < handler.end:
                assert handler.depth <= depth, f"{code.co_qualname}: a handler cuts {depth} to {handler.depth}"
                work.append((handler.target, handler.depth + 1 + handler.lasti))
        instruction = instructions[number]
        if instruction.target >= 0:
            work.append((instruction.target, depth + stack_effect(instruction, True)))
        if instruction.name not in ENDS | ALWAYS:
            pushed = 1 if instruction.name == "RETURN_GENERATOR" else stack_effect(instruction, False)  # 3.11 says 0
            work.append((number + 1, depth + pushed))


def listed() -> set[str]:
    """The instructions that this version of the interpreter runs."""
    special = set(dis.opmap) - {n for n in dis.opmap if opcode.opmap[n] > 255 or n.startswith("INSTRUMENTED")}
    return special - {"<0>"}
