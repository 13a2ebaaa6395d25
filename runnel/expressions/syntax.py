"""Parse the text of a tensor expression.

Syntax::
  expression  := target aggregation value ["where" constraint ("," constraint)*]
  target      := NAME "[" [axis ("," axis)*] "]"
  axis        := affine [":" size]
  aggregation := "=" | "+=" | "*=" | "max=" | "min="
  value       := numbers, NAME[axis, …], sizes, + - * /, comparisons, functions, parentheses
  constraint  := affine (("<" | "<=" | ">" | ">=" | "==") affine)+
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, NoReturn

from runnel.core.errors import ExpressionError
from runnel.core.records import record

AGGREGATIONS: Final = {"=": "assign", "+=": "sum", "*=": "prod", "max=": "max", "min=": "min"}
COMPARISONS: Final = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
FUNCTIONS: Final = {
    **dict.fromkeys(["abs", "cos", "exp", "log", "relu", "sigmoid", "sign", "sin", "sqrt", "square", "tanh"], 1),
    **dict.fromkeys(["maximum", "minimum"], 2),
    "where": 3,
}
_DEEPEST: Final = 50  # levels of parentheses, of derivatives too
_AROUND: Final = _DEEPEST - 2  # operators around an array, each of which has parentheses in the canonical text
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>\+=|\*=|<=|>=|==|!=|//|[-+*/()\[\],:<>=]))"
)


class Token(NamedTuple):
    kind: str  # "number", "name", "sign" or "end"
    text: str
    at: int


@record
class Number:
    value: int | float
    at: int


@record
class Name:
    text: str
    at: int


@record
class Call:
    """An operator or a function of arguments: "add", "neg", "exp", …"""

    function: str
    args: tuple[Node, ...]
    at: int


@record
class Access:
    """An element of an array."""

    name: str
    axes: tuple[Axis, ...]
    at: int


Node = Number | Name | Call | Access


@record
class Axis:
    """A subscript, and the stated size of its axis."""

    subscript: Node
    size: Node | None
    at: int


@record
class Comparison:
    """``left sign right``; ``is_alone`` if it is not part of a chain."""

    sign: str
    left: Node
    right: Node
    at: int
    is_alone: bool


@record
class Statement:
    """A parsed expression."""

    text: str
    target: Access
    aggregation: str
    value: Node
    constraints: tuple[Comparison, ...]

    def fail(self, at: int, why: str) -> NoReturn:
        fail(self.text, at, why)


def fail(text: str, at: int, why: str) -> NoReturn:
    """Raise the error about column ``at``, counted from 0."""
    raise ExpressionError(f"[tensor_expr] column {at + 1}: {why}\n  {text}\n  {' ' * at}^")


@functools.lru_cache(maxsize=1024)
def parse(text: str) -> Statement:
    """Return the statement of ``text``; ExpressionError, with the position, if it is not valid."""
    return _Parser(" ".join(text.split())).statement()


def tokens(text: str) -> list[Token]:
    result, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            fail(text, at, f"'{text[at]}' is not part of an expression.")
        kind = match.lastgroup or ""
        result.append(Token(kind, match[kind], match.start(kind)))
        at = match.end()
    return [*result, Token("end", "the end", len(text))]


class _Parser:
    """A recursive-descent parser with a method for each level of precedence."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens(text)
        self.position = 0
        self.depth = 0

    @property
    def here(self) -> Token:
        return self.tokens[self.position]

    def fail(self, why: str) -> NoReturn:
        fail(self.text, self.here.at, why)

    def take(self) -> Token:
        token = self.here
        self.position += 1
        return token

    def takes(self, *texts: str) -> bool:
        """Take the next token if it is a sign or word in ``texts``."""
        if self.here.kind in ("sign", "name") and self.here.text in texts:
            self.position += 1
            return True
        return False

    def expect(self, text: str, where: str) -> None:
        if not self.takes(text):
            self.fail(f"'{text}' expected {where}; got {self.here.text!r}.")

    def statement(self) -> Statement:
        if self.here.kind != "name":
            self.fail("an expression begins with its result, as in 'O[i] += A[i, j]'.")
        name = self.take()
        if self.here.text != "[":
            self.fail(f"'[' expected after the result '{name.text}'; write '{name.text}[]' for a single number.")
        target = Access(name.text, self.axes(), name.at)
        aggregation = self.aggregation()
        value = self.value()
        constraints = self.constraints() if self.takes("where") else ()
        if self.here.kind != "end":
            self.fail(f"{self.here.text!r} is not expected here; constraints begin with 'where'.")
        sides = (side for comparison in constraints for side in (comparison.left, comparison.right))
        self.require_flat((target, value, *sides))
        return Statement(self.text, target, aggregation, value, constraints)

    def require_flat(self, nodes: Iterable[Node]) -> None:
        """Reject long rows of operators, because each is nested in the next."""
        rest = [(node, 0) for node in nodes]
        while rest:
            node, level = rest.pop()
            if level > _AROUND:
                told = f"more than {_AROUND} operators surround this; make a part of it a separate expression."
                fail(self.text, node.at, told)
            if isinstance(node, Call):
                rest += [(x, level + 1) for x in node.args]
            elif isinstance(node, Access):
                rest += [(x, 0) for axis in node.axes for x in (axis.subscript, axis.size) if x is not None]

    def aggregation(self) -> str:
        at, sign = self.here, self.take().text
        if sign in ("max", "min") and self.takes("="):
            sign += "="
        if sign not in AGGREGATIONS:
            fail(self.text, at.at, f"one of {', '.join(AGGREGATIONS)} expected after the result.")
        return AGGREGATIONS[sign]

    def axes(self) -> tuple[Axis, ...]:
        self.expect("[", "before subscripts")
        if self.takes("]"):
            return ()
        axes = []
        while True:
            at, subscript = self.here.at, self.total()
            axes.append(Axis(subscript, self.total() if self.takes(":") else None, at))
            if self.takes("]"):
                return tuple(axes)
            self.expect(",", "between subscripts")

    def constraints(self) -> tuple[Comparison, ...]:
        constraints: list[Comparison] = []
        while True:
            chain: list[tuple[str, Node, Node, int]] = []
            left = self.total()
            while self.here.text in COMPARISONS:
                sign = self.take()
                right = self.total()
                chain.append((sign.text, left, right, sign.at))
                left = right
            if not chain:
                self.fail("a constraint compares, as in 'j < 2' or '0 <= i - k < n'.")
            constraints += [Comparison(*each, is_alone=len(chain) == 1) for each in chain]
            if not self.takes(","):
                return tuple(constraints)

    def value(self) -> Node:
        left = self.total()
        if self.here.text in COMPARISONS:
            sign = self.take()
            return Call(COMPARISONS[sign.text], (left, self.total()), sign.at)
        return left

    def total(self) -> Node:
        return self.chain(self.product, {"+": "add", "-": "sub"})

    def product(self) -> Node:
        return self.chain(self.factor, {"*": "mul", "/": "div", "//": "floordiv"})

    def chain(self, operand: Callable[[], Node], signs: dict[str, str]) -> Node:
        """Parse operands with ``signs`` between them, from the left."""
        left = operand()
        while self.here.kind == "sign" and self.here.text in signs:
            sign = self.take()
            left = Call(signs[sign.text], (left, operand()), sign.at)
        return left

    def factor(self) -> Node:
        if self.depth >= _DEEPEST:
            self.fail(f"more than {_DEEPEST} levels of parentheses and signs.")
        self.depth += 1
        node = self.operand()
        self.depth -= 1
        return node

    def operand(self) -> Node:
        token = self.here
        if self.takes("-"):
            return Call("neg", (self.factor(),), token.at)
        if self.takes("("):
            inside = self.value()
            self.expect(")", "at the end of the parentheses")
            return inside
        if token.kind == "number":
            text = self.take().text
            return Number(int(text) if text.isdigit() else float(text), token.at)
        if token.kind != "name":
            self.fail(f"an array, a number or a function expected; got {token.text!r}.")
        self.take()
        if self.here.text == "[":
            return Access(token.text, self.axes(), token.at)
        return self.call(token) if self.takes("(") else Name(token.text, token.at)

    def call(self, name: Token) -> Node:
        if name.text not in FUNCTIONS:
            fail(self.text, name.at, f"no function is called '{name.text}'; the functions are {', '.join(FUNCTIONS)}.")
        args = [self.value()]
        while self.takes(","):
            args.append(self.value())
        self.expect(")", "after the arguments")
        count = FUNCTIONS[name.text]
        if len(args) != count:
            fail(self.text, name.at, f"'{name.text}' takes {count} argument{'s' * (count > 1)}, not {len(args)}.")
        return Call(name.text, tuple(args), name.at)
