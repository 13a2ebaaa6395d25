"""Facts about values that a compiled function computes: its program checks them before it changes anything.

Eagerly such facts are looked at where they are stated, and the values are known. The bodies of loops and branches are
traced eagerly, too, so that nothing is checked there in either mode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel.ops.library.requirement import required
from runnel.tensor import tensor as tensors
from runnel.tensor.active import ACTIVE
from runnel.tensor.grad_mode import run_recording


def require_at_run(facts: Callable[[], Any], message: str) -> None:
    """Let a program stop with the ValueError ``message`` unless all elements of ``facts()`` are true when it runs."""
    trace = ACTIVE.trace
    if trace is None or trace.is_body or trace.refuse is None:
        return
    checked = run_recording(False, lambda: required(facts(), message)).read()
    while checked._level is not None:
        checked = checked.primary
    trace.checks.append(tensors.node_of(checked, trace))
