"""Refusals of capture: each class of program runs eagerly, with eager's results, after one sentence that says why.

One row for each class of refusal. The text of a row is a part of its sentence.
"""

from __future__ import annotations

import time
import warnings
from typing import Final

import pytest

import runnel as rn
from runnel.core.errors import CaptureWarning
from tests.compile.stories import Story, stories
from tests.compile.worlds import tensor

OUTSIDE: Final = stories("""
## clock, eager: a clock is read (perf_counter); read it around the call
times = []
def step(x):
    times.append(time.perf_counter() > 0)
    return x * 2
## date, eager: a clock is read
def step(x): return x * (1 if datetime.datetime.now().year > 2000 else 2)
import datetime
## random_numbers_of_python, eager: Python's random numbers are drawn (Random.random); use rn.rand or rn.randint
def step(x): return x * random.random()
## random_numbers_of_numpy, eager: NumPy's random numbers are drawn by a Generator ('global g'); use rn.rand or rn.randn
g = np.random.default_rng(0)
def step(x): return x * g.random()
## mixed_up_inside, eager: NumPy's random numbers are drawn
def step(x):
    weight = np.random.beta(1.0, 1.0)
    return weight * x + (1 - weight) * x[rn.asarray(np.random.permutation(3))]
## random_bytes_of_the_system, eager: random bytes of the system are drawn
import os
def step(x): return x * len(os.urandom(4))
## file, eager: a file is read
def step(x):
    with open('/dev/null') as f: return x + len(f.read())
## file_system, eager: the file system is asked
import os
def step(x): return x * (2 if os.path.exists('/') else 3)
## text_that_is_run, eager: runs a text
def step(x): return x * eval('2')
## all_names_of_a_module, eager: globals()
gain = 2.0
def step(x): return x * globals()['gain']
## lock, eager: a lock is taken
lock = threading.Lock()
def step(x):
    with lock: return x * 2
## queue_of_threads, eager: perhaps
q = queue.Queue()
def step(x):
    q.put(1)
    return x * q.get()
## iterator_made_outside, eager: an iterator made outside
rows = iter(range(100))
def step(x): return x * next(rows)
## generator_made_outside, eager: an iterator made outside
rows = (i for i in range(100))
def step(x): return x * next(rows)
## loader_read_inside, eager: an iterator made outside
loader = iter([tensor(1.0), tensor(2.0)] * 20)
def step(x): return x + next(loader)
## asynchronous_function, eager: asynchronous
async def double(x): return x * 2
def step(x):
    try: double(x).send(None)
    except StopIteration as end: return end.value
## context_variable, eager: perhaps
import contextvars
mode = contextvars.ContextVar('mode', default=2.0)
def step(x): return x * mode.get()
#> mode.set(3.0)
""")

OBJECTS: Final = stories("""
## hash_that_changes_something, eager: perhaps
class Key:
    asked = 0
    def __hash__(self):
        Key.asked += 1
        return 1
    def __eq__(self, other): return True
table, key = {}, Key()
def step(x): return x * len({key: 1})
## comparison_called_by_c, eager: perhaps
class Row:
    def __init__(self, n): self.n = n
    def __lt__(self, other): return self.n * sign < other.n * sign
rows, sign = [Row(2), Row(1)], 1
def step(x): return x * sorted(rows)[0].n
#> sign = -1
#> rows[0].n = 0
## metaclass_that_looks_up, eager: perhaps
class Meta(type):
    def __getattribute__(cls, name): return 3.0 if name == 'gain' else super().__getattribute__(name)
class K(metaclass=Meta): pass
def step(x): return x * K.gain
#> Meta.__getattribute__ = lambda cls, name: 4.0 if name == 'gain' else type.__getattribute__(cls, name)
## metaclass_that_checks_instances, eager: perhaps
class Meta(type):
    allowed = True
    def __instancecheck__(cls, value): return cls.allowed
class K(metaclass=Meta): pass
def step(x): return x * (2.0 if isinstance(x, K) else 3.0)
#> Meta.allowed = False
## abstract_registry, eager: perhaps
class Base(abc.ABC): pass
class Own: pass
own = Own()
def step(x): return x * (2.0 if isinstance(own, Base) else 3.0)
#> Base.register(Own)
## attribute_lookup_of_its_own, eager: perhaps
class K:
    gain = 2.0
    def __getattribute__(self, name): return object.__getattribute__(self, name) if name != 'gain' else 5.0 * scale
k, scale = K(), 1.0
def step(x): return x * k.gain
#> scale = 2.0
## class_made_inside, eager: perhaps
def step(x):
    class K:
        gain = 2.0
    return x * K.gain
## class_that_leaves, eager: a class is made
def step(x):
    class K:
        def gain(self): return 2.0
    made.append(K)
    return x * K().gain()
made = []
## function_made_inside_that_leaves, eager: perhaps
made = []
def step(x):
    made.append(lambda v: v * 2)
    return made[-1](x)
## generator_that_leaves, eager: leaves it
made = []
def step(x):
    made.append(i for i in range(3))
    return x * 2
## object_with_a_finalizer, eager: __del__
class K:
    def __del__(self): pass
def step(x):
    K()
    return x * 2
## weak_reference_to_what_was_let_go, eager: a weak reference is asked
class K: pass
k = K(); r = weakref.ref(k)
def step(x):
    global k
    k = K()
    return x * (2 if r() is None else 3)
## weak_set, eager: weak reference
class K: pass
k = K(); members = weakref.WeakSet([k])
def step(x): return x * len(list(members))
## inherited_container, eager: perhaps
class Rows(list):
    def __getitem__(self, i): return super().__getitem__(i) * 2
rows = Rows([1.0, 2.0])
def step(x): return x * rows[0]
#> rows.append(3.0); rows[0] = 5.0
## cache_of_functions, eager: perhaps
@functools.lru_cache(maxsize=None)
def table(n): return n * gain
gain = 2.0
def step(x): return x * table(3)
#> table.cache_clear(); gain = 3.0
## cache_counted, eager: perhaps
@functools.lru_cache(maxsize=None)
def table(n): return n * 2
def step(x): return x * table(3) + table.cache_info().hits
## address_of_an_object, eager: id() of a value made
def step(x): return x * (id([1]) > 0)
## c_function_that_is_not_known, eager: is written in C
import zlib
def step(x): return x * zlib.crc32(b'abc')
""")

