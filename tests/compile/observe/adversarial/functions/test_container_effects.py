"""Functions that change lists, dicts, sets and what is built of them."""

from __future__ import annotations

import bisect
import collections
import heapq

import pytest

from tests.compile.observe.adversarial.stories import Box, Cases, around

CASES = Cases()
case, refused = CASES.add, CASES.refused


@case
def appends():
    log, box = [], Box(x=1)

    def f():
        log.append(box.x)
        log.append((box.x, [box.x]))

    return around(f, lambda: setattr(box, "x", 2), log.clear, state=lambda: log)


@case
def appended_last():
    log, box = [5, 6], Box(x=1)

    def f():
        log.append(box.x)
        return log[-1], log[0]

    return around(f, lambda: log.__setitem__(0, 9), state=lambda: log)


@case
def appended_then_length():
    log = []

    def f():
        log.append(1)
        return len(log)

    return around(f, log.clear, state=lambda: log)


@case
def bounded_history():
    log = []

    def f():
        log.append(len(log))
        if len(log) > 3:
            log.pop(0)
        return list(log)

    return around(f, lambda: log.extend([7, 8]), state=lambda: log)


@case
def deque_history():
    log = collections.deque(maxlen=2)

    def f():
        log.append(1)
        log.append(2)

    return around(f, log.clear, state=lambda: log)


@case
def extends_itself():
    items = [1]

    def f():
        items.extend(items[:2])
        return items[-1]

    return around(f, lambda: items.insert(0, 5), state=lambda: items)


@case
def inserts_and_removes():
    items = [3, 1, 2]

    def f():
        items.insert(1, 7)
        items.remove(3)
        items.append(3)
        items.reverse()
        return items.index(7)

    return around(f, lambda: items.append(9), state=lambda: items)


@case
def sorts_in_place():
    items = [3, 1, 2]

    def f():
        items.sort(key=lambda x: -x)
        return items[0]

    return around(f, lambda: items.append(9), state=lambda: items)


@case
def slice_assignment():
    items = [1, 2, 3]

    def f():
        items[1:] = [items[0], 5]
        del items[0]
        return items

    return around(f, lambda: items.append(4), state=lambda: items)


@case
def list_in_place_operators():
    items = [1]
    box = Box(items=items)

    def f():
        box.items += [2]
        box.items *= 2
        return len(items)

    return around(f, items.clear, state=lambda: (items, box))


@case
def dict_updates():
    table = {"a": 1}

    def f():
        table["b"] = table["a"] + 1
        table.update(c=3, a=table["a"])
        table.setdefault("d", []).append(1)
        return table.pop("c"), table.get("zz")

    return around(f, lambda: table.update(a=7), lambda: table.pop("d"), state=lambda: table)


@case
def dict_order():
    table = {"a": 1, "b": 2}

    def f():
        table["a"] = table.pop("a")
        return list(table)

    return around(f, lambda: table.update(c=1), state=lambda: table)


@case
def counts_words():
    counts = collections.Counter()

    def f():
        for word in ("a", "b", "a"):
            counts[word] += 1
        return counts["a"], counts["zz"]

    return around(f, counts.clear, state=lambda: dict(counts))


@case
def groups():
    groups = collections.defaultdict(list)
    items = [1, 2, 3]

    def f():
        for x in items:
            groups[x % 2].append(x)

    return around(f, lambda: items.append(4), groups.clear, state=lambda: dict(groups))


@case
def ordered_moves():
    table = collections.OrderedDict(a=1, b=2, c=3)

    def f():
        table.move_to_end("a")
        return next(iter(table))

    return around(f, lambda: table.pop("b"), state=lambda: table)


@case
def memo_by_hand():
    memo, box = {}, Box(x=2)

    def square(x):
        if x not in memo:
            memo[x] = x * x
        return memo[x]

    return around(
        lambda: square(box.x), lambda: setattr(box, "x", 3), memo.clear, lambda: memo.update({3: 0}), state=lambda: memo
    )


@case
def adds_to_set():
    observed = {1}

    def f():
        fresh = 2 not in observed
        observed.add(2)
        observed.discard(1)
        return fresh

    return around(f, observed.clear, state=lambda: observed)


@case
def set_operators():
    a, b = {1, 2}, {2, 3}

    def f():
        nonlocal a
        a |= b
        return sorted(a), a & b, a - b, 3 in a

    return around(f, lambda: b.add(7), state=lambda: (a, b))


@case
def byte_array():
    data = bytearray(b"ab")

    def f():
        data.append(99)
        data[0] = 120
        return bytes(data)

    return around(f, lambda: data.extend(b"zz"), state=lambda: data)


@case
def hashed_in_literals():
    class K:
        def __init__(self, n):
            self.n = n

        def __hash__(self):
            return hash(box.salt)

        def __eq__(self, other):
            return self.n % box.salt == other.n % box.salt

    box = Box(salt=2)
    return around(
        lambda: (
            len({K(1), K(3)}),
            len({K(1): 1, K(2): 2}),
            len({K(i) for i in range(4)}),
            len({K(i): i for i in range(4)}),
        ),
        lambda: setattr(box, "salt", 3),
    )


@case
def stack_machine():
    stack = [1, 2, 3]

    def f():
        stack.append(stack.pop() + stack.pop())
        return stack[0]

    return around(f, lambda: stack.extend([5, 6]), state=lambda: stack)


@case
def heap():
    h = [5, 7]

    def f():
        heapq.heappush(h, 1)
        return heapq.heappop(h), h[0]

    return around(f, lambda: h.__setitem__(0, 3), state=lambda: h)


@case
def insort():
    items = [1, 5]

    def f():
        bisect.insort(items, 3)
        return bisect.bisect_left(items, 5)

    return around(f, lambda: items.insert(0, 0), state=lambda: items)


@case
def linked_list():
    class Node:
        def __init__(self, value, rest):
            self.value, self.rest = value, rest

    box = Box(head=None)

    def f():
        box.head = Node(1, box.head)
        n, node = 0, box.head
        while node is not None:
            n, node = n + node.value, node.rest
        return n

    return around(f, lambda: setattr(box, "head", None))


@pytest.mark.parametrize("name", CASES.names())
def test_as_python(name: str) -> None:
    CASES.check(name)
