"""Everyday training: modules with caches, averages and hooks, and trainers with histories, schedules and memories."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story, stories

MODULES: Final = stories("""
## mask_cache_by_length
class M(nn.Module):
    def __init__(self):
        self.masks, self.hits = {}, 0
    def forward(self, x):
        n = x.shape[0]
        if n not in self.masks: self.masks[n] = rn.asarray(np.tril(np.ones((n,), np.float32)))
        else: self.hits += 1
        return x * self.masks[n] + self.hits
m = M()
def step(x): return m(x)
def arguments(i): return (tensor(*range(1, 2 + i % 2 * 2)),)
#> m.masks.clear()
#> m.hits = 50
## ema_shadow
net = nn.Linear(3, 2)
class Ema:
    def __init__(self, net, d): self.d, self.shadow, self.n = d, {k: p.detach() * 1.0 for k, p in net.named_parameters()}, 0
    def update(self, net):
        self.n += 1
        d = min(self.d, (1 + self.n) / (10 + self.n))
        for k, p in net.named_parameters():
            self.shadow[k] = self.shadow[k] * d + p.detach() * (1 - d)
ema = Ema(net, 0.9)
def step(x):
    ema.update(net)
    return net(x) + ema.shadow['bias'].sum()
#> ema.d = 0.1
#> ema.shadow['bias'] = rn.ones(2) * 5
#> ema.n = 100
## buffers_reassigned
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('total', rn.zeros(3))
        self.register_buffer('n', rn.zeros(()))
    def forward(self, x):
        self.total = self.total + x
        self.n = self.n + 1
        return self.total / self.n
m = M()
def step(x): return m(x)
#> m.total = rn.ones(3)
#> m.n = rn.zeros(())
#> m.total = rn.ones(1)
## stochastic_depth_schedule
class Block(nn.Module):
    def __init__(self, p): self.p, self.lin = p, nn.Linear(3, 3)
    def forward(self, x):
        if self.training and self.p > 0:
            keep = rn.rand(()) > self.p
            return x + rn.where(keep, self.lin(x), 0.0)
        return x + self.lin(x)
blocks = nn.ModuleList([Block(0.5), Block(0.0)])
def step(x):
    with rn.no_grad():
        for b in blocks: x = b(x)
    return x
#> blocks.eval()
#> blocks.train(); blocks[0].p = 0.9
#> rn.manual_seed(1)
## dropout_flip
net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.ReLU())
def step(x):
    with rn.no_grad(): return net(x)
#> net.eval()
#> net.train()
#> net[1].p = 0.0
## batchnorm_modes
bn = nn.BatchNorm1d(3)
def step(x):
    with rn.no_grad(): return bn(x.reshape(1, 3) * rn.ones((4, 3)) + rn.arange(4).reshape(4, 1))
#> bn.eval()
#> bn.train(); bn.momentum = 0.5
#> bn.eps = 0.1
## weight_tying
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
        self.b.weight = self.a.weight
    def forward(self, x): return self.b(self.a(x))
m = M()
def step(x):
    loss = m(x).sum()
    loss.backward()
    return loss, m.a.weight.grad
#> m.zero_grad()
#> m.b.weight = nn.Parameter(rn.ones((3, 3)))
#> m.zero_grad()
## freeze_between
net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
opt = optim.SGD(net.parameters(), lr=0.1)
def step(x):
    opt.zero_grad()
    loss = net(x).sum()
    loss.backward()
    opt.step()
    return loss
#> net[0].weight.requires_grad = False
#> net[0].requires_grad_(True)
#> net[1].bias.requires_grad_(False)
## modulelist_edits
ms = nn.ModuleList([nn.Linear(3, 3)])
def step(x):
    with rn.no_grad():
        for i, m in enumerate(ms): x = m(x) * (i + 1)
    return x + len(ms)
#> ms.append(nn.Linear(3, 3))
#> ms[0] = nn.Linear(3, 3)
#> del ms[0]
#> ms.insert(0, nn.Identity())
## moduledict_route
md = nn.ModuleDict({'a': nn.Linear(3, 3), 'b': nn.Linear(3, 2)})
which = 'a'
def step(x):
    with rn.no_grad(): return md[which](x) * len(md)
