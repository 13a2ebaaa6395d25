"""Random numbers, clocks and bytes of the system, in each form: calls run eagerly, and say where and what to do. Members
that a set gives by chance are those that it gave."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story, stories

CHANCE: Final = stories("""
## random_module, eager: <string>:1: Python's random numbers are drawn (Random.random); use rn.rand or rn.randint, or pass the number as an argument
def step(x): return x * random.random()
## random_imported, eager: <string>:2: Python's random numbers are drawn (Random.random); use rn.rand or rn.randint, or pass the number as an argument
from random import random as rnd, gauss
def step(x): return x * rnd() + gauss(0, 1)
## random_choice_shuffle, eager: <string>:3: Python's random numbers are drawn (Random.shuffle); use rn.rand or rn.randint, or pass the number as an argument
l = [1.0, 2.0, 3.0]
def step(x):
    random.shuffle(l)
    return x * random.choice(l) + random.randint(1, 3) + random.uniform(0, 1) + random.sample(l, 2)[0]
## random_instance, eager: <string>:2: Python's random numbers are drawn (Random.random); use rn.rand or rn.randint, or pass the number as an argument
r = random.Random(3)
def step(x): return x * r.random()
## random_instance_made_inside, eager: <string>:1: Python's random numbers are drawn (Random.__init__); use rn.rand or rn.randint, or pass the number as an argument
def step(x): return x * random.Random(3).random()
## random_instance_gauss_on_self, eager: <string>:3: Python's random numbers are drawn (Random.gauss); use rn.rand or rn.randint, or pass the number as an argument
class A:
    def __init__(self): self.r = random.Random(1)
    def f(self): return self.r.gauss(0, 1) + self.r.getrandbits(3)
a = A()
def step(x): return x * a.f()
## random_getstate, eager: <string>:1: Python's random numbers are drawn (Random.getstate); use rn.rand or rn.randint, or pass the number as an argument
def step(x): return x * (random.getstate()[1][0] % 7)
#> random.random()
## random_seed_inside, eager: <string>:2: Python's random numbers are drawn (Random.seed); use rn.rand or rn.randint, or pass the number as an argument
def step(x):
    random.seed(3)
    return x * 2
#> random.random()
## random_subclass, eager: <string>:4: Python's random numbers are drawn (Random.uniform); use rn.rand or rn.randint, or pass the number as an argument
class R(random.Random):
    def random(self): return 0.25
r = R()
def step(x): return x * r.random() + r.uniform(0, 2)
#> R.random = lambda self: 0.5
## random_system, eager: Python's random numbers are drawn
r = random.SystemRandom()
def step(x): return x * (r.random() < 2)
## random_passed_as_function, eager: <string>:1: Python's random numbers are drawn (Random.random); use rn.rand or rn.randint, or pass the number as an argument
def draw(f): return f()
def step(x): return x * draw(random.random) + sum(map(lambda _: random.random(), range(2)))
## np_legacy, eager: <string>:1: NumPy's random numbers are drawn (RandomState.rand); use rn.rand or rn.randn, or pass the array as an argument
def step(x): return x * float(np.random.rand()) + np.random.randint(5)
## np_legacy_seed, eager: <string>:2: NumPy's random numbers are drawn (seed); use rn.rand or rn.randn, or pass the array as an argument
def step(x):
    np.random.seed(0)
    return x * float(np.random.randn())
## np_legacy_arrays, eager: <string>:1: NumPy's random numbers are drawn (RandomState.normal); use rn.rand or rn.randn, or pass the array as an argument
def step(x): return x + rn.asarray(np.random.normal(size=3).astype(np.float32)) + rn.asarray(np.random.permutation(3).astype(np.float32))
## np_imported, eager: <string>:2: NumPy's random numbers are drawn (RandomState.rand); use rn.rand or rn.randn, or pass the array as an argument
from numpy.random import rand, uniform
def step(x): return x * float(rand()) + uniform()
## np_generator, eager: <string>:2: NumPy's random numbers are drawn by a Generator ('global g'); use rn.rand or rn.randn, or pass the array as an argument
g = np.random.default_rng(1)
def step(x): return x * g.random() + g.integers(5) + float(g.normal()) + float(g.choice([1.0, 2.0]))
## np_generator_attr, eager: <string>:3: NumPy's random numbers are drawn by a Generator ('global a.rng'); use rn.rand or rn.randn, or pass the array as an argument
class A:
    def __init__(self): self.rng = np.random.default_rng(1)
    def noise(self, n): return self.rng.standard_normal(n).astype(np.float32)
a = A()
def step(x): return x + rn.asarray(a.noise(3))
## np_generator_made_inside, eager: <string>:1: NumPy's random numbers are drawn (default_rng); use rn.rand or rn.randn, or pass the array as an argument
def step(x): return x * np.random.default_rng(1).random()
## np_generator_made_inside_unseeded, eager: <string>:1: NumPy's random numbers are drawn (default_rng); use rn.rand or rn.randn, or pass the array as an argument
def step(x): return x * (np.random.default_rng().random() < 2)
## np_bound_method, eager: <string>:2: NumPy's random numbers are drawn (Generator.random); use rn.rand or rn.randn, or pass the array as an argument
d = np.random.default_rng(1).random
def step(x): return x * d()
## np_generator_argument, eager: <string>:2: NumPy's random numbers are drawn by a Generator ('g'); use rn.rand or rn.randn, or pass the array as an argument
g = np.random.default_rng(1)
def step(x, g): return x * g.random()
def arguments(i): return tensor(1.0, 2.0), g
## np_shuffle_in_place, eager: <string>:3: NumPy's random numbers are drawn by a Generator ('global g'); use rn.rand or rn.randn, or pass the array as an argument
g, a = np.random.default_rng(1), np.arange(3.0)
def step(x):
    g.shuffle(a)
    return x * a[0]
