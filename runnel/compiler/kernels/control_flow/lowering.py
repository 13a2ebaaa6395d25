"""The lowerings of ops with bodies: scans, while loops and conditionals."""

from __future__ import annotations

import abc
from typing import ClassVar

from runnel.compiler.kernels import bounds
from runnel.compiler.kernels.control_flow import control, scans
from runnel.compiler.kernels.control_flow.bodies import Results
from runnel.compiler.kernels.lowering import Lowering, Request, lowering_of
from runnel.compiler.kernels.operands import Operands
from runnel.compiler.kernels.section import PlanBody, Section
from runnel.graph.graph import Graph
from runnel.graph.node import Result, Value


class BodiesLowering(Lowering, abc.ABC):
    """The base of ops that run other graphs in loops or conditionally."""

    stores_unread: ClassVar[bool] = False

    def may_fail(self, node: Value) -> bool:
        """Whether a body calls the host or checks indices."""
        return any(
            bounds.find(graph) or any(lowering_of(x).may_fail(x) for x in graph.values) for graph in _bodies(node)
        )

    def build(self, request: Request) -> Section:
        results: Results = {
            x.index: request.targets[x]
            for x in request.cluster.members
            if isinstance(x, Result) and x in request.targets
        }
        return self.section(request.node, request.operands, results, request.plan_body)

    @abc.abstractmethod
    def section(self, node: Value, operands: Operands, results: Results, plan_body: PlanBody) -> Section:
        """The calls and the loops or branches among them."""


class ScanLowering(BodiesLowering):
    """A loop of known length."""

    def section(self, node: Value, operands: Operands, results: Results, plan_body: PlanBody) -> Section:
        return scans.scan(node, operands, results, plan_body)


class WhileLowering(BodiesLowering):
    """A loop that continues while a graph returns true."""

    def section(self, node: Value, operands: Operands, results: Results, plan_body: PlanBody) -> Section:
        return control.while_loop(node, operands, results, plan_body)


class CondLowering(BodiesLowering):
    """One of two graphs."""

    def section(self, node: Value, operands: Operands, results: Results, plan_body: PlanBody) -> Section:
        return control.choice(node, operands, results, plan_body)


def _bodies(node: Value) -> list[Graph]:
    """The graphs that a node runs."""
    return [] if node.op is None else [node.attrs[name].graph for name in node.op.regions]
