"""Sequences of unlike lengths through a bidirectional LSTM, packed and padded."""

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence, pad_sequence


def main():
    rng = np.random.default_rng(29)
    lengths = [5, 3, 2]
    sequences = [torch.from_numpy(rng.normal(size=(n, 4)).astype(np.float32)) for n in lengths]
    padded = pad_sequence(sequences, batch_first=True)
    lstm = nn.LSTM(4, 3, batch_first=True, bidirectional=True)
    head = nn.Linear(6, 1)
    for module in (lstm, head):
        for p in module.parameters():
            p.data.copy_(torch.from_numpy(rng.uniform(-0.5, 0.5, tuple(p.shape)).astype(np.float32)))
    optimizer = torch.optim.NAdam([*lstm.parameters(), *head.parameters()], lr=0.05)
    losses = []
    for _ in range(4):
        packed = pack_padded_sequence(padded, torch.tensor(lengths), batch_first=True, enforce_sorted=True)
        output, (hidden, cell) = lstm(packed)
        unpacked, sizes = pad_packed_sequence(output, batch_first=True)
        mask = torch.arange(5).unsqueeze(0) < sizes.unsqueeze(1)
        loss = (head(unpacked).squeeze(-1) - 1).pow(2).masked_fill(~mask, 0.0).sum() / mask.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert sizes.tolist() == lengths and hidden.shape == (2, 3, 3)
    out, _ = lstm(pack_sequence(sequences, enforce_sorted=False))
    return [*losses, hidden.sum().item(), cell.sum().item(), out.data.sum().item()]
