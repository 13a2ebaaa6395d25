"""Programs as practitioners write them: accumulation, phases, adversaries, recurrences, caches and errors in a step."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.stories import Story, stories

TRAIN: Final = """
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), lr=0.1)
def train(x):
    opt.zero_grad()
    loss = (net(x) ** 2).mean()
    loss.backward()
    opt.step()
    return loss
"""

PHASES: Final = stories(
    """
## accumulation_by_a_counter
n, every = 0, 4
def step(x):
    global n
    loss = (net(x) ** 2).mean() / every
    loss.backward()
    n += 1
    if n % every == 0:
        opt.step(); opt.zero_grad()
    return loss
def arguments(i): return (tensor(1.0, 2.0, float(i)),)
#> n = 0
#> n = 2
## accumulation_on_a_trainer, traces: 6
class Trainer:
    def __init__(self): self.n, self.every, self.losses = 0, 2, []
    def step(self, x):
        loss = (net(x) ** 2).mean() / self.every
        loss.backward()
        self.n += 1
        if self.n % self.every == 0:
            opt.step(); opt.zero_grad()
        self.losses.append(loss.detach())
        return loss
t = Trainer()
step = t.step
#> t.every = 3
#> t.n = 0
## accumulation_over_microbatches
def step(x):
    opt.zero_grad()
    total = 0.0
    for part in rn.split(x, 1):
        loss = (net(part) ** 2).sum() / x.shape[0]
        loss.backward()
        total = total + loss.detach()
    opt.step()
    return total
def arguments(i): return (rn.asarray(np.arange(6, dtype=np.float32).reshape(2, 3) + i),)
## stopped_early, traces: 7
class Stop:
    def __init__(self, patience): self.patience, self.best, self.bad, self.stopped = patience, float('inf'), 0, False
    def see(self, value):
        if value < self.best: self.best, self.bad = value, 0
        else: self.bad += 1
        self.stopped = self.bad > self.patience
stop = Stop(2)
def step(x, value):
    if stop.stopped: return x
    stop.see(value)
    return train(x)
def arguments(i): return tensor(1.0, 2.0, 3.0), [3.0, 2.0, 2.5, 1.5, 1.6, 1.7, 1.8, 0.1, 1.0][i % 9]
#> stop.stopped = False; stop.patience = 1
#> stop = Stop(0)
## curriculum_by_epoch
epoch = 0
def step(x):
    difficulty = 1.0 if epoch < 1 else 2.0
    return train(x * difficulty)
#> epoch = 1
#> epoch = 2
## annealed_weight_of_a_term
n, warm = 0, 8
def step(x):
    global n
    n += 1
    beta = min(1.0, n / warm)
    opt.zero_grad()
    y = net(x)
    loss = (y ** 2).mean() + beta * abs(y).mean()
    loss.backward(); opt.step()
    return loss
#> warm = 3
## annealed_by_a_function_of_the_epoch
epoch = 0
def beta(epoch): return 1 / (1 + math.exp(-(epoch - 3) / 2))
def step(x): return train(x) * beta(epoch)
def arguments(i):
    global epoch
    epoch = i
    return (tensor(1.0, 2.0, 3.0),)
## scheduled_sampling
p = 0.8
def step(x):
    h, out = x, []
    for _ in range(3):
        y = rn.tanh(h * 0.5)
        h = rn.where(rn.rand(()) < p, x, y)
        out.append(h)
    return rn.stack(out)
#> p = 0.2
## adversaries_with_n_critic, traces: 5
g, d = nn.Linear(3, 3), nn.Linear(3, 1)
og, od = optim.Adam(g.parameters(), lr=0.01), optim.Adam(d.parameters(), lr=0.01)
n, n_critic = 0, 3
def step(real):
    global n
    od.zero_grad()
    loss = d(g(rn.randn(3)).detach()).sum() - d(real).sum()
    loss.backward(); od.step()
    n += 1
    if n % n_critic == 0:
        og.zero_grad()
        (-d(g(rn.randn(3))).sum()).backward()
        og.step()
    return loss
#> n_critic = 2
## adversaries_in_two_functions
g, d = nn.Linear(3, 3), nn.Linear(3, 1)
og, od = optim.SGD(g.parameters(), lr=0.1), optim.SGD(d.parameters(), lr=0.1)
@rn.compile
def generator(z):
    og.zero_grad(); loss = -d(g(z)).sum(); loss.backward(); og.step()
    return loss
