"""Siamese networks and contrastive losses of five kinds."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

TOLERANCE = 5e-4


class SiameseNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.cnn = nn.Sequential(
            nn.ReflectionPad2d(1),
            nn.Conv2d(1, 4, kernel_size=3),
            nn.ReLU(inplace=True),
            nn.BatchNorm2d(4),
            nn.Dropout2d(p=0.0),
        )
        self.fc = nn.Sequential(nn.Linear(4 * 8 * 8, 16), nn.ReLU(inplace=True), nn.Linear(16, 5))

    def forward_once(self, x):
        output = self.cnn(x)
        output = output.view(output.size()[0], -1)
        return self.fc(output)

    def forward(self, input1, input2):
        return (self.forward_once(input1), self.forward_once(input2))


class ContrastiveLoss(torch.nn.Module):
    def __init__(self, margin=2.0):
        super().__init__()
        self.margin = margin

    def forward(self, output1, output2, label):
        euclidean_distance = F.pairwise_distance(output1, output2, keepdim=True)
        return torch.mean(
            (1 - label) * torch.pow(euclidean_distance, 2)
            + label * torch.pow(torch.clamp(self.margin - euclidean_distance, min=0.0), 2)
        )


def info_nce(features, n_views=2, temperature=0.5):
    bs = features.shape[0] // n_views
    labels = torch.cat([torch.arange(bs) for i in range(n_views)], dim=0)
    labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
    features = F.normalize(features, dim=1)
    similarity_matrix = torch.matmul(features, features.T)
    mask = torch.eye(labels.shape[0], dtype=torch.bool)
    labels = labels[~mask].view(labels.shape[0], -1)
    similarity_matrix = similarity_matrix[~mask].view(similarity_matrix.shape[0], -1)
    positives = similarity_matrix[labels.bool()].view(labels.shape[0], -1)
    negatives = similarity_matrix[~labels.bool()].view(similarity_matrix.shape[0], -1)
    logits = torch.cat([positives, negatives], dim=1)
    labels = torch.zeros(logits.shape[0], dtype=torch.long)
    logits = logits / temperature
    return (logits, labels)


def off_diagonal(x):
    n, m = x.shape
    assert n == m
    return x.flatten()[:-1].view(n - 1, n + 1)[:, 1:].flatten()


net = SiameseNetwork()
rng = np.random.RandomState(0)
for p in net.parameters():
    p.data.copy_(torch.from_numpy(rng.randn(*p.shape)).float().mul(0.2))
opt = torch.optim.Adam(net.parameters(), lr=0.005)
crit = ContrastiveLoss()
a, b = (torch.from_numpy(rng.rand(6, 1, 8, 8)).float() for _ in range(2))
label = torch.from_numpy(rng.randint(0, 2, (6, 1)))
for step in range(3):
    o1, o2 = net(a, b)
    opt.zero_grad()
    loss = crit(o1, o2, label)
    logits, y = info_nce(torch.cat([o1, o2]))
    loss = loss + F.cross_entropy(logits, y)
    z1, z2 = ((o1 - o1.mean(0)) / o1.std(0), (o2 - o2.mean(0)) / o2.std(0))
    c = z1.T @ z2
    c.div_(6)
    bt = torch.diagonal(c).add_(-1).pow_(2).sum() + 0.005 * off_diagonal(c).pow(2).sum()
    loss = loss + 0.01 * bt
    loss.backward()
    opt.step()
    print(loss.item(), bt.item())
anchor, pos, neg = (o1.detach(), o2.detach(), o2.detach().roll(1, 0))
print(
    F.triplet_margin_loss(anchor, pos, neg),
    nn.TripletMarginWithDistanceLoss(distance_function=lambda x, y: 1 - F.cosine_similarity(x, y))(anchor, pos, neg),
)
print(
    nn.CosineEmbeddingLoss(margin=0.1)(anchor, pos, torch.tensor([1, -1, 1, -1, 1, -1])),
    nn.MarginRankingLoss(margin=0.5)(anchor[:, 0], pos[:, 0], torch.ones(6)),
)
print(torch.cdist(anchor, pos).shape, torch.pdist(anchor).sum())
q, k, queue = (
    F.normalize(anchor, dim=1),
    F.normalize(pos, dim=1),
    F.normalize(torch.from_numpy(rng.randn(5, 7)).float(), dim=0),
)
l_pos = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
l_neg = torch.einsum("nc,ck->nk", [q, queue.clone().detach()])
lg = torch.cat([l_pos, l_neg], dim=1)
lg /= 0.07
print(F.cross_entropy(lg, torch.zeros(lg.shape[0], dtype=torch.long)))
queue[:, 0:6] = k.T
print(queue.sum())
with torch.no_grad():
    for pq, pk in zip(net.parameters(), SiameseNetwork().parameters()):
        pk.data = pk.data * 0.0 + pq.data * 0.5
        pk.requires_grad = False
    print(pk.sum())
