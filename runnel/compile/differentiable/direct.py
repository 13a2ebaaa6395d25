"""Backward passes through a single call: results of the backward program go directly to ``.grad`` of the Variables.

A training step of a small network spends most of a general backward pass in Python, so this one is generated code: from
addresses to base pointers, the launch, and results to gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from runnel.compile.differentiable.backward import Backward
from runnel.compile.differentiable.derivative import Cotangent
from runnel.compile.differentiable.ends import OF_VARIABLES, End, Kind
from runnel.core.lifetime import Weak
from runnel.tensor.bound import Bound, Feed
from runnel.tensor.tensor import Tensor
from runnel.tensor.variable import STATE_VERSION

SMALL: Final = 1024  # bytes: gradients up to this size lie side by side, since they come and go together


class Direct:
    """A part of the tape that leads to values of Variables, by one reading each, whose cotangents are all different.

    ``owners`` are the Variables, with the numbers of their cotangents.
    """

    def __init__(self, backward: Backward, owners: Sequence[tuple[Weak, int]]) -> None:
        self._backward = backward
        self._owners = owners
        self._written: Callable[[Sequence[int], Tensor], None] | None = None

    def run(self, addresses: Sequence[int], g: Tensor) -> None:
        """Add to the gradients of the Variables, if they are still there, for the cotangent ``g`` of the beginning."""
        if self._written is None:
            self._written = self._write()
        self._written(addresses, g if g.is_dense else g.detach().contiguous())

    def _write(self) -> Callable[[Sequence[int], Tensor], None]:
        compiled = self._backward.program_for(frozenset(number for _, number in self._owners))
        program = compiled.program
        feeds = [*[Feed(f"A[{place}]") for place in self._backward.reads], Feed("g.address")]
        together = [place for place, nbytes in enumerate(program.outputs) if nbytes <= SMALL]
        bound = Bound(program, Tensor, feeds, compiled.avals, together=together)
        bound.namespace["STATE"] = STATE_VERSION
        lines: list[str] = []
        for i, (variable, number) in enumerate(self._owners):
            bound.namespace[f"variable{i}"] = variable
            lines += [
                *bound.tensor("t", compiled.numbers.index(number)),
                f"v = variable{i}()",
                "if v is None: pass",
                "elif v._grad is None: v._grad = t; STATE.grads += 1",
                "else: v.add_gradient(t)",
            ]
        written: Callable[[Sequence[int], Tensor], None] = bound.function(
            "backward(A, g)", "backward of a compiled function", then=lines
        )
        return written


def direct(
    ends: Sequence[End],
    cotangents: Sequence[Cotangent | None],
    backward: Backward,
    variables: Sequence[Weak],
    former: Sequence[int],
) -> Direct | None:
    """How the cotangents of a part's readings reach their owners, where that is as simple as :class:`Direct` says."""
    numbers = [c.output for c in cotangents if c is not None and c.wrapped is None]
    is_simple = all(end.kind in OF_VARIABLES for end in ends) and len(numbers) == len(ends)
    if not is_simple or len(set(ends)) < len(ends) or len(set(numbers)) < len(numbers):
        return None
    owners = [variables[former[end.number] if end.kind is Kind.FORMER else end.number] for end in ends]
    return Direct(backward, list(zip(owners, numbers, strict=True)))
