"""A loop inside an expression: for the few functions whose number of steps depends on the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from runnel.backends.cpu.codegen.vecmath.value import Value

State = Sequence[Value]


def repeat_while_any(state: State, condition: Callable[[State], Value], step: Callable[[State], State]) -> list[Value]:
    """``while any lane of condition(state): state = step(state)``. A step must leave finished lanes as they are."""
    em = state[0].em
    before = em.block
    head, body, done = em.new_label("while"), em.new_label("step"), em.new_label("done")
    em.jump(head)
    em.start(head)
    phis = [Value(em, em.phi(v.type, (v.name, before)), v.dtype, v.lanes) for v in state]
    em.branch(condition(phis).any(), body, done)
    em.start(body)
    for phi, new in zip(phis, step(phis), strict=True):
        em.add_edge(phi.name, new.name, em.block)
    em.jump(head)
    em.start(done)
    return phis
