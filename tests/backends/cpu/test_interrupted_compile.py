"""Interrupted compilations leave nothing: whoever holds its traceback may let it go at any time."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.stress


# Modules of LLVM in cycles, with their contexts: the collector may end a context first.
_SCRIPT = """
import gc, sys
import llvmlite.binding as llvm
import runnel as rn
from runnel.core import switches

switches.cache.set(False)
gc.disable()
machine, where = llvm.TargetMachine, sys.argv[1]
emit, parse = machine.emit_object, llvm.parse_assembly

class Broken(BaseException):
    pass

def broken_emit(self, module):
    raise Broken

def broken_parse(text, context):
    module = parse(text, context)
    raise Broken

for i in range(10):
    if where == "emit":
        machine.emit_object = broken_emit
    else:
        llvm.parse_assembly = broken_parse
    try:
        rn.compile(eval(f"lambda x: x * {i}.5 + rn.tanh(x)", {"rn": rn}))(rn.ones((3,)))
    except Broken as error:
        error.itself = error
    machine.emit_object, llvm.parse_assembly = emit, parse
gc.enable()
print(gc.collect() > 0, float((rn.ones((3,)) * 4.5)[0]))
"""


@pytest.mark.parametrize("where", ["parse", "emit"])
def test_what_is_left_can_be_collected(where: str) -> None:
    done = subprocess.run([sys.executable, "-c", _SCRIPT, where], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "True 4.5\n"), done.stderr
