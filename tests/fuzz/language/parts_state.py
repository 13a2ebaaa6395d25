"""Keys that are equal and differ, caches, objects that are copied, and trees of them."""

TEXT = r"""
## keys
code:
    mixed = {1: 'one', 2.5: 'half', 'a': 1, None: 0, (1, 2): 3, True: 'true'}
    memo, sizes, seen = {}, {}, set()
    class Key:
        def __init__(self, k): self.k = k
    class Color(enum.Enum):
        RED, BLUE = 'red', 'blue'
    k1, k2, k3 = Key(1), Key(1), Key(2)
    by_key, by_color = {k1: 10, k3: 30}, {Color.RED: 1, Color.BLUE: 2}
    by_type = {int: 1, float: 2, bool: 3, str: 4}
    by_function = {tensor: 1}
    def memoized(n):
        if n not in memo: memo[n] = n * 2 + len(memo)
        return memo[n]
leaf:
    len(memo)
    len(mixed)
num:
    mixed.get($num, 4) if isinstance(mixed.get($num, 4), int) else 2
    memoized($num)
    by_key[$(k1||k2||k3)]
    by_color[Color.$(RED||BLUE)]
    by_type[type($num)]
    by_type.get(type(y), 7)
    by_function.get(tensor, 2)
    len(sizes)
    sizes.setdefault(x.shape, $num)
    sizes.setdefault((x.ndim, $leaf), $num)
    len({1, True, 1.0, $num})
    list(mixed)[$(0||1||-1)] == 1
    hash(($leaf, 'a')) % 7
    (k1 == k2)
    len(seen)
    (0.0 == -0.0) + math.copysign(1, $num)
    sum(v for k, v in by_color.items() if k is not Color.RED)
    {True: 1, 1: 2}[True]
    len(set(map(type, numbers)))
cond:
    $num in mixed
    k2 in by_key
    $num in seen
    Color('red') in by_color
    x.shape in sizes
    (1, 2) in mixed
    None in mixed
seq:
    list(mixed)
    list(memo.items())
    sorted(seen, key=str)
    [c.name for c in by_color]
    mixed
stat:
    mixed[$num] = $text
    mixed[True] = $num
    mixed[1.0] = $num
    mixed.pop($num, None)
    memo[$num] = $num % 50
    memo.clear()
    memo.pop($leaf, None)
    by_key[$(k1||k2||k3)] = $num
    by_color[Color.RED] += $num % 5
    by_type[type($num)] = $num
    sizes[x.shape] = $num
    seen.add($num)
    seen.add(('t', $leaf))
    seen.discard($num)
    k1, k2 = k2, k1
    k1 = k2
    by_key.pop(k1, None)
    by_key[k3] = y
    memo[total] = total
    memo = {k: v for k, v in list(memo.items())[-3:]}
change:
    mixed[1] = $('one'||2)
    mixed = {True: 1}
    mixed = {1.0: 5, 'a': 2}
    memo.clear()
    memo[2] = 7
    memo[2.0] = 8
    k1.k = 2
    by_key = {k2: 3}
    by_color[Color.RED] = 5
    by_color = dict(reversed(by_color.items()))
    by_type[int] = 9
    del by_type[bool]
    sizes.clear()
    seen.add(1)
    seen.clear()
    by_function[tensor] = 3

## copies
code:
    class Point:
        def __init__(self, a, b): self.a, self.b, self.tags = a, b, []
        def moved(self, by):
            other = copy.copy(self)
            other.a += by
            return other
        def __eq__(self, other): return (self.a, self.b) == (other.a, other.b)
        __hash__ = None
    class Tree:
        def __init__(self, v, *children): self.v, self.children = v, list(children)
        def total(self): return self.v + sum(c.total() for c in self.children)
        def depth(self): return 1 + max((c.depth() for c in self.children), default=0)
        def walk(self):
            yield self
            for c in self.children: yield from c.walk()
    point, tree = Point(1, 2), Tree(1, Tree(2), Tree(3, Tree(4)))
    same, saved, stack_of = point, [], [[point], [point]]
    def path(*names):
        at = tree
        for n in names: at = at.children[n]
        return at
leaf:
    point.a
    tree.v
    same.b
num:
    point.a
    same.a
    tree.total()
    tree.depth()
    path(0).v
    path(1, 0).v
    len(tree.children)
    sum(t.v for t in tree.walk())
    len(saved)
    stack_of[$(0||-1)][0].a
    (stack_of[0][0] is point)
    len(point.tags)
    (point.tags is same.tags)
    sum(p.a for p in saved)
cond:
    point is same
    point == same
    saved
    tree.children[0] is tree.children[-1]
    point.tags is same.tags
seq:
    [t.v for t in tree.walk()]
    point.tags
    saved
stat:
    point.a = $num % 50
    same.b = $num % 50
    point.tags.append($num)
    same = point
    saved.append(point)
    saved[:] = saved[-2:]
    tree.v += 1
    path(0).v = $num % 9
    tree.children.append(Tree($num % 9))
    tree.children.reverse()
    tree.children[0] = $(tree.children[-1]||Tree(5))
    tree = Tree($num % 9, *tree.children[:2])
    stack_of[0] = stack_of[1]
    stack_of[0][0] = $(point||same)
    stack_of[-1].append(same)
    tree.children[:] = tree.children[:2]
    point.other = same
    point.self = point
    vars(point).update(vars(same))
    tree.data = y
block:
    for t$id in tree.walk():
        total += t$id.v
        if t$id.v > $num: break

    for p$id in saved:
        p$id.a += 1
        $body

    for t$id in list(tree.walk()):
        t$id.v = t$id.v + 1
change:
    point = Point(3, 4)
    point.tags = same.tags
    tree = Tree(7)
    tree.children.append(tree.children[0])
    path(0).v = 8
    saved.clear()
    saved.append(same)
    stack_of[0] = stack_of[1]
    Tree.total = lambda self: self.v
    Point.moved = lambda self, by: self
    del point.tags
    tree.children[0] = tree.children[-1]
    point.a = same.a = 6
"""
