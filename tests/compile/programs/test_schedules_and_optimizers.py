"""Programs as practitioners write them: learning rates and optimizers around and inside a compiled step."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.stories import Story, stories

TRAIN: Final = """
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), lr=0.1, momentum=0.5)
def train(x):
    opt.zero_grad()
    loss = (net(x) ** 2).mean()
    loss.backward()
    opt.step()
    return loss
"""

SCHEDULES: Final = stories(
    """
## warm_up_and_cosine_by_lambda
s = lr_scheduler.LambdaLR(opt, lambda n: min(1.0, (n + 1) / 4) * 0.5 * (1 + math.cos(math.pi * n / 20)))
def step(x):
    loss = train(x)
    s.step()
    return loss
#> s.base_lrs = [0.5]
## last_rate_is_reported, eager: perhaps
s = lr_scheduler.ExponentialLR(opt, 0.9)
def step(x):
    loss = train(x)
    s.step()
    return loss, s.get_last_lr()
## scheduler_steps_between_calls
s = lr_scheduler.CosineAnnealingLR(opt, T_max=10)
step = train
def arguments(i):
    s.step()
    return (tensor(1.0, 2.0, 3.0),)
## warm_restarts
s = lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=3, T_mult=2)
def step(x):
    loss = train(x)
    s.step()
    return loss
#> s.step(0)
## one_cycle_with_momentum
s = lr_scheduler.OneCycleLR(opt, max_lr=0.5, total_steps=30)
def step(x):
    loss = train(x)
    s.step()
    return loss
#> s = lr_scheduler.OneCycleLR(opt, max_lr=0.05, total_steps=40)
## chained_schedules
s = lr_scheduler.ChainedScheduler([lr_scheduler.ConstantLR(opt, 0.5, 3), lr_scheduler.ExponentialLR(opt, 0.9)])
def step(x):
    loss = train(x)
    s.step()
    return loss
## sequential_schedules
s = lr_scheduler.SequentialLR(opt, [lr_scheduler.LinearLR(opt, 0.1, 1.0, 4), lr_scheduler.ExponentialLR(opt, 0.9)], [4])
def step(x):
    loss = train(x)
    s.step()
    return loss
## plateau_outside
s = lr_scheduler.ReduceLROnPlateau(opt, patience=0, factor=0.5)
step = train
def arguments(i):
    s.step(float(i))
    return (tensor(1.0, 2.0, 3.0),)
## rate_set_by_group
step = train
def arguments(i):
    for g in opt.param_groups: g['lr'] = 0.1 / (i + 1)
    return (tensor(1.0, 2.0, 3.0),)
## rate_set_by_update
step = train
#> opt.param_groups[0].update(lr=0.3)
#> opt.param_groups[0].update({'lr': 0.2, 'momentum': 0.9})
## rate_set_by_load_state_dict
step = train
saved = opt.state_dict()
#> opt.load_state_dict(saved)
#> opt.load_state_dict({**opt.state_dict(), 'param_groups': [{**opt.state_dict()['param_groups'][0], 'lr': 0.7}]})
## rate_as_a_tensor
step = train
#> opt.param_groups[0]['lr'] = rn.asarray(0.3)
#> opt.param_groups[0]['lr'] = rn.asarray(0.4)
## rate_kept_in_a_variable
rate = rn.Variable(0.05)
step = train
def arguments(i):
    rate.assign(rate * 0.9)
    opt.param_groups[0]['lr'] = rate.item()
    return (tensor(1.0, 2.0, 3.0),)
#> rate.assign(0.5)
## rate_as_a_property_of_the_trainer
class Trainer:
    @property
    def lr(self): return opt.param_groups[0]['lr']
    @lr.setter
    def lr(self, value):
        for g in opt.param_groups: g['lr'] = value
    def step(self, x): return train(x), self.lr
t = Trainer()
step = t.step
#> t.lr = 0.5
#> t.lr /= 10
## rate_set_by_a_thread
step = train
def set_rate(v): opt.param_groups[0]['lr'] = v
def arguments(i):
    thread = threading.Thread(target=set_rate, args=(0.1 / (i + 1),))
    thread.start(); thread.join()
    return (tensor(1.0, 2.0, 3.0),)
## rate_multiplied_by_hand_every_ten
step = train
def arguments(i):
    if i % 2 == 1: opt.param_groups[0]['lr'] *= 0.1
    return (tensor(1.0, 2.0, 3.0),)
#> opt.param_groups[0]['weight_decay'] = 0.1
## rate_set_inside, eager: 'lr' of a group is set
n = 0
def step(x):
    global n
    n += 1
    for g in opt.param_groups: g['lr'] = 0.1 / n
    return train(x)