#> which = 'b'
#> md['b'] = nn.Identity()
#> md.pop('a')
## forward_hooks
net = nn.Linear(3, 3)
seen = []
def hook(m, i, o):
    seen.append(o.shape)
    return o * k
k = 2.0
def step(x):
    with rn.no_grad(): return net(x) + len(seen)
#> handle = net.register_forward_hook(hook)
#> k = 5.0
#> handle2 = net.register_forward_pre_hook(lambda m, i: (i[0] + 1,))
#> handle.remove()
## forward_patched_on_instance
net = nn.Linear(3, 3)
def step(x):
    with rn.no_grad(): return net(x)
#> net.forward = lambda x: x * 2
#> del net.forward
#> nn.Linear.k = 1
## custom_init_counter
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
## named_buffers_and_children
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.register_buffer('s', rn.ones(3), persistent=False)
    def forward(self, x):
        n = sum(1 for _ in self.modules()) + len(list(self.named_parameters()))
        return x * n + sum(b.sum() for b in self.buffers())
m = M()
def step(x): return m(x)
#> m.b = nn.Linear(1, 1)
#> m.register_buffer('t', rn.ones(2) * 10)
#> del m.a
## train_flag_read
class M(nn.Module):
    def forward(self, x): return x * 2 if self.training else -x
m = M()
outer = nn.Sequential(m)
def step(x): return outer(x)
#> outer.eval()
#> m.training = True
#> outer.train(False)
## apply_and_state_dict
net = nn.Linear(3, 2)
def step(x):
    sd = net.state_dict()
    with rn.no_grad(): return net(x) + sd['bias'].sum() + len(sd)
#> net.load_state_dict({k: v * 2 for k, v in net.state_dict().items()})
#> net.bias = None
## module_dtype_change
net = nn.Linear(3, 2)
def step(x):
    with rn.no_grad(): return net(x.astype(net.weight.dtype))
#> net.double()
#> net.float()
## grad_scaler_like
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
## attention_cache
class Cache:
    def __init__(self): self.k = []
    def add(self, k):
        self.k.append(k)
        return rn.stack(self.k[-3:]) if len(self.k) >= 3 else rn.stack(self.k)
c = Cache()
def step(x): return c.add(x).sum(axis=0)
#> c.k.clear()
#> c.k = c.k[:1]
## counters_in_module_dict
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
## module_property_and_super
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
## module_slots_and_class_params
class M(nn.Module):
    registry = []
    def __init__(self):
        super().__init__()
        M.registry.append(self)
        self.id = len(M.registry)
    def forward(self, x): return x * sum(m.id for m in M.registry)
m = M()
def step(x): return m(x)
#> M()
#> M.registry.pop(0)
## module_reset_and_hook_counter
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
## aux_losses
class M(nn.Module):
    aux = []
    def forward(self, x):
        M.aux.append((x * x).sum())
        return x * 2
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.ms = nn.ModuleList([M(), M()])
    def forward(self, x):
        M.aux.clear()
        for m in self.ms: x = m(x)
        return x.sum() + sum(M.aux) * w
net, w = Net(), 0.5
def step(x): return net(x)
#> w = 3.0
#> net.ms.append(M())
#> M.aux = [tensor(1.0)]
## param_groups_edit
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