## np_spawn, eager: <string>:2: NumPy's random numbers are drawn by a Generator ('global g'); use rn.rand or rn.randn, or pass the array as an argument
g = np.random.default_rng(1)
def step(x): return x * g.spawn(1)[0].random()
## np_randomstate, eager: <string>:2: NumPy's random numbers are drawn by a RandomState ('global r'); use rn.rand or rn.randn, or pass the array as an argument
r = np.random.RandomState(1)
def step(x): return x * r.rand() + r.choice(3)
## np_seedsequence, eager: <string>:1: NumPy's random numbers are drawn (SeedSequence.generate_state); use rn.rand or rn.randn, or pass the array as an argument
def step(x): return x * (np.random.SeedSequence(3).generate_state(1)[0] % 5)
## time_time, eager: <string>:1: a clock is read (time); read it around the call of the compiled function, or pass the time as an argument
def step(x): return x * (time.time() > 0)
## time_imported, eager: <string>:2: a clock is read (perf_counter); read it around the call of the compiled function, or pass the time as an argument
from time import perf_counter, monotonic, process_time, time_ns
def step(x): return x * (perf_counter() > 0) * (monotonic() > 0) * (process_time() > 0) * (time_ns() > 0)
## time_strftime, eager: <string>:1: a clock is read
def step(x): return x * len(time.strftime('%Y')) , len(time.ctime()), time.localtime().tm_year > 0
## time_gmtime_fixed, eager: <string>:1: a clock is read (gmtime); read it around the call of the compiled function, or pass the time as an argument
def step(x): return x * time.gmtime(0).tm_year, time.mktime((2000, 1, 1, 0, 0, 0, 0, 0, 0)) > 0
## time_sleep, eager: <string>:2: a clock is read (sleep); read it around the call of the compiled function, or pass the time as an argument
def step(x):
    time.sleep(0)
    return x * 2
## datetime_now, eager: <string>:2: a clock is read (datetime.now); read it around the call of the compiled function, or pass the time as an argument
import datetime
def step(x): return x * (datetime.datetime.now().year > 0), datetime.date.today().year > 0
## datetime_utcnow_alias, eager: <string>:2: a clock is read (datetime.now); read it around the call of the compiled function, or pass the time as an argument
from datetime import datetime as dt, timezone
def step(x): return x * (dt.now(timezone.utc).year > 0)
## uuid4, eager: <string>:2: random bytes of the system are drawn (urandom); pass them as an argument
import uuid
def step(x): return x * len(str(uuid.uuid4()))
## os_urandom, eager: <string>:2: random bytes of the system are drawn (urandom); pass them as an argument
import os
def step(x): return x * len(os.urandom(3))
## secrets_tokens, eager: are drawn
import secrets
def step(x): return x * len(secrets.token_bytes(3)) + len(secrets.token_hex(2)) + (secrets.randbelow(3) < 3) + secrets.choice([1])
## hash_of_text
def step(x): return x * (hash('a') % 7) + hash((1, 2)) % 5
## tempfile_name
import tempfile
def step(x): return x * (len(tempfile.gettempdir()) > 0)
## threading_event
import threading
e = threading.Event()
def step(x): return x * (2.0 if e.is_set() else 3.0)
#> e.set()
#> e.clear()
## timeit_default_timer, eager: <string>:2: a clock is read (perf_counter); read it around the call of the compiled function, or pass the time as an argument
from timeit import default_timer as timer
def step(x): return x * (timer() > 0)
## rn_random_is_captured
def step(x): return x * rn.rand((3,)) + rn.randn((3,))
#> rn.manual_seed(3)
""")

SETS: Final = stories("""
## member_popped_from_a_set
s = {'a', 'b', 'c'}
def step(x):
    k = s.pop()
    s.add(k)
    return x * len(k), len(s)
#> s.add('d')
#> s.clear(); s.add('z')
## members_moved_between_sets, traces: 9
todo, done = {1, 2, 3, 4, 5, 6, 7, 8, 9}, set()
def step(x):
    if not todo: done.clear(); todo.update(range(9))
    k = todo.pop()
    done.add(k)
    return x * k + len(done), sorted(todo)
#> todo.clear()
#> todo.add(100)
## objects_popped_from_a_set, traces: 6
class K:
    def __init__(self, v): self.v = v
    def __hash__(self): return self.v
    def __eq__(self, o): return self.v == o.v
    def __repr__(self): return f'K{self.v}'
s = {K(1), K(2), K(3)}
def step(x):
    k = s.pop()
    if len(s) < 2: s.update([K(1), K(2), K(3)])
    return x * k.v, len(s)
#> s.clear(); s.add(K(7))
""")


@pytest.mark.parametrize("story", CHANCE + SETS)
def test_chance_and_clocks(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
