"""Data sets, orders and batches: ``rn.data``."""

from __future__ import annotations

import threading
from collections import Counter, namedtuple
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import ArgumentError, ShapeError
from runnel.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    random_split,
)


class Squares(Dataset[int]):
    def __getitem__(self, index: int) -> int:
        return index * index

    def __len__(self) -> int:
        return 10


class Counting(IterableDataset[int]):
    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.count))


def rows() -> TensorDataset:
    return TensorDataset(rn.arange(10), rn.arange(10) * 10)


def order_of(loader: DataLoader) -> list[list[int]]:
    return [batch.tolist() for batch in loader]


def test_data_sets_by_number() -> None:
    data = rows()
    assert len(data) == 10 and [x.item() for x in data[3]] == [3, 30]
    both = ConcatDataset([Squares(), Subset(Squares(), [9, 8])])
    assert [both[i] for i in (0, 9, 10, -1)] == [0, 81, 81, 64] and len(both) == 12
    assert len(Squares() + Squares()) == 20
    with pytest.raises(IndexError, match="sample 12 of 12"):
        both[12]
    assert StackDataset(Squares(), Squares())[2] == (4, 4) and StackDataset(a=Squares())[2] == {"a": 4}
    assert list(Counting(2) + Counting(1)) == [0, 1, 0] and isinstance(Counting(1) + Counting(1), ChainDataset)
    with pytest.raises(ShapeError, match="the same number of rows"):
        TensorDataset(rn.ones(2), rn.ones(3))
    with pytest.raises(ArgumentError, match="IterableDataset"):
        ConcatDataset([Counting(2)])


def test_a_random_order_follows_only_from_the_seed() -> None:
    rn.manual_seed(5)
    loader = DataLoader(Squares(), batch_size=4, shuffle=True)
    first, second = order_of(loader), order_of(loader)
    assert first != second and sorted(n for batch in first for n in batch) == [i * i for i in range(10)]
    rn.manual_seed(5)
    assert [order_of(loader), order_of(loader)] == [first, second]
    own = [order_of(DataLoader(Squares(), 4, True, generator=rn.Generator(3))) for _ in range(2)]
    assert own[0] == own[1] != first


@pytest.mark.parametrize("workers", [1, 3])
def test_threads_change_neither_order_nor_batches(workers: int) -> None:
    threads = set()

    def loader(data: Squares, workers: int) -> DataLoader:
        context = "thread" if workers else None
        return DataLoader(
            data, 3, True, num_workers=workers, multiprocessing_context=context, generator=rn.Generator(1)
        )

    class Watched(Squares):
        def __getitem__(self, index: int) -> int:
            threads.add(threading.current_thread())
            return super().__getitem__(index)

    alone, ahead = (loader(Watched(), workers=n) for n in (0, workers))
    assert order_of(alone) == order_of(ahead) and len(threads) > 1
    next(iter(ahead))  # left in the middle: the workers end
    assert sum(t.is_alive() for t in threads) == 1


def test_batches_of_rows_equal_the_ones_of_single_samples() -> None:
    data = Subset(rows(), [5, 1, 2, 8, 9])
    quick = [[part.tolist() for part in batch] for batch in DataLoader(data, 2)]
    slow = [[part.tolist() for part in batch] for batch in DataLoader(data, 2, collate_fn=lambda s: default_collate(s))]
    assert quick == slow == [[[5, 1], [50, 10]], [[2, 8], [20, 80]], [[9], [90]]]
    assert len(DataLoader(data, 2)) == 3 and len(DataLoader(data, 2, drop_last=True)) == 2


