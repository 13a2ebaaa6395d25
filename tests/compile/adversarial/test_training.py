"""Programs that train: arrays held outside, hooks, growing models, optimizers, schedules, averages, buffers, stopping."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story, stories

ARRAYS: Final = stories("""
## array_written_in_place
a = np.array([1.0, 2.0, 3.0], np.float32)
def step(x): return x * rn.asarray(a) + a[0]
#> a[0] = 5.0
#> a *= 2
#> a.fill(1.0)
## array_views
base = np.arange(6.0, dtype=np.float32).reshape(2, 3); view = base[0]
def step(x): return x * rn.asarray(view) + base.sum()
#> base[0, 1] = 9.0
#> view[:] = 0.0
#> base = base.copy()
## array_dtype_and_shape
a = np.ones(3, np.float32)
def step(x): return x * rn.asarray(a), a.dtype.name, a.shape, a.ndim
#> a = a.astype(np.float64)
#> a = a.reshape(1, 3)
#> a = a.view(np.int64)
## array_as_a_branch
a = np.array([1, 2])
def step(x): return x * 2 if a[0] < a[1] and a.any() else x
#> a[0] = 5
#> a[:] = 0
## array_written_inside, eager: (global a)
a = np.zeros(3, np.float32); n = 0
def step(x):
    global n
    n += 1
    a[n % 3] = n
    return x * rn.asarray(a)
#> a[:] = 7.0
#> n = 5
## arrays_in_a_dict
batch = {'x': np.ones(3, np.float32), 'scale': np.float32(2.0), 'n': np.int64(3)}
def step(x): return x * rn.asarray(batch['x']) * float(batch['scale']) + int(batch['n'])
#> batch['scale'] = np.float32(3.0)
#> batch['n'] = np.int64(5); batch['x'][1] = 0.0
#> batch['scale'] = 4.0
## array_subclass
class A(np.ndarray):
    gain = 2.0
a = np.ones(3, np.float32).view(A)
def step(x): return x * a.gain + rn.asarray(np.asarray(a))
#> a.gain = 5.0
#> A.gain = 9.0; del a.gain
#> a[0] = 7.0
## structured_and_flags
a = np.ones(3, np.float32)
def step(x): return x * (2.0 if a.flags.writeable else 3.0) * a.size
#> a.flags.writeable = False
#> a = np.ones(2, np.float32)
## array_attributes_of_a_replay_buffer, eager: (global buffer.data)
class Buffer:
    def __init__(self, n): self.data, self.at, self.full = np.zeros((n, 3), np.float32), 0, False
    def add(self, row):
        self.data[self.at] = row
        self.at += 1
        if self.at == len(self.data): self.at, self.full = 0, True
    def all(self): return self.data if self.full else self.data[:self.at]
buffer = Buffer(3); row = np.ones(3, np.float32)
def step(x):
    buffer.add(row)
    return x * rn.asarray(buffer.all()).sum()
#> row[:] = 2.0
#> buffer.data[:] = 0.0
#> buffer = Buffer(2)
## tensor_replay_buffer, traces: 9
buffer = collections.deque(maxlen=3)
def step(x, v):
    buffer.append((x * v, v))
    return rn.stack([t for t, _ in buffer]).sum() + sum(v for _, v in buffer)
def arguments(i): return tensor(1.0, i), i * 0.5
#> buffer.clear()
""")

MODELS: Final = stories("""
## forward_hooks_come_and_go
m = nn.Linear(3, 2); log = []
handle = m.register_forward_hook(lambda mod, args, out: log.append(out.shape) or out * 2)
def step(x): return m(x)
#> handle.remove()
#> pre = m.register_forward_pre_hook(lambda mod, args: (args[0] * 3,))
#> pre.remove(); m.register_forward_hook(lambda mod, args, out: None)
## layers_grow
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3)])
    def grow(self): self.layers.append(nn.Linear(3, 3))
    def forward(self, x):
        for i, layer in enumerate(self.layers): x = layer(x) + i
        return x
m = Net()
def step(x): return m(x)
#> m.grow()
#> m.layers[0] = nn.Linear(3, 3)
#> del m.layers[1]
## forward_replaced
m = nn.Linear(3, 3)
def step(x): return m(x)
#> m.forward = lambda x: x * 5
#> del m.forward
#> nn.Linear.extra = 3; m.bias.assign(rn.ones(3)); del nn.Linear.extra
## module_dict_and_flags
m = nn.ModuleDict({'a': nn.Linear(3, 3), 'b': nn.ReLU()}); active = ['a', 'b']
def step(x):
    for n in active: x = m[n](x)
    return x
