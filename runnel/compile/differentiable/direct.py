"""Backward passes through a single call: results of the backward program go directly to ``.grad`` of the Variables.

A training step of a small network spends most of a general backward pass in Python, so this one is generated code: from
addresses to base pointers, the launch, and results to gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from runnel.compile.differentiable.backward import Backward
from runnel.compile.differentiable.derivative import Cotangent
from runnel.compile.differentiable.ends import OF_VARIABLES, End, Kind
from runnel.compile.launching import TAKE, launch, names
from runnel.core.generated import function
from runnel.core.lifetime import Weak
from runnel.tensor.tensor import Tensor, from_storage

SMALL: Final = 1024  # bytes: gradients up to this size lie side by side, since they come and go together
_LINE: Final = 64  # bytes that two of them never share


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
        program, reads = compiled.program, self._backward.reads
        space: dict[str, Any] = {**names(program, program.pool), "from_storage": from_storage}
        lines = list(TAKE)
        addresses = {slot: f"A[{place}]" for slot, place in enumerate(reads, 2)}
        addresses[2 + len(reads)] = "g.address"
        offsets, total = _side_by_side(program.outputs)
        if total:
            lines.append(f"slab = allocate_slab({total})")
        for i, nbytes in enumerate(program.outputs):
            memory = f"allocate({nbytes})" if offsets[i] is None else "slab"
            lines.append(f"s{i} = {memory}")
            addresses[program.first_output + i] = f"s{i}.address + {offsets[i] or 0}"
        lines += launch(addresses, is_bound=False)
        results = {number: (place, value, strides) for number, place, value, strides in compiled.results}
        for i, (variable, number) in enumerate(self._owners):
            place, value, strides = results[number]
            space |= {f"variable{i}": variable, f"value{i}": value}
            offset = (offsets[place] or 0) // value.dtype.itemsize
            lines += [
                f"v = variable{i}()",
                f"t = from_storage(value{i}, s{place}, {offset}, {strides})",
                "if v is None: pass",
                "elif v._grad is None: v._grad = t; STATE.grads += 1",
                "else: v.add_gradient(t)",
            ]
        written: Callable[[Sequence[int], Tensor], None] = function(
            "backward(A, g)", lines, space, "backward of a compiled function"
        )
        return written


def _side_by_side(sizes: Sequence[int]) -> tuple[list[int | None], int]:
    """Where the small ones of these lie in one piece of memory, None for the others; and how large it is."""
    offsets: list[int | None] = []
    total = 0
    for nbytes in sizes:
        offsets.append(total if nbytes <= SMALL else None)
        total += -(-nbytes // _LINE) * _LINE if nbytes <= SMALL else 0
    return offsets, total


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
