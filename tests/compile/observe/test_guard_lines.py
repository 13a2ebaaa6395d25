"""Test the statements of a guard: the same reads and checks as its lines, in fewer statements."""

from __future__ import annotations

import itertools
from typing import Any

from runnel.compile.observe.guard import Line, joined

READS = ("args[0]", "args[1]", "v0[0]", "v1.get('key', None)", "len(v0) + 1")
CHECKS = (
    "{v} is not one",
    "type({v}) is not int",
    "differs({v}, 2)",
    "{v} is None or {v} != 1",
    "1 if {v} is None else {v} == 3",
    "any({v} == x for x in (7, 8))",
    "other is not {v}",
)


def differs(x: Any, y: Any) -> bool:
    return bool(x != y)


def written(lines: list[Line]) -> str:
    return "\n".join(line.code if line.number >= 0 else f"if {line.code}: return 'miss'" for line in lines)


def outcome(body: str, args: tuple[Any, ...]) -> Any:
    """Return the outcome of the statements: a miss, the type of an error, or the values read."""
    indented = "\n".join(f"  {line}" for line in body.splitlines())
    space: dict[str, Any] = {"differs": differs, "one": 1, "other": 2}
    exec(f"def guard(args):\n{indented}\n  return v0, v1, v2, v3, v4", space)
    try:
        return space["guard"](args)
    except Exception as error:
        return type(error)


def test_joined_lines_do_what_the_lines_do() -> None:
    arguments = [([1], {"key": 1}), ([2, 3], {}), ((), {"key": 3}), (None, {}), ([None], {"key": 7}), ([2], None)]
    for checks in itertools.product(CHECKS, repeat=2):
        lines = []
        for number, text in enumerate(READS):
            lines.append(Line(number, f"v{number} = {text}", "", (), False, None))
            if number >= 2:
                code = checks[number % 2].format(v=f"v{number}")
                lines += [Line(-1, code, "", (number,), False, None)] * (1 + number % 2)
        together = joined(lines, "'miss'")
        assert len(together) < len(lines)
        for args in arguments:
            assert outcome("\n".join(together), args) == outcome(written(lines), args), together


def test_statements_are_bounded() -> None:
    lines = [Line(-1, f"args[{i}] is None", "", (), False, None) for i in range(1000)]
    assert max(map(len, joined(lines, "None"))) < 1500
