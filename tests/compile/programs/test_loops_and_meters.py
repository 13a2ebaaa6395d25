"""Programs as practitioners write them: meters, memories, buffers and counters of a training loop."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.stories import Story, stories

LOOPS: Final = stories("""
## grad_scaler_like, traces: 9
class Scaler:
    def __init__(self): self.scale, self.good = 4.0, 0
    def update(self, ok):
        if ok:
            self.good += 1
            if self.good % 3 == 0: self.scale *= 2
        else: self.scale /= 2; self.good = 0
s = Scaler()
def step(x, ok):
    s.update(ok)
    return x * s.scale / (1 + s.good)
def arguments(i): return tensor(1.0, 2.0), i % 4 != 3
#> s.scale = 0.5
#> s.good = 2
## counters_in_module_dict, traces: 9
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.stats = collections.Counter()
    def forward(self, x):
        self.stats[f'call{x.shape[0]}'] += 1
        self.stats['all'] += 1
        return x * self.stats['all']
m = M()
def step(x): return m(x)
#> m.stats.clear()
#> m.stats = collections.Counter(all=7)
## module_property_and_super, traces: 9
class B(nn.Module):
    gain = 1.0
    @property
    def w(self): return self._w * self.gain
    @w.setter
    def w(self, v): self._w = v
    def forward(self, x): return x * self.w
class C(B):
    def forward(self, x):
        self.w = self._w + 1
        return super().forward(x) + self.k
    def __getattr__(self, n):
        if n == 'k': return 3.0
        return super().__getattr__(n)
m = C(); m.w = 1.0
def step(x): return m(x)
#> m.w = 10.0
#> B.gain = 0.5
#> m.k = 100.0
#> C.k = 7.0
## custom_init_counter, traces: 9
class M(nn.Module):
    calls = 0
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(rn.ones(3))
        self.last = None
    def forward(self, x):
        M.calls += 1
        self.last = (x * self.w).detach()
        return self.last * M.calls
m = M()
def step(x):
    y = m(x)
    return y + m.last.sum()
#> M.calls = 10
#> m.w = nn.Parameter(rn.ones(3) * 3)
#> m.last = None
## module_reset_and_hook_counter, traces: 9
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.acts = {}
        self.lin.register_forward_hook(self.note)
    def note(self, m, i, o): self.acts['lin'] = o.detach()
    def forward(self, x):
        y = self.lin(x)
        return y + self.acts['lin'].sum()
m = M()
def step(x):
    with rn.no_grad(): return m(x)
#> M.note = lambda self, m, i, o: None; m.acts['lin'] = rn.ones(3)
#> m.lin = nn.Linear(3, 3)
## attention_cache, traces: 9
class Cache:
    def __init__(self): self.k = []
    def add(self, k):
        self.k.append(k)
        return rn.stack(self.k[-3:]) if len(self.k) >= 3 else rn.stack(self.k)
c = Cache()
def step(x): return c.add(x).sum(axis=0)
#> c.k.clear()
#> c.k = c.k[:1]
## early_stop_history, traces: 9
class E:
    def __init__(self, patience):
        self.patience, self.best, self.bad, self.hist, self.stopped = patience, float('inf'), 0, [], False
    def __call__(self, v):
        self.hist.append(v)
        if v < self.best - 1e-3: self.best, self.bad = v, 0
        else: self.bad += 1
        self.stopped = self.bad > self.patience
        return self.stopped
e = E(2)
def step(x, v): return x * (0.0 if e(v) else 1.0) + e.bad + sum(e.hist[-2:])
def arguments(i): return tensor(1.0, 2.0), abs(3 - i) * 0.5
#> e.best = 0.0
#> e.patience = 0
#> e.hist.clear(); e.bad = 0
## moving_average_meter, traces: 9
class Meter:
    def __init__(self): self.reset()
    def reset(self): self.val = self.avg = self.sum = self.count = 0
    def update(self, v, n=1):
        self.val = v; self.sum += v * n; self.count += n; self.avg = self.sum / self.count
    def __str__(self): return f'{self.val:.3f} ({self.avg:.3f})'
meters = collections.defaultdict(Meter)
def step(x, v):
    meters['loss'].update(v, 2)
    meters['acc'].update(v * 2)
    return x * meters['loss'].avg, str(meters['acc'])
