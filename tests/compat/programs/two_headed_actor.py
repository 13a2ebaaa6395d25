"""An actor and a critic with one body: returns that are standardized, and the Huber loss of the values."""

import argparse
from collections import namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical

TOLERANCE = 5e-4

parser = argparse.ArgumentParser(description="PyTorch actor-critic example")
parser.add_argument("--gamma", type=float, default=0.99)
parser.add_argument("--seed", type=int, default=543)
args = parser.parse_args([])
torch.manual_seed(args.seed)
SavedAction = namedtuple("SavedAction", ["log_prob", "value"])
rng = np.random.RandomState(args.seed)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 16)
        self.action_head = nn.Linear(16, 2)
        self.value_head = nn.Linear(16, 1)
        self.saved_actions = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.affine1(x))
        action_prob = F.softmax(self.action_head(x), dim=-1)
        state_values = self.value_head(x)
        return (action_prob, state_values)


model = Policy()
for i, p in enumerate(model.parameters()):
    nn.init.constant_(p, 0.05)
    p.data += torch.from_numpy(rng.randn(*p.shape)).float() * 0.3
optimizer = optim.Adam(model.parameters(), lr=0.03)
eps = np.finfo(np.float32).eps.item()


def select_action(state):
    state = torch.from_numpy(state).float()
    probs, state_value = model(state)
    m = Categorical(probs)
    action = torch.multinomial(probs, 1)[0] if False else torch.tensor(int(rng.rand() > probs[0].item()))
    model.saved_actions.append(SavedAction(m.log_prob(action), state_value))
    return action.item()


def finish_episode():
    R = 0
    saved_actions = model.saved_actions
    policy_losses = []
    value_losses = []
    returns = []
    for r in model.rewards[::-1]:
        R = r + args.gamma * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    for (log_prob, value), R in zip(saved_actions, returns):
        advantage = R - value.item()
        policy_losses.append(-log_prob * advantage)
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([R])))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
    del model.rewards[:]
    del model.saved_actions[:]
    return loss


running_reward = 10
for i_episode in range(4):
    state = rng.randn(4)
    ep_reward = 0
    for t in range(1, 12):
        action = select_action(state)
        state, reward = (state * 0.9 + action * 0.1, 1.0 - 0.1 * abs(state[0]) + action)
        model.rewards.append(reward)
        ep_reward += reward
    running_reward = 0.05 * ep_reward + (1 - 0.05) * running_reward
    loss = finish_episode()
    print(
        f"Episode {i_episode}\tLast reward: {ep_reward:.2f}",
        f"Average reward: {running_reward:.2f}\tloss {loss.item():.4f}",
    )
