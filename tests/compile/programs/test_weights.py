"""Programs as practitioners write them: averages, ties, caches and surgery on the weights of a network."""

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

AVERAGES: Final = stories(
    """
## average_of_weights_with_decay_warm_up
class Ema:
    def __init__(self, net, decay):
        self.decay, self.n = decay, 0
        self.shadow = {k: p.detach().clone() for k, p in net.named_parameters()}
    def update(self, net):
        self.n += 1
        d = min(self.decay, (1 + self.n) / (10 + self.n))
        for k, p in net.named_parameters(): self.shadow[k] = self.shadow[k] * d + p.detach() * (1 - d)
ema = Ema(net, 0.9)
def step(x):
    loss = train(x)
    ema.update(net)
    return loss
#> ema.decay = 0.1
#> ema.n = 100
## average_swapped_in_for_evaluation
shadow = {k: p.detach().clone() for k, p in net.named_parameters()}
@contextlib.contextmanager
def averaged():
    kept = {k: p.detach().clone() for k, p in net.named_parameters()}
    net.load_state_dict(shadow)
    yield
    net.load_state_dict(kept)
def step(x):
    loss = train(x)
    for k, p in net.named_parameters(): shadow[k] = shadow[k] * 0.5 + p.detach() * 0.5
    return loss
#> with averaged(): print(net(tensor(1.0, 2.0, 3.0)))
## average_in_a_copy_of_the_model
average = copy.deepcopy(net)
def step(x, decay):
    loss = train(x)
    with rn.no_grad():
        for a, p in zip(average.parameters(), net.parameters()): a.mul_(decay).add_(p.detach() * (1 - decay))
    return loss, average(x)
def arguments(i): return tensor(1.0, 2.0, 3.0), 0.9 if i % 2 else 0.5
## averaged_from_some_epoch_on
epoch, start, n = 0, 1, 0
swa = [rn.zeros_like(p) for p in net.parameters()]
def step(x):
    global n
    loss = train(x)
    if epoch >= start:
        n += 1
        for i, p in enumerate(net.parameters()): swa[i] = swa[i] + (p.detach() - swa[i]) / n
    return loss
#> epoch = 1
#> epoch = 2
## soft_target_network
target = copy.deepcopy(net); tau = 0.1
def step(x):
    loss = train(x)
    with rn.no_grad():
        for t, p in zip(target.parameters(), net.parameters()): t.copy_(t * (1 - tau) + p * tau)
    return loss, target(x)
#> tau = 0.5
## hard_target_network, traces: 5
target = copy.deepcopy(net); n, every = 0, 4
def step(x):
    global n
    loss = train(x)
    n += 1
    if n % every == 0: target.load_state_dict(net.state_dict())
    return loss, target(x).detach()
#> every = 2
## queue_of_keys_with_a_pointer
class Moco(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(3, 2)
        self.register_buffer('queue', rn.zeros((4, 2)))
        self.register_buffer('pointer', rn.zeros((), dtype=rn.int64))
    def forward(self, x):
        q = self.encoder(x)
        logits = self.queue @ q
        with rn.no_grad():
            self.queue.assign(rn.where(rn.arange(4).reshape(4, 1) == self.pointer, q.detach(), self.queue))
            self.pointer.assign((self.pointer + 1) % 4)
        return logits
moco = Moco()
def step(x): return moco(x)
#> moco.pointer.assign(rn.asarray(0))
## queue_with_a_python_pointer, traces: 4
queue, at = rn.zeros((4, 3)), 0
def step(x):
    global at
    queue[at] = x
    at = (at + 1) % 4
    return (queue * x).sum()
#> at = 2
## queue_written_by_slices, traces: 4
class Moco:
    def __init__(self): self.queue, self.at, self.size = rn.zeros((3, 4)), 0, 4
    def put(self, keys):
        n = keys.shape[0]
        self.queue[:, self.at:self.at + n] = keys.T
        self.at = (self.at + n) % self.size
moco = Moco()
def step(x):
    moco.put(rn.stack([x, x * 2]))
    return x @ moco.queue
#> moco.at = 2
## codebook_by_averages
class Codes(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('codes', rn.arange(12).reshape(4, 3).astype(rn.float32))
        self.register_buffer('counts', rn.ones(4))
        self.decay = 0.9
    def forward(self, x):
        distances = ((x - self.codes) ** 2).sum(axis=1)
        hot = F.one_hot(distances.argmin(), 4).astype(rn.float32)
        if self.training:
            self.counts.assign(self.counts * self.decay + hot * (1 - self.decay))
            self.codes.assign(self.codes * self.decay + hot.reshape(4, 1) * x * (1 - self.decay))
        return x + (hot @ self.codes - x).detach()
codes = Codes()
def step(x): return codes(x)
#> codes.eval()
#> codes.train(); codes.decay = 0.5
## buffers_written_by_assignment
class Meter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('total', rn.zeros(3))
        self.register_buffer('n', rn.zeros(()))
    def forward(self, x):
        self.total = self.total + x
        self.n = self.n + 1
        return self.total / self.n
m = Meter()
def step(x): return m(x)
#> m.total = rn.ones(3)
#> m.n = rn.zeros(())
## best_weights_kept_inside
best = {'loss': float('inf'), 'weights': None}
def step(x, value):
    loss = train(x)
    if value < best['loss']: best.update(loss=value, weights={k: p.detach().clone() for k, p in net.named_parameters()})
    return loss
def arguments(i): return tensor(1.0, 2.0, 3.0), abs(4.0 - i)
#> best['loss'] = float('inf')
## rollback_to_weights_kept
kept = {k: v.clone() for k, v in net.state_dict().items()}
bad = False
def step(x):
    if bad: net.load_state_dict(kept)
    return train(x)
#> bad = True
#> bad = False
## checkpoint_and_resume
step = train
#> saved = {'net': {k: np.asarray(v) for k, v in net.state_dict().items()}, 'opt': opt.state_dict()}
#> net.load_state_dict({k: rn.asarray(v) for k, v in saved['net'].items()}); opt.load_state_dict(saved['opt'])
""",
    TRAIN,
)