TRAINERS: Final = stories("""
## trainer_accumulate
net = nn.Linear(3, 1)
class T:
    def __init__(self): self.n, self.every, self.opt, self.hist = 0, 2, optim.SGD(net.parameters(), lr=0.1), []
    def step(self, x):
        loss = net(x).sum() / self.every
        loss.backward()
        self.n += 1
        if self.n % self.every == 0:
            self.opt.step(); self.opt.zero_grad()
        self.hist.append(loss.detach())
        return loss
t = T()
def step(x): return t.step(x)
#> t.every = 3
#> t.n = 0
#> t.opt = optim.SGD(net.parameters(), lr=1.0)
## trainer_two_optimizers
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
## warmup_by_hand, eager: 'lr' of a group is set
net = nn.Linear(3, 1)
opt = optim.SGD(net.parameters(), lr=1.0)
class W:
    def __init__(self): self.t, self.warm, self.base = 0, 4, 0.1
    def lr(self):
        self.t += 1
        if self.t < self.warm: return self.base * self.t / self.warm
        return self.base * 0.5 * (1 + math.cos(math.pi * min(1.0, (self.t - self.warm) / 10)))
w = W()
def step(x):
    for g in opt.param_groups: g['lr'] = w.lr()
    opt.zero_grad(); loss = (net(x) ** 2).sum(); loss.backward(); opt.step()
    return loss, opt.param_groups[0]['lr']
#> w.warm = 20
#> w.t = 0
#> w.base = 1.0
## curriculum, traces: 12
class C:
    levels = [(0, 1.0), (4, 2.0), (8, 5.0)]
    def __init__(self): self.seen = 0
    def level(self):
        self.seen += 1
        i = bisect.bisect_right(self.levels, self.seen, key=lambda p: p[0]) - 1
        return self.levels[i][1]
c = C()
def step(x): return x * c.level()
#> C.levels = [(0, 9.0)]
#> c.levels = [(0, 1.0), (1, 4.0)]
#> c.seen = 0; del c.levels
## early_stop_history
class E:
    def __init__(self, patience): self.patience, self.best, self.bad, self.hist, self.stopped = patience, float('inf'), 0, [], False
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
## moving_average_meter
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
## callbacks_list
class CB:
    def on_step(self, t): pass
class Print(CB):
    def on_step(self, t): print(f'step {t.n}')
class Stop(CB):
    def __init__(self, at): self.at = at
    def on_step(self, t): t.stop = t.n >= self.at
class T:
    def __init__(self): self.n, self.stop, self.cbs = 0, False, [Print(), Stop(5)]
    def step(self, x):
        if self.stop: return x * 0
        self.n += 1
        for c in self.cbs: c.on_step(self)
        return x * self.n
t = T()
def step(x): return t.step(x)
#> t.cbs.pop(0)
#> t.stop = False; t.cbs.clear()
#> t.cbs.append(Stop(3))
## replay_buffer, traces: 8
buf = collections.deque(maxlen=4)
def step(x, r):
    buf.append((x, r))
    s = sum(a.sum() * b for a, b in buf)
    if len(buf) == 4: buf.popleft()
    return s + buf[-1][1] + len(buf)
def arguments(i): return tensor(1.0, float(i)), i * 0.5
#> buf.clear()
#> buf = collections.deque([(tensor(1.0, 1.0), 3.0)], maxlen=2)
## replay_sample_by_index
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
## reduce_on_plateau_by_hand, eager: 'lr' of a group is set
class P:
    def __init__(self, opt): self.opt, self.best, self.bad = opt, None, 0
    def step(self, v):
        if self.best is None or v < self.best: self.best, self.bad = v, 0
        else: self.bad += 1
        if self.bad > 1:
            self.bad = 0
            for g in self.opt.param_groups: g['lr'] *= 0.5
w = nn.Parameter(rn.ones(2))
opt = optim.SGD([w], lr=1.0)
p = P(opt)
def step(x, v):
    p.step(v)
    opt.zero_grad(); loss = (w * x).sum(); loss.backward(); opt.step()
    return loss
def arguments(i): return tensor(1.0, 2.0), (i % 4) * 1.0
#> p.best = None
#> opt.param_groups[0]['lr'] = 3.0
## metrics_confusion, traces: 9
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
## best_checkpoint
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
## lr_finder
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
## epoch_iterator_class
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
## config_override_stack
class Cfg:
    def __init__(self): self.__dict__['stack'] = [{'lr': 1.0, 'wd': 0.0}]
    def __getattr__(self, n):
        for d in reversed(self.stack):
            if n in d: return d[n]
        raise AttributeError(n)
    @contextlib.contextmanager
    def override(self, **k):
        self.stack.append(k)
        try: yield self
        finally: self.stack.pop()
cfg = Cfg()
def step(x):
    a = x * cfg.lr
    with cfg.override(lr=cfg.lr * 2, extra=1.0): a = a + cfg.lr + cfg.extra
    return a + getattr(cfg, 'extra', 100.0)
#> cfg.stack[0]['lr'] = 5.0
#> cfg.stack.append({'extra': 7.0})
#> cfg.lr = 0.0
""")


@pytest.mark.parametrize("story", MODULES + TRAINERS)
def test_everyday_training(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