## rate_given_to_a_step_written_by_hand
def step(x, lr):
    loss = (net(x) ** 2).mean()
    net.zero_grad()
    loss.backward()
    with rn.no_grad():
        for p in net.parameters(): p -= lr * p.grad
    return loss
def arguments(i): return tensor(1.0, 2.0, 3.0), 0.1 * 0.9 ** i
## schedule_of_a_class_of_ones_own
class Noam:
    def __init__(self, opt, width, warm): self.opt, self.width, self.warm, self.n = opt, width, warm, 0
    def step(self):
        self.n += 1
        rate = self.width ** -0.5 * min(self.n ** -0.5, self.n * self.warm ** -1.5)
        for g in self.opt.param_groups: g['lr'] = rate
noam = Noam(opt, 16, 4)
step = train
def arguments(i):
    noam.step()
    return (tensor(1.0, 2.0, 3.0),)
## weight_decay_as_a_schedule
def step(x): return train(x)
def arguments(i):
    opt.param_groups[0]['weight_decay'] = 0.01 * i
    return (tensor(1.0, 2.0, 3.0),)
""",
    TRAIN,
)

OPTIMIZERS: Final = stories(
    """
## unfrozen_layer_by_layer
body, head = nn.Linear(3, 3), nn.Linear(3, 2)
body.requires_grad_(False)
opt = optim.AdamW(head.parameters(), lr=0.01)
def step(x):
    opt.zero_grad()
    loss = (head(body(x)) ** 2).mean()
    loss.backward()
    opt.step()
    return loss
#> body.requires_grad_(True); opt.add_param_group({'params': list(body.parameters()), 'lr': 0.001})
## groups_read_by_name
body, head = nn.Linear(3, 3), nn.Linear(3, 2)
slow = {'params': body.parameters(), 'name': 'body', 'lr': 0.001}
opt = optim.AdamW([slow, {'params': head.parameters(), 'name': 'head'}], lr=0.01)
def step(x):
    opt.zero_grad()
    loss = (head(body(x)) ** 2).mean()
    loss.backward()
    opt.step()
    return loss, {g['name']: g['lr'] for g in opt.param_groups}
#> next(g for g in opt.param_groups if g['name'] == 'head')['lr'] = 0.1
## no_decay_for_biases
net = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3))
decay = [p for p in net.parameters() if p.ndim > 1]; rest = [p for p in net.parameters() if p.ndim <= 1]
opt = optim.AdamW([{'params': decay, 'weight_decay': 0.1}, {'params': rest, 'weight_decay': 0.0}], lr=0.01)
def step(x):
    opt.zero_grad()
    loss = (net(x.reshape(1, 3)) ** 3).sum()
    loss.backward()
    opt.step()
    return loss
#> opt.param_groups[0]['weight_decay'] = 0.5
## state_reset_between_phases
net = nn.Linear(3, 2); opt = optim.Adam(net.parameters(), lr=0.1)
def step(x):
    opt.zero_grad(); loss = (net(x) ** 2).mean(); loss.backward(); opt.step()
    return loss
#> opt.state.clear()
#> opt = optim.Adam(net.parameters(), lr=0.01)
## adam_swapped_for_sgd
net = nn.Linear(3, 2); opt = optim.Adam(net.parameters(), lr=0.1)
def step(x):
    opt.zero_grad(); loss = (net(x) ** 2).mean(); loss.backward(); opt.step()
    return loss
#> opt = optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
#> opt = optim.Lion(net.parameters(), lr=0.01)
## optimizer_chosen_by_name
net = nn.Linear(3, 2)
def made(name, **options): return getattr(optim, name)(net.parameters(), **options)
opt = made('RMSprop', lr=0.01)
def step(x):
    opt.zero_grad(); loss = (net(x) ** 2).mean(); loss.backward(); opt.step()
    return loss
#> opt = made('Adagrad', lr=0.1)
## users_optimizer_with_state
class Own(optim.Optimizer):
    def __init__(self, params, lr): super().__init__(params, dict(lr=lr))
    def step(self):
        with rn.no_grad():
            for group in self.param_groups:
                for p in group['params']:
                    if p.grad is None: continue
                    state = self.state[p]
                    if not state: state['step'], state['mean'] = 0, rn.zeros_like(p)
                    state['step'] += 1
                    state['mean'] = state['mean'] * 0.9 + p.grad * 0.1
                    p -= group['lr'] * state['mean'] / (1 - 0.9 ** state['step'])
net = nn.Linear(3, 2); opt = Own(net.parameters(), 0.1)
def step(x):
    opt.zero_grad(); loss = (net(x) ** 2).mean(); loss.backward(); opt.step()
    return loss
