"""Convolutions, a bidirectional LSTM and the CTC loss, with a greedy decoder."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

TOLERANCE = 5e-4


class CRNN(nn.Module):
    def __init__(self, n_class):
        super().__init__()
        self.cnn = nn.Sequential(
            nn.Conv2d(1, 4, 3, 1, 1),
            nn.ReLU(True),
            nn.MaxPool2d(2, 2),
            nn.Conv2d(4, 6, 3, 1, 1),
            nn.ReLU(),
            nn.MaxPool2d((2, 1), (2, 1)),
        )
        self.rnn = nn.LSTM(12, 8, bidirectional=True)
        self.embedding = nn.Linear(16, n_class)

    def forward(self, x):
        conv = self.cnn(x)
        b, c, h, w = conv.size()
        conv = conv.permute(3, 0, 1, 2).reshape(w, b, c * h)
        recurrent, _ = self.rnn(conv)
        T, b, h = recurrent.size()
        t_rec = recurrent.view(T * b, h)
        output = self.embedding(t_rec).view(T, b, -1)
        return output


def decode(preds):
    _, idx = preds.max(2)
    idx = idx.transpose(1, 0).contiguous()
    res = []
    for row in idx:
        row = torch.unique_consecutive(row)
        res.append([i for i in row.tolist() if i != 0])
    return res


rng = np.random.RandomState(0)
net = CRNN(5)
for p in net.parameters():
    p.data.copy_(torch.from_numpy(rng.uniform(-0.3, 0.3, tuple(p.shape))))
images = torch.from_numpy(rng.rand(3, 1, 8, 16).astype(np.float32))
targets = torch.tensor([[1, 2, 3], [4, 4, 0], [2, 0, 0]])
target_lengths = torch.tensor([3, 2, 1])
ctc = nn.CTCLoss(blank=0, zero_infinity=True)
opt = torch.optim.Adadelta(net.parameters(), lr=1.0)
for step in range(4):
    preds = net(images)
    input_lengths = torch.full(size=(images.size(0),), fill_value=preds.size(0), dtype=torch.long)
    loss = ctc(preds.log_softmax(2), targets, input_lengths, target_lengths)
    opt.zero_grad()
    loss.backward()
    gn = torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm=5, norm_type=2)
    opt.step()
    print(loss.item(), gn.item())
flat = torch.cat([t[:l] for t, l in zip(targets, target_lengths)])
print(
    F.ctc_loss(
        preds.log_softmax(2), flat, tuple(input_lengths.tolist()), tuple(target_lengths.tolist()), reduction="none"
    )
)
print(decode(preds), net.rnn.weight_hh_l0_reverse.shape)
net.rnn.flatten_parameters()
h0 = torch.zeros(2, 3, 8)
c0 = torch.zeros(2, 3, 8)
out, (hn, cn) = net.rnn(torch.ones(4, 3, 12), (h0, c0))
print(out.mean(), hn.shape, cn.sum())
