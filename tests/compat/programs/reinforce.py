"""A policy gradient with a baseline: actions drawn by NumPy from the network's probabilities."""

import numpy as np
import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(3, 12)
        self.action_head = nn.Linear(12, 2)
        self.value_head = nn.Linear(12, 1)
        self.saved_actions = []
        self.rewards = []

    def forward(self, x):
        x = torch.relu(self.affine1(x))
        return torch.softmax(self.action_head(x), dim=-1), self.value_head(x)


def main():
    rng = np.random.default_rng(7)
    model = Policy()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.as_tensor(rng.normal(0, 0.5, tuple(p.shape)), dtype=torch.float32))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    eps = np.finfo(np.float32).eps.item()
    losses = []
    for _ in range(5):
        state = rng.normal(size=3)
        for _ in range(6):
            probs, value = model(torch.from_numpy(state).float())
            action = int(rng.random() > probs[0].item())
            model.saved_actions.append((torch.log(probs[action]), value))
            model.rewards.append(1.0 if (state[0] > 0) == bool(action) else 0.0)
            state = rng.normal(size=3)
        returns, total = [], 0.0
        for reward in model.rewards[::-1]:
            total = reward + 0.9 * total
            returns.insert(0, total)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + eps)
        policy_losses, value_losses = [], []
        for (log_prob, value), target in zip(model.saved_actions, returns):
            advantage = target - value.item()
            policy_losses.append(-log_prob * advantage)
            value_losses.append(nn.functional.smooth_l1_loss(value, torch.tensor([target])))
        optimizer.zero_grad()
        loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        del model.rewards[:]
        del model.saved_actions[:]
    return losses
