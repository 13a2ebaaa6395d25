"""Faults that strangers reported, as programs: each class of them has a row.

A row that does not hold yet says so in its head.
"""

from __future__ import annotations

import functools
from typing import Any, Final

import pytest

import runnel as rn
from runnel import nn
from tests.compile.stories import Story, stories
from tests.compile.worlds import tensor

WAYS: Final = {
    "for": "sum(k.v for k in d)",
    "keys": "sum(k.v for k in d.keys())",
    "items": "sum(k.v * w for k, w in d.items())",
    "list": "list(d)[0].v",
    "sorted": "sorted(d, key=lambda k: k.v)[0].v",
    "zip": "sum(k.v * n for k, n in zip(d, (1, 2)))",
    "copied": "sum(k.v for k in {**d})",
    "unpacked": "[*d][0].v",
    "next": "next(iter(d)).v",
}
KINDS: Final = {
    "object": "class K: pass\na = K(); a.v = 1.0; a.last = None\n",
    "function": "def a(t): return t * 2\na.v = 1.0; a.last = None\n",
    "class": "class a: v = 1.0; last = None\n",
}
KEYS: Final = stories(
    "".join(
        f"## {kind}_{way}\n{made}d = {{a: 1}}\ndef step(x): return x * {read}\n#> a.v = 9.0\n"
        for kind, made in KINDS.items()
        for way, read in WAYS.items()
    )
)
WRITES: Final = stories("""
## counter_of_a_key
class K: n = 0
a = K(); d = {a: 1}
def step(x):
    for k in d: k.n += 1
    return x * 2
#> a.n = 0
## tensor_kept_by_a_key
class K: last = None
a = K(); d = {a: 1}
def step(x):
    for k in d: k.last = x * 2
    return x * 3
## keys_in_tuples, eager: C code is given a K
class K: pass
a = K(); a.v = 1.0; d = {('main', a): 1}
def step(x): return x * sum(k.v for _, k in d)
#> a.v = 9.0
## key_that_is_popped
class K: pass
a = K(); a.v = 1.0; d = {a: 1}
def step(x):
    k, w = d.popitem()
    d[k] = w
    return x * k.v
#> a.v = 9.0
## member_of_a_set
class K: pass
a = K(); a.v = 1.0; _members = {a}
def step(x): return x * sum(k.v for k in _members)
#> a.v = 9.0
""")

TRACED_AGAIN: Final = stories("""
## integer_tensor_over_counter, calls: 6
n = 0
def step(x):
    global n
    n += 1
    return x / n
def arguments(i): return (rn.asarray([1, 2]),)
## integer_tensor_compared_with_counter, calls: 6
n = 0
def step(x):
    global n
    n += 1
    return x > n
def arguments(i): return (rn.asarray([1, 2]),)
## tensor_full_of_a_counter, calls: 6
n = 0
def step(x):
    global n
    n += 1
    return x + rn.full((3,), n)
## tensor_of_a_counter, calls: 6
n = 0
def step(x):
    global n
    n += 1
    return x + rn.asarray(n)
## positions_from_a_counter, calls: 6
n = 0
def step(x):
    global n
    n += 1
    return x + (rn.arange(3) + n)
## counter_beside_half_tensors, calls: 6
n = 0
def step(x):
    global n
    n += 1
    return x.half() * n, x.to(rn.bfloat16) + n, x.half() / n, n - x.half(), x.half() > n
## counter_beside_bytes_and_truths, calls: 6
n = 0
def step(x):
    global n
    n += 1
    return x.to(rn.uint8) + n, (x > 0) * n, n - (x > 0), x.to(rn.int8) < n
def arguments(i): return (rn.asarray([0.0, 1.0, 2.0]),)
## counter_past_the_bytes, calls: 4, traces: 4
n = 253
def step(x):
    global n
    n += 1
    return x.to(rn.uint8) * n
def arguments(i): return (rn.asarray([0.0, 1.0]),)
## type_of_a_number_that_changes, calls: 6
state = {'n': 0}
def step(x):
    state['n'] += 1
    return x * sum(1 for v in state.values() if type(v) is dict)
## wrapped_module, calls: 6
net = nn.Linear(3, 2)
def step(x):
    @functools.wraps(net)
    def call(x): return net(x)
    return call(x)
## name_of_a_module, calls: 6
net = nn.Linear(3, 2)
def step(x): return net(x) * (2 if hasattr(net, '__name__') else 3)
## checkpointed_module, calls: 6
net = nn.Linear(3, 2)
def step(x): return rn.checkpoint(net)(x)
""")