def step(x):
    od.zero_grad(); loss = d(g(x).detach()).sum() - d(x).sum(); loss.backward(); od.step()
    return loss
def arguments(i):
    x = tensor(1.0, 2.0, float(i))
    generator(x)
    return (x,)
#> d.requires_grad_(False); d.requires_grad_(True)
## policy_epochs_by_index_minibatches
policy, data = nn.Linear(3, 2), rn.asarray(np.arange(18, dtype=np.float32).reshape(6, 3) / 18)
old = policy(data).detach(); opt = optim.Adam(policy.parameters(), lr=0.01); clip = 0.2
def step(index):
    opt.zero_grad()
    ratio = rn.exp(F.log_softmax(policy(data[index]), -1) - F.log_softmax(old[index], -1))
    loss = -rn.minimum(ratio, rn.clip(ratio, 1 - clip, 1 + clip)).mean()
    loss.backward(); opt.step()
    return loss
def arguments(i): return (rn.asarray([i % 6, (i * 5 + 1) % 6]),)
#> clip = 0.1
#> old = policy(data).detach()
## exploration_that_decays
class Agent:
    def __init__(self): self.q, self.epsilon, self.n = nn.Linear(3, 2), 1.0, 0
    def act(self, x):
        self.n += 1
        self.epsilon = max(0.1, self.epsilon * 0.9)
        greedy = self.q(x).argmax()
        return rn.where(rn.rand(()) < self.epsilon, rn.randint(0, 2, ()), greedy)
agent = Agent()
def step(x): return agent.act(x)
#> agent.epsilon = 1.0
## finite_or_skipped
def step(x):
    opt.zero_grad(); loss = (net(x) ** 2).mean(); loss.backward()
    good = rn.isfinite(loss)
    for p in net.parameters(): p.grad = rn.where(good, p.grad, 0.0)
    opt.step()
    return loss
def arguments(i): return (tensor(1.0, 2.0, float('nan') if i == 1 else 3.0),)
""",
    TRAIN,
)

SEQUENCES: Final = stories("""
## truncated_recurrence_with_state_on_self
class Net(nn.Module):
    def __init__(self): super().__init__(); self.cell, self.h = nn.RNNCell(3, 2), rn.zeros((1, 2))
    def reset(self): self.h = rn.zeros((1, 2))
    def forward(self, x):
        self.h = self.cell(x, self.h.detach())
        return self.h
net = Net(); opt = optim.SGD(net.parameters(), lr=0.1)
def step(x):
    opt.zero_grad(); loss = (net(x) ** 2).mean(); loss.backward(); opt.step()
    return loss
def arguments(i): return (tensor(1.0, 2.0, float(i)).reshape(1, 3),)
#> net.reset()
## lstm_state_passed_around
lstm, state = nn.LSTM(3, 2, batch_first=True), None
def step(x):
    global state
    y, (h, c) = lstm(x, state)
    state = (h.detach(), c.detach())
    return y
def arguments(i): return (tensor(1.0, 2.0, float(i)).reshape(1, 1, 3),)
#> state = None
#> state = (rn.ones((1, 1, 2)), rn.ones((1, 1, 2)))
## state_given_and_returned
cell = nn.GRUCell(3, 2)
def step(x, h=None): return cell(x, rn.zeros((1, 2)) if h is None else h)
def arguments(i): return (rn.ones((1, 3)),) if i % 2 else (rn.ones((1, 3)), rn.ones((1, 2)) * i)
## preallocated_cache_with_a_position, traces: 4
class Cache:
    def __init__(self, length): self.k, self.at = rn.zeros((length, 3)), 0
    def add(self, k):
        self.k[self.at] = k
        self.at += 1
        return self.k
cache = Cache(16)
def step(x): return (cache.add(x) @ x).sum()
#> cache.at = 0
## preallocated_cache_with_a_position_in_a_tensor
k, at = rn.zeros((16, 3)), rn.asarray(0)
def step(x):
    global at, k
    k = rn.where(rn.arange(16).reshape(16, 1) == at, x, k)
    at = at + 1
    return F.softmax(rn.where(rn.arange(16) < at, k @ x, -1e9), -1) @ k
