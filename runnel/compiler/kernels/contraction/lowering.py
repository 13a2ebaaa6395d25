"""The lowering of products of matrices."""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np

from runnel.compiler.cost import rates
from runnel.compiler.fusion.cluster import Cluster, essential_strides
from runnel.compiler.fusion.strided import Strided
from runnel.compiler.kernels.allocations import Allocation, Call
from runnel.compiler.kernels.contraction.contraction import batched_products, product
from runnel.compiler.kernels.contraction.matrices import extents
from runnel.compiler.kernels.lowering import Lowering, Request
from runnel.compiler.kernels.result_axes import Extents, ResultAxes
from runnel.compiler.kernels.section import Section
from runnel.core.avals import Shape
from runnel.graph.node import Value

_LARGEST: Final = np.iinfo(np.int32).max  # elements that an offset table can address


class ProductLowering(Lowering):
    """The base of all products with an epilogue."""

    is_product: ClassVar[bool] = True
    reads_at_point: ClassVar[bool] = False
    rate: ClassVar[float] = rates.PRODUCTS

    def takes_subview(self, node: Value, shape: Shape, strides: Shape, size: int) -> bool:
        axes = self.epilogue_axes(node)
        rows = None if axes is None or size > _LARGEST else axes.point_rows(essential_strides(shape, strides))
        return rows is not None and rows.column == 1

    def reads_by_strides(self, node: Value, x: Value, view: Strided) -> bool:
        return x is node.inputs[0] and x not in node.inputs[1:] and self.epilogue_axes(node) is not None


class DotGeneralLowering(ProductLowering):
    """Products of matrices, over several axes (dot_general) or batched."""

    def epilogue_axes(self, node: Value) -> ResultAxes | None:
        axes = extents(node, self.rule)
        return None if axes.is_batched else axes.result

    def may_overwrite(self, cluster: Cluster, result: Value, views: dict[Value, Strided]) -> bool:
        return self.epilogue_axes(cluster.root) is not None

    def packable(self, node: Value) -> Extents | None:
        return extents(node, self.rule)

    def is_matmul(self, node: Value) -> bool:
        return not self.rule.several

    def build(self, request: Request) -> Section:
        if self.epilogue_axes(request.node) is None:
            return super().build(request)
        section = Section()
        call = product(request, self.rule)
        section.add([*request.operands.before, call])
        return section

    def kernels(self, request: Request, results: list[Allocation]) -> list[Call]:
        return batched_products(request.node, request.operands, results[0])
