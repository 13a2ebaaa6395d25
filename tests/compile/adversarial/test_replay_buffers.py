"""Buffers of rows, such as replay memories: lists and deques of pairs that move on at each call are not traced again."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.adversarial.stories import Story, stories

BUFFERS: Final = stories("""
## replayed_pairs, traces: 9
memory = collections.deque(maxlen=4)
def step(x, r):
    memory.append((x, r))
    return sum(a.sum() * b for a, b in memory) + memory[-1][1] + memory[0][0].sum()
def arguments(i): return tensor(1.0, float(i)), i * 0.5
#> memory.clear()
## popped_pairs, traces: 9
memory = collections.deque(maxlen=9)
def step(x, r):
    memory.append((x, r))
    if len(memory) > 3:
        y, s = memory.popleft()
        return x * s + y
    return x
def arguments(i): return tensor(1.0, float(i)), i * 0.5
#> pass
#> memory[0] = (tensor(5.0, 5.0), 100.0)
## pairs_left_in_a_list, traces: 8
memory = []
def step(x, r):
    memory.append((x, r))
    if len(memory) > 3: memory.pop(0)
    return x * memory[-1][1] + memory[0][0] * len(memory)
def arguments(i): return tensor(1.0, float(i)), i * 0.5
#> pass
#> memory[0] = (tensor(5.0, 5.0), 100.0)
## rows_of_four, traces: 7
class Memory:
    def __init__(self, n): self.rows = collections.deque(maxlen=n)
    def push(self, *row): self.rows.append(row)
    def last(self, n): return list(self.rows)[-n:]
memory = Memory(3)
def step(x, r):
    memory.push(x, r, r > 2.0, None)
    rows = memory.last(2)
    return sum(s * q for s, q, d, _ in rows), len(rows)
def arguments(i): return tensor(1.0, float(i)), i * 0.5
#> memory.rows.clear()
## objects_in_a_window, traces: 8
class Row:
    def __init__(self, x, r): self.x, self.r = x, r
memory = collections.deque(maxlen=3)
def step(x, r):
    memory.append(Row(x, r))
    memory.rotate(1)
    memory[0].r += 1
    return memory[0].x * memory[0].r + memory[-1].r
def arguments(i): return tensor(1.0, float(i)), i * 0.5
#> memory.clear()
## one_pair_twice
pair = [1.0, 2.0]
memory = collections.deque([pair, pair, [5.0, 1.0]], maxlen=4)
def step(x):
    memory.rotate(1)
    memory[0][0] += 1
    return x * memory[0][0] + sum(a for a, _ in memory)
#> memory[1] = list(memory[1])
#> pair[0] = 50.0
## index_of_a_class, traces: 12
class I:
    i = 0
    def __index__(self): return self.i
at, rows = I(), [(1.0, 2), (3.0, 4), (5.0, 6)]
def step(x):
    row = rows.pop(at)
    rows.insert(at, (row[0] + 1, 0))
    rows.reverse()
    return x * row[0] + rows[0][0]
#> I.i = 1
#> at.i = 2
#> rows[0] = (50.0, 0)
## nested_rows_changed_outside, traces: 14
rows = [[1.0, [2.0]], [3.0, [4.0]]]
def step(x):
    rows.append(rows.pop(0))
    rows[0][1][0] += 1
    return x * rows[0][1][0] + sum(r[1][0] for r in rows) + rows[-1][0]
#> rows[1][1] = [50.0]
#> rows[0], rows[1] = rows[1], rows[0]
#> rows[1] = rows[0]
""")


@pytest.mark.parametrize("story", BUFFERS)
def test_replay_buffers(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
