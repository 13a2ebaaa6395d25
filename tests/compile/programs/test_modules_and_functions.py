"""Programs as practitioners write them: compiled models, trainers, registries, wrappers and functions of functions."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.stories import Story, stories

MODELS: Final = stories("""
## model_compiled_and_called
model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
step = model
#> model[0].bias = None
#> model.eval()
## model_compiled_and_trained_outside
model = nn.Linear(3, 2); net = rn.compile(model); opt = optim.SGD(model.parameters(), lr=0.1)
def step(x): return net(x)
def arguments(i):
    x = tensor(1.0, 2.0, float(i))
    opt.zero_grad(); (net(x) ** 2).mean().backward(); opt.step()
    return (x,)
## compiled_model_used_as_a_model
model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)); net = rn.compile(model)
opt = optim.SGD(net.parameters(), lr=0.1)
def step(x): return net(x)
#> net.eval()
#> net.load_state_dict({k: v * 2 for k, v in net.state_dict().items()})
#> net.train()
## forward_compiled_on_an_instance
model = nn.Linear(3, 2); model.forward = rn.compile(model.forward)
def step(x): return model(x)
#> model.weight = nn.Parameter(rn.ones((2, 3)))
## forward_decorated_in_the_class
class Net(nn.Module):
    def __init__(self): super().__init__(); self.layer, self.gain = nn.Linear(3, 2), 2.0
    @rn.compile
    def forward(self, x): return self.layer(x) * self.gain
net = Net()
def step(x): return net(x)
#> net.gain = 3.0
#> net = Net()
## method_decorated_in_the_class
class Trainer:
    def __init__(self): self.net = nn.Linear(3, 2); self.opt = optim.SGD(self.net.parameters(), lr=0.1)
    @rn.compile
    def train(self, x):
        self.opt.zero_grad(); loss = (self.net(x) ** 2).mean(); loss.backward(); self.opt.step()
        return loss
t = Trainer()
def step(x): return t.train(x)
#> t = Trainer()
## train_flag_is_read
class Net(nn.Module):
    def forward(self, x): return x * 2 if self.training else -x
net = nn.Sequential(Net())
def step(x): return net(x)
#> net.eval()
#> net.train(True)
## features_collected_by_hooks
net, seen = nn.Sequential(nn.Linear(3, 3), nn.ReLU()), {}
def hook(module, args, out): seen['first'] = out.detach()
handle = net[0].register_forward_hook(hook)
def step(x):
    y = net(x)
    return y + seen['first'].sum()
#> handle.remove()
## outputs_changed_by_a_hook_with_state
net, gain, n = nn.Linear(3, 3), 2.0, 0
def hook(module, args, out):
    global n
    n += 1
    return out * gain
net.register_forward_hook(hook)
def step(x): return net(x)
#> gain = 3.0
#> extra = net.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
#> extra.remove()
## module_with_a_counter_and_a_history
class Net(nn.Module):
    calls = 0
    def __init__(self): super().__init__(); self.layer, self.norms = nn.Linear(3, 2), []
    def forward(self, x):
        Net.calls += 1
        y = self.layer(x)
        self.norms.append((y ** 2).sum().detach())
        return y
net = Net()
def step(x): return net(x)
#> net.norms.clear()
#> Net.calls = 10
## losses_collected_on_the_class
class Penalized(nn.Module):
    collected = []
    def forward(self, x):
        self.collected.append((x ** 2).sum())
        return x * 2
net, weight = nn.Sequential(Penalized(), Penalized()), 0.1
def step(x):
    Penalized.collected.clear()
    return net(x).sum() + weight * sum(Penalized.collected)
#> weight = 1.0
## modules_iterated_and_typed
net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
def step(x): return net(x) * sum(isinstance(m, nn.Linear) for m in net.modules())
#> net.append(nn.Linear(3, 3))
#> net[1] = nn.Tanh()
## property_of_a_module
class Net(nn.Module):
    def __init__(self): super().__init__(); self.raw = nn.Parameter(rn.ones(3))
    @property
    def scale(self): return rn.exp(self.raw) * self.unit
    unit = 1.0
    def forward(self, x): return x * self.scale
net = Net()
def step(x): return net(x)
#> net.unit = 2.0
## ensemble_in_a_loop
nets = [nn.Linear(3, 2) for _ in range(3)]
def step(x): return sum(net(x) for net in nets) / len(nets)
#> nets.append(nn.Linear(3, 2))
#> nets.pop(0)
## one_step_for_many_models
nets = {name: nn.Linear(3, 2) for name in 'abc'}
opts = {name: optim.SGD(net.parameters(), lr=0.1) for name, net in nets.items()}
def step(x, name):
    net, opt = nets[name], opts[name]
    opt.zero_grad(); loss = (net(x) ** 2).mean(); loss.backward(); opt.step()
    return loss
