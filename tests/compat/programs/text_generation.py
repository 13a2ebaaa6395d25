"""A GRU learns the next letter of a sentence, then writes by itself, always the likeliest letter."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

TEXT = "the rain in spain stays mainly in the plain. "
LETTERS = sorted(set(TEXT))


class Writer(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS), 8)
        self.gru = nn.GRU(8, size, num_layers=2, batch_first=True)
        self.head = nn.Linear(size, len(LETTERS))

    def forward(self, x, hidden=None):
        out, hidden = self.gru(self.embedding(x), hidden)
        return self.head(out), hidden


def main():
    rng = np.random.default_rng(4)
    model = Writer(16)
    for p in model.parameters():
        p.data.copy_(torch.from_numpy(rng.uniform(-0.3, 0.3, tuple(p.shape)).astype(np.float32)))
    ids = torch.tensor([LETTERS.index(c) for c in TEXT])
    x, y = ids[:-1].unsqueeze(0), ids[1:].unsqueeze(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(15):
        optimizer.zero_grad()
        logits, _ = model(x)
        loss = F.cross_entropy(logits.transpose(1, 2), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        letter, hidden, written = ids[:1].view(1, 1), None, []
        for _ in range(5):
            logits, hidden = model(letter, hidden)
            letter = logits[:, -1].argmax(dim=-1, keepdim=True)
            written.append(letter.item())
    return losses + written
