"""An input is optimized by LBFGS until its features and Gram matrices resemble two other inputs."""

import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    return torch.mm(features, features.t()).div(a * b * c * d)


class ContentLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target.detach()

    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input


class StyleLoss(nn.Module):
    def __init__(self, target_feature):
        super().__init__()
        self.target = gram_matrix(target_feature).detach()

    def forward(self, input):
        self.loss = F.mse_loss(gram_matrix(input), self.target)
        return input


class Normalization(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.mean = torch.tensor(mean).view(-1, 1, 1)
        self.std = torch.tensor(std).view(-1, 1, 1)

    def forward(self, img):
        return (img - self.mean) / self.std


def main():
    rng = np.random.default_rng(16)
    cnn = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(inplace=False), nn.Conv2d(4, 4, 3, padding=1))
    for p in cnn.parameters():
        p.data.copy_(torch.from_numpy(rng.normal(0, 0.3, tuple(p.shape)).astype(np.float32)))
    content, style = (torch.from_numpy(rng.random((1, 3, 8, 8)).astype(np.float32)) for _ in range(2))
    model = nn.Sequential(Normalization([0.5, 0.4, 0.4], [0.2, 0.2, 0.25]))
    content_losses, style_losses = [], []
    for i, layer in enumerate(copy.deepcopy(cnn).children()):
        model.add_module(f"layer_{i}", layer)
        if isinstance(layer, nn.Conv2d):
            content_losses.append(ContentLoss(model(content).detach()))
            model.add_module(f"content_loss_{i}", content_losses[-1])
            style_losses.append(StyleLoss(model(style).detach()))
            model.add_module(f"style_loss_{i}", style_losses[-1])
    input_img = content.clone()
    input_img.requires_grad_(True)
    model.eval()
    model.requires_grad_(False)
    optimizer = optim.LBFGS([input_img], max_iter=3)
    losses = []
    for _ in range(2):

        def closure():
            with torch.no_grad():
                input_img.clamp_(0, 1)
            optimizer.zero_grad()
            model(input_img)
            loss = 100 * sum(s.loss for s in style_losses) + sum(c.loss for c in content_losses)
            loss.backward()
            losses.append(loss.item())
            return loss

        optimizer.step(closure)
    return losses