ARRAYS: Final = stories("""
## array_from_outside_is_written, eager: is set
a = np.zeros(3, np.float32)
def step(x):
    a[0] += 1
    return x + rn.asarray(a)
## computed_by_numpy, eager: perhaps
a = np.ones(3, np.float32)
def step(x): return x * float(np.tanh(a).mean())
#> a[0] = 5.0
## settings_of_numpy, eager: perhaps
def step(x):
    with np.errstate(divide='ignore'): return x * float(np.float32(1.0))
## parameters_made_at_each_call, eager: was made inside
def step(x): return nn.Linear(3, 2)(x)
## named_tuple_as_a_key, eager: a dict or set is given a K
K = collections.namedtuple('K', 'a b')
table = {K(1, 'x'): 2.0}
def step(x): return x * table[K(1, 'x')]
## subclasses_of_a_class, eager: Base.__subclasses__() is written in C
class Base: pass
def step(x): return x * (1 + len(Base.__subclasses__()))
## items_of_a_class, eager: items() of a mappingproxy
class Config: rate = 2.0
def step(x): return x * len([k for k, _ in vars(Config).items()])
## class_with_a_parameter, eager: __class_getitem__() is written in C
class Box(typing.Generic[typing.TypeVar('T')]):
    def __init__(self, v): self.v = v
def step(x): return x * Box[int](3).v
## objects_compared_in_lists, eager: C code is given a V
class V:
    def __init__(self, v): self.v = v
    def __eq__(self, other): return self.v == other.v
def step(x): return x * ([V(1)] == [V(1)])
## attribute_deleted, eager: last of a Net is deleted; set it to None
class Net(nn.Module):
    def forward(self, x):
        self.last = x
        del self.last
        return x * 2
net = Net()
def step(x): return net(x)
## global_name_deleted, eager: the global last is deleted
def step(x):
    global last
    last = x
    del last
    return x * 2
## rate_of_a_group_set_inside, eager: 'lr' of a group is set
w = nn.Parameter(rn.ones(3)); opt = optim.SGD([w], lr=1.0)
def step(x):
    opt.param_groups[0]['lr'] *= 0.5
    (w * x).sum().backward(); opt.step(); opt.zero_grad()
    return x
## rate_read_after_its_schedule_was_stepped, eager: perhaps
w = nn.Parameter(rn.ones(3)); opt = optim.SGD([w], lr=1.0); s = lr_scheduler.ExponentialLR(opt, 0.5)
def step(x):
    (w * x).sum().backward(); opt.step(); opt.zero_grad(); s.step()
    return x * opt.param_groups[0]['lr']
## text_of_a_tensor_that_is_kept, eager: perhaps
lines = []
def step(x):
    lines.append(f'{x.sum()}')
    return x * 2
## memory_of_a_result_is_asked_for, eager: perhaps
def step(x): return x * (x.reshape(3, 1).T * 2).stride()[0]
## gradient_set_to_a_tensor_from_outside, eager: itself; set it to a copy
w = nn.Parameter(rn.ones(3)); g = rn.ones(3)
def step(x):
    w.grad = g
    return x * 2
""")


@pytest.mark.parametrize("story", OUTSIDE + OBJECTS + ARRAYS)
def test_runs_eagerly(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)


def test_the_sentence_is_said_once_and_names_the_line() -> None:
    def step(x: rn.Tensor) -> rn.Tensor:
        return x * (time.perf_counter() > 0)

    compiled = rn.compile(step)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            compiled(tensor(1.0))
    (said,) = caught
    assert said.category is CaptureWarning
    assert "test_refusals.py:" in str(said.message)