#> at = rn.asarray(0)
## cache_of_heads_with_a_position, traces: 4
class Cache:
    def __init__(self, heads, length): self.k, self.at = rn.zeros((1, heads, length, 3)), 0
    def add(self, k):
        self.k[:, :, self.at] = k
        self.at += 1
        return self.k[:, :, :4]
cache = Cache(2, 16)
def step(x): return (cache.add(x * rn.ones((1, 2, 3))) @ x).sum()
#> cache.at = 0
## cache_that_grows, traces: 4
cache = None
def step(x):
    global cache
    row = x.reshape(1, 3)
    cache = row if cache is None else rn.cat([cache, row])
    return (cache @ x).sum()
#> cache = None
## memory_of_the_last_states
memory = collections.deque([rn.zeros(3)] * 2, maxlen=2)
def step(x):
    y = x + rn.stack(list(memory)).mean(axis=0)
    memory.append(y.detach())
    return y
#> memory.clear(); memory.extend([rn.ones(3)] * 2)
## beam_kept_as_lists
def step(x):
    beams = [(x, 0.0)]
    for i in range(2):
        beams = [(h * w + i, s + w) for h, s in beams for w in (0.5, 2.0)]
        beams = sorted(beams, key=lambda b: -b[1])[:2]
    return beams[0]
""")

BATCHES: Final = stories("""
## batch_as_a_dict_with_optional_keys, traces: 4
net = nn.Linear(3, 3)
def step(batch):
    y = net(batch['x'])
    if 'mask' in batch: y = y * batch['mask']
    if batch.get('weight') is not None: y = y * batch['weight']
    return y.sum()
def arguments(i):
    batch = {'x': tensor(1.0, 2.0, float(i))}
    if i % 2: batch['mask'] = tensor(1.0, 0.0, 1.0)
    if i % 3 == 0: batch['weight'] = tensor(0.5, 0.5, 0.5)
    return (batch,)
## inputs_that_are_none
net, aux = nn.Linear(3, 2), nn.Linear(3, 2)
def step(x, y=None, *, scale=1.0): return net(x) * scale if y is None else (net(x) + aux(y)) * scale
def arguments(i): return (tensor(1.0, 2.0, 3.0), None if i % 2 else tensor(1.0, 1.0, 1.0))
## last_batch_smaller
net = nn.Linear(3, 2); opt = optim.SGD(net.parameters(), lr=0.1)
def step(x):
    opt.zero_grad(); loss = (net(x) ** 2).mean(); loss.backward(); opt.step()
    return loss
def arguments(i): return (rn.ones((2 if i % 3 == 2 else 4, 3)),)
#> pass
## lengths_that_vary, traces: 3
net = nn.Linear(3, 2)
def step(x, mask): return (net(x) * mask.reshape(-1, 1)).sum() / mask.sum()
def arguments(i): return rn.ones((2 + i % 3, 3)), rn.ones(2 + i % 3)
## buckets_of_lengths
net = nn.Linear(3, 2)
def step(x): return net(x).sum()
def arguments(i):
    n = 1 + i % 4
    x = np.zeros((2 if n <= 2 else 4, 3), np.float32); x[:n] = 1
    return (rn.asarray(x),)
## batch_as_a_data_class
@dataclasses.dataclass
class Batch:
    x: typing.Any
    y: typing.Any = None
    def size(self): return len(self.x)
net = nn.Linear(3, 2)
def step(b):
    y = net(b.x)
    return (y - b.y).sum() / b.size() if b.y is not None else y.sum() / b.size()
def arguments(i): return (Batch(rn.ones((2, 3)) * i, rn.ones((2, 2)) if i % 2 else None),)
## batch_as_a_named_tuple
Batch = collections.namedtuple('Batch', 'x y')
net = nn.Linear(3, 2)
def step(b): return Batch(net(b.x), b.y._replace(y=0) if isinstance(b.y, Batch) else b.y)
def arguments(i): return (Batch(tensor(1.0, 2.0, float(i)), 1.0 * i),)
## loop_over_a_list_of_batches
net = nn.Linear(3, 2)
def step(batches): return [net(b).sum() for b in batches], len(batches)
def arguments(i): return ([tensor(1.0, 2.0, float(j)) for j in range(1 + i % 2)],)
""")

ERRORS: Final = stories(
    """
