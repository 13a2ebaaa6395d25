"""Losses of all families, with their arguments, and their gradients at margins and kinks."""

import torch
import torch.nn.functional as F
from torch import nn


def main() -> list[float]:
    a = torch.cos(torch.arange(12).float() * 0.7).reshape(4, 3).requires_grad_()
    b = torch.sin(torch.arange(12).float() * 0.3).reshape(4, 3)
    labels, signs = torch.tensor([0, 2, 1, 0]), torch.tensor([1.0, -1.0, 1.0, -1.0])
    lengths, letters = torch.tensor([4, 4]), torch.tensor([[1, 2], [2, 1]])
    steps = torch.cat([a, b]).reshape(4, 2, 3).log_softmax(-1)
    losses = [
        nn.BCEWithLogitsLoss(pos_weight=torch.tensor([2.0, 1.0, 0.5]))(a, b.sigmoid()),
        nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0]), ignore_index=2, label_smoothing=0.1)(a, labels),
        nn.NLLLoss()(F.log_softmax(a, -1), labels), nn.SmoothL1Loss(beta=0.5)(a, b), nn.HuberLoss(delta=0.3)(a, b),
        nn.KLDivLoss(reduction="batchmean")(F.log_softmax(a, 1), F.softmax(b, 1)), nn.MultiMarginLoss()(a, labels),
        nn.MarginRankingLoss(margin=0.2)(a[:, 0], b[:, 0], signs), nn.CosineEmbeddingLoss(margin=0.1)(a, b, signs),
        nn.TripletMarginLoss(swap=True)(a, b, a.roll(1, 0)), nn.PoissonNLLLoss(full=True)(a, b.abs()),
        nn.GaussianNLLLoss()(a, b, torch.ones(4, 3)), nn.SoftMarginLoss()(a[:, 1], signs),
        nn.HingeEmbeddingLoss()(a[:, 2], signs), nn.MultiLabelSoftMarginLoss()(a, (b > 0).float()),
        nn.CTCLoss()(steps, letters, lengths, torch.tensor([2, 2])),
        F.mse_loss(a, b, size_average=False), F.l1_loss(a, b, reduce=False).sum(),
    ]  # fmt: skip
    ties = torch.tensor([1.0, 2.0, 0.0], requires_grad=True)
    kinks = (
        F.margin_ranking_loss(ties, torch.zeros(3), torch.ones(3), margin=1.0, reduction="sum")
        + ties.clamp(0, 2).sum()
        + torch.linalg.vector_norm(ties, 0.5)
        + ties.abs().max()
    )
    sum(losses).backward()
    kinks.backward()
    return [float(value) for value in [*(loss.detach() for loss in losses), *a.grad.flatten(), *ties.grad]]