#> active.reverse()
#> m['b'] = nn.Tanh()
#> active.append('a')
## train_and_eval
m = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
def step(x): return m(x) if not m.training else m[0](x), m.training
#> m.eval()
#> m[1].train()
#> m.train()
## frozen_parameters
m = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1)); o = optim.SGD(m.parameters(), lr=0.1)
def step(x):
    o.zero_grad()
    loss = m(x).sum()
    loss.backward()
    o.step()
    return loss.detach(), [p.requires_grad for p in m.parameters()]
#> m[0].requires_grad_(False)
#> m[0].weight.requires_grad_(True)
#> m[1].requires_grad_(False)
## weights_shared_and_unshared
a, b = nn.Linear(3, 3), nn.Linear(3, 3)
b.weight = a.weight
def step(x): return b(a(x)), a.weight is b.weight
#> a.weight.assign(rn.ones((3, 3)))
#> b.weight = nn.Parameter(rn.zeros((3, 3)))
## state_dict_loaded
m = nn.Linear(3, 3); saved = {k: v.clone() for k, v in m.state_dict().items()}
def step(x): return m(x)
#> m.weight.assign(rn.ones((3, 3)))
#> m.load_state_dict(saved)
## lazy_submodule, eager: made inside
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = None
    def forward(self, x):
        if self.head is None: self.head = nn.Linear(x.shape[-1], 2)
        return self.head(x)
m = Net()
def step(x): return m(x)
#> m.head = None
## module_attributes_as_settings
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cfg = {'gain': 2.0, 'acts': [rn.tanh]}
        self.inner = nn.Linear(3, 3)
    def forward(self, x):
        x = self.inner(x) * self.cfg['gain']
        for f in self.cfg['acts']: x = f(x)
        return x
m = Net()
def step(x): return m(x)
#> m.cfg['gain'] = 5.0
#> m.cfg['acts'].append(rn.sin)
#> m.cfg = {'gain': 0.5, 'acts': ()}
## apply_and_named_modules
m = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
def step(x): return m(x), [n for n, _ in m.named_modules()], sum(p.size for p in m.parameters())
#> m.append(nn.Linear(3, 2))
#> m[1] = nn.Tanh()
""")

OPTIMIZERS: Final = stories("""
## groups_change
w, v = nn.Parameter(rn.ones(3)), nn.Parameter(rn.ones(3))
o = optim.SGD([w], lr=0.1)
def step(x):
    o.zero_grad()
    loss = (w * v * x).sum()
    loss.backward()
    o.step()
    return loss.detach(), w.detach() * 1, v.detach() * 1
#> o.param_groups[0]['lr'] = 0.5
#> o.add_param_group({'params': [v], 'lr': 0.01})
#> o.param_groups[0]['momentum'] = 0.9
#> o.param_groups[1]['lr'] = 0.0
#> o.param_groups[0]['weight_decay'] = 0.1
## rate_set_inside, eager: 'lr' of a group is set
w = nn.Parameter(rn.ones(3)); o = optim.SGD([w], lr=0.1); n = 0
def step(x):
    global n
    n += 1
    for g in o.param_groups: g['lr'] = 0.1 / n
    o.zero_grad()
    (w * x).sum().backward()
    o.step()
    return w.detach() * 1, o.param_groups[0]['lr']
#> n = 50
## schedule_read_after_step
w = nn.Parameter(rn.ones(3)); o = optim.SGD([w], lr=0.1)
s = optim.lr_scheduler.StepLR(o, 2, 0.5)
def step(x):
    o.zero_grad()
    (w * x).sum().backward()
    o.step()
    s.step()
    return w.detach() * 1
#> o.param_groups[0]['lr'] = 1.0
## last_rate_logged
w = nn.Parameter(rn.ones(3)); o = optim.SGD([w], lr=0.1); log = []
s = optim.lr_scheduler.StepLR(o, 2, 0.5)
def step(x):
    o.zero_grad()
    (w * x).sum().backward()
    o.step()
    log.append(s.get_last_lr()[0])
    return w.detach() * 1
#> s.step()
#> s.step(); s.step()
## average_of_weights
m = nn.Linear(3, 3); ema = {k: p.detach() * 1 for k, p in m.named_parameters()}; decay = 0.9
def step(x):
    with rn.no_grad():
        for k, p in m.named_parameters(): ema[k] = ema[k] * decay + p.detach() * (1 - decay)
    return x * ema['weight'].sum()
#> decay = 0.5
#> m.weight.assign(rn.ones((3, 3)))
#> ema = {k: v * 0 for k, v in ema.items()}
## average_in_place
m = nn.Linear(3, 3); ema = copy.deepcopy(m)
def step(x):
    with rn.no_grad():
        for p, q in zip(ema.parameters(), m.parameters()): p.mul_(0.5).add_(q * 0.5)
    return ema(x)
#> m.bias.assign(rn.ones(3))
#> ema = copy.deepcopy(m)
## clip_by_norm
w = nn.Parameter(rn.ones(3)); o = optim.SGD([w], lr=0.1); limit = 1.0
def step(x):
    o.zero_grad()
    (w * x).sum().backward()
    norm = nn.utils.clip_grad_norm_([w], limit)
    o.step()
    return norm, w.detach() * 1