## exception_in_the_middle_of_a_step
class Trainer:
    def __init__(self): self.n = 0
    def step(self, x):
        self.n += 1
        loss = train(x)
        if x.shape[0] != 3: raise ValueError(f'a batch of {x.shape[0]}')
        self.n += 1
        return loss
t = Trainer()
net = nn.Linear(1, 2); opt = optim.SGD(net.parameters(), lr=0.1)
def step(x): return t.step(x.reshape(-1, 1))
def arguments(i): return (tensor(1.0, 2.0, 3.0) if i % 3 else tensor(1.0, 2.0),)
## exception_and_retry
failures, log = 1, []
def attempt(x):
    global failures
    if failures > 0:
        failures -= 1
        raise RuntimeError('out of memory')
    return train(x)
def step(x):
    for part in (x, x / 2):
        try: return attempt(part)
        except RuntimeError as error: log.append(str(error))
#> failures = 1
#> failures = 2
## retry_with_microbatches
most = 2
def forward(x):
    if x.shape[0] > most: raise MemoryError
    return net(x).sum()
def step(x):
    try: return forward(x)
    except MemoryError: return sum(forward(part) for part in rn.split(x, 2))
def arguments(i): return (rn.ones((4, 3)) * i,)
#> most = 4
## shapes_are_asserted
def step(x):
    assert x.ndim == 1 and x.shape[-1] == net.in_features, f'got {x.shape}'
    return net(x)
def arguments(i): return (tensor(1.0, 2.0, 3.0) if i % 2 else tensor(1.0),)
## cleaned_up_in_finally
state = {'depth': 0, 'seen': 0}
def step(x, bad):
    state['depth'] += 1
    try:
        if bad: raise KeyError('bad')
        return net(x)
    finally:
        state['depth'] -= 1
        state['seen'] += 1
def arguments(i): return tensor(1.0, 2.0, 3.0), i % 3 == 1
## context_that_suppresses
def step(x):
    with contextlib.suppress(ZeroDivisionError):
        x = x / (1 // divisor)
    return net(x)
divisor = 1
#> divisor = 0
#> divisor = 1
""",
    TRAIN,
)


COUNTERS: Final = stories("""
## pointer, calls: 10
q = rn.rand(8, 3); n = 0
def step(x):
    global n
    out = q[n] + x
    n = (n + 1) % 8
    return out
## queue_pointer, calls: 10
q = rn.zeros(3, 8); n = 0
def step(x):
    global n
    q[:, n:n + 2] = rn.stack([x, x * 2], 1)
    n = (n + 2) % 8
    return q.sum()
## cache_position, calls: 12
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('k', rn.zeros(2, 10, 3)); self.at = 0
        self.pe = nn.Parameter(rn.rand(20, 3))
    def forward(self, x):
        self.k[:, self.at] = x
        self.at += 1
        return self.k.sum(1) * self.pe[self.at] + self.k[..., self.at - 1, None, :].sum()
a = Attention()
def step(x):
    with rn.no_grad(): return a(x)
## counted_from_the_end, calls: 4
q = rn.rand(3, 3); n = 0
def step(x):
    global n
    n += 1
    return q[n - 3] + x
#> n = 0
## too_far, calls: 6, eager: perhaps
q = rn.rand(3, 3); n = 0
def step(x):
    global n
    n += 1
    return q[n] + x
## sliced_both, traces: 9
q = rn.rand(6, 6); n = 0
def step(x):
    global n
    n += 1
    return q[0, n:n + 2].sum() + q[n - 1:n, n:n + 1].sum() + q[n - 1, n].sum() + x
## of_parameter, calls: 3, traces: 4
p = nn.Parameter(rn.rand(4, 3)); n = 0
def step(x):
    global n
    y = (p[n] * x).sum(); y.backward()
    n += 1
    g = p.grad * 1; p.grad = None
    return g
## made, calls: 6
n = 0
def step(x):
    global n
    n += 1
    y = x + rn.full((3,), n) + rn.asarray(n) + rn.tensor(n, dtype=rn.float32) + rn.full_like(x, n)
    return y, rn.asarray(n), rn.full((2,), n)
""")


@pytest.mark.parametrize("story", PHASES + COUNTERS + SEQUENCES + BATCHES + ERRORS)
def test_like_eager(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