def arguments(i): return tensor(1.0, 2.0, 3.0), 'abc'[i % 3]
#> opts['a'].param_groups[0]['lr'] = 0.5
## model_as_an_argument
nets = [nn.Linear(3, 2), nn.Linear(3, 2)]
def step(net, x): return net(x)
def arguments(i): return nets[i % 2], tensor(1.0, 2.0, 3.0)
#> nets[0].bias = None
""")

TRAINERS: Final = stories("""
## trainer_with_callbacks, traces: 5
class Callback:
    def on_step(self, t): pass
class Print(Callback):
    def on_step(self, t): print(f'step {t.n}')
class Stop(Callback):
    def __init__(self, at): self.at = at
    def on_step(self, t): t.stop = t.n >= self.at
class Trainer:
    def __init__(self): self.n, self.stop, self.callbacks, self.net = 0, False, [Print(), Stop(5)], nn.Linear(3, 2)
    def step(self, x):
        if self.stop: return x
        self.n += 1
        for c in self.callbacks: c.on_step(self)
        return self.net(x)
t = Trainer()
def step(x): return t.step(x)
#> t.callbacks.pop(0)
#> t.stop = False; t.callbacks.clear()
## trainer_hierarchy
class Base:
    def __init__(self): self.net, self.n = nn.Linear(3, 2), 0; self.opt = optim.SGD(self.net.parameters(), lr=0.1)
    def loss(self, x): return (self.net(x) ** 2).mean()
    def before(self, x): return x
    def step(self, x):
        self.opt.zero_grad(); loss = self.loss(self.before(x)); loss.backward(); self.opt.step(); self.n += 1
        return loss
class Robust(Base):
    gain = 0.5
    def loss(self, x): return super().loss(x) + self.gain * abs(self.net(x)).mean()
    def before(self, x): return super().before(x) * 2
t = Robust()
def step(x): return t.step(x)
#> t.gain = 0.1
#> t = Base()
## registry_and_factory_by_string
REGISTRY = {}
def register(name):
    def add(cls):
        REGISTRY[name] = cls
        return cls
    return add
@register('relu')
class A:
    def __call__(self, x): return rn.relu(x)
@register('square')
class B:
    def __call__(self, x): return x * x
def make(name): return REGISTRY[name]()
name = 'relu'
def step(x): return make(name)(x)
#> name = 'square'
#> REGISTRY['square'] = A
## activation_by_name
ACTIVATIONS, name = {'relu': F.relu, 'tanh': rn.tanh, 'swish': lambda x: x * rn.sigmoid(x)}, 'relu'
def step(x): return ACTIVATIONS[name](x)
#> name = 'swish'
#> ACTIVATIONS['swish'] = F.silu
## configuration_in_a_data_class
@dataclasses.dataclass
class Config:
    width: int = 3
    dropout: float = 0.0
    activation: str = 'relu'
    betas: tuple = (0.9, 0.99)
config, net = Config(), nn.Linear(3, 3)
def step(x): return getattr(F, config.activation)(net(x)) * config.betas[0] + config.width
#> config.activation = 'tanh'
#> config = dataclasses.replace(config, betas=(0.5, 0.5))
#> config.width = 7
## configuration_frozen_and_nested
@dataclasses.dataclass(frozen=True)
class Optim:
    lr: float = 0.1
@dataclasses.dataclass(frozen=True)
class Config:
    optim: Optim = Optim()
    scale: float = 2.0
config = Config()
def step(x): return x * config.optim.lr * config.scale
#> config = dataclasses.replace(config, optim=Optim(lr=1.0))
## configuration_as_attributes_of_a_dict
class AttrDict(dict):
    def __getattr__(self, name):
        try: value = self[name]
        except KeyError: raise AttributeError(name) from None
        return AttrDict(value) if isinstance(value, dict) else value
    def __setattr__(self, name, value): self[name] = value
config = AttrDict(model={'width': 3, 'gain': 2.0}, debug=False)
def step(x): return x * config.model.gain + config.model.width + getattr(config, 'extra', 0)
#> config['model']['gain'] = 5.0
#> config.extra = 1
## configuration_as_a_namespace
config = types.SimpleNamespace(gain=2.0, shift=types.SimpleNamespace(by=1.0))
def step(x): return x * config.gain + config.shift.by
#> config.shift.by = 3.0
#> config = types.SimpleNamespace(gain=1.0, shift=config.shift)
## configuration_as_an_enumeration
class Mode(enum.Enum):
    MEAN = 'mean'
    SUM = 'sum'
class Loss:
    def __init__(self, mode): self.mode = mode
    def __call__(self, x): return x.mean() if self.mode is Mode.MEAN else x.sum()
loss = Loss(Mode.MEAN)
def step(x): return loss(x)
#> loss.mode = Mode('sum')
## options_given_by_keywords
def block(x, *, gain=1.0, bias=0.0): return x * gain + bias
options = {'gain': 2.0}
def step(x): return block(x, **options)
#> options['bias'] = 1.0
#> options = {}
""")

FUNCTIONS: Final = stories("""
## partials
def scaled(x, gain, shift=0.0): return x * gain + shift
step_of = functools.partial(scaled, gain=2.0)
def step(x): return step_of(x)
#> step_of = functools.partial(scaled, gain=3.0, shift=1.0)
## partial_is_compiled
def scaled(gain, x): return x * gain
step = functools.partial(scaled, 2.0)
## decorated_by_a_wrapper_of_ones_own
calls = collections.Counter()
def counted(function):
    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        calls[function.__name__] += 1
        return function(*args, **kwargs)
    return wrapped
