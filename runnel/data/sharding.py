"""Each of several processes takes its share of the samples."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sized
from typing import Any

from runnel.core.errors import ArgumentError
from runnel.data.sampling import Sampler, permutation
from runnel.tensor.random import Generator


class DistributedSampler(Sampler[int]):
    """The numbers that process ``rank`` of ``num_replicas`` takes: rank, rank + num_replicas, … of an order that is the
    same in all of them. All take as many: the first samples come twice where there are too few, or with ``drop_last``
    the last are left out.

    Args:
        dataset: what has a length.
        num_replicas, rank: how many processes there are, and the number of this one.
        shuffle: whether the order is random; it follows from ``seed`` and the epoch (:meth:`set_epoch`).
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            raise ArgumentError("[DistributedSampler] no other processes are known here: pass num_replicas and rank.")
        if not 0 <= rank < num_replicas:
            raise ArgumentError(f"[DistributedSampler] rank is below num_replicas; received {rank} and {num_replicas}.")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """The order of another epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        size = len(self.dataset)
        return size // self.num_replicas if self.drop_last else -(-size // self.num_replicas)

    def __iter__(self) -> Iterator[int]:
        size = len(self.dataset)
        order = permutation(size, Generator(self.seed + self.epoch)).tolist() if self.shuffle else range(size)
        count = len(self) * self.num_replicas
        whole = itertools.islice(itertools.cycle(order), count)
        return itertools.islice(whole, self.rank, None, self.num_replicas)

    def state_dict(self) -> dict[str, int]:
        """The epoch, for ``DataLoader.state_dict``."""
        return {"epoch": self.epoch}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to a saved epoch."""
        self.epoch = int(state["epoch"])
