"""Programs that read and change things outside: names, attributes, items, arguments, tensors and views."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.stories import Story, stories

READS: Final = stories("""
## global_attribute_and_class
class Model:
    shift = 0.0
    def __init__(self): self.gain = 2.0
    def __call__(self, x): return x * self.gain * scale + self.shift
model, scale = Model(), 1.0
def step(x): return model(x)
#> model.gain = 3.0
#> scale = 2.0
#> Model.shift = 1.0
## values_that_were_there_before, traces: 2
scale = 1.0
def step(x): return x * scale if scale > 0 else x
#> scale = -1.0
#> scale = 1.0
#> scale = -1.0
## name_that_comes_later
def step(x): return x * 2 if not hasattr(model, 'gain') else x * model.gain
class Model: pass
model = Model()
#> model.gain = 3.0
## branch_on_an_argument, traces: 4
def step(x, negate): return (-x if negate else x) * (2 if flag else 1)
flag = True
def arguments(i): return tensor(1.0, 2.0), i % 2 == 0
#> flag = False
## numbers_given_as_arguments, traces: 5
def step(x, n=2, rate=0.5): return x * n * rate if rate > 0 else -x * n
def arguments(i): return tensor(1.0, 2.0), 2 + i % 2, 0.1 * (i - 1)
## texts_given_as_arguments, traces: 3
def step(x, how='sum'): return getattr(x, how)()
def arguments(i): return tensor(1.0, 2.0), ('sum', 'mean')[i % 2]
## methods_of_two_objects, traces: 3
class Scaler:
    def __init__(self, by, shift): self.by, self.shift = by, shift
    def apply(self, x): return x * self.by + self.shift
a, b = Scaler(2.0, tensor(1.0)), Scaler(3.0, tensor(2.0))
def step(which, x): return which.apply(x)
def arguments(i): return (a, b)[i % 2], tensor(1.0)
#> a.shift = tensor(10.0)
## arrays_and_tensors_from_outside
w, array = tensor(1.0, 2.0), np.array([1, 2], np.float32)
def step(x): return x * w + rn.asarray(array)
def arguments(i): return (tensor(3.0, 4.0),)
#> w = tensor(5.0, 6.0)
#> array[1] = 7
#> w = tensor(5.0, 6.0, 7.0)[:2]
## attributes_written_through_the_dict
class Model(nn.Module):
    def __init__(self): super().__init__(); self.mode, self.inner = 'a', nn.Identity()
    def forward(self, x): return self.inner(x) * 2 if self.mode == 'a' else x
model = Model()
def step(x): return model(x)
#> model.__dict__['mode'] = 'b'
#> vars(model).update(mode='a', inner=nn.ReLU())
## what_is_not_read_may_change, traces: 1
class Trainer: pass
t = Trainer(); t.gain, t.figure, t.losses = 2.0, None, []
def step(x): return x * t.gain
#> t.figure = object
#> t.losses.append(1.0); t.other = 3
## lists_of_options
layers = ['double', 'shift']
table = {'double': lambda x: x * 2, 'shift': lambda x: x + 1}
def step(x):
    for name in layers: x = table[name](x)
    return x
#> layers.append('double')
#> table['shift'] = lambda x: x - 1
#> layers[:] = []
""")

WRITES: Final = stories("""
## everything_that_counts
class Holder: hits = 0
holder, table, log, count = Holder(), {'n': 0}, [], 0
def step(x, calls=[]):
    global count
    count += 1
    log.append(x.shape)
    table['n'] += 1
    holder.hits += 1
    Holder.hits += 1
    calls.append(1)
    return x
#> table['n'] = 10
#> del holder.hits
## attribute_of_a_layer
net = nn.Linear(3, 2)
def step(x):
    net.last = x * 2
    return net(x)
#> net.last = None
## arguments_are_changed
def step(x, out, table):
    out.append(x * 2)
    table['y'] = table['x'] + 1
    return len(out)
def arguments(i): return tensor(float(i)), [], {'x': tensor(1.0)}
## tensor_given_is_written
def step(x):
    x[0] = 5
    x[1:] *= 2
    return x * 2
## tensor_from_outside_is_written
saved = tensor(1.0, 2.0, 3.0)
def step(x):
    saved[0] = 5
    saved.add_(x)
    return x * saved
#> saved[1] = 7.0
#> saved = rn.ones(3)
## variable_read_before_and_after
v = rn.Variable([1.0, 2.0, 3.0])
def step(x):
    before = v + 0
    v.assign(v + x)
    after = v + 0
    v.assign(v * 2)
    return before, after, v.read()
#> v.assign([0.0, 0.0, 0.0])
## views_share_memory, eager: a view of it is held outside
base = rn.arange(9.0).reshape(3, 3) + 0.0; held = {'view': base}
def step(x):
    base[0] = x
    held['view'][0] += 1.0
    return held['view'] @ x
#> held['view'] = base.T
#> held['view'] = base[:, :]
#> held['view'] = base
## global_view_shares_memory, eager: a view of it is held outside
base = rn.arange(9.0).reshape(3, 3) + 0.0; view = base[0]
def step(x):
    base.mul_(0.5)
    return view + x
#> view = base[:, 1]
## aliases_are_returned
def step(x):
    y = x * 3
    return y + 1, y, x, y, x[1:], x.reshape(3, 1)
## result_is_given_back
last = tensor(1.0, 2.0, 3.0)
def step(x):
    global last
    last = last * 0.5 + x
    return last
#> last = last * 2
## not_a_number_as_a_key, eager: perhaps
nan = float('nan'); table, seen = {}, set()
def step(x):
    table[nan] = len(table); seen.add(nan)
    return x, len(table), len(seen)
#> nan = float('nan')
""")


@pytest.mark.parametrize("story", READS + WRITES)
def test_like_eager(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
