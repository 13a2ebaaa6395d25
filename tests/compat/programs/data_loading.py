"""Data sets of one's own, samplers, collating functions, parts and chains, and what a DataLoader makes of them."""

import numpy as np
import torch
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    random_split,
)


class Faces(Dataset):
    def __init__(self, size, transform=None):
        self.size = size
        self.transform = transform

    def __len__(self):
        return self.size

    def __getitem__(self, idx):
        if torch.is_tensor(idx):
            idx = idx.tolist()
        sample = {"image": np.full((2, 2), idx, np.float32), "name": f"face{idx}", "weight": idx / 4}
        return self.transform(sample) if self.transform else sample


class ToTensor:
    def __call__(self, sample):
        return {**sample, "image": torch.from_numpy(sample["image"])}


class Counting(IterableDataset):
    def __iter__(self):
        return iter(range(7))


def pad(batch):
    return torch.nn.utils.rnn.pad_sequence([torch.ones(n) * n for n in batch], batch_first=True)


def main():
    numbers = []
    for batch in DataLoader(Faces(5, transform=ToTensor()), batch_size=2, shuffle=False, num_workers=0):
        assert batch["image"].shape[1:] == (2, 2) and batch["name"][0].startswith("face")
        numbers += [batch["image"].sum().item(), batch["weight"].sum().item()]
    assert batch["weight"].dtype == torch.float64 and isinstance(batch["name"], list)
    x = torch.arange(10, dtype=torch.float32).unsqueeze(1)
    data = TensorDataset(x, torch.arange(10))
    torch.manual_seed(0)
    train, valid = random_split(data, [7, 3])
    assert len(train) == 7 and sorted([*train.indices, *valid.indices]) == list(range(10))
    shuffled = torch.cat([labels for _, labels in DataLoader(train, batch_size=3, shuffle=True)])
    numbers += [
        shuffled.sum().item() + sum(int(y) for _, y in valid),
        len(DataLoader(train, 3)),
        len(DataLoader(train, 3, drop_last=True)),
    ]
    halves = ConcatDataset([Subset(data, range(4)), Subset(data, [9, 8])])
    numbers += [halves[4][0].item(), len(halves), len(data + data)]
    weighted = WeightedRandomSampler([0, 0, 1.0, 1.0], num_samples=8, replacement=True)
    assert set(weighted) <= {2, 3} and len(list(weighted)) == 8
    assert sorted(SubsetRandomSampler([3, 5])) == [3, 5] and sorted(RandomSampler(range(4))) == [0, 1, 2, 3]
    batches = list(BatchSampler(SequentialSampler(range(10)), batch_size=3, drop_last=False))
    numbers += [len(batches), batches[-1][0]]
    numbers += [sum(b.sum().item() for b in DataLoader(data, batch_sampler=batches, collate_fn=lambda s: s[0][0]))]
    numbers += [b.sum().item() for b in DataLoader([1, 3, 2], batch_size=2, collate_fn=pad)]
    numbers += [b.sum().item() for b in DataLoader(Counting(), batch_size=3)]
    pair, word = default_collate([((1, 2.0), "a"), ((3, 4.0), "b")])
    numbers += [pair[0].sum().item(), pair[1].sum().item()]
    assert list(word) == ["a", "b"]
    generator = torch.Generator().manual_seed(3)
    first = [b[1].tolist() for b in DataLoader(data, 4, shuffle=True, generator=generator)]
    again = [b[1].tolist() for b in DataLoader(data, 4, shuffle=True, generator=torch.Generator().manual_seed(3))]
    assert first == again
    return [float(n) for n in numbers]