STATE: Final = stories("""
## wrapper_around_a_compiled_function_is_compiled
inner = rn.compile(lambda x: x * gain); gain = 2.0
@functools.wraps(inner)
def step(x): return inner(x) + 1
#> gain = 3.0
## function_with_attributes_of_ours
def step(x): return x * step.function
step.function, step._entry, step._options = 2.0, 1, 2
## optimizer_step_compiled_alone
net = nn.Linear(3, 1); opt = optim.SGD(net.parameters(), lr=0.1)
def step(x):
    opt.step()
    return x
def arguments(i):
    net(tensor(1.0, 2.0, float(i))).sum().backward()
    return (tensor(1.0),)
## weights_drawn_by_values, eager: orthogonal_() computes with the values of what it draws
net = nn.Linear(3, 3)
def step(x):
    nn.init.trunc_normal_(net.weight, std=0.1) if x is None else nn.init.orthogonal_(net.weight)
    return x * net.weight.sum()
## mask_from_outside_as_a_tensor
mask = np.array([True, False, True])
def step(x): return x[rn.asarray(mask)], rn.stack([x, x])[:, rn.asarray(mask)]
#> mask = np.array([False, True, True])
#> mask[1] = False
## rest_of_an_iterator_that_starts_over, eager: an It is unpacked with a star
class It:
    def __iter__(self):
        self.n = 0
        return self
    def __next__(self):
        self.n += 1
        if self.n > 3: raise StopIteration
        return self.n
it = It()
def step(x):
    a, *b = it
    return x * a * len(b)
## context_manager_that_is_left_open, eager: the generator ctx is left open
log = []
@contextlib.contextmanager
def ctx():
    try: yield 2
    finally: log.append(9)
def step(x):
    x = x * ctx().__enter__()
    return x * (1 + len(log))
## generator_that_is_closed_by_the_loop
log = []
def numbers():
    try: yield from (1.0, 2.0)
    finally: log.append(9)
def step(x):
    for n in numbers(): break
    return x * n
## result_that_is_kept_is_the_same_object
losses = []
def step(x):
    loss = (x * x).sum()
    losses.append(loss)
    return loss
def arguments(i): return (tensor(1.0 if not losses else 2.0),)
## text_of_a_dataclass
@dataclasses.dataclass
class Config: rate: float = 0.1; name: str = 'a'
config = Config()
def step(x):
    print(config, repr(config))
    return x * len(str(config))
#> config.name = 'abc'
## members_of_enums_as_keys
class Mode(str, enum.Enum): A = 'exp'; B = 'tanh'
class Level(enum.IntEnum): LOW = 1; HIGH = 2
mode, level = Mode.A, Level.LOW
gains = {Mode.A: 1.0, Mode.B: 2.0, Level.LOW: 3.0, 2: 4.0}
def step(x):
    table = {mode: 2}
    table['exp'] = 5
    x = x * gains[mode] * gains[level] * table[mode] * (1 + (mode in {Mode.B})) + hash(level)
    return getattr(x, mode)()
#> mode = Mode.B
#> level = Level.HIGH
#> gains['exp'] = 7.0; mode = Mode.A
## unpacked_object_is_asked_for_its_length, eager: a custom __len__
class Rows:
    asked = 0
    def __len__(self):
        self.asked += 1
        return 1
    def __iter__(self): yield 1
rows = Rows()
def count(*values): return len(values)
def step(x): return x * count(*rows)
## interrupt_raised_by_the_function
n = 0
def body(x):
    global n
    n += 1
    raise KeyboardInterrupt
def step(x):
    try: return body(x)
    except KeyboardInterrupt: return x * n
## index_of_slices_from_outside
parts = (slice(0, None), slice(0, 2))
def step(x): return rn.stack([x, x + 1])[parts]
#> parts = (slice(1, None), slice(0, 2))
#> parts = (slice(1, None), slice(1, 3))
#> parts = (0, slice(1, 3))
## class_of_a_python_module
import types
module = types.ModuleType('plain')
class Kind(types.ModuleType): pass
def step(x): return x * (2.0 if type(module).__name__ == 'Kind' else 1.0)
#> module.__class__ = Kind
## training_set_on_the_class
class Net(nn.Module):
    def forward(self, x): return x * 2 if self.training else -x
net = Net()
def step(x): return net(x)
#> Net.training = False
#> del Net.training
## attributes_written_by_dict_update, fails: the clock of Modules does not tick
class Net(nn.Module):
    def __init__(self): super().__init__(); self.gain = 2.0
    def forward(self, x): return x * self.gain
net = Net()
def step(x): return net(x)
#> dict.update(vars(net), gain=5.0)
#> exec('global gain\\ngain = 7.0', vars(net)); vars(net).pop('__builtins__', None)
## attributes_shared_by_two_objects
class Net(nn.Module):
    def __init__(self): super().__init__(); self.gain = 2.0
    def forward(self, x): return x * self.gain
net, other = Net(), Net()
other.__dict__ = net.__dict__
def step(x): return net(x) + other(x)
#> other.gain = 5.0
""")


