"""Forecasts of a series by LSTM and dilated convolutions: windows, early stopping, a plateau schedule."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TOLERANCE = 5e-4


class Windows(Dataset):
    def __init__(self, series, n_in, n_out):
        self.x = torch.as_tensor(series, dtype=torch.float32)
        self.i, self.o = (n_in, n_out)

    def __len__(self):
        return len(self.x) - self.i - self.o + 1

    def __getitem__(self, k):
        return (self.x[k : k + self.i].unsqueeze(-1), self.x[k + self.i : k + self.i + self.o])


class LSTMForecaster(nn.Module):
    def __init__(self, hidden=8, layers=2, horizon=2):
        super().__init__()
        self.hidden, self.layers = (hidden, layers)
        self.lstm = nn.LSTM(input_size=1, hidden_size=hidden, num_layers=layers, batch_first=True, dropout=0.0)
        self.fc = nn.Linear(hidden, horizon)

    def forward(self, x):
        h0 = torch.zeros(self.layers, x.size(0), self.hidden).requires_grad_()
        c0 = torch.zeros(self.layers, x.size(0), self.hidden).requires_grad_()
        out, (hn, cn) = self.lstm(x, (h0.detach(), c0.detach()))
        return self.fc(out[:, -1, :])


class TCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv1d(1 if i == 0 else 4, 4, 3, dilation=2**i) for i in range(2)])
        self.head = nn.Linear(4, 2)
        self.norm = nn.ModuleList(nn.GroupNorm(2, 4) for _ in range(2))

    def forward(self, x):
        x = x.transpose(1, 2)
        for i, (c, n) in enumerate(zip(self.convs, self.norm)):
            x = torch.relu(n(c(nn.functional.pad(x, (2 * 2**i, 0)))))
        return self.head(x.mean(-1))


series = np.sin(np.arange(60) * 0.3) + 0.1 * np.cos(np.arange(60) * 1.7)
mean, std = (series.mean(), series.std())
series = (series - mean) / std
ds = Windows(series, 8, 2)
n_train = int(len(ds) * 0.8)
train, test = (torch.utils.data.Subset(ds, range(n_train)), torch.utils.data.Subset(ds, range(n_train, len(ds))))
for model in (LSTMForecaster(), TCN()):
    for i, (name, p) in enumerate(model.named_parameters()):
        if "norm" in name:
            continue
        nn.init.constant_(p, 0.0)
        p.data += (torch.arange(p.numel()).float() * 0.7 + i).sin().reshape(p.shape) * 0.4
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    crit = nn.HuberLoss()
    sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1, factor=0.5)
    best, wait = (float("inf"), 0)
    for epoch in range(4):
        model.train()
        tot = 0.0
        for x, y in DataLoader(train, batch_size=16, shuffle=False):
            opt.zero_grad()
            loss = crit(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            opt.step()
            tot += loss.item() * x.size(0)
        model.eval()
        with torch.no_grad():
            val = torch.cat([(model(x) - y).abs() for x, y in DataLoader(test, batch_size=4)]).mean().item()
        sched.step(val)
        if val < best:
            best, wait = (val, 0)
            state = {k: v.clone() for k, v in model.state_dict().items()}
        else:
            wait += 1
        print(f"{epoch:3d} {tot / len(train):.5f} {val:.5f} {opt.param_groups[0]['lr']:.4f}")
    model.load_state_dict(state)
    x = torch.tensor(series[-8:], dtype=torch.float32).view(1, -1, 1)
    preds = []
    for _ in range(3):
        p = model(x)[:, :1].detach()
        preds.append(p.item())
        x = torch.cat([x[:, 1:], p.unsqueeze(-1)], 1)
    print([round(v * std + mean, 4) for v in preds])
