"""Every op of the records gives the CPU's bits on the interpreter, eagerly."""

from __future__ import annotations

from typing import Any

import pytest

import runnel as rn
from runnel.core.dispatch import apply
from runnel.core.tables import Op
from tests.compiler.harness import same_bits
from tests.ops.records import RECORDS, sample
from tests.suites.inputs import NAMES, main_dtype

MOST = 3  # cases of an op
LARGEST = 3000  # elements of its inputs


def results(name: str, arrays: list[Any], attrs: dict[str, Any], device: str) -> list[rn.Tensor]:
    result = apply(Op.registry[name], *(rn.tensor(a, device=device) for a in arrays), **attrs)
    return list(result) if isinstance(result, tuple) else [result]


@pytest.mark.parametrize("name", NAMES)
def test_ops_have_the_bits_of_the_cpu(name: str) -> None:
    record = RECORDS[name]
    drawn = [(sample(record, case, main_dtype(record), seed=41), case[1]) for case in record.cases]
    small = [(arrays, attrs) for arrays, attrs in drawn if sum(a.size for a in arrays) <= LARGEST] or drawn[:1]
    for arrays, attrs in small[:: max(1, -(-len(small) // MOST))]:
        cpu, interpreter = (results(name, arrays, attrs, device) for device in ("cpu", "interpreter"))
        for x, y in zip(cpu, interpreter, strict=True):
            assert same_bits(x.numpy(), y.numpy())
            assert (x.device, y.device) == (rn.device("cpu"), rn.device("interpreter"))
