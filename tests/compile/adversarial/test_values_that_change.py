"""Texts, windows, queues and copies of state that are other values at each call: right, and traced a few times only.

A case is the body of a step over ``s``, the state, with the tensor ``x`` and a float ``v``. Between calls the state is
changed from outside, too.
"""

from __future__ import annotations

import heapq
import logging
import math
import types
import warnings
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Final

import pytest

import runnel as rn
from tests.compile.adversarial.worlds import Case, call, tensor

CALLS: Final = 9
MOST: Final = 6  # traces


class Meter:
    def __init__(self) -> None:
        self.sum, self.count, self.avg = 0.0, 0, 0.0

    def update(self, value: float, n: int = 1) -> None:
        self.sum += value * n
        self.count += n
        self.avg = self.sum / self.count

    def __str__(self) -> str:
        return f"{self.avg:.3f} ({self.count})"


TEXTS: Final = (
    "print(f'step {s.n}')",
    "print('step', s.n, sep='-')",
    "print(s.meter, f'{s.meter!s:>20}', str(s.meter))",
    "s.names.append(f'checkpoint-{s.n:04d}.pt')",
    "s.text = 'step %d' % s.n",
    "s.text = '%s %d/%d' % ('a', s.n, 10)",
    "s.text = 'at ' + str(s.n) + '!' * (s.n % 3)",
    "s.text = '{} of {:03d}'.format(s.n, s.n + 1)",
    "s.text = '{a.n}'.format(a=s)",
    "s.text = '-'.join(['a', str(s.n)])",
    "s.text = '-'.join(str(i * s.n) for i in range(3))",
    "s.text = f'{s.n:>5}|{s.n / 7:.3f}'.strip().upper().replace('|', '/')",
    "s.text = s.text + f'{s.n} '",
    "s.text = s.text[-3:] + str(s.n)",
    "s.text = repr([s.n, str(s.n)])",
    "s.text = f'{s.n:{s.n % 4 + 1}}'",
    "logging.info('step %d: %s', s.n, f'{s.n}')",
    "logging.getLogger(__name__).warning('step %d of %.2f', s.n, v)",
    "warnings.warn(f'step {s.n}', stacklevel=1)",
    "s.by_name = {'n': s.n, 'text': f'{s.n}'}",
    "x = x * len(f'{10 ** s.n}'.rstrip('0'))",
    "x = x * (2 if str(s.n).endswith('2') else 3)",
    "x = x * (2 if f'{s.n}' in ('2', '3') else 3)",
)
NUMBERS: Final = (
    "s.meter.update(v); x = x * s.meter.avg",
    "s.meter.update(v, s.n); print(s.meter)",
    "s.best = max(s.best, v); x = x * s.best",
    "s.best = max(s.best, s.n); x = x * s.best",
    "s.best = min(s.best, s.n); x = x * s.best",
    "x = x * s.rates[s.n]",
    "x = x * s.rates[s.n % 3]",
    "x = x * s.tensors[s.n % 3]",
    "x = x * [0.1, 0.2, 3][s.n % 3]",
    "x = x * {1: 0.5, 2: 0.25, 3: 1}[s.n % 3 + 1]",
    "x = x * s.by_epoch[s.n % 3 + 1]",
    "x = x * divmod(s.n, 3)[1]",
    "x = x * sum(s.rates[s.n : s.n + 2])",
    "x = x * sum(s.rates[-3:]); s.rates.append(v)",
    "x = x * sorted(s.rates[-3:])[0]; s.rates.append(v)",
    "s.rates.append(v); x = x * (sum(s.rates) / len(s.rates))",
    "s.rates.append(v); x = x * min(s.rates)",
    "s.pair = (s.pair[1], s.pair[0] + s.pair[1]); x = x * s.pair[0]",
    "a, b = s.pair; s.pair = (a + 1, a + b); x = x * b",
    "s.queue.append(v); x = x * (sum(s.queue) / len(s.queue))",
    "s.queue.append(s.n); x = x * max(s.queue)",
    "s.queue.append(s.n); s.queue.rotate(s.n % 2); x = x * s.queue[0]",
    "s.queue.append(v); x = x * s.queue[-1] + s.queue.popleft()",
    "s.queue.append(v); x = x + sum(q * 2 for q in s.queue)",
    "heapq.heappush(s.heap, v); x = x * s.heap[0]",
    "x = x * heapq.heappushpop(s.heap, v) + len(s.heap)",
    "x = x * heapq.heapreplace(s.heap, v * s.n)",
    "x = x * s.rates.pop()",
    "x = x * s.rates.pop(0) + s.rates[0]",
    "x = x * s.rates.pop(s.n % 3) + s.rates[1] + sum(s.rates)",
    "s.heap.insert(s.n % 2, v); x = x * s.heap[1] + s.heap.pop()",
    "s.heap.sort(); s.heap[0] += v; x = x * s.heap[0] + s.heap[-1]",
    "del s.rates[0]; x = x * s.rates[0]",
    "s.heap = [h + 1 for h in s.heap]; x = x * s.heap[0]",
    "s.heap = list(map(lambda h: h + v, s.heap)); x = x * s.heap[0]",
    "s.heap = [*s.heap, v][-3:]; x = x * s.heap[0]",
    "s.seen.update([s.n % 3]); x = x * len(s.seen)",
)
MAPPINGS: Final = (
    "s.log = {**s.by_name, 'n': s.n}; s.by_name['v'] = v",
    "s.log.update(s.by_name); s.by_name['v'] = s.by_name.get('v', 0.0) + v",
    "s.log.update(v=v, n=s.n)",
    "s.log |= {'v': v, 'n': s.n}",
    "s.log = dict(s.log, n=s.n); x = x * s.log['n']",
    "copy = s.by_name.copy(); copy['a'] += 1; s.by_name = copy; x = x * copy['a']",
    "s.counts.update(['a', 'b', 'a']); x = x * s.counts['a']",
    "s.counts.update({'a': 1, 'b': 2}); x = x * s.counts['a']",
    "s.counts['a'] += s.n; x = x * s.counts['a']",
    "for k, w in s.by_name.items(): s.by_name[k] = w + 1\nx = x * s.by_name['a']",
    "for k, w in s.by_name.items(): s.by_name['b'] = s.n + len(k)\nx = x * s.by_name['b']",
    "s.by_name = {k: w * 2 for k, w in s.by_name.items()}; x = x * sum(s.by_name.values())",
    "x = x * max(s.by_name.values()); s.by_name['a'] += 1",
    "x = x * (lambda **k: k['a'])(**s.by_name); s.by_name['a'] += 1",
    "x = x * (lambda *a: a[0])(*s.pair); s.pair = (s.pair[0] + 1, 0)",
)
# Whatever else is done with what varies: right, however often it is traced.
NASTY: Final = (
    "out = []\nfor q in s.heap:\n    out.append(q)\n    if len(s.heap) < 6: s.heap.append(v)\ns.log['o'] = out; s.heap.pop(0)",
    "out = []\nfor q in s.heap:\n    out.append(q)\n    if len(s.heap) > 2: s.heap.pop()\ns.log['o'] = out; s.heap.append(v)",
    "try:\n    for q in s.queue: s.queue.append(q)\nexcept RuntimeError as e: s.text = str(e)\ns.queue.append(v)",
    "try:\n    for k, w in s.log.items(): s.log[k + 'x'] = w\nexcept RuntimeError as e: s.text = str(e)\n"
    "s.log = {'v': s.n}",
    "view = s.by_name.values(); s.by_name['a'] = s.n; s.log['o'] = list(view), sum(view), s.n in view",
    "view = s.by_name.items(); s.by_name.pop('a'); s.by_name['a'] = v; s.log['o'] = list(view)",
    "view = s.by_name.items(); s.by_name.clear(); s.by_name['a'] = v; s.log['o'] = list(view), dict(view); s.by_name['b'] = 0",
    "view = s.by_name.keys(); s.by_name.setdefault('k', s.n); s.log['o'] = list(view); del s.by_name['k']",
    "alias = s.heap; s.rates = alias; alias.append(v); s.log['o'] = sum(s.rates), s.rates is s.heap; alias.pop(0)",
    "s.heap.append(v); s.log['o'] = s.heap[s.n % 2], s.heap[-s.n % 3], s.heap[s.n % 3 :], s.heap[::-1]; s.heap.pop(0)",
    "try: s.log['o'] = s.heap[s.n]\nexcept IndexError as e: s.text = str(e)",
    "try: s.log['o'] = s.by_epoch[s.n]\nexcept KeyError as e: s.text = str(e)",
    "try: s.log['o'] = s.queue.popleft()\nexcept IndexError as e: s.text = str(e)",
    "try: s.heap.remove(s.n + 0.5)\nexcept ValueError: s.text = 'missing'",
    "s.heap[1:2] = [v, s.n]; s.log['o'] = s.heap[1]; del s.heap[s.n % 2]",
    "s.log['o'] = s.rates[:2] * 2, [s.n] * 2, [v] + s.heap, s.pair + (v,); s.heap[0] += v; s.rates[0] += 1",
    "first, *rest = s.heap; s.log['o'] = first, rest, sum(rest); s.heap = [*rest, v]",
    "s.heap[0], s.heap[1] = s.heap[1], s.heap[0]; s.heap[2] = s.heap[0] + v",
    "s.log['o'] = [a * b for a, b in zip(s.heap, s.queue)], list(enumerate(s.heap)); s.heap[0] += v; s.queue.append(v)",
    "s.log['o'] = sorted(s.heap, key=lambda q: -q), min(s.by_name, key=s.by_name.get); s.heap[1] += v; s.by_name['a'] += 2",
    "s.log['o'] = any(q > 6 for q in s.heap), v in s.heap, s.n in s.seen, s.heap == [1.5, 2.5, 7.5]; s.heap[1] += v",
    "s.log['o'] = ','.join(map(str, s.heap)), math.fsum(s.heap), math.hypot(*s.pair); s.heap[1] += v; s.pair = (v, s.n)",
    "t = f'{s.n}:{v}'; s.log['o'] = t.split(':'), t[0], len(t), t * 2, t == '1:0.5', ':' in t, sorted(t), t.encode()",
    "k = f'k{s.n % 3}'; s.by_name[k] = s.by_name.get(k, 0) + 1; s.log['o'] = k in s.by_name, s.by_name[k], len(s.by_name)",
    "setattr(s, f'a{s.n % 3}', v); s.log['o'] = getattr(s, f'a{s.n % 3}')",
    "s.log['o'] = s.n ** 2, 2 ** (s.n - 4), s.n.bit_length(), [0] * s.n, 'a' * s.n, max(s.n, 3.5), hash(s.n), type(s.n)",
    "s.log['o'] = int(str(s.n) + '0'), float(f'{v:.2f}'), chr(65 + s.n), '%5.2f|%s|%r' % (v, s.n, str(s.n)), b'%d' % s.n",
    "class A:\n    def __str__(self): return f'A{s.n}'\n    def __index__(self): return s.n\n"
    "s.log['o'] = str(A()), '%s' % A(), f'{A()}', '%d' % A(), f'{[str(A())]}'",
)
NAMES: Final = {"heapq": heapq, "logging": logging, "math": math, "warnings": warnings, "__name__": __name__}