@pytest.mark.parametrize("story", KEYS + WRITES + TRACED_AGAIN + STATE)
def test_like_eager(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)


def fails(reason: str) -> Any:
    """Mark a test that does not hold yet."""
    return pytest.mark.xfail(strict=True, reason=reason)


class Scaled(rn.autograd.Function):
    gain = 2.0

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * Scaled.gain

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * Scaled.gain


def checkpointed(x: Any) -> Any:
    return rn.checkpoint(lambda x: x * x * Scaled.gain, x)


@pytest.mark.filterwarnings("ignore:.*a derivative in Python reads 'Scaled.gain'")
@pytest.mark.parametrize("function", [Scaled.apply, checkpointed], ids=["rule", "checkpoint"])
def test_a_rule_in_python_reads_state_when_it_runs(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def gradient(f: Any) -> Any:
        monkeypatch.setattr(Scaled, "gain", 2.0)
        x = tensor(1.0, 2.0).requires_grad_(True)
        y = f(x)
        monkeypatch.setattr(Scaled, "gain", 5.0)
        y.sum().backward()
        return x.grad.tolist()

    compiled = rn.compile(lambda x: function(x))
    gradient(compiled)
    assert gradient(compiled) == gradient(function)


@pytest.mark.parametrize("wrap", [rn.compile, rn.uncompiled])
def test_a_wrapper_runs_its_own_function(wrap: Any) -> None:
    inner = wrap(lambda x: x * 2)

    @functools.wraps(inner)
    def outer(x: Any) -> Any:
        return inner(x) + 1

    assert wrap(outer)(tensor(1.0)).tolist() == [3.0]


def test_a_compiled_model_is_used_as_a_model() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5))
    net: Any = rn.compile(model)
    assert [p is q for p, q in zip(net.parameters(), model.parameters(), strict=True)] == [True, True]
    assert list(net.state_dict()) == list(model.state_dict())
    net.eval()
    assert not model[1].training
    net.train()
    assert model.training
    net.to(rn.float64)
    assert model[0].weight.dtype == rn.float64


@fails("what came before a KeyboardInterrupt is taken back")
def test_an_interrupt_that_the_function_raises_leaves_what_it_did() -> None:
    done: list[int] = []

    def step(x: Any) -> Any:
        done.append(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rn.compile(step)(tensor(1.0))
    assert done == [1]


@pytest.mark.filterwarnings("ignore:.*the function has custom built-in names")
def test_equal_code_with_other_builtins_is_another_function() -> None:
    text = "def step(x): return x * len('ab')"
    first: dict[str, Any] = {}
    exec(text, first)
    second: dict[str, Any] = {"__builtins__": {"len": lambda _: 7}}
    exec(compile(text, "<string>", "exec"), second)
    assert rn.compile(first["step"])(tensor(1.0)).tolist() == [2.0]
    assert rn.compile(second["step"])(tensor(1.0)).tolist() == [7.0]
