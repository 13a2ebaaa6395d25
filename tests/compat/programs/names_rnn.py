"""Names classified letter by letter by a recurrent network written out, trained by plain gradient steps."""

import string

import numpy as np
import torch
import torch.nn as nn

LETTERS = string.ascii_lowercase
NAMES = {"river": ["rhine", "danube", "elbe", "volga"], "peak": ["zugspitze", "rigi", "eiger", "matterhorn"]}


def encoded(line):
    tensor = torch.zeros(len(line), 1, len(LETTERS))
    for i, letter in enumerate(line):
        tensor[i, 0, LETTERS.find(letter)] = 1
    return tensor


class RNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.i2h = nn.Linear(input_size, hidden_size)
        self.h2h = nn.Linear(hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, input, hidden):
        hidden = torch.tanh(self.i2h(input) + self.h2h(hidden))
        return self.softmax(self.h2o(hidden)), hidden

    def initHidden(self):
        return torch.zeros(1, self.hidden_size)


def main():
    rng = np.random.default_rng(3)
    rnn = RNN(len(LETTERS), 12, len(NAMES))
    with torch.no_grad():
        for p in rnn.parameters():
            p.copy_(torch.from_numpy(rng.normal(0, 0.3, tuple(p.shape)).astype(np.float32)))
    criterion = nn.NLLLoss()
    kinds = list(NAMES)
    losses = []
    for step in range(12):
        kind = kinds[step % 2]
        line = NAMES[kind][step // 2 % 4]
        hidden = rnn.initHidden()
        rnn.zero_grad()
        for letter in encoded(line):
            output, hidden = rnn(letter, hidden)
        loss = criterion(output, torch.tensor([kinds.index(kind)], dtype=torch.long))
        loss.backward()
        for p in rnn.parameters():
            p.data.add_(p.grad.data, alpha=-0.1)
        losses.append(loss.item())
    _, top = output.topk(1)
    return [*losses, top[0].item()]
