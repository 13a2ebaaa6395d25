"""Proximal policy optimization: generalized advantages, clipped ratios and values, and an entropy bonus."""

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions.categorical import Categorical
from torch.distributions.normal import Normal

TOLERANCE = 5e-4


class Env:
    def __init__(self):
        self.rng = np.random.RandomState(1)
        self.reset()

    def reset(self):
        self.s = self.rng.uniform(-1, 1, 3)
        self.t = 0
        return self.s.copy()

    def step(self, a):
        self.s = 0.9 * self.s + 0.1 * (a - 0.5) + 0.01 * self.rng.randn(3)
        self.t += 1
        return (self.s.copy(), float(1 - np.abs(self.s).sum()), self.t >= 10, {})


def layer_init(layer, std=np.sqrt(2), bias_const=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(
            layer_init(nn.Linear(np.array((3,)).prod(), 8)), nn.Tanh(), layer_init(nn.Linear(8, 1), std=1.0)
        )
        self.actor = nn.Sequential(layer_init(nn.Linear(3, 8)), nn.Tanh(), layer_init(nn.Linear(8, 2), std=0.01))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        logits = self.actor(x)
        probs = Categorical(logits=logits)
        if action is None:
            action = probs.probs.argmax(-1)
        return (action, probs.log_prob(action), probs.entropy(), self.critic(x))


device = torch.device("cpu")
agent = Agent().to(device)
rng = np.random.RandomState(0)
with torch.no_grad():
    for p in agent.parameters():
        p.set_(torch.tensor(rng.randn(*p.shape) * 0.5, dtype=torch.float32)) if False else p.copy_(
            torch.tensor(rng.randn(*p.shape) * 0.5)
        )
optimizer = optim.Adam(agent.parameters(), lr=0.0025, eps=1e-05)
T = 32
obs = torch.zeros((T, 3)).to(device)
actions = torch.zeros((T,)).to(device)
logprobs = torch.zeros((T,)).to(device)
rewards = torch.zeros((T,)).to(device)
dones = torch.zeros((T,)).to(device)
values = torch.zeros((T,)).to(device)
env = Env()
next_obs = torch.Tensor(env.reset()).to(device)
next_done = torch.zeros(()).to(device)
for step in range(T):
    obs[step] = next_obs
    dones[step] = next_done
    with torch.no_grad():
        action, logprob, _, value = agent.get_action_and_value(next_obs)
        values[step] = value.flatten()
    actions[step] = action
    logprobs[step] = logprob
    o, r, d, _ = env.step(action.cpu().numpy())
    rewards[step] = torch.tensor(r).to(device).view(-1)
    next_obs, next_done = (torch.Tensor(env.reset() if d else o).to(device), torch.tensor(float(d)))
with torch.no_grad():
    next_value = agent.get_value(next_obs).reshape(1, -1)
    advantages = torch.zeros_like(rewards).to(device)
    lastgaelam = 0
    for t in reversed(range(T)):
        if t == T - 1:
            nextnonterminal = 1.0 - next_done
            nextvalues = next_value
        else:
            nextnonterminal = 1.0 - dones[t + 1]
            nextvalues = values[t + 1]
        delta = rewards[t] + 0.99 * nextvalues * nextnonterminal - values[t]
        advantages[t] = lastgaelam = delta + 0.99 * 0.95 * nextnonterminal * lastgaelam
    returns = advantages + values
b_inds = np.arange(T)
clipfracs = []
for epoch in range(3):
    rng.shuffle(b_inds)
    for start in range(0, T, 8):
        mb_inds = b_inds[start : start + 8]
        _, newlogprob, entropy, newvalue = agent.get_action_and_value(obs[mb_inds], actions.long()[mb_inds])
        logratio = newlogprob - logprobs[mb_inds]
        ratio = logratio.exp()
        with torch.no_grad():
            approx_kl = (ratio - 1 - logratio).mean()
            clipfracs += [((ratio - 1.0).abs() > 0.2).float().mean().item()]
        mb_advantages = advantages[mb_inds]
        mb_advantages = (mb_advantages - mb_advantages.mean()) / (mb_advantages.std() + 1e-08)
        pg_loss = torch.max(-mb_advantages * ratio, -mb_advantages * torch.clamp(ratio, 0.8, 1.2)).mean()
        newvalue = newvalue.view(-1)
        v_clipped = values[mb_inds] + torch.clamp(newvalue - values[mb_inds], -0.2, 0.2)
        v_loss = 0.5 * torch.max((newvalue - returns[mb_inds]) ** 2, (v_clipped - returns[mb_inds]) ** 2).mean()
        loss = pg_loss - 0.01 * entropy.mean() + v_loss * 0.5
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()
    print(f"{loss.item():.5f} {approx_kl.item():.6f} {norm:.4f} {np.mean(clipfracs):.3f}")
y_pred, y_true = (values.cpu().numpy(), returns.cpu().numpy())
print(np.var(y_true) > 0, 1 - np.var(y_true - y_pred) / np.var(y_true))
dist = Normal(torch.zeros(2), torch.ones(2).exp())
print(dist.log_prob(torch.tensor([0.5, 1.0])).sum(-1), dist.entropy(), dist.mean, dist.stddev, dist)
