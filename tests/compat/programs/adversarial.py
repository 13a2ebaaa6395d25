"""The fast gradient sign method: how a model's loss grows when its inputs move along the sign of the gradient."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def fgsm_attack(image, epsilon, data_grad):
    perturbed_image = image + epsilon * data_grad.sign()
    return torch.clamp(perturbed_image, 0, 1)


def main():
    rng = np.random.default_rng(15)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 6 * 6, 4))
    model.load_state_dict(
        {
            k: torch.from_numpy(rng.normal(0, 0.3, tuple(v.shape)).astype(np.float32))
            for k, v in model.state_dict().items()
        }
    )
    model.eval()
    images = torch.from_numpy(rng.random((6, 1, 8, 8)).astype(np.float32))
    numbers = []
    for epsilon in (0, 0.05, 0.1):
        changed = 0
        total = 0.0
        for data in images.split(1):
            data = data.clone()
            data.requires_grad = True
            output = model(data)
            init_pred = output.max(1, keepdim=True)[1]
            loss = F.nll_loss(F.log_softmax(output, dim=1), init_pred[:, 0])
            model.zero_grad()
            loss.backward()
            perturbed = fgsm_attack(data, epsilon, data.grad.data)
            output = model(perturbed)
            total += F.cross_entropy(output, init_pred[:, 0]).item()
            changed += int(output.max(1, keepdim=True)[1].item() != init_pred.item())
        numbers += [total, changed]
    return numbers
