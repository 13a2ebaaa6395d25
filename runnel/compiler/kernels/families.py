"""The families of kernels in the package: the lowering of each form of rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from runnel.compiler.kernels.attention.forward import AttentionLowering
from runnel.compiler.kernels.attention.gradient import AttentionGradientLowering
from runnel.compiler.kernels.contraction import DotGeneralLowering
from runnel.compiler.kernels.control_flow import CondLowering, HostCallLowering, ScanLowering, WhileLowering
from runnel.compiler.kernels.copies import ConcatenationLowering, PaddingLowering, ViewLowering
from runnel.compiler.kernels.elementwise import (
    BoundsCheckedLowering,
    ElementwiseLowering,
    PositionLowering,
    ReductionLowering,
)
from runnel.compiler.kernels.elimination import SmallSolveLowering
from runnel.compiler.kernels.indexing import (
    CountingSortLowering,
    GatherLowering,
    RowWritesLowering,
    ScatterAddLowering,
    SegmentReductionLowering,
)
from runnel.compiler.kernels.sorting import SortLowering
from runnel.compiler.kernels.waves import WavesLowering
from runnel.compiler.kernels.winograd import WinogradLowering
from runnel.compiler.kernels.winograd_gradient import WinogradGradientLowering
from runnel.compiler.lowering.protocol import Lowering
from runnel.loops import rules

FAMILIES: Final[dict[type, Callable[[Any], Lowering]]] = {
    rules.Elementwise: ElementwiseLowering,
    rules.BoundsChecked: BoundsCheckedLowering,
    rules.IotaLike: PositionLowering,
    rules.Reduction: ReductionLowering,
    rules.View: ViewLowering,
    rules.Concatenation: ConcatenationLowering,
    rules.Padding: PaddingLowering,
    rules.DotGeneral: DotGeneralLowering,
    rules.Winograd: WinogradLowering,
    rules.WinogradGradient: WinogradGradientLowering,
    rules.Attention: AttentionLowering,
    rules.AttentionGradient: AttentionGradientLowering,
    rules.Gather: GatherLowering,
    rules.RowWrites: RowWritesLowering,
    rules.ScatterAdd: ScatterAddLowering,
    rules.CountingSort: CountingSortLowering,
    rules.SegmentReduction: SegmentReductionLowering,
    rules.Sort: SortLowering,
    rules.SmallSolve: SmallSolveLowering,
    rules.Scan: ScanLowering,
    rules.While: WhileLowering,
    rules.Cond: CondLowering,
    rules.Waves: WavesLowering,
    rules.HostCall: HostCallLowering,
}
