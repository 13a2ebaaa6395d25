"""Every backend has the protocol; the other folders ask it for memory and for what plans depend on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.backends import base
from runnel.backends.base import Backend
from runnel.backends.cpu.backend import CpuBackend
from runnel.backends.host.memory import Storage
from runnel.core.devices import CPU, INTERPRETER
from runnel.core.dtypes import float32, float64
from runnel.tensor import eager

MEMBERS = sorted({name for name in (*vars(Backend), *Backend.__annotations__) if not name.startswith("_")})
SHAPES = [
    (m, k, row, column) for m in (1, 64, 1024) for k in (4, 300) for row, column in ((256, 1), (1, 256), (300, 1))
]


@pytest.mark.parametrize("device", base.BACKENDS, ids=str)
def test_every_backend_has_all_of_the_protocol(device: Any) -> None:
    assert {"allocate", "load", "packs_columns", "product_scratch", "target"} <= set(MEMBERS)
    assert [name for name in MEMBERS if not hasattr(base.of(device), name)] == []


def test_the_interpreter_answers_as_the_cpu_does() -> None:
    cpu, interpreter = base.of(CPU), base.of(INTERPRETER)
    assert cpu.product_scratch == interpreter.product_scratch > 0
    answers = [
        [backend.packs_columns(*shape, dtype) for shape in SHAPES for dtype in (float32, float64)]
        for backend in (cpu, interpreter)
    ]
    assert answers[0] == answers[1]
    assert {True, False} == set(answers[0])


def test_memory_comes_from_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    class Counted(CpuBackend):
        def allocate(self, nbytes: int) -> Storage:  # type: ignore[override]
            sizes.append(nbytes)
            return super().allocate(nbytes)

        def allocate_slab(self, nbytes: int) -> Storage:  # type: ignore[override]
            sizes.append(nbytes)
            return super().allocate_slab(nbytes)

    def of(run: Any) -> list[int]:
        sizes.clear()
        run()
        return list(sizes)

    monkeypatch.setitem(base.BACKENDS, CPU, Counted())
    eager.clear()
    array = np.ones((3, 171), np.float32)
    x = rn.asarray(array, copy=True)
    assert array.nbytes in sizes
    assert array.nbytes in of(lambda: x + x)  # its plan is made here
    assert of(lambda: x + x) == [array.nbytes]
    rn.topk(x, 171)
    assert of(lambda: rn.topk(x, 171)) == [array.nbytes, 2 * array.nbytes]
    compiled = rn.compile(lambda x: rn.exp(x))
    assert array.nbytes in of(lambda: compiled(x))
    assert of(lambda: compiled(x)) == [array.nbytes]
    assert [nbytes for nbytes in of(lambda: rn.compile(lambda x: rn.sum(x))(x)) if nbytes >= 2048]  # a slab
    eager.clear()
