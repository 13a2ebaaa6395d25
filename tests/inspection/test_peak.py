"""The machine's own peak: a rate that products come near and never pass by much, and code for every target."""

import llvmlite.binding as llvm
import pytest

from runnel.backends.cpu import target
from runnel.core.dtypes import float32, float64
from runnel.inspection import machine
from runnel.inspection.machine import Peak


@pytest.mark.parametrize("dtype", [float32, float64], ids=lambda d: d.name)
@pytest.mark.parametrize("row", target.TARGETS, ids=lambda t: t.name)
def test_every_target_keeps_its_chains_in_registers(row, dtype):
    module = llvm.parse_assembly(machine.emit_module(row, dtype))
    text = row.machine().emit_assembly(module)
    loop = text.split("%again")[1].split("%done")[0] if "%again" in text else text
    assert loop.count("fmla") + loop.count("vfmadd") >= machine.CHAINS
    assert "(%rsp)" not in loop and "[sp" not in loop


def test_two_threads_do_twice_the_work():
    one, two = Peak(1), Peak(2)
    assert two._flops == 2 * one._flops
    first = one.measure(0.02)
    assert 0 < first == one.gflops
    assert one.measure(0.0) >= first and two.measure(0.0) > 0