def state() -> Any:
    return types.SimpleNamespace(
        n=0, meter=Meter(), names=[], text="", by_name={"a": 1, "b": 2}, best=-1.5, rates=[float(i) for i in range(40)],
        tensors=[tensor(1.0, i) for i in range(3)], by_epoch={1: 0.5, 2: 0.25, 3: 0.125}, pair=(0, 1),
        queue=deque([1.5, 2.5, 3.5], maxlen=3), heap=[1.5, 2.5, 7.5], seen={0, 1, 2}, log={"v": 0.5, "n": 0},
        counts=Counter("ab"),
    )  # fmt: skip


def changes(s: Any) -> dict[int, Callable[[], None]]:
    """What happens from outside before some of the calls."""

    def numbers() -> None:
        s.n += 10
        s.meter.sum = -3.0
        s.by_name["a"] = 7
        s.rates[:1], s.rates[-1:] = [0.25], [-8.0]
        s.queue.append(9.5)
        s.heap[-1:] = [4.5]
        s.log["v"], s.counts["a"], s.pair = 3.5, 40, (5, 7)
        s.by_epoch[2] = -1.0
        s.tensors[1] = tensor(8.0, 9.0)

    def kinds() -> None:
        s.best, s.pair, s.heap[:1], s.by_name["b"] = 3, (1.5, 2), [8], 2.5
        s.queue.append(4)
        s.text = "new"

    return {4: numbers, 7: kinds}


