"""A variational autoencoder on synthetic digits; the noise comes from NumPy."""

import numpy as np
import torch
from torch import nn, optim
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(36, 20)
        self.fc21 = nn.Linear(20, 4)
        self.fc22 = nn.Linear(20, 4)
        self.fc3 = nn.Linear(4, 20)
        self.fc4 = nn.Linear(20, 36)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar, eps):
        std = torch.exp(0.5 * logvar)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x, eps):
        mu, logvar = self.encode(x.view(-1, 36))
        return self.decode(self.reparameterize(mu, logvar, eps)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 36), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


def main():
    rng = np.random.default_rng(8)
    model = VAE()
    for p in model.parameters():
        p.data = torch.tensor(rng.uniform(-0.2, 0.2, tuple(p.shape)), dtype=torch.float32)
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    images = torch.from_numpy((rng.random((16, 1, 6, 6)) > 0.6).astype(np.float32))
    losses = []
    for _ in range(8):
        eps = torch.from_numpy(rng.normal(size=(16, 4)).astype(np.float32))
        optimizer.zero_grad()
        recon, mu, logvar = model(images, eps)
        loss = loss_function(recon, images, mu, logvar)
        loss.backward()
        optimizer.step()
        losses.append(loss.item() / len(images))
    return losses
