"""Exceptions in the middle of changes, and containers that are changed while they are read."""

TEXT = r"""
## halfway
code:
    ledger, journal, attempts = {'x': 5, 'y': 2}, [], {'n': 0}
    class Poor(Exception): pass
    def move_money(start, end, amount):
        attempts['n'] += 1
        journal.append((start, amount))
        ledger[start] -= amount
        if ledger[start] < 0: raise Poor(start)
        ledger[end] = ledger.get(end, 0) + amount
        return ledger[end]
    def atomic(amount):
        before = dict(ledger)
        try: return move_money('x', 'y', amount)
        except Poor:
            ledger.clear()
            ledger.update(before)
            return -1
    def overriding(n):
        for k in range(3):
            try:
                if k == n: return k
                if k > 1: raise Poor(k)
            except Poor: journal.append('poor')
            finally:
                attempts['n'] += 1
                if n == 2: continue
        return 9
    class Rising:
        made = 0
        def __init__(self, n):
            self.n = n
            Rising.made += 1
            if n < 0: raise ValueError('negative')
            Rising.made += 1
        @property
        def level(self): return self.n
        @level.setter
        def level(self, value):
            journal.append(value)
            self.n = value
            if value > 20: raise ValueError('high')
            self.n += 1
        def __lt__(self, other):
            if self.n == other.n: raise TypeError('equal')
            return self.n < other.n
        def __setitem__(self, k, v):
            journal.append(k)
            if k == 'b': raise KeyError(k)
            self.n = v
    rising, trace_ = Rising(1), rn.zeros((3,))
    def emit(n):
        for k in range(n):
            if k == 2: raise Poor('emit')
            yield k
    def half_tensor(t):
        global trace_
        trace_[0] = t.sum()
        if t.ndim == 0: raise ValueError('scalar')
        trace_ = trace_ + 1
        return t
leaf:
    ledger['x']
    len(journal)
    attempts['n']
    rising.n
    Rising.made
num:
    atomic($num)
    overriding($small)
    move_money('x', 'y', $small)
    len(ledger)
    Rising($small).n
    rising.level
    sum(emit($small))
tensor:
    (y + trace_.sum())
    trace_[0]
cond:
    rising.n > $num
    'z' in ledger
    journal
seq:
    journal[-3:]
    list(ledger.items())
    trace_
stat:
    journal[:] = journal[-4:]
    journal.clear()
    ledger['x'] = $num % 60
    move_money('x', 'z', $small)
    rising.level = $num % 30
    rising = Rising($num)
    rising[$key] = $num % 9
    attempts['n'] %= 40
    log.extend(emit($small))
    log[:] = log[-4:]
    half_tensor(y)
block:
    try:
        move_money('x', 'y', $num)
        $body
    except Poor as problem:
        journal.append(str(problem))
        $body

    try:
        log.append(total)
        log.append(1 // $small)
    except ZeroDivisionError:
        log.pop()

    try:
        collected$id = [journal.append(v) or 3 // v for v in (2, 1, $leaf, 0)]
    except (ZeroDivisionError, TypeError):
        $body

    try:
        rising.level = $num
        rising['b'] = 2
    except (KeyError, ValueError) as problem:
        total += len(str(problem))
    else:
        $body
    finally:
        journal.append(rising.n)

    try:
        y = half_tensor(y)
    except ValueError:
        $body

    try:
        trace_[:] = trace_ * 2
        y = y + rn.ones((7,)) @ trace_
    except Exception as problem:
        log.append(type(problem).__name__)

    try:
        try:
            Rising($int)
        finally:
            attempts['n'] += 1
            if $cond: raise KeyError('second')
    except (KeyError, ValueError) as problem:
        log.append(type(problem.__context__).__name__)

    while True:
        try:
            total += move_money('x', 'y', 1)
            if total > 9: break
        except Poor:
            ledger['x'] = 6
            break

    if total > $num: raise Poor(f'{total}')
change:
    ledger['x'] = $(1||40)
    ledger = {'x': 9}
    ledger.pop('y', None)
    rising.n = 3
    rising = Rising(19)
    journal = []
    attempts['n'] = 0
    Rising.made = 0
    def emit(n): return [1, n]
    Poor.__str__ = lambda self: 'poor'
    trace_ = rn.ones((3,))
    Rising.level = property(lambda self: 2)
    def half_tensor(t): return t * 2

## mutation
code:
    inventory, basket = {'a': 3, 'b': 1, 'c': 2}, ['a', 'b', 'a']
    marks_set, rows_of = {1, 2, 3}, [[1, 2], [3, 4], [5, 6]]
    fixed = (1, [2], {'k': 3})
    grid_of = [[0] * 3 for _ in range(2)]
    def drop_small(limit):
        for k in [k for k, v in inventory.items() if v < limit]: del inventory[k]
        return len(inventory)
    def take_one(k):
        if inventory.get(k, 0) > 0:
            inventory[k] -= 1
            basket.append(k)
            return True
        return False
    def unique(values):
        met, kept = set(), []
        for v in values:
            if v not in met:
                met.add(v)
                kept.append(v)
        return kept
leaf:
    len(inventory)
    inventory.get('a', 0)
    len(basket)
num:
    drop_small($small)
    take_one($key)
    len(unique(basket))
    sum(map(sum, rows_of))
    rows_of[-1][0]
    basket.count('a')
    max(inventory, key=inventory.get) == 'a'
    max(inventory.values(), default=$num)
    inventory.setdefault($key, $num)
    fixed[1][0]
    fixed[2]['k']
    sum(map(sum, grid_of))
    len(marks_set ^ {1, $small})
    min(marks_set, default=0)
    [row[0] for row in rows_of if row][-1]
    (inventory.popitem()[1] if inventory else 0)
    len([*zip(*rows_of)])
    rows_of.index(rows_of[-1])
cond:
    inventory == {'a': 3}
    marks_set.isdisjoint({$small})
    basket
    rows_of[0] is rows_of[-1]
    marks_set
seq:
    sorted(inventory.items())
    basket[::-1]
    [row[:] for row in rows_of]
    rows_of
    [*map(list, zip(*rows_of))]
    sorted(marks_set)
    fixed
stat:
    inventory[$key] = $num % 9
    inventory = {k: v for k, v in inventory.items() if v}
    inventory |= {$key: $num % 9}
    inventory.update(zip('ab', numbers[:2]))
    basket.remove($key)
    basket.insert(0, $key)
    basket[1:2] = ['x', 'y']
    basket[::2] = 'ab'
    basket *= 2
    del basket[3:]
    del basket[::2]
    basket += 'cd'
    basket[:0] = basket[-1:]
    basket.sort(reverse=$cond)
    basket.extend(inventory)
    rows_of[$(0||-1)].append($num % 9)
    rows_of[0] = rows_of[-1]
    rows_of[$(0||-1)], rows_of[1] = rows_of[1], rows_of[$(0||-1)]
    rows_of[:] = [row for row in rows_of if len(row) < 4] or [[1]]
    rows_of += [[$num % 9]]
    del rows_of[3:]
    marks_set.add($num % 9)
    marks_set -= {$small}
    marks_set |= {$num % 9, 2}
    marks_set.intersection_update(range(6))
    marks_set.symmetric_difference_update([1, 9])
    fixed[1].append($num % 9)
    fixed[2]['k'] += 1
    fixed[1][:] = fixed[1][-2:]
    grid_of[0][$small] = $num % 9
    grid_of[$(0||1)] = list(range(3))
    inventory['a'], inventory['b'] = inventory.get('b', 0), inventory.get('a', 0)
    k$id, inventory['c'] = 5, $leaf; total += k$id
    numbers[:], config['gain'] = [2, 1], $leaf
block:
    for k$id in list(inventory):
        if inventory[k$id] < $num: del inventory[k$id]

    try:
        for k$id in inventory:
            if inventory[k$id] > 1: inventory.pop(k$id)
    except RuntimeError as problem:
        log.append(str(problem))

    for v$id in basket:
        if v$id == 'a' and len(basket) < 9: basket.append('b')
        elif v$id == 'b': basket.remove(v$id)

    i$id = 0
    while i$id < len(basket):
        if basket[i$id] == $key: basket.pop(i$id)
        else: i$id += 1

    for row$id in rows_of:
        row$id.reverse()
        row$id[0] = row$id[0] + total
        $body

    for v$id in marks_set.copy():
        if v$id % 2: marks_set.discard(v$id)
        else: total += v$id

    if take_one($key) and not take_one('b'):
        $body
    elif len(basket) > 6:
        basket.clear()

    try:
        for v$id in marks_set: marks_set.add(v$id + 10)
    except RuntimeError:
        marks_set = {1, 2}

    before$id = list(basket)
    $body
    if before$id != basket: total += 1

    while inventory and total < 20:
        k$id, v$id = inventory.popitem()
        total += v$id
change:
    inventory['a'] = $(0||5)
    inventory = {'b': 2, 'a': 1}
    inventory.clear()
    basket = ['a']
    basket.append('c')
    basket = rows_of
    rows_of = [[1, 2], [3, 4]]
    rows_of[0] = rows_of[1]
    marks_set.add(7)
    marks_set = frozenset([1])
    fixed[1].append(8)
    grid_of[0] = grid_of[1]
    def take_one(k): return False
    inventory = dict(sorted(inventory.items(), key=str))
"""
