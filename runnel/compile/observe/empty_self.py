"""Finds the calls whose self is a NULL of the interpreter, by data flow over all paths.

Below its arguments a call finds ``NULL function`` or ``method self`` (``function NULL`` from 3.13 on). Code that moves
these two must know which it is, because using a NULL as an object crashes the process.
"""

from __future__ import annotations

from typing import Final

from runnel.compile.observe.assembly import Handler, Listing, stack_effect
from runnel.compile.observe.versions import EMPTY_SELF_ABOVE, KEYWORDS_MAY_BE_NULL, METHOD_FLAG_IN_LOAD_ATTR

ENDS: Final = frozenset(
    {
        "RETURN_VALUE",
        "RETURN_CONST",
        "RAISE_VARARGS",
        "RERAISE",
        "JUMP_FORWARD",
        "JUMP_BACKWARD",
        "JUMP_BACKWARD_NO_INTERRUPT",
    }
)  # what follows is not reached from here

MARK: Final = "END_ASYNC_FOR"  # names an instruction as jumps do, but goes on


def empty_selves(listing: Listing) -> dict[int, bool]:
    """Return whether the self is a NULL, for each reachable call instruction by its number."""
    instructions = listing.instructions
    is_null: dict[int, bool] = {}
    visited: set[int] = set()
    starts: dict[int, list[Handler]] = {}
    for handler in listing.handlers:
        for covered in range(handler.start, handler.end):
            starts.setdefault(covered, []).append(handler)
    work: list[tuple[int, list[bool]]] = [(0, [])]
    while work:
        number, stack = work.pop()
        while number < len(instructions) and number not in visited:
            visited.add(number)
            for handler in starts.get(number, ()):  # it finds the stack cut, where it was, and the exception
                work.append((handler.target, [*stack[: handler.depth], *[False] * (1 + handler.lasti)]))
            instruction = instructions[number]
            name, arg = instruction.name, instruction.arg
            if name in ("CALL", "CALL_KW"):
                below = arg + (name == "CALL_KW")
                is_null[number] = stack[-below - 1] if EMPTY_SELF_ABOVE else stack[-below - 2]
            if instruction.target >= 0 and name != MARK:
                work.append((instruction.target, _after(stack[:], name, arg, stack_effect(instruction, True))))
            if name in ENDS:
                break
            stack = _after(stack, name, arg, stack_effect(instruction, False))
            number += 1
    return is_null


_EMPTY_AND_FUNCTION: Final = [False, True] if EMPTY_SELF_ABOVE else [True, False]


def _after(stack: list[bool], name: str, arg: int, effect: int) -> list[bool]:
    """Return the stack after an instruction. Each entry says whether it is a NULL."""
    if name == "PUSH_NULL":
        stack.append(True)
    elif name == "LOAD_GLOBAL" and arg & 1:
        stack += _EMPTY_AND_FUNCTION
    elif name == "LOAD_METHOD" or (name == "LOAD_ATTR" and METHOD_FLAG_IN_LOAD_ATTR and arg & 1):
        stack[-1:] = _EMPTY_AND_FUNCTION
    elif name == "LOAD_SUPER_ATTR":
        stack[-3:] = _EMPTY_AND_FUNCTION if arg & 1 else [False]
    elif name == "LOAD_SPECIAL":  # as it is rewritten
        stack[-1:] = [False, True]
    elif name in ("CALL", "CALL_KW"):
        stack[-(arg + 2 + (name == "CALL_KW")) :] = [False]
    elif name == "CALL_FUNCTION_EX":
        stack[-(4 if KEYWORDS_MAY_BE_NULL else 3 + (arg & 1)) :] = [False]
    elif name == "SWAP":
        stack[-1], stack[-arg] = stack[-arg], stack[-1]
    elif name == "COPY":
        stack.append(stack[-arg])
    elif name in ("PRECALL", "KW_NAMES"):
        pass  # 3.11 counts the effect of a call partly as that of its PRECALL
    elif effect < 0:
        del stack[effect:]
    else:
        stack += [False] * effect
    return stack