SURGERY: Final = stories(
    """
## tied_embedding_tied_again
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
        self.tie()
    def tie(self): self.head.weight = self.embedding.weight
    def forward(self, ids): return self.head(self.embedding(ids))
net = Tied(); opt = optim.SGD(net.parameters(), lr=0.1)
def step(ids):
    opt.zero_grad(); loss = F.cross_entropy(net(ids), ids); loss.backward(); opt.step()
    return loss
def arguments(i): return (rn.asarray([0, 1, 2, 3 + i % 2]),)
#> net.head.weight = nn.Parameter(net.head.weight.detach().clone()); opt = optim.SGD(net.parameters(), lr=0.1)
#> net.tie()
## vocabulary_that_grows
class Words(nn.Module):
    def __init__(self): super().__init__(); self.table = nn.Embedding(3, 2)
    def grow(self):
        old, self.table = self.table, nn.Embedding(self.table.num_embeddings + 1, 2)
        with rn.no_grad(): self.table.weight.copy_(rn.cat([old.weight.detach(), rn.zeros((1, 2))]))
    def forward(self, ids): return self.table(ids).sum()
words = Words()
def step(ids): return words(ids)
def arguments(i): return (rn.asarray([0, 1, 2]),)
#> words.grow()
#> words.grow()
## heads_chosen_by_task
body, heads, task = nn.Linear(3, 3), nn.ModuleDict({'a': nn.Linear(3, 2), 'b': nn.Linear(3, 1)}), 'a'
def step(x): return heads[task](body(x))
#> task = 'b'
#> heads['c'] = nn.Linear(3, 4); task = 'c'
#> task = 'a'
## heads_chosen_by_argument, traces: 4
heads = nn.ModuleDict({'a': nn.Linear(3, 2), 'b': nn.Linear(3, 1)})
def step(x, task): return heads[task](x)
def arguments(i): return tensor(1.0, 2.0, 3.0), 'ab'[i % 2]
#> heads['a'] = nn.Linear(3, 2)
## low_rank_injected_and_merged
class Lora(nn.Module):
    def __init__(self, base, rank=1):
        super().__init__()
        self.base, self.scale = base, 2.0
        self.a, self.b = nn.Parameter(rn.ones((rank, 3)) * 0.1), nn.Parameter(rn.ones((2, rank)) * 0.1)
    def merge(self):
        with rn.no_grad(): self.base.weight.add_(self.scale * (self.b @ self.a))
        return self.base
    def forward(self, x): return self.base(x) + self.scale * (self.b @ (self.a @ x))
class Net(nn.Module):
    def __init__(self): super().__init__(); self.out = nn.Linear(3, 2)
    def forward(self, x): return self.out(x)
net = Net()
def step(x): return net(x)
#> net.out = Lora(net.out)
#> net.out.scale = 1.0
#> net.out = net.out.merge()
## pruned_by_a_mask
class Masked(nn.Linear):
    mask = None
    def forward(self, x): return F.linear(x, self.weight if self.mask is None else self.weight * self.mask, self.bias)
net = Masked(3, 2)
def step(x): return net(x)
#> net.mask = (abs(net.weight.detach()) > 0.3).astype(rn.float32)
#> net.mask = rn.zeros((2, 3))
#> net.mask = None
## spectral_norm_added_and_removed
net = nn.Linear(3, 2)
def step(x): return net(x)
#> nn.utils.spectral_norm(net)
#> net.eval()
#> nn.utils.remove_spectral_norm(net)
## weight_norm_added_and_removed
net = nn.Linear(3, 2)
def step(x): return net(x)
#> nn.utils.weight_norm(net)
#> nn.utils.remove_weight_norm(net)
## parametrization_registered
class Symmetric(nn.Module):
    def forward(self, w): return (w + w.T) / 2
net = nn.Linear(3, 3)
def step(x): return net(x)
#> nn.utils.parametrize.register_parametrization(net, 'weight', Symmetric())
#> nn.utils.parametrize.remove_parametrizations(net, 'weight')
## layers_in_plain_lists
class Net(nn.Module):
    def __init__(self): super().__init__(); self.layers = [nn.Linear(3, 3), nn.Tanh()]
    def forward(self, x):
        for layer in self.layers: x = layer(x)
        return x
net = Net()
def step(x): return net(x)
#> net.layers.append(nn.Linear(3, 2))
#> net.layers[1] = nn.ReLU()
## layers_in_plain_dicts
layers = {'in': nn.Linear(3, 3), 'out': nn.Linear(3, 2)}
def step(x):
    for name, layer in layers.items(): x = layer(x) * (2.0 if name == 'in' else 1.0)
    return x
#> layers['out'] = nn.Linear(3, 1)
#> layers['last'] = nn.Tanh()
## layers_appended_and_removed
layers = nn.ModuleList([nn.Linear(3, 3)])
def step(x):
    for i, layer in enumerate(layers): x = layer(x) * (i + 1)
    return x + len(layers)
#> layers.append(nn.Linear(3, 3))
#> del layers[0]
## layers_dropped_at_random
class Block(nn.Module):
    def __init__(self, p): super().__init__(); self.p, self.layer = p, nn.Linear(3, 3)
    def forward(self, x):
        if not self.training: return x + self.layer(x)
        return x + rn.where(rn.rand(()) > self.p, self.layer(x), 0.0)
blocks = nn.ModuleList([Block(0.5), Block(0.1)])
def step(x):
    for b in blocks: x = b(x)
    return x
#> blocks.eval()
#> blocks.train(); blocks[0].p = 0.9
## layer_made_at_the_first_call
class Lazy(nn.Module):
    def __init__(self): super().__init__(); self.layer = None
    def forward(self, x):
        if self.layer is None: self.layer = nn.Linear(x.shape[-1], 2)
        return self.layer(x)
net = Lazy()
def step(x): return net(x)
## batch_norm_frozen
net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU())
def step(x): return net(x)
def arguments(i): return (rn.asarray(np.arange(6, dtype=np.float32).reshape(2, 3) + i),)
#> net[1].eval()
#> net.train()
#> net[1].requires_grad_(False); net[1].momentum = 0.5
## dropout_turned_off_and_on
net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5))
def step(x): return net(x)
#> net.eval()
#> net.train()
#> net[1].p = 0.0
## modes_changed_inside
net = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
def step(x):
    net.train(); a = net(x)
    net.eval(); b = net(x)
    net.train()
    return a - b
## double_and_back
net = nn.Linear(3, 2)
def step(x): return net(x.astype(net.weight.dtype))
#> net.double()
#> net.float()
## half_model_with_a_float_optimizer
net = nn.Linear(3, 2).half()
master = [nn.Parameter(p.detach().astype(rn.float32)) for p in net.parameters()]
opt = optim.SGD(master, lr=0.1)
def step(x):
    net.zero_grad()
    loss = (net(x.astype(rn.float16)).astype(rn.float32) ** 2).mean()
    loss.backward()
    for m, p in zip(master, net.parameters()): m.grad = p.grad.astype(rn.float32)
    opt.step(); opt.zero_grad()
    with rn.no_grad():
        for m, p in zip(master, net.parameters()): p.copy_(m.astype(rn.float16))
    return loss
## model_copied_into_a_new_trainer
class Trainer:
    def __init__(self, net): self.net, self.opt = net, optim.SGD(net.parameters(), lr=0.1)
    def step(self, x):
        self.opt.zero_grad(); loss = (self.net(x) ** 2).mean(); loss.backward(); self.opt.step()
        return loss
t = Trainer(nn.Linear(3, 2))
def step(x): return t.step(x)
#> t = Trainer(copy.deepcopy(t.net))
#> t.opt.param_groups[0]['lr'] = 1.0
## weight_replaced
net = nn.Linear(3, 2)
def step(x): return net(x)
#> net.weight = nn.Parameter(rn.ones((2, 3)))
#> net.bias = None
#> net.weight.assign(np.zeros((2, 3), np.float32))
## frozen_and_thawed
net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2)); opt = optim.SGD(net.parameters(), lr=0.1)
def step(x):
    opt.zero_grad(); loss = net(x).sum(); loss.backward(); opt.step()
    return loss, sum(p.requires_grad for p in net.parameters())
#> net[0].requires_grad_(False)
#> net[0].requires_grad_(True)
#> net[1].bias.requires_grad = False
## options_of_layers
net = nn.Sequential(nn.LayerNorm(3), nn.LeakyReLU(0.1))
def step(x): return net(x)
#> net[0].eps = 0.5
#> net[1].negative_slope = 0.7
## weight_decay_by_name
net, skip = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3)), {'1.weight'}
def step(x): return net(x).sum() + 0.1 * sum((p ** 2).sum() for n, p in net.named_parameters() if n not in skip)
#> skip.add('0.bias')
## parameters_and_modules_counted
net = nn.Sequential(nn.Linear(3, 3))
def step(x): return x * sum(p.size for p in net.parameters()) + len(list(net.modules())) + len(net.state_dict())
#> net.append(nn.Linear(3, 3))
#> net[0].bias = None
## submodule_by_path
net, path = nn.Sequential(nn.Sequential(nn.Linear(3, 3)), nn.ReLU()), '0.0'
def step(x): return net.get_submodule(path)(x)
#> path = '1'
#> net[1] = nn.Tanh()
## layers_configured_by_apply, traces: 4
net, rates = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)), {'p': 0.0}
def step(x):
    def set_rate(layer):
        if isinstance(layer, nn.Dropout): layer.p = rates['p']
    net.apply(set_rate)
    return net(x)
#> rates.update(p=0.9)
## subclass_of_a_layer
class Scaled(nn.Linear):
    gain = 2.0
    def forward(self, x): return super().forward(x) * self.gain
net = nn.Sequential(Scaled(3, 3), nn.ReLU())
def step(x): return net(x)
#> net[0].gain = 3.0
#> Scaled.gain = 5.0; del net[0].gain
## masks_cached_by_length, traces: 4
class Masked(nn.Module):
    def __init__(self): super().__init__(); self.masks = {}
    def forward(self, x):
        n = x.shape[0]
        if n not in self.masks: self.masks[n] = rn.tril(rn.ones((n, n)))
        return self.masks[n] @ x
net = Masked()
def step(x): return net(x)
def arguments(i): return (tensor(*range(2 + i % 2)),)
#> net.masks.clear()
"""
)


@pytest.mark.parametrize("story", AVERAGES + SURGERY)
def test_like_eager(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