@counted
def forward(x): return x * 2
def step(x): return forward(x) * calls['forward']
#> calls.clear()
## wrapper_around_a_compiled_function
@rn.compile
def inner(x): return x * gain
gain, n = 2.0, 0
@functools.wraps(inner)
def wrapped(x):
    global n
    n += 1
    return inner(x) + n
def step(x): return wrapped(x)
#> gain = 3.0
## wrapper_around_a_module
net, n = nn.Linear(3, 2), 0
def logged(module):
    @functools.wraps(module.forward)
    def forward(x):
        global n
        n += 1
        return module(x)
    return forward
call = logged(net)
def step(x): return call(x)
#> net.bias = None
## static_and_class_methods
class Losses:
    gain = 2.0
    @staticmethod
    def l2(x): return (x ** 2).sum()
    @classmethod
    def scaled(cls, x): return cls.l2(x) * cls.gain
def step(x): return Losses.l2(x) + Losses().scaled(x)
#> Losses.gain = 3.0
## loss_object_with_a_history
class Loss:
    def __init__(self): self.history, self.weight = [], 1.0
    def __call__(self, x):
        loss = self.weight * (x ** 2).sum()
        self.history.append(loss.detach())
        return loss
loss = Loss()
def step(x): return loss(x)
#> loss.weight = 2.0
#> loss.history = []
## losses_keyed_by_functions
def l1(x): return abs(x).sum()
def l2(x): return (x ** 2).sum()
losses = {l1: 0.5, l2: 2.0}
def step(x): return sum(w * fn(x) for fn, w in losses.items())
#> losses[l1] = 5.0
#> del losses[l2]
## losses_as_pairs
def l1(x): return abs(x).sum()
def l2(x): return (x ** 2).sum()
losses = [(l1, 0.5), (l2, 2.0)]
def step(x): return sum(w * fn(x) for fn, w in losses)
#> losses[0] = (l1, 5.0)
#> losses.pop()
## pipeline_of_compiled_functions
@rn.compile
def encode(x): return rn.tanh(x * gain)
@rn.compile
def decode(h): return h / gain
gain = 2.0
def step(x): return decode(encode(x))
#> gain = 4.0
## nested_compile_with_state_inside
count = {'inner': 0, 'outer': 0}
@rn.compile
def inner(x):
    count['inner'] += 1
    return x * count['inner']
def step(x):
    count['outer'] += 1
    return inner(x) + inner(x)
#> inner(tensor(1.0, 2.0, 3.0))
#> count.update(inner=0)
## closure_made_by_a_factory
def make(gain):
    n = 0
    def step(x):
        nonlocal n
        n += 1
        return x * gain * n
    return step
step = make(2.0)
## lambdas_in_a_list
steps, gain = [lambda x: x * gain, lambda x: x + gain], 2.0
def step(x):
    for one in steps: x = one(x)
    return x
#> gain = 3.0
#> steps.reverse()
## default_arguments
layer = nn.Linear(3, 3)
def step(x, layers=(layer, rn.tanh), gain=2.0):
    for one in layers: x = one(x)
    return x * gain
#> layer.bias = None
## recursion_over_a_tree
tree = {'a': 1.0, 'b': {'c': 2.0, 'd': [3.0, 4.0]}}
def total(x, node):
    if isinstance(node, dict): return sum(total(x, v) for v in node.values())
    if isinstance(node, list): return sum(total(x, v) for v in node)
    return x * node
def step(x): return total(x, tree)
#> tree['b']['d'].append(5.0)
#> tree['e'] = 1.0
## generator_of_layers
layers = [nn.Linear(3, 3), nn.Tanh()]
def outputs(x):
    for layer in layers:
        x = layer(x)
        yield x
def step(x): return list(outputs(x))[-1] + sum(y.sum() for y in outputs(x))
#> layers.append(nn.Linear(3, 3))
## first_call_prepares
class Net:
    def __init__(self): self.mask = None
    def __call__(self, x):
        if self.mask is None: self.mask = rn.ones(x.shape) * 0.5
        return x * self.mask
net = Net()
def step(x): return net(x)
#> net.mask = None
## cached_property
class Net:
    def __init__(self, n): self.n = n
    @functools.cached_property
    def table(self): return rn.arange(self.n).astype(rn.float32)
    def __call__(self, x): return x + self.table
net = Net(3)
def step(x): return net(x)
#> net = Net(3)
## same_function_for_two_networks
a, b = nn.Linear(3, 2), nn.Linear(3, 2)
def loss(net, x): return (net(x) ** 2).sum()
def step(x): return loss(a, x) - loss(b, x)
#> b.bias = None
""")


@pytest.mark.parametrize("story", MODELS + TRAINERS + FUNCTIONS)
def test_like_eager(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
