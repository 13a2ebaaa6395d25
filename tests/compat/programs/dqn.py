"""Q-learning with a replay memory, a target network that follows softly, and the Huber loss."""

from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))
GAMMA, TAU, BATCH = 0.9, 0.05, 8


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super().__init__()
        self.layer1 = nn.Linear(n_observations, 16)
        self.layer2 = nn.Linear(16, n_actions)

    def forward(self, x):
        return self.layer2(F.relu(self.layer1(x)))


def main():
    rng = np.random.default_rng(6)
    policy_net, target_net = DQN(4, 2), DQN(4, 2)
    for p in policy_net.parameters():
        p.data.copy_(torch.from_numpy(rng.normal(0, 0.4, tuple(p.shape)).astype(np.float32)))
    target_net.load_state_dict(policy_net.state_dict())
    optimizer = optim.AdamW(policy_net.parameters(), lr=1e-2, amsgrad=True)
    memory, losses = deque(maxlen=100), []
    state = torch.tensor(rng.normal(size=4), dtype=torch.float32).unsqueeze(0)
    for step in range(24):
        if rng.random() < 0.3:
            action = torch.tensor([[int(rng.integers(2))]], dtype=torch.long)
        else:
            with torch.no_grad():
                action = policy_net(state).max(1).indices.view(1, 1)
        reward = torch.tensor([float(rng.normal()) + action.item()], dtype=torch.float32)
        ended = step % 7 == 6
        next_state = None if ended else torch.tensor(rng.normal(size=4), dtype=torch.float32).unsqueeze(0)
        memory.append(Transition(state, action, next_state, reward))
        state = torch.zeros(1, 4) if ended else next_state
        if len(memory) < BATCH:
            continue
        batch = Transition(*zip(*[memory[i] for i in rng.choice(len(memory), BATCH, replace=False)]))
        non_final_mask = torch.tensor(tuple(s is not None for s in batch.next_state), dtype=torch.bool)
        non_final_next_states = torch.cat([s for s in batch.next_state if s is not None])
        state_batch, action_batch, reward_batch = map(torch.cat, (batch.state, batch.action, batch.reward))
        state_action_values = policy_net(state_batch).gather(1, action_batch)
        next_state_values = torch.zeros(BATCH)
        with torch.no_grad():
            next_state_values[non_final_mask] = target_net(non_final_next_states).max(1).values
        expected = (next_state_values * GAMMA) + reward_batch
        loss = nn.SmoothL1Loss()(state_action_values, expected.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
        optimizer.step()
        target, policy = target_net.state_dict(), policy_net.state_dict()
        for key in policy:
            target[key] = policy[key] * TAU + target[key] * (1 - TAU)
        target_net.load_state_dict(target)
        losses.append(loss.item())
    return losses