def arguments(i): return tensor(1.0, 2.0), i * 0.25
#> meters['loss'].reset()
#> meters.pop('acc')
#> Meter.__str__ = lambda self: 'm'
## metrics_confusion, traces: 40
class Conf:
    def __init__(self): self.m = [[0, 0], [0, 0]]
    def add(self, a, b): self.m[a][b] += 1
    @property
    def acc(self): return (self.m[0][0] + self.m[1][1]) / max(1, sum(map(sum, self.m)))
c = Conf()
def step(x, a, b):
    c.add(a, b)
    return x * c.acc
def arguments(i): return tensor(1.0, 2.0), i % 2, i % 3 % 2
#> c.m = [[5, 0], [0, 5]]
#> c.m[0][1] = 100
## replay_buffer, traces: 12
buf = collections.deque(maxlen=4)
def step(x, r):
    buf.append((x, r))
    s = sum(a.sum() * b for a, b in buf)
    if len(buf) == 4: buf.popleft()
    return s + buf[-1][1] + len(buf)
def arguments(i): return tensor(1.0, float(i)), i * 0.5
#> buf.clear()
#> buf = collections.deque([(tensor(1.0, 1.0), 3.0)], maxlen=2)
## replay_sample_by_index, traces: 9
buf, at = [], 0
def step(x, r):
    global at
    if len(buf) < 3: buf.append((x, r))
    else: buf[at % 3] = (x, r)
    at += 1
    i = (at * 7) % len(buf)
    return buf[i][0] * buf[i][1]
def arguments(i): return tensor(1.0, float(i)), i * 0.5
#> buf.clear(); at = 0
#> buf[:] = buf[:1]
## best_checkpoint, traces: 9
w = nn.Parameter(rn.ones(2))
best = {'loss': None, 'w': None, 'step': -1}
n = 0
def step(x, v):
    global n
    n += 1
    if best['loss'] is None or v < best['loss']:
        best.update(loss=v, w=w.detach() * x, step=n)
    return best['w'] * best['step']
def arguments(i): return tensor(1.0, 2.0), abs(4 - i) * 1.0
#> best['loss'] = None
#> best['w'] = rn.zeros(2)
## lr_finder, traces: 9
class F:
    def __init__(self): self.lr, self.losses, self.lrs = 1e-3, [], []
    def step(self, x):
        self.lr *= 1.5
        self.lrs.append(self.lr)
        loss = (x * self.lr).sum()
        self.losses.append(loss)
        if len(self.losses) > 4: self.losses = self.losses[-2:]
        return loss, len(self.losses), self.lrs[0]
f = F()
def step(x): return f.step(x)
#> f.lr = 1.0
#> f.lrs.clear()
## epoch_iterator_class, traces: 24
class Loader:
    def __init__(self, data, bs): self.data, self.bs, self.epoch, self.i = data, bs, 0, 0
    def next_batch(self):
        if self.i + self.bs > len(self.data): self.i, self.epoch = 0, self.epoch + 1
        b = self.data[self.i:self.i + self.bs]
        self.i += self.bs
        return b
l = Loader([float(i) for i in range(7)], 2)
def step(x): return x * sum(l.next_batch()) + l.epoch
#> l.bs = 3
#> l.data.append(100.0)
#> l.i = 0
## trainer_two_optimizers, traces: 9
a, b = nn.Linear(3, 3), nn.Linear(3, 1)
oa, ob = optim.Adam(a.parameters(), lr=0.01), optim.SGD(b.parameters(), lr=0.1)
turn = 0
def step(x):
    global turn
    turn += 1
    opt = oa if turn % 2 else ob
    for o in (oa, ob): o.zero_grad()
    loss = (b(a(x)) ** 2).sum()
    loss.backward()
    opt.step()
    return loss
#> turn = 0
#> oa = optim.Adam(a.parameters(), lr=0.5)
## param_groups_edit, traces: 9
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
def step(x):
    opt.zero_grad(); loss = (net(x) ** 2).sum(); loss.backward(); opt.step()
    return loss, opt.param_groups[0]['lr']
#> opt.param_groups[0]['lr'] = 0.01
#> opt.param_groups[0]['momentum'] = 0.0
#> opt.state.clear()
#> opt.add_param_group({'params': [nn.Parameter(rn.ones(2))], 'lr': 1.0})
""")


@pytest.mark.parametrize("story", LOOPS)
def test_like_eager(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