#> opt.param_groups[0]['lr'] = 0.01
## lbfgs_with_a_compiled_closure
net = nn.Linear(3, 1); opt = optim.LBFGS(net.parameters(), lr=0.1, max_iter=3)
@rn.compile
def closure(x):
    opt.zero_grad()
    loss = (net(x) ** 2).sum()
    loss.backward()
    return loss
def step(x): return closure(x)
def arguments(i):
    x = tensor(1.0, 2.0, 3.0)
    opt.step(lambda: closure(x))
    return (x,)
## lookahead, traces: 3
net = nn.Linear(3, 2); opt = optim.SGD(net.parameters(), lr=0.1)
slow = [p.detach().clone() for p in net.parameters()]; n = 0
def step(x):
    global n
    opt.zero_grad(); loss = (net(x) ** 2).mean(); loss.backward(); opt.step()
    n += 1
    if n % 3 == 0:
        with rn.no_grad():
            for i, p in enumerate(net.parameters()):
                slow[i] = slow[i] + 0.5 * (p.detach() - slow[i])
                p.copy_(slow[i])
    return loss
## sharpness_aware_in_two_passes
net = nn.Linear(3, 2); opt = optim.SGD(net.parameters(), lr=0.1); rho = 0.05
def step(x):
    params = list(net.parameters())
    opt.zero_grad(); loss = (net(x) ** 2).mean(); loss.backward()
    with rn.no_grad():
        norm = rn.sqrt(sum((p.grad ** 2).sum() for p in params))
        moved = [rho * p.grad / (norm + 1e-12) for p in params]
        for p, e in zip(params, moved): p.add_(e)
    opt.zero_grad(); (net(x) ** 2).mean().backward()
    with rn.no_grad():
        for p, e in zip(params, moved): p.sub_(e)
    opt.step()
    return loss
#> rho = 0.5
## gradient_noise
net = nn.Linear(3, 2); opt = optim.SGD(net.parameters(), lr=0.1); sigma = 0.1
def step(x):
    opt.zero_grad(); loss = (net(x) ** 2).mean(); loss.backward()
    for p in net.parameters(): p.grad = p.grad + sigma * rn.randn(p.shape)
    opt.step()
    return loss
#> sigma = 0.01
## gradients_centralized
net = nn.Linear(3, 2); opt = optim.SGD(net.parameters(), lr=0.1)
def step(x):
    opt.zero_grad(); loss = (net(x) ** 2).mean(); loss.backward()
    for p in net.parameters():
        if p.ndim > 1: p.grad = p.grad - p.grad.mean(axis=1, keepdims=True)
    opt.step()
    return loss
## adaptive_clipping
net = nn.Linear(3, 2); opt = optim.SGD(net.parameters(), lr=0.1); most = 0.01
def step(x):
    opt.zero_grad(); loss = (net(x) ** 2).mean(); loss.backward()
    for p in net.parameters():
        limit = most * rn.maximum(rn.sqrt((p.detach() ** 2).sum()), 1e-3)
        norm = rn.sqrt((p.grad ** 2).sum())
        p.grad = p.grad * rn.minimum(1.0, limit / (norm + 1e-6))
    opt.step()
    return loss
#> most = 0.5
## clipped_by_norm
net = nn.Linear(3, 2); opt = optim.SGD(net.parameters(), lr=0.1); most = 0.1
def step(x):
    opt.zero_grad(); loss = (net(x) ** 2).mean(); loss.backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), most)
    opt.step()
    return loss, norm
#> most = 10.0
## loss_scaler_by_hand, traces: 5
class Scaler:
    def __init__(self): self.scale, self.good = 8.0, 0
    def update(self):
        self.good += 1
        if self.good == 3: self.scale, self.good = self.scale * 2, 0
net = nn.Linear(3, 2); opt = optim.SGD(net.parameters(), lr=0.1); scaler = Scaler()
def step(x):
    opt.zero_grad(); loss = (net(x) ** 2).mean(); (loss * scaler.scale).backward()
    for p in net.parameters(): p.grad = p.grad / scaler.scale
    opt.step(); scaler.update()
    return loss
#> scaler.scale = 1.0
## two_optimizers_for_two_parts
body, head = nn.Linear(3, 3), nn.Linear(3, 2)
opts = {'body': optim.SGD(body.parameters(), lr=0.01), 'head': optim.Adam(head.parameters(), lr=0.1)}
def step(x):
    for o in opts.values(): o.zero_grad()
    loss = (head(body(x)) ** 2).mean()
    loss.backward()
    for o in opts.values(): o.step()
    return loss
#> opts.pop('body')
#> opts['body'] = optim.Adam(body.parameters(), lr=0.1)
"""
)


@pytest.mark.parametrize("story", SCHEDULES + OPTIMIZERS)
def test_like_eager(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
