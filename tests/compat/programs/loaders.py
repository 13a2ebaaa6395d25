"""Data sets, samplers, collation and splits of all kinds."""

import collections
import random

import numpy as np
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import *
from torch.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    random_split,
)

TOLERANCE = 5e-4


class Squares(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if torch.is_tensor(i):
            i = i.tolist()
        return {
            "x": torch.tensor([i, i + 1.0]),
            "y": i * i,
            "name": f"s{i}",
            "w": np.float32(i / 2),
            "box": (i, [float(i), 2]),
        }


class Stream(IterableDataset):
    def __init__(self, a, b):
        self.a, self.b = (a, b)

    def __iter__(self):
        w = torch.utils.data.get_worker_info()
        lo, hi = (self.a, self.b)
        if w is not None:
            lo, hi = (self.a + w.id, self.b)
        return iter(range(lo, hi))


class EvenFirst(Sampler):
    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(list(range(0, len(self.data_source), 2)) + list(range(1, len(self.data_source), 2)))

    def __len__(self):
        return len(self.data_source)


ds = Squares(7)
for b in DataLoader(ds, batch_size=3, drop_last=True):
    print(b["x"].shape, b["y"], b["name"], b["w"].dtype, b["box"])
print([b["y"].tolist() for b in DataLoader(ds, batch_size=2, sampler=EvenFirst(ds))])
print(
    [b.tolist() for b in DataLoader(Stream(3, 9), batch_size=4)],
    list(DataLoader(ChainDataset([Stream(0, 2), Stream(5, 7)]), batch_size=None)),
)
print(
    len(DataLoader(ds, 2)),
    len(DataLoader(ds, 2, drop_last=True)),
    list(BatchSampler(SequentialSampler(range(5)), 2, False)),
)
tr, va = random_split(ds, [5, 2], generator=torch.Generator().manual_seed(42))
print(len(tr), len(va), sorted(tr.indices + va.indices))
parts = random_split(range(10), [0.5, 0.3, 0.2])
print([len(p) for p in parts], isinstance(parts[0], Subset), parts[0].dataset)
print(len(ConcatDataset([ds, ds])), (ds + ds)[8]["y"], ConcatDataset([ds, ds]).cumulative_sizes)
td = TensorDataset(torch.arange(6).view(3, 2), torch.tensor([0, 1, 0]))
print(td[1], len(td), td.tensors[0].shape, td[:2])
cnt = torch.bincount(td.tensors[1])
w = 1.0 / cnt.float()
sw = w[td.tensors[1]]
ws = WeightedRandomSampler(sw, num_samples=100, replacement=True)
s = list(ws)
print(len(s), 0 <= min(s) and max(s) <= 2, len(ws))
print(
    sorted(SubsetRandomSampler([3, 5, 1])),
    sorted(RandomSampler(range(4))),
    len(list(RandomSampler(ds, replacement=True, num_samples=9))),
)


def collate(batch: list[tuple[torch.Tensor, int]]):
    xs, ys = zip(*batch)
    lens = torch.tensor([len(x) for x in xs])
    return (pad_sequence(xs, batch_first=True, padding_value=-1), torch.as_tensor(ys), lens)


var = [(torch.arange(float(n)), n) for n in (2, 4, 1)]
for xb, yb, lens in DataLoader(var, batch_size=3, collate_fn=collate):
    print(xb, yb, lens)
p = pack_padded_sequence(xb.unsqueeze(-1), lens, batch_first=True, enforce_sorted=False)
print(p.data.flatten(), p.batch_sizes, p.sorted_indices, p.unsorted_indices)
print(
    pad_packed_sequence(p, batch_first=True, padding_value=9)[0].squeeze(-1),
    pad_packed_sequence(p)[1],
    pack_sequence([torch.ones(3), torch.ones(2)]).batch_sizes,
)


def seed_worker(worker_id):
    worker_seed = torch.initial_seed() % 2**32
    np.random.seed(worker_seed)
    random.seed(worker_seed)


g = torch.Generator()
g.manual_seed(0)
dl = DataLoader(
    td,
    batch_size=2,
    shuffle=True,
    num_workers=0,
    worker_init_fn=seed_worker,
    generator=g,
    pin_memory=False,
    persistent_workers=False,
    prefetch_factor=None,
    timeout=0,
)
print(
    sum((x.sum().item() for x, y in dl)),
    dl.batch_size,
    dl.dataset is td,
    dl.num_workers,
    dl.drop_last,
    type(dl.sampler).__name__,
)
it = iter(dl)
x, y = next(it)
print(x.shape, y.dtype)
try:
    next(it)
    next(it)
except StopIteration:
    print("ok")
print(
    default_collate([1, 2]),
    default_collate([{"a": 1.0}, {"a": 2.0}]),
    default_collate(["a", "b"]),
    default_collate([np.ones(2), np.zeros(2)]).dtype,
)
P = collections.namedtuple("P", "a b")
print(default_collate([P(1, 2.0), P(3, 4.0)]))
for i, (x, y) in enumerate(DataLoader(list(zip(torch.eye(3), [1, 2, 3])), batch_size=2)):
    print(i, x, y)
print([i for i in torch.utils.data.sampler.SequentialSampler(range(3))], StackDataset(td, [7, 8, 9])[0][1])
inf = iter(DataLoader(ds, 2))
print(next(inf)["name"])
try:
    DataLoader(ds, batch_size=2, shuffle=True, sampler=EvenFirst(ds))
except ValueError:
    print("Error")
try:
    TensorDataset(torch.ones(2), torch.ones(3))
except AssertionError as e:
    print("Error", e)
except Exception as e:
    print("Error other", type(e).__mro__)
