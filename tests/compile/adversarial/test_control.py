"""Exceptions, patterns, loops and recursion in odd places."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story, stories

CONTROL: Final = stories("""
## exceptions_as_loop_exit
class Done(Exception):
    def __init__(self, v): self.v = v
limit = 3
def search(values):
    for i, v in enumerate(values):
        if v > limit: raise Done(i)
    raise Done(-1)
values = [1, 2, 3, 4, 5]
def step(x):
    try:
        search(values)
    except Done as d:
        return x * d.v
#> limit = 1
#> values[0] = 9
## exception_chain
mode = 'key'
def load():
    try:
        return {}[mode] if mode == 'key' else [][0]
    except KeyError as e:
        raise ValueError('bad') from e
def step(x):
    try:
        load()
    except ValueError as e:
        return x * len(e.__cause__.args[0])
    except IndexError as e:
        return x * 100, e.__context__ is None
#> mode = 'index'
#> mode = 'key'
## finally_with_return
flag, log = True, []
def f():
    try:
        if flag: return 1.0
        raise ValueError
    except ValueError:
        return 2.0
    finally:
        log.append(flag)
def step(x): return x * f()
#> flag = False
## else_of_loops_and_try
values = [1, 2, 3]
def step(x):
    for v in values:
        if v == 9: break
    else:
        x = x * 2
    try:
        values.index(3)
    except ValueError:
        return x - 1
    else:
        x = x + 5
    return x
#> values.append(9)
#> values.remove(3)
## error_after_effects
state = {'n': 0, 'bad': 2}
def step(x):
    state['n'] += 1
    if state['n'] % 5 == state['bad']:
        state['failed'] = state['n']
        raise RuntimeError(f"step {state['n']}")
    return x * state['n']
#> state['bad'] = 4
#> del state['bad']
## exception_group, eager: no ValueError can be watched
kinds = [ValueError('a'), KeyError('b')]
def step(x):
    try:
        raise ExceptionGroup('g', list(kinds))
    except* ValueError as g:
        x = x * len(g.exceptions)
    except* KeyError as g:
        x = x + len(g.exceptions)
    return x
#> kinds.append(ValueError('c'))
## error_notes
word = 'abc'
def step(x):
    e = ValueError('v')
    e.add_note(word)
    return x * len(e.__notes__[0])
#> word = 'a'
## assertion_on_a_flag
limit = 5
def step(x):
    assert len(x) < limit, f'too long: {limit}'
    return x * 2
#> limit = 2
#> limit = 50
## suppress_errors
table = {'a': 1.0}
def step(x):
    y = x
    with contextlib.suppress(KeyError, IndexError):
        y = y * 2
        y = y + table['b']
        y = y * 100
    return y
#> table['b'] = 5.0
#> table.clear()
## context_manager_class_with_state
class Scope:
    depth, log = 0, []
    def __init__(self, name): self.name = name
    def __enter__(self):
        Scope.depth += 1
        self.log.append(('in', self.name))
        return self
    def __exit__(self, kind, value, trace):
        Scope.depth -= 1
        self.log.append(('out', kind.__name__ if kind else None))
        return kind is ZeroDivisionError
fail, outer = False, Scope('outer')
def step(x):
    with outer, Scope('inner') as s:
        x = x * s.depth
        if fail: 1 / 0
    return x + Scope.depth
#> fail = True
#> Scope.depth = 5
## exit_stack
log = []
names = ['a', 'b']
def step(x):
    with contextlib.ExitStack() as stack:
        for n in names:
            stack.callback(log.append, n)
        stack.push(lambda *e: log.append('push'))
        y = x * len(log)
    return y
#> names.append('c')
#> log.clear()
## reentrant_context_object
class Mode:
    def __init__(self): self.stack = [1.0]
    @contextlib.contextmanager
    def use(self, v):
        self.stack.append(v)
        try: yield self.stack[-1]
        finally: self.stack.pop()
mode = Mode()
def step(x):
    with mode.use(2.0) as a:
        with mode.use(3.0) as b:
            x = x * a * b * len(mode.stack)
    return x * mode.stack[-1]
#> mode.stack[0] = 4.0
#> mode.stack.insert(0, 9.0)
## context_decorator
class Counted(contextlib.ContextDecorator):
    n = 0
    def __enter__(self): Counted.n += 1
    def __exit__(self, *e): return False
@Counted()
def f(x): return x * Counted.n
def step(x): return f(x)
#> Counted.n = 50
## nullcontext_and_closing
class Thing:
    closed = 0
    def close(self): self.closed += 1
thing, use = Thing(), True
def step(x):
    with (contextlib.closing(thing) if use else contextlib.nullcontext(None)) as t:
        return x * (1.0 if t is None else 2.0) + thing.closed
