"""A softmax over many classes in clusters, the frequent ones first (E. Grave et al., 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from runnel import ops
from runnel.core.dtypes import Dtype, int64
from runnel.core.errors import ShapeError
from runnel.nn.containers import ModuleList, Sequential
from runnel.nn.linear import Linear
from runnel.nn.module import Module
from runnel.ops.indexing.gather import labels_below
from runnel.tensor.tensor import Tensor


class ASMoutput(NamedTuple):
    """The log-probability of each target, and the mean of -1 times it."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Compute log-probabilities of many classes in clusters, with the frequent classes first (E. Grave et al., 2017).

    ``head`` computes scores of the classes of the first cluster and of the other clusters. ``tail[i]`` computes scores
    of the classes of one of these, from in_features / div_value^(i + 1) features.

    Args:
        in_features: number of input features.
        n_classes: number of classes, sorted by falling frequency.
        cutoffs: the first class of each cluster but the first.
        div_value: the factor by which each cluster has fewer features than the one before.
        head_bias: whether ``head`` has a bias.
        dtype: the dtype of the Parameters; float32 by default.

    Shape:
        x ``(N, in_features)`` and target ``(N,)``, or without N. The result is a pair: ``output``, the log-probability
        of each target, and ``loss``, the mean of -output.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        dtype: Dtype = None,
    ) -> None:
        listed = list(cutoffs)
        if not listed or listed != sorted(set(listed)) or listed[0] < 1 or listed[-1] > n_classes - 1:
            raise ValueError(
                f"[AdaptiveLogSoftmaxWithLoss] cutoffs must increase, from at least 1 to less than "
                f"n_classes={n_classes}; got {listed}."
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*listed, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = listed[0]
        self.n_clusters = len(listed)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, dtype)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // div_value ** (i + 1))
            classes = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(Linear(in_features, hidden, False, dtype), Linear(hidden, classes, False, dtype))
            )

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        for layer in (self.head, *(part for pair in self.tail for part in pair)):  # type: ignore[attr-defined]
            layer.reset_parameters()

    def log_prob(self, x: Any) -> Any:
        """Return the log-probabilities (N, n_classes) of all classes."""
        head = ops.log_softmax(self.head(x), -1)
        parts = [ops.narrow(head, -1, 0, self.shortlist_size)]
        for i, cluster in enumerate(self.tail):
            parts.append(ops.log_softmax(cluster(x), -1) + ops.narrow(head, -1, self.shortlist_size + i, 1))
        return ops.concat(parts, -1)

    def predict(self, x: Any) -> Any:
        """Return the most probable class of each input."""
        return ops.argmax(self.log_prob(x), -1)

    def forward(self, x: Any, target: Any) -> ASMoutput:
        if x.shape[:-1] != target.shape or x.ndim not in (1, 2) or x.shape[-1] != self.in_features:
            raise ShapeError(
                f"[AdaptiveLogSoftmaxWithLoss] x and target must have shapes (N, {self.in_features}) and (N,), or lack "
                f"N; got {x.shape} and {target.shape}."
            )
        label = labels_below(ops.cast(ops.expand_dims(target, -1), int64), self.n_classes)
        output = ops.squeeze(ops.take_along_axis(self.log_prob(x), label, -1), -1)
        return ASMoutput(output, -ops.mean(output))
