"""Bound methods, functions and classes that are compared, found in containers, and looked up."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story, stories

CASES: Final = """
## compared_with_the_method_of_another_object
class Owner:
    def go(self): pass
o = Owner(); kept = o.go
def step(x): return x * (kept == o.go) + (kept != o.go) * 3
#> o = Owner()
#> kept = o.go

## compared_as_kept_ones
class Owner:
    def go(self): pass
    def stop(self): pass
o = Owner(); a, b = o.go, Owner().go
def step(x): return x * (a == b) + (a != o.go) * 3 + (a.__func__ == b.__func__) * 5
#> b = o.go
#> a = o.stop
#> b = o.stop
#> o = Owner()

## of_objects_that_equal_all
class Owner:
    def __eq__(self, other): return True
    def go(self): pass
a, b = Owner(), Owner()
def step(x): return x * (a.go == b.go)
#> b = a
#> b = Owner()

## found_in_a_list
class Owner:
    def go(self): pass
    def stop(self): pass
o = Owner(); handlers = [o.go]
def step(x): return x * (o.go in handlers) + handlers.count(o.go) + (handlers.index(o.go) if o.go in handlers else 7)
#> o = Owner()
#> handlers.append(o.go)
#> handlers[0] = o.stop
#> handlers.clear()

## subscribed_and_unsubscribed
class Owner:
    def go(self): pass
o = Owner(); handlers = []
def step(x):
    if o.go in handlers:
        handlers.remove(o.go)
    else:
        handlers.append(o.go)
    return x * len(handlers)
#> o = Owner()
#> handlers.append(o.go)

## inside_of_tuples_and_lists
class Owner:
    def go(self): pass
o = Owner(); a, b = o.go, Owner().go
def step(x): return x * ((a, 1) == (b, 1)) + ([o.go] == [a]) * 3
#> b = a
#> o = Owner()
#> a = o.go

## of_lists
a, b, kept = [], [], [].append
def step(x): return x * (a.append == b.append) + (a.append == kept) * 3
#> b = a
#> kept = a.append
#> b = []
#> kept = a.extend

## of_c_special_methods
class Owner: pass
a, b = Owner(), Owner()
kept = a.__eq__
def step(x): return x * (a.__str__ == b.__str__) + (a.__eq__ == kept) * 3
#> b = a
#> kept = b.__ne__
#> b = Owner()

## functions_in_lists_and_dicts
def first(x): return x
def second(x): return x * 2
now, handlers, table = first, [abs], {}
def step(x): return now(x) * (now in handlers) + handlers.count(now) + table.get(now, 7) + (handlers == [first]) * 9
#> handlers.append(now)
#> now = second
#> table[now] = 2
#> handlers[:] = [first]

## builtin_functions
now = abs
def step(x): return x * (now == abs) + (now in (abs, len)) * 3 + (now is max) * 5
#> now = len
#> now = max

## each_callback_once
class Owner:
    def go(self):
        global n
        n += 100
def increment():
    global n
    n += 1
n, done, owner = 0, [], Owner()
callbacks = [increment]
def step(x):
    for callback in list(callbacks):
        if callback not in done:
            done.append(callback)
            callback()
    return x * len(done) + n
#> done.clear()
#> callbacks.append(owner.go)
#> owner = Owner(); callbacks.append(owner.go)
#> done.pop()

## methods_as_partial_and_self
class Owner:
    def __init__(self, k): self.k = k
    def go(self): return self.k
kept = Owner(2).go
def step(x): return x * kept.__self__.k + (kept.__func__ is Owner.go) + kept()
#> kept = Owner(5).go
#> kept.__self__.k = 7
#> Owner.go = lambda self: 0

## copied_with_the_object_they_belong_to
class Owner:
    k = 1
    def go(self): return self.k
class Holder: pass
owner, holder = Owner(), Holder()
holder.callback, kept, table = owner.go, functools.partial(owner.go), collections.defaultdict(owner.go)
def step(x):
    copies = copy.deepcopy(holder), copy.deepcopy([owner.go]), copy.deepcopy(kept), copy.deepcopy(table)
    return x * copies[0].callback() + copies[1][0]() + copies[2]() + copies[3]["new"]
#> owner.k = 5
#> holder.callback = Owner().go
#> kept.func.__self__.k = 7
#> table.default_factory = Owner().go
"""


@pytest.mark.parametrize("story", stories(CASES))
def test_a_story(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
