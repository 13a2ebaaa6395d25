"""A sum of sines fitted by LBFGS with a closure, from two cells of an LSTM; Rosenbrock's valley with line search."""

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm1 = nn.LSTMCell(1, 6)
        self.lstm2 = nn.LSTMCell(6, 6)
        self.linear = nn.Linear(6, 1)

    def forward(self, input, future=0):
        outputs = []
        h_t, c_t, h_t2, c_t2 = (torch.zeros(input.size(0), 6, dtype=torch.double) for _ in range(4))
        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        for _ in range(future):
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


def main():
    rng = np.random.default_rng(20)
    seq = Sequence()
    seq.double()
    for p in seq.parameters():
        p.data.copy_(torch.from_numpy(rng.uniform(-0.4, 0.4, tuple(p.shape))))
    data = torch.from_numpy(np.sin(np.arange(8)[None, :] * 0.7 + np.arange(3)[:, None]))
    criterion = nn.MSELoss()
    optimizer = optim.LBFGS(seq.parameters(), lr=0.8, max_iter=4)
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = criterion(seq(data[:, :-1]), data[:, 1:])
        losses.append(loss.item())
        loss.backward()
        return loss

    optimizer.step(closure)
    with torch.no_grad():
        losses.append(seq(data[:, :-1], future=2)[0, -1].item())
    x = torch.tensor([-1.2, 1.0], dtype=torch.float64, requires_grad=True)
    valley = optim.LBFGS([x], max_iter=8, line_search_fn="strong_wolfe")

    def rosenbrock():
        valley.zero_grad()
        value = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        value.backward()
        return value

    valley.step(rosenbrock)
    return losses + x.tolist()