#> use = False
#> thing = Thing()
## match_on_classes, traces: 12
@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0
class Named:
    __match_args__ = ('name',)
    def __init__(self, name): self.name = name
item = Point(1.0, 2.0)
def step(x):
    match item:
        case Point(x=1.0, y=v): return x * v
        case Point(a, b) if a > b: return x * a - b
        case Named('abc' as n): return x * len(n)
        case Named(n): return x - len(n)
        case [a, [b, *c]]: return x * a + b + len(c)
        case {'k': int(v) | float(v), **rest}: return x * v + len(rest)
        case str() as s if s: return x + len(s)
        case None | False: return -x
        case _: return x
#> item.y = 5.0
#> item = Point(3.0, 1.0)
#> item = Named('abc')
#> Named.__match_args__ = ()
#> Named.__match_args__ = ('name',); item.name = 'zz'
#> item = [1.0, (2.0, 3, 4)]
#> item = {'k': 2.0, 'l': 0}
#> item['k'] = 'no'
#> item = 'text'
#> item = False
#> item = 0
## match_on_constants_by_name
class Mode: FAST, SLOW = 'fast', 'slow'
mode = 'fast'
def step(x):
    match mode:
        case Mode.FAST: return x * 2
        case Mode.SLOW: return x * 3
    return x
#> mode = 'slow'
#> Mode.SLOW = 'never'
#> Mode.FAST = 'slow'
## loop_over_a_changing_list
work, done = [3, 1, 2], []
def step(x):
    for w in work:
        if w == 1 and len(work) < 6: work.append(7)
        done.append(w)
    return x * len(done)
#> work.clear()
#> work[:] = [1, 1]
## while_over_a_queue
queue_ = collections.deque([1.0, 2.0, 3.0])
def step(x):
    while len(queue_) > 2:
        x = x * queue_.popleft()
    queue_.append(x.shape[0] * 1.0)
    return x
#> queue_.extend([4.0, 5.0])
#> queue_.clear()
## truth_of_many_things
items = [0, 1.0, '', 'a', [], [0], {}, None, (), range(0), b'', 0j, frozenset(), set([1])]
def step(x): return x * sum(1 for i in items if i), [bool(i) for i in items]
#> items[4].append(1)
#> items[-1].clear()
## truth_by_len_and_bool
class L:
    n = 1
    def __len__(self): return self.n
class B(L):
    flag = False
    def __bool__(self): return self.flag
l, b = L(), B()
def step(x): return x * (2.0 if l else 3.0) + (1.0 if b else 5.0), not l, l and 1, b or 2
#> l.n = 0
#> B.flag = True
#> del B.__bool__
#> L.__bool__ = lambda self: True
## chained_comparisons
low, high = 1, 5
n = 3
def step(x): return x * (1.0 if low <= n < high else 2.0 if low < high != n else 3.0)
#> n = 5
#> high = 0
## conditional_import
import sys
user = types.ModuleType('user_flags'); user.FAST = True; user.helper = lambda x: x * 2
sys.modules['user_flags'] = user
def step(x):
    from user_flags import FAST, helper
    import user_flags as u
    return helper(x) if FAST else x * getattr(u, 'SLOW', 0.5)
#> user.FAST = False
#> user.SLOW = 9.0
#> user.helper = lambda x: x - 1; user.FAST = True
#> sys.modules['user_flags'] = types.SimpleNamespace(FAST=False, helper=None, SLOW=3.0)
#> del sys.modules['user_flags']
## module_getattr
user = types.ModuleType('user_lazy')
exec('''
flags = {'gain': 2.0}
def __getattr__(name):
    if name in flags: return flags[name]
    raise AttributeError(name)
''', vars(user))
def step(x): return x * user.gain + getattr(user, 'shift', 0.0)
#> user.flags['gain'] = 3.0
#> user.flags['shift'] = 1.0
#> user.gain = 7.0
#> del user.__getattr__
## star_import_and_builtins_shadowed
def step(x): return x * len([1, 2]) + max(1.0, 2.0)
#> len = lambda v: 10
#> max = min
#> del len, max
## deleted_globals
gain = 2.0
def step(x):
    try: return x * gain
    except NameError as e: return x - len(str(e))
#> del gain
#> gain = 4.0
## globals_dict_written, eager: globals()
def step(x):
    globals()['count'] = globals().get('count', 0) + 1
    return x * count
#> count = 50
#> globals().update(count=0)
## locals_and_vars
class P: pass
p = P(); p.a = 1.0
def step(x):
    return x * sum(vars(p).values()), sorted(vars(p))
#> p.b = 2.0
#> vars(p)['c'] = 3.0
#> del p.a
""")


@pytest.mark.parametrize("story", CONTROL)
def test_as_python(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