@pytest.mark.parametrize("body", NASTY)
def test_whatever_is_done(body: str) -> None:
    step_of(body, None).run()


@pytest.mark.parametrize("body", TEXTS + NUMBERS + MAPPINGS)
def test_values_that_change(body: str) -> None:
    step_of(body, MOST).run()


def step_of(body: str, traces: int | None) -> Case:
    def make() -> Any:
        s = state()
        space: dict[str, Any] = {**NAMES, "s": s}
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        exec(f"def step(x, v):\n    s.n += 1\n{lines}    return x + s.n, s.text\n", space)
        steps: list[Any] = []
        for i in range(CALLS):
            if i in changes(s):
                steps.append(changes(s)[i])
            steps.append(call(tensor(1.0, 2.0), (0.5, 3.25, 1.75)[i % 3] * (i + 1)))
        return space["step"], steps, lambda: s

    return Case(make, None, traces, None)


def test_what_is_computed_is_explained() -> None:
    s = state()

    def step(x: Any) -> Any:
        s.n += 1
        s.queue.append(float(s.n))
        s.names.append(f"{s.n} {sum(s.queue)}")
        return x

    compiled = rn.compile(step)
    for _ in range(3):
        compiled(tensor(1.0))
    computed = compiled.explain(tensor(1.0)).computed
    assert "(s.n + 1)" in computed
    assert "sum(s.queue after append())" in computed
