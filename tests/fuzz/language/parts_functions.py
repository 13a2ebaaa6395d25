"""Recursion over trees, functions as data."""

TEXT = r"""
## recursion
code:
    @dataclasses.dataclass
    class Leaf:
        weight: float
    @dataclasses.dataclass
    class Fork:
        left: typing.Any
        right: typing.Any
        op: str = '+'
    params = {'w': [rn.ones((3,)), rn.zeros(())], 'inner': {'b': rn.ones(()) * 2, 'n': 3, 'none': None}}
    expression = Fork(Leaf(1), Fork(Leaf(2), Leaf(3.5), '*'))
    document = {'name': 'root', 'size': 1, 'parts': [{'name': 'p', 'size': 2, 'parts': []}, {'name': 'q', 'size': 3, 'parts': []}]}
    graph_of = {'a': ['b', 'c'], 'b': ['c'], 'c': ['a'], 'd': []}
    def tree_map(f, tree):
        if isinstance(tree, dict): return {k: tree_map(f, v) for k, v in tree.items()}
        if isinstance(tree, (list, tuple)): return type(tree)(tree_map(f, v) for v in tree)
        return f(tree) if isinstance(tree, rn.Tensor) else tree
    def leaves_of(tree):
        if isinstance(tree, rn.Tensor): yield tree
        elif isinstance(tree, dict):
            for k in sorted(tree): yield from leaves_of(tree[k])
        elif isinstance(tree, (list, tuple)):
            for v in tree: yield from leaves_of(v)
    def evaluate(node):
        match node:
            case Leaf(weight=w): return w
            case Fork(left, right, '+'): return evaluate(left) + evaluate(right)
            case Fork(left, right, _): return evaluate(left) * evaluate(right)
        return node
    class Visitor:
        def __init__(self): self.visits = 0
        def visit(self, node):
            self.visits += 1
            return getattr(self, f'visit_{type(node).__name__}', self.generic)(node)
        def visit_Leaf(self, node): return 1
        def visit_Fork(self, node): return 1 + self.visit(node.left) + self.visit(node.right)
        def generic(self, node): return 0
    def size_of(doc): return doc['size'] + sum(size_of(p) for p in doc['parts'])
    def reach(node, met=None):
        met = set() if met is None else met
        if node in met: return met
        met.add(node)
        for n in graph_of.get(node, ()): reach(n, met)
        return met
    def deep_set(tree, path, new):
        *head, last = path
        for k in head: tree = tree[k]
        old, tree[last] = tree.get(last) if isinstance(tree, dict) else tree[last], new
        return old
    def depth_of(node): return 1 + max(depth_of(node.left), depth_of(node.right)) if isinstance(node, Fork) else 0
    def fib(n, known={}):
        if n < 2: return n
        if n not in known: known[n] = fib(n - 1) + fib(n - 2)
        return known[n]
    visitor = Visitor()
leaf:
    visitor.visits
    document['size']
    params['inner']['n']
    expression.left.weight
num:
    visitor.visit(expression)
    size_of(document)
    len(reach($('a'||'d'||'b')))
    sum(1 for _ in leaves_of(params))
    depth_of(expression)
    fib($num % 12)
    len(rn.tree.leaves(params))
    deep_set(document, ('parts', 0, 'size'), $num % 9)
    [n['name'] for n in document['parts']].index('p')
    max(document['parts'], key=size_of)['size']
    expression.left.weight
cond:
    'd' in reach('a')
    isinstance(expression.right, Fork)
    expression.left is expression.right
    params['inner']['none'] is None
text:
    document['parts'][0]['name']
tensor:
    (y + sum(t.sum() for t in leaves_of(params)))
    tree_map(lambda t: t * 2, params)['inner']['b']
    (y * rn.tree.map(lambda t: t + 1, {'k': y, 'l': [x]})['k'])
    (y + params['w'][$(0||1)].sum())
seq:
    sorted(reach('b'))
    [t.shape for t in leaves_of(params)]
    tree_map(lambda t: t.sum(), params)
    params
    document['parts']
stat:
    params = tree_map(lambda t: t * 0.5, params)
    params['w'][$(0||1)] = y.sum()
    params['inner']['n'] = $num % 9
    params['inner'] = dict(params['inner'], b=y.mean())
    params['w'].append(y)
    del params['w'][2:]
    expression.left.weight = $num % 20
    expression.left = expression.right
    expression = Fork(expression.left, Leaf($num % 9), $('+'||'*'))
    expression.right = $(Leaf(2)||expression.left||4)
    visitor.visits = 0
    document['parts'].append({'name': 'r', 'size': $num % 9, 'parts': []})
    document['parts'][0]['parts'] = [{'name': 's', 'size': 1, 'parts': []}]
    del document['parts'][2:]
    graph_of['d'].append($('a'||'c'))
    graph_of['c'] = []
    deep_set(params, ('inner', 'b'), y.sum())
block:
    for t$id in leaves_of(params):
        y = y + t$id.mean()
        $body

    stack$id = [expression]
    while stack$id:
        node$id = stack$id.pop()
        if isinstance(node$id, Fork): stack$id += [node$id.left, node$id.right]
        elif isinstance(node$id, Leaf): total += node$id.weight

    for part$id in document['parts']:
        part$id['size'] += 1
        if part$id['size'] > 20: part$id['size'] = 0
        $body
change:
    params['w'][0] = rn.zeros((2,))
    params['inner']['b'] = $(rn.ones(())||3||None||params['w'][1])
    params = {'w': [rn.ones(())], 'inner': {'b': rn.ones(()), 'n': 1, 'none': 2}}
    params['w'].append(params['w'][0])
    expression = Fork(Leaf(2), Leaf(2))
    expression.right = expression.left
    expression.op = '*'
    Visitor.visit_Leaf = lambda self, node: 5
    document['size'] = 7
    document['parts'].reverse()
    graph_of['a'] = ['d']
    def evaluate(node): return 3
    fib.__defaults__[0].clear()

## functions
code:
    def affine(a_, b_=1, *, c_=0): return a_ * 2 + b_ + c_
    def compose(*fs): return functools.reduce(lambda f, g: lambda v: g(f(v)), fs, lambda v: v)
    def curry(f): return lambda p: lambda q: f(p, q)
    def retry(times):
        def wrap(f):
            @functools.wraps(f)
            def run(*args, **names):
                for k in range(times):
                    run.tries += 1
                    try: return f(*args, **names)
                    except ValueError:
                        if k == times - 1: return -1
            run.tries = 0
            return run
        return wrap
    @retry($(2||3))
    def flaky(n):
        flaky_state['n'] = (flaky_state['n'] + 1) % 4
        if flaky_state['n'] % 2: raise ValueError(n)
        return n
    class Events:
        def __init__(self): self.listeners, self.fired = collections.defaultdict(list), 0
        def on(self, name, f):
            self.listeners[name].append(f)
            return f
        def fire(self, name, *args):
            self.fired += 1
            return [f(*args) for f in self.listeners[name]]
    class Op:
        def __init__(self, f, *fixed): self.f, self.fixed = f, fixed
        def __call__(self, *args): return self.f(*self.fixed, *args)
        def __or__(self, other): return Op(lambda v: other(self(v)))
    class Memo:
        def __init__(self, f): self.f, self.known = f, {}
        def __call__(self, k):
            if k not in self.known: self.known[k] = self.f(k)
            return self.known[k]
        def __get__(self, owner, kind=None): return self if owner is None else functools.partial(self, owner)
    flaky_state, events = {'n': 0}, Events()
    plus = functools.partial(affine, 2, c_=$int)
    plus_more = functools.partial(plus, b_=5)
    scaled_tensor = functools.partial(rn.multiply, rn.ones(()) * 2)
    pipeline, unary = [abs, plus, lambda v: v + count], {'neg': operator.neg, 'abs': abs, 'twice': lambda v: v * 2}
    op_chain, memo_square = Op(affine, 1) | Op(operator.mul, 2), Memo(lambda k: k * k + len(log))
    events.on('add', log.append)
    events.on('get', lambda v: v + count)
    bound, activation = log.append, rn.tanh
leaf:
    events.fired
    flaky.tries
    plus.keywords['c_']
num:
    plus()
    plus($num)
    plus_more(c_=$num)
    plus_more.func is affine
    compose(plus, abs)($num)
    compose(*pipeline)($num)
    curry(operator.sub)($num)($leaf)
    flaky($num)
    events.fire('get', $num)[-1]
    len(events.fire('none'))
    unary[$('neg'||'abs'||'twice')]($num)
    op_chain($num)
    (Op(plus) | Op(abs))($leaf)
    memo_square($num)
    functools.reduce(lambda p, f: f(p), pipeline, $num)
    sum(map(plus, numbers))
    len(memo_square.known)
    next(filter(plus, numbers))
    (lambda f, *p: f(*p))(max, $num, $leaf)
tensor:
    activation(y)
    scaled_tensor(y)
    functools.reduce(lambda t, f: f(t), (rn.tanh, activation, rn.exp), y * 0.1)
    compose(activation, lambda t: t * $num)(y)
    Op(rn.add, y)(1)
    functools.partial(rn.where, y > 0, y)(0.5)
    sum(map(activation, [y, x * 1.0])).sum()
cond:
    activation is rn.tanh
    callable(plus)
    plus.args == (2,)
seq:
    [f($leaf) for f in pipeline]
    events.fire('get', 1)
    plus.args
    sorted(unary)
stat:
    plus = functools.partial(affine, $num)
    plus_more = functools.partial(plus, b_=$num)
    activation = rn.$(tanh||exp||relu||abs)
    events.listeners['get'][:] = events.listeners['get'][-2:]
    events.fire('add', $num)
    pipeline.append($(plus||abs||unary['neg']))
    del pipeline[4:]
    pipeline.reverse()
    unary['twice'] = $(plus||operator.pos||lambda v: total)
    memo_square.known.clear()
    memo_square.known[$leaf] = $num
    flaky.tries = 0
    bound($num)
    config['callback'] = plus
    plus.keywords['c_'] = $num % 9
block:
    for f$id in pipeline:
        total += f$id($num)
        $body

    @retry(2)
    def local$id(n):
        flaky_state['n'] += 1
        if flaky_state['n'] % 3 == 0: raise ValueError
        return n + total
    total += local$id($num) + local$id.tries

    for name$id, f$id in unary.items():
        total += f$id(len(name$id))

    layers$id = [functools.partial(rn.multiply, $num), activation, lambda t: t + $leaf]
    for f$id in layers$id: y = f$id(y)
    $body
change:
    plus = $(affine||functools.partial(affine, 3)||plus_more)
    plus.keywords['c_'] = 7
    affine.__defaults__ = (9,)
    def affine(a_, b_=2, *, c_=1): return b_
    activation = $(rn.exp||rn.relu||lambda t: t * 2)
    pipeline = [plus]
    unary['abs'] = lambda v: 1
    memo_square = Memo(abs)
    events.listeners.clear()
    events.fired = 0
    op_chain = Op(abs)
    Op.__call__ = lambda self, *args: 2
    flaky = lambda n: n
    bound = $(log.append||numbers.append)
    scaled_tensor = functools.partial(rn.multiply, rn.ones(()) * $(2||3))
"""  # noqa: E501
