"""The lowerings of Winograd convolutions and of their gradients for filters."""

from __future__ import annotations

from runnel.compiler.fusion.strided import Strided
from runnel.compiler.kernels.allocations import Allocation, Call
from runnel.compiler.kernels.contraction.lowering import ProductLowering
from runnel.compiler.kernels.convolution.winograd import winograd
from runnel.compiler.kernels.convolution.winograd_gradient import winograd_gradient
from runnel.compiler.kernels.lowering import Lowering, Request
from runnel.compiler.kernels.result_axes import ResultAxes
from runnel.compiler.kernels.section import Section
from runnel.graph.node import Value


class WinogradLowering(ProductLowering):
    """A convolution as a product of pixels with filters. Pixels outside of the image are computed too and overwritten
    by others: a row of the result may be stored twice."""

    def epilogue_axes(self, node: Value) -> ResultAxes | None:
        return ResultAxes(node.aval.shape[:-1], node.aval.shape[-1:])

    def build(self, request: Request) -> Section:
        section = Section()
        call = winograd(request)
        section.add([*request.operands.before, call])
        return section


class WinogradGradientLowering(Lowering):
    """The gradient for the filters: rows of both operands may have any offsets; elements of a row are adjacent."""

    def reads_by_strides(self, node: Value, x: Value, view: Strided) -> bool:
        return view.strides[-1] == 1

    def kernels(self, request: Request, results: list[Allocation]) -> list[Call]:
        return [winograd_gradient(request.node, request.operands, results[0])]
