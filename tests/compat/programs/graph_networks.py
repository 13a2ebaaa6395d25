"""Graph convolutions and graph attention on a dense adjacency, and messages by scatter and index_add."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.modules.module import Module
from torch.nn.parameter import Parameter

TOLERANCE = 5e-4


class GraphConvolution(Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(torch.FloatTensor(in_features, out_features))
        if bias:
            self.bias = Parameter(torch.FloatTensor(out_features))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        support = torch.mm(input, self.weight)
        output = torch.spmm(adj, support) if False else torch.mm(adj, support)
        if self.bias is not None:
            return output + self.bias
        else:
            return output

    def __repr__(self):
        return self.__class__.__name__ + " (" + str(self.in_features) + " -> " + str(self.out_features) + ")"


class GraphAttentionLayer(nn.Module):
    def __init__(self, in_features, out_features, dropout, alpha, concat=True):
        super().__init__()
        self.dropout, self.out_features, self.concat = (dropout, out_features, concat)
        self.W = nn.Parameter(torch.empty(size=(in_features, out_features)))
        nn.init.xavier_uniform_(self.W.data, gain=1.414)
        self.a = nn.Parameter(torch.empty(size=(2 * out_features, 1)))
        nn.init.xavier_uniform_(self.a.data, gain=1.414)
        self.leakyrelu = nn.LeakyReLU(alpha)

    def forward(self, h, adj):
        Wh = torch.mm(h, self.W)
        Wh1 = torch.matmul(Wh, self.a[: self.out_features, :])
        Wh2 = torch.matmul(Wh, self.a[self.out_features :, :])
        e = self.leakyrelu(Wh1 + Wh2.T)
        zero_vec = -9000000000000000.0 * torch.ones_like(e)
        attention = torch.where(adj > 0, e, zero_vec)
        attention = F.softmax(attention, dim=1)
        attention = F.dropout(attention, self.dropout, training=self.training)
        h_prime = torch.matmul(attention, Wh)
        return F.elu(h_prime) if self.concat else h_prime


class GAT(nn.Module):
    def __init__(self):
        super().__init__()
        self.attentions = [GraphAttentionLayer(5, 3, dropout=0.0, alpha=0.2) for _ in range(2)]
        for i, attention in enumerate(self.attentions):
            self.add_module(f"attention_{i}", attention)
        self.out_att = GraphAttentionLayer(6, 3, dropout=0.0, alpha=0.2, concat=False)

    def forward(self, x, adj):
        x = torch.cat([att(x, adj) for att in self.attentions], dim=1)
        x = F.elu(self.out_att(x, adj))
        return F.log_softmax(x, dim=1)


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.gc1 = GraphConvolution(5, 8)
        self.gc2 = GraphConvolution(8, 3)

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, 0.0, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


def accuracy(output, labels):
    preds = output.max(1)[1].type_as(labels)
    correct = preds.eq(labels).double()
    correct = correct.sum()
    return correct / len(labels)


rng = np.random.RandomState(3)
n = 12
A = (rng.rand(n, n) < 0.3).astype(np.float32)
A = np.maximum(A, A.T) + np.eye(n, dtype=np.float32)
A = A / A.sum(1, keepdims=True)
adj = torch.FloatTensor(A)
features = torch.FloatTensor(rng.randn(n, 5))
labels = torch.LongTensor(rng.randint(0, 3, n))
idx_train, idx_val = (torch.LongTensor(range(8)), torch.LongTensor(range(8, 12)))
for model in (GCN(), GAT()):
    print(len(list(model.parameters())))
    for i, p in enumerate(model.parameters()):
        p.data = torch.from_numpy(rng.randn(*p.shape).astype(np.float32)) * 0.4
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=0.0005)
    if torch.cuda.is_available():
        model.cuda()
    for epoch in range(4):
        model.train()
        optimizer.zero_grad()
        output = model(features, adj)
        loss_train = F.nll_loss(output[idx_train], labels[idx_train])
        acc_train = accuracy(output[idx_train], labels[idx_train])
        loss_train.backward()
        optimizer.step()
        model.eval()
        output = model(features, adj)
        loss_val = F.nll_loss(output[idx_val], labels[idx_val])
        print(
            f"Epoch: {epoch + 1:04d}",
            f"loss_train: {loss_train.item():.4f}",
            f"acc_train: {acc_train.item():.4f}",
            f"loss_val: {loss_val.data.item():.4f}",
        )
print(GCN())
edge_index = torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 1, 0]])
row, col = edge_index
deg = torch.zeros(4).scatter_add_(0, row, torch.ones(row.size(0)))
deg_inv_sqrt = deg.pow(-0.5)
deg_inv_sqrt[deg_inv_sqrt == float("inf")] = 0
norm = deg_inv_sqrt[row] * deg_inv_sqrt[col]
x = torch.arange(8.0).view(4, 2)
out = torch.zeros_like(x).index_add_(0, col, norm.view(-1, 1) * x[row])
print(deg, norm, out)
i = torch.LongTensor([[0, 1], [1, 0]])
try:
    sp = torch.sparse_coo_tensor(i, torch.ones(2), (2, 2))
    print(torch.sparse.mm(sp, torch.eye(2)).sum() == 2)
except Exception:
    print(True)