#> limit = 100.0
#> w.assign(rn.zeros(3))
## manual_updates
w = nn.Parameter(rn.ones(3)); lr, n = 0.1, 0
def step(x):
    global n
    n += 1
    loss = (w * x).sum()
    g, = rn.grad(lambda v: (v * x).sum())(w.detach()),
    with rn.no_grad(): w.sub_(g * (lr / n))
    return loss.detach(), w.detach() * 1
#> lr = 1.0
#> n = 0
## gradient_accumulation
w = nn.Parameter(rn.ones(3)); o = optim.SGD([w], lr=0.1); n, every = 0, 2
def step(x):
    global n
    n += 1
    ((w * x).sum() / every).backward()
    if n % every == 0:
        o.step()
        o.zero_grad()
    return w.detach() * 1
#> every = 3
#> n = 0
## early_stopping
class Stop:
    def __init__(self, patience): self.best, self.bad, self.patience, self.stopped = float('inf'), 0, patience, False
    def __call__(self, v):
        if v < self.best - 1e-6: self.best, self.bad = v, 0
        else:
            self.bad += 1
            if self.bad >= self.patience: self.stopped = True
        return self.stopped
stop = Stop(2)
def step(x, v):
    if stop(v): return -x
    return x * stop.best
def arguments(i): return tensor(1.0, 2.0), (3.0, 2.0, 2.5, 2.6, 2.7, 0.5)[i % 6]
#> stop.stopped = False; stop.patience = 100
#> stop = Stop(1)
## meters_and_history
class Meter:
    def __init__(self): self.reset()
    def reset(self): self.sum, self.n, self.values = 0.0, 0, []
    def update(self, v, n=1):
        self.sum += v * n
        self.n += n
        self.values.append(v)
    avg = property(lambda self: self.sum / max(self.n, 1))
meters, history = {'loss': Meter()}, collections.defaultdict(list)
def step(x, v):
    meters['loss'].update(v, x.shape[0])
    history['loss'].append(meters['loss'].avg)
    return x * meters['loss'].avg
def arguments(i): return tensor(1.0, 2.0), i * 0.5
#> meters['loss'].reset()
#> history.clear()
#> meters['loss'] = Meter()
## temperature_annealing
class T: value, floor, rate = 5.0, 0.5, 0.9
t = T()
def step(x):
    t.value = max(t.floor, t.value * t.rate)
    return rn.softmax(x / t.value)
#> t.value = 0.6
#> T.rate = 0.1
#> t.floor = 2.0
## loss_scaling
class Scaler:
    def __init__(self): self.scale, self.good = 8.0, 0
    def update(self, ok):
        if ok:
            self.good += 1
            if self.good == 3: self.scale, self.good = self.scale * 2, 0
        else: self.scale, self.good = self.scale / 2, 0
scaler, ok = Scaler(), True
def step(x):
    y = x * scaler.scale
    scaler.update(ok)
    return y
#> ok = False
#> ok = True
## curriculum
stages = [(0, 'easy', 1.0), (4, 'mid', 2.0), (7, 'hard', 3.0)]; n = 0
def stage(): return [s for s in stages if s[0] <= n][-1]
def step(x):
    global n
    n += 1
    _, name, gain = stage()
    return x * gain * len(name)
#> stages.append((8, 'boss', 9.0))
#> n = 0
## own_draws
rn.manual_seed(3)
def step(x): return x * rn.rand(3), rn.randn(2) if len(x) > 2 else None
#> rn.manual_seed(3)
## callbacks_list
class Callback:
    def on_step(self, state): pass
class Count(Callback):
    n = 0
    def on_step(self, state): self.n += 1; state['n'] = self.n
class Scale(Callback):
    def on_step(self, state): state['gain'] = state.get('gain', 1.0) * 2
callbacks, state = [Count(), Scale()], {}
def step(x):
    for c in callbacks: c.on_step(state)
    return x * state['n']
#> callbacks.append(Scale())
#> state.clear()
#> callbacks.pop(0)
## registry_of_losses
LOSSES = {}
def register(name): return lambda f: LOSSES.setdefault(name, f)
@register('mse')
def mse(a): return (a ** 2).mean()
@register('mae')
def mae(a): return rn.abs(a).mean()
weights = {'mse': 1.0, 'mae': 0.5}
def step(x): return sum(weights[n] * LOSSES[n](x) for n in sorted(LOSSES))
#> weights['mae'] = 2.0
#> LOSSES['mse'] = lambda a: a.sum()
#> register('sum')(lambda a: a.sum()); weights['sum'] = 3.0
""")


@pytest.mark.parametrize("story", ARRAYS + MODELS + OPTIMIZERS)
def test_training(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