def test_samples_one_after_the_other() -> None:
    assert order_of(DataLoader(Counting(5), 2)) == [[0, 1], [2, 3], [4]]
    assert order_of(DataLoader(Counting(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    assert list(DataLoader(Counting(2), None)) == [0, 1]
    with pytest.raises(ArgumentError, match="own order"):
        DataLoader(Counting(5), shuffle=True)


def test_samplers() -> None:
    assert list(SequentialSampler(range(3))) == [0, 1, 2]
    assert sorted(SubsetRandomSampler([4, 7, 9])) == [4, 7, 9]
    assert list(BatchSampler([5, 6, 7], 2)) == [[5, 6], [7]] and len(BatchSampler([5, 6, 7], 2, True)) == 1
    several = list(RandomSampler(range(4), num_samples=10, generator=rn.Generator(0)))
    assert sorted(several[:4]) == sorted(several[4:8]) == [0, 1, 2, 3] and len(several) == 10
    repeated = list(RandomSampler(range(4), replacement=True, num_samples=400, generator=rn.Generator(0)))
    assert all(60 < repeated.count(i) < 140 for i in range(4))


def test_weights_are_probabilities() -> None:
    weighted = Counter(WeightedRandomSampler([1, 0, 3], 4000, generator=rn.Generator(0)))
    assert weighted[1] == 0 and 0.7 < weighted[2] / 4000 < 0.8
    once = [tuple(WeightedRandomSampler([1, 0, 3], 2, False, rn.Generator(seed))) for seed in range(200)]
    assert {*once} == {(0, 2), (2, 0)} and 0.6 < once.count((2, 0)) / 200 < 0.9
    with pytest.raises(ArgumentError, match="at most 2"):
        WeightedRandomSampler([1, 0, 3], 3, False)
    with pytest.raises(ArgumentError, match="0 or more"):
        WeightedRandomSampler([1, -1], 3)


def test_parts_at_random() -> None:
    parts = random_split(Squares(), [7, 3], generator=rn.Generator(2))
    assert [len(p) for p in parts] == [7, 3] and sorted(i for p in parts for i in p.indices) == list(range(10))
    assert [len(p) for p in random_split(Squares(), [0.5, 0.25, 0.25])] == [6, 2, 2]
    with pytest.raises(ArgumentError, match="sum to the 10 samples"):
        random_split(Squares(), [7, 4])


def test_samples_of_any_form_are_put_together() -> None:
    Pair = namedtuple("Pair", ("x", "y"))
    samples = [
        {"a": rn.ones(2) * i, "b": np.float32(i), "c": float(i), "d": i, "e": str(i), "f": Pair(i, [i, True])}
        for i in range(2)
    ]
    batch = default_collate(samples)
    assert batch["a"].tolist() == [[0, 0], [1, 1]] and batch["b"].dtype is rn.float32
    assert batch["c"].dtype is rn.float64 and batch["d"].dtype is rn.int64 and batch["e"] == ["0", "1"]
    assert isinstance(batch["f"], Pair) and batch["f"].y[1].dtype is rn.bool_
    assert isinstance(default_convert({"a": np.ones(2)})["a"], rn.Tensor)
    assert default_collate([1, 2.5]).tolist() == [1.0, 2.5] and default_collate([True, 2]).dtype is rn.int64
    assert default_collate([np.float32(1), 2.5]).tolist() == [1.0, 2.5]


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([], "no samples"),
        ([[1], [1, 2]], r"\[1, 2\]"),
        ([object()], "collate_fn"),
        ([1.0, None], "number 0 of the batch is 1.0 .*, number 1 None"),
        ([None, 1.0], "got None"),
        ([(1.0, 2), (None, 3)], "got None|number 1 None"),
        ([np.ones(2), None], "got None|number 1 None"),
        ([1.0, 2.0, "three"], "number 2 'three'"),
        ([{"a": 1}, {"b": 1}], r"number 0 of the batch has \['a'\], number 1 \['b'\]"),
        ([{"a": 1}, {"a": 1, "b": 1}], r"number 1 \['a', 'b'\]"),
        ([{"a": 1}, (1,)], r"a dict of 1, number 1 \(1,\)"),
        ([np.ones(3), np.ones(3), np.ones(4)], r"got \(3,\), \(4,\).* pads or packs"),
        ([rn.ones(2, 3), rn.ones(3, 3)], r"got \(2, 3\), \(3, 3\)"),
        ([1.0, np.ones(2)], r"got \(\), \(2,\)"),
    ],
)
def test_samples_of_unlike_forms_are_refused(samples: list[Any], message: str) -> None:
    with pytest.raises((ArgumentError, ShapeError), match=message):
        default_collate(samples)


def test_lists_of_numbers_are_asked_of_a_batch_sampler() -> None:
    with pytest.raises(ArgumentError, match="must yield lists of indices; got 3"):
        list(DataLoader(Squares(), batch_sampler=[[1, 2], 3]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be an int of 1 or more"),
        ({"num_workers": -1}, "num_workers"),
        ({"shuffle": True, "sampler": [1]}, "both choose the order"),
        ({"batch_sampler": [[1]], "shuffle": True}, "batch_sampler chooses"),
        ({"batch_size": None, "drop_last": True}, "no last batch"),
        ({"multiprocessing_context": "threads"}, "one of thread, fork, spawn"),
        ({"timeout": -1}, "number of seconds"),
        ({"persistent_workers": True}, "num_workers of 1 or more"),
    ],
)
def test_arguments_that_exclude_one_another_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        DataLoader(Squares(), **options)
