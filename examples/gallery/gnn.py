"""A graph network: the two sides of a karate club, of whose members two are known.

    python examples/gallery/gnn.py [--quick] [--picture gnn.png]

T. Kipf and M. Welling, "Semi-supervised classification with graph convolutional networks", 2017, on the graph of W.
Zachary, "An information flow model for conflict and fission in small groups", 1977. Messages along edges are added up
by `rn.segment_sum`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from showing import run

import runnel as rn
from runnel import nn, optim
from runnel.nn import functional as F

# For each member, the members with a larger number that they met outside the club.
FRIENDS = (
    "1 2 3 4 5 6 7 8 10 11 12 13 17 19 21 31|2 3 7 13 17 19 21 30|3 7 8 9 13 27 28 32|7 12 13|6 10|6 10 16|16||"
    "30 32 33|33||||33|32 33|32 33|||32 33|33|32 33||32 33|25 27 29 32 33|25 27 31|31|29 33|33|31 33|32 33|32 33|"
    "32 33|33"
)
EDGES = np.array([(a, int(b)) for a, row in enumerate(FRIENDS.split("|")) for b in row.split()])
INSTRUCTOR = {0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21}  # who stayed with him when the club split
MEMBERS, WIDTH = 34, 16
SIDE = np.array([0 if member in INSTRUCTOR else 1 for member in range(MEMBERS)])
KNOWN = np.array([0, 33])


class Convolution(nn.Module):
    """Each member gets the mean, by the roots of both degrees, of what is known of friends and of themselves."""

    def __init__(self, inputs: int, outputs: int) -> None:
        self.dense = nn.Linear(inputs, outputs)
        loops = np.arange(MEMBERS)
        self.source = rn.asarray(np.concatenate([EDGES[:, 0], EDGES[:, 1], loops]))
        self.target = rn.asarray(np.concatenate([EDGES[:, 1], EDGES[:, 0], loops]))
        degree = rn.bincount(self.target).float()
        self.weight = 1 / rn.sqrt(degree[self.source] * degree[self.target])

    def forward(self, x: rn.Tensor) -> rn.Tensor:
        messages = self.dense(x)[self.source] * self.weight[:, None]
        return rn.segment_sum(messages, self.target, MEMBERS)


def train(steps: int) -> dict[str, Any]:
    features = rn.eye(MEMBERS)  # nothing is known of the members but their friends
    first, second = Convolution(MEMBERS, WIDTH), Convolution(WIDTH, 2)
    optimizer = optim.Adam([*first.parameters(), *second.parameters()], lr=0.01, weight_decay=5e-3)
    known, sides = rn.asarray(KNOWN), rn.asarray(SIDE[KNOWN])

    @rn.compile
    def step() -> rn.Tensor:
        optimizer.zero_grad()
        hidden = rn.tanh(first(features))
        scores = second(hidden)
        loss = F.cross_entropy(scores[known], sides)
        loss.backward()
        optimizer.step()
        return scores.detach()

    scores = [step() for _ in range(steps)][-1].numpy()
    right = (scores.argmax(axis=1) == SIDE).sum()
    return {"reached": {"members put right": right}, "scores": scores[:, 1] - scores[:, 0]}


def draw(axes: Any, scores: np.ndarray) -> None:
    angle = 2 * np.pi * np.argsort(np.argsort(scores)) / MEMBERS
    places = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    for edge in EDGES:
        axes.plot(*places[edge].T, color="0.8", linewidth=0.5, zorder=0)
    axes.scatter(*places.T, c=scores, cmap="coolwarm", edgecolors=np.where(SIDE == 1, "darkred", "navy"), s=50)
    axes.set_aspect("equal")
    axes.set_axis_off()


if __name__ == "__main__":
    run(__doc__, train, steps=200, quick=20, draw=draw)
