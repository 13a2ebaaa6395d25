"""Tensors that change, NumPy arrays, modules, optimizers, compiled functions inside; namespaces, patched functions."""

TEXT = r"""
## tensors
code:
    buffer, ones = rn.zeros((3,)), rn.ones((3,))
    alias = $(buffer||ones||buffer * 1)
    states = [buffer, rn.asarray(np.float32([1, 2, 3]))]
    cache = {}
    def window(n): return rn.asarray(np.arange(int(n) % 4 + 1, dtype=np.float32))
vec:
    buffer
    ones
    alias
    states[0]
    states[-1]
    cache.get('v', ones)
    (ones * $num)
    (buffer + ones)
    cache.setdefault($key, ones * $num)
tensor:
    (y * $vec.sum())
    (y + $vec.mean())
    $vec[$(0||-1||1)]
    rn.stack([y.sum(), $vec[0]]).sum()
    ($vec @ ones)
    window($num).sum()
    rn.concat([$vec, ones]).max()
    $vec[$(1:||:2||::2)].sum()
    $vec.reshape(3, 1).sum()
num:
    $vec.shape[0]
    $vec.ndim
    len(cache)
    ($vec is $vec)
    ~ int(window($num).shape[0])
    len($vec)
cond:
    buffer is alias
    $vec.dtype == rn.float32
    $key in cache
    $vec is $vec
    'v' in cache
stat:
    buffer[$(0||-1||1:||:2)] = $(1.5||$num||y.sum())
    buffer += $(1||ones||$num)
    buffer.add_($(ones||1))
    alias.mul_(0.5)
    states[0] = $vec
    states[-1] += ones
    buffer = $vec
    alias = $vec
    ones = ones * 1.0
    cache['v'] = $vec
    cache.clear()
    buffer.copy_($vec)
    buffer.fill_($num)
    buffer.zero_()
    states.reverse()
    config['last'] = $vec
    $vec[0] = $num
    old$id = buffer * 1; buffer[0] = total; y = y + old$id[0]
block:
    if 'v' not in cache:
        cache['v'] = $vec * 2
        $body
    y = y + cache['v'].sum()

    for t$id in states:
        t$id[0] = t$id[0] + $num
        y = y + t$id.mean()

    held$id = [t$id * 1.0 for t$id in states]
    $body
    y = y + sum(held$id).sum()

    for i$id in range(len(buffer)):
        buffer[i$id] = buffer[i$id] + i$id
change:
    buffer = $(rn.ones((3,))||ones||alias||buffer * 1)
    alias = $(buffer||ones||rn.zeros((3,)))
    buffer[0] = 9.0
    states = [buffer, $(buffer||ones||ones * 1)]
    states.append(ones)
    cache['v'] = $(buffer||ones||rn.zeros((2,)))
    cache.pop('v', None)
    alias.fill_(2.0)
    ones = rn.ones((3,), dtype=rn.$(float32||float64))
    buffer = rn.asarray(buffer)
argument:
    buffer
    alias
    buffer * 2

## arrays
code:
    array, whole = np.array([1.0, 2.0, 4.0], np.float32), np.arange(4)
    scalar, view = np.float32(1.5), array[1:]
    grid = {'a': array, 'b': np.eye(2)}
leaf:
    len(array)
    array.shape[0]
num:
    len(grid)
    array.ndim
    whole.size
    array.shape[0]
    (array is grid['a'])
    ~ int(whole[$(0||-1||1)])
cond:
    array is grid['a']
    array.dtype == np.float32
    isinstance(scalar, np.floating)
    ~ array[0] > $num
seq:
    array
    array.shape
    [scalar, array]
tensor:
    (y + rn.asarray(array).sum())
    (y * scalar)
    rn.asarray(whole).sum() * y
    (y + rn.asarray(array[$(0||-1||1)]))
    (y + rn.asarray(array[:2]).mean())
    (y + rn.asarray(grid['b']).sum().astype(rn.float32))
    (rn.asarray(array)[rn.asarray(whole)[0]] + y)
stat:
    grid['a'] = array
    config['array'] = array
    view = array[:2]
    scalar = $num
block:
    if array.ndim == 1:
        y = y + rn.asarray(array).max()
        $body
change:
    array[0] = 7
    view[0] = 3
    array = $(np.ones(3, np.float32)||np.ones(3)||view||array.copy())
    whole = np.arange(5)
    whole[1] = 2
    whole = whole.astype(np.int32)
    scalar = $(np.float64(2)||np.int64(3)||1.5||np.float32(1.5))
    grid['a'] = $(array||array.copy()||np.zeros(3))
    array *= 2
    array.shape = (3, 1) if array.ndim == 1 and array.size == 3 else array.shape

## namespaces
code:
    settings = types.SimpleNamespace(gain=1.5, steps=0, sub=types.SimpleNamespace(k=1))
    module = types.ModuleType('user_module')
    exec('import math\nlevel = 1\ndef scale(n): return n * level + math.floor(1.5)\ndef grow():\n    global level\n    level += 1\n    return level', vars(module))
    class Registry(dict):
        misses = 0
        def __missing__(self, k):
            Registry.misses += 1
            self[k] = len(k) + $int
            return self[k]
        def __setitem__(self, k, v): super().__setitem__(k, v % 30 if isinstance(v, int) else v)
    class Stack(list):
        top = property(lambda self: self[-1] if self else 0)
        def push(self, v):
            self.append(v)
            return self
    class Meters(collections.UserDict):
        def __getitem__(self, k): return super().__getitem__(k) * 2
    class Node:
        def __init__(self, v, next=None): self.v, self.next = v, next
        def __iter__(self):
            at = self
            for _ in range(5):
                if at is None: return
                yield at.v
                at = at.next
    nested_lists = [[1, 2], [3]]
    registry, stack, meters = Registry(one=1), Stack([1, 2]), Meters(a=1)
    node = Node(1, Node(2))
    def bump_global():
        global count
        count = (count + 1) % 30
        return count
leaf:
    settings.gain
    module.level
    node.v
    len(stack)
num:
    settings.gain
    settings.sub.k
    getattr(settings, 'late', $num)
    module.scale($num)
    module.grow()
    module.level
    getattr(module, 'late', 2)
    registry[$key]
    registry.get($key, $num)
    len(registry)
    Registry.misses
    stack.top
    len(stack.push($num % 9))
    meters['a']
    meters.get('b', $num)
    sum(node)
    node.next.v
    bump_global()
    vars(settings)['gain']
    len(vars(module))
    math.floor($num)
    math.sqrt(abs($num))
    sum(nested_lists[0])
cond:
    hasattr(settings, 'late')
    hasattr(module, 'late')
    $key in registry
    stack
    node.next is node
    nested_lists[0] is nested_lists[1]
    'b' in meters
text:
    module.__name__
seq:
    list(registry.items())
    stack
    stack[:1]
    dict(meters)
    list(node)
    vars(settings)
    nested_lists
stat:
    settings.steps += 1
    settings.gain = $num % 9
    settings.late = $num
    settings.sub.k += 1
    module.level = $num % 9
    module.late = $num
    module.grow()
    registry[$key] = $num
    registry.update(a=$num % 9)
    stack.push($num % 50)
    stack = Stack([$num])
    stack += [$num % 5]
    meters['a'] = $num % 9
    meters['b'] = $num
    node.v = $num % 9
    node.next = $(Node($num)||None||node||Node(1, node))
    node = Node($num % 9, node.next)
    bump_global()
    nested_lists[0].append($num % 9)
    nested_lists[1] = nested_lists[$(0||1)]
    del nested_lists[0][2:]
    vars(settings)['gain'] = $num
    del settings.late
    registry.pop($key)
block:
    for v$id in node:
        total += v$id
        $body

    at$id = node
    for _ in range(3):
        if at$id.next is None:
            at$id.next = Node($num % 9)
            break
        at$id = at$id.next

    for k$id in list(registry):
        registry[k$id] += 1
        $body

    import math as m$id
    total += m$id.floor($num)
change:
    settings = types.SimpleNamespace(gain=2, steps=1, sub=settings.sub)
    settings.late = 3
    settings.sub = settings
    module.level = 5
    module.scale = lambda n: n
    module.late = 4
    vars(module).pop('late', None)
    registry.clear()
    registry['a'] = 3
    Registry.misses = 0
    Registry.__missing__ = lambda self, k: 1
    stack = Stack()
    stack.append(3)
    Stack.top = 4
    meters = {'a': 5}
    meters.data['b'] = 4
    node = Node(3)
    node.next = node
    nested_lists[0] = nested_lists[1]
    nested_lists = [[1], [1]]
    math = types.SimpleNamespace(floor=lambda n: 1, sqrt=lambda n: 2)
    def bump_global(): return 4
    Node.__iter__ = lambda self: iter([self.v])
    del registry['one']

## layers
code:
    class Block(nn.Module):
        depth = 1
        def __init__(self, n=3):
            super().__init__()
            self.linear, self.bias = nn.Linear(n, n), rn.Parameter(rn.zeros((n,)))
            self.register_buffer('seen', rn.zeros(()))
            self.calls, self.options, self.scale = 0, {'skip': True}, 1.0
        def forward(self, y):
            self.calls += 1
            $(self.seen += 1||self.seen = self.seen + y.sum()||self.last = y||self.seen.add_(1)||pass)
            out = self.linear(y) + self.bias * self.scale
            return out + y if self.options['skip'] else out
    class Deep(Block):
        def forward(self, y): return super().forward(y) * self.$(depth||scale||calls)
    rn.manual_seed(3)
    block, blocks = Block(), nn.ModuleList([Block(), Deep()])
    net = nn.Sequential(nn.Linear(3, 3), $(nn.ReLU()||nn.Tanh()||nn.Dropout(0.5)||nn.BatchNorm1d(3)))
    hooked = []
    handle = $(None||block.register_forward_hook(lambda m, a, out: hooked.append(len(hooked)))||block.linear.register_forward_pre_hook(lambda m, a: (a[0] * count,)))
    vector = rn.ones((3,))
leaf:
    block.calls
    len(blocks)
num:
    block.calls
    block.depth
    block.training
    len(list(block.parameters()))
    blocks[0].scale
    len(hooked)
    sum(p.size for p in block.parameters())
    len(block.state_dict())
    (block is blocks[0])
    len(list(net.children()))
    len(net)
cond:
    block.training
    block.options['skip']
    isinstance(block, Deep)
    block.linear is blocks[0].linear
    hasattr(block, 'last')
text:
    repr(net)
    ','.join(n for n, _ in block.named_parameters())
    type(blocks[-1]).__name__
vec:
    vector
    (vector * $num)
    block($vec)
    block.bias
    blocks[$(0||-1)]($vec)
    net(rn.stack([$vec, vector]))[0]
    nn.functional.relu($vec)
tensor:
    (y + $vec.sum())
    ($vec.mean() * y)
    (y + block.seen)
    block.linear.weight.sum()
stat:
    block.scale = $num
    block.options['skip'] = $cond
    block.depth += 1
    block.train($cond)
    block.eval()
    net.train($cond)
    block.extra = $num
    vector = $vec.detach()
    block.calls = $num
    Block.depth = $num % 9
    block.seen = rn.zeros(())
    vector = (vector * 0.5).detach()
    block.last = $vec
block:
    for b$id in blocks:
        y = y + b$id($vec).mean()

    for name$id, p$id in block.named_parameters():
        total += len(name$id)
        if p$id.ndim == 1: y = y + p$id.sum()

    if block.training:
        $body
    else:
        block.train()

    with rn.no_grad():
        block.bias += 1
        $body
change:
    block = $(Block()||Deep()||blocks[0]||block)
    blocks[0] = $(block||Deep())
    block.eval()
    block.train()
    block.options['skip'] = False
    block.options = {'skip': $(True||0)}
    block.linear = nn.Linear(3, 3)
    block.linear.bias = None
    block.scale = 2.0
    block.scale = block.bias
    Block.forward = lambda self, y: y * 2
    block.forward = lambda y: y + 1
    Block.depth = 4
    block.bias.requires_grad = False
    block.bias = blocks[0].bias
    hooked.clear()
    handle.remove() if handle else None
    block.register_forward_hook(lambda m, a, out: out * 2)
    net[1] = nn.Sigmoid()
    net.append(nn.ReLU())
    block.bias.assign(rn.ones((3,)))
    block.extra = 5

## steps
code:
    rn.manual_seed(5)
    weight, offset = rn.Parameter(rn.ones((3,))), rn.Parameter(rn.zeros(()))
    opt = optim.$(SGD([weight, offset], lr=0.1)||SGD([weight, offset], lr=0.1, momentum=0.9)||Adam([weight, offset], lr=0.01)||AdamW([weight], lr=0.01))
    schedule = $(None||optim.lr_scheduler.StepLR(opt, 2)||optim.lr_scheduler.LambdaLR(opt, lambda n: 1 / (n + 1)))
    losses, best, data = [], None, rn.asarray(np.float32([[1, 2, 3], [4, 5, 6]]))
    ema = {'weight': weight.detach() * 1.0}
    inner_calls = 0
    @rn.compile
    def inner(v, k=1):
        global inner_calls
        inner_calls += 1
        return v * k + config['gain']
    def loss_of(v): return ((v * weight + offset) ** 2).mean()
    clip = 1.0
leaf:
    len(losses)
    opt.param_groups[0]['lr']
num:
    opt.param_groups[0]['lr']
    len(opt.param_groups)
    len(losses)
    inner_calls
    len(opt.param_groups[0]['params'])
    (weight is opt.param_groups[0]['params'][0])
    clip
cond:
    best is None
    len(losses) % 3 == 0
    weight.requires_grad
    weight.grad is None
tensor:
    inner(y)
    inner(y, $num)
    loss_of(data[$(0||1)])
    (y * weight.sum())
    (y + ema['weight'].sum())
    sum(losses[-2:], y)
stat:
    losses.append(loss_of(data[0]).detach())
    losses[:] = losses[-3:]
    ema['weight'] = ema['weight'] * 0.9 + weight.detach() * 0.1
    ema['weight'].mul_(0.5)
    best = loss_of(data[1]).detach()
    clip = $num
    opt.zero_grad()
    y = inner(inner(y, 2), k=$num)
block:
    opt.zero_grad()
    loss$id = loss_of(data[$(0||1)])
    loss$id.backward()
    opt.step()
    y = y + loss$id.detach()

    opt.zero_grad()
    (loss_of(data) * $num).backward()
    if weight.grad is not None: losses.append(weight.grad.sum())
    rn.nn.utils.clip_grad_norm_([weight, offset], abs(clip) + 0.1)
    opt.step()

    value$id, grad$id = rn.value_and_grad(loss_of)(data[0])
    y = y + value$id.detach() + grad$id.sum().detach()

    with rn.no_grad():
        weight -= 0.1
        $body

    opt.zero_grad()
    loss$id = loss_of(data[0])
    loss$id.backward()
    opt.step()
    if schedule: schedule.step()
    losses.append(loss$id.detach())

    if best is None or $cond:
        best = loss_of(data[0]).detach()
        $body
change:
    opt.param_groups[0]['lr'] = 0.5
    opt = optim.SGD([weight], lr=0.2)
    weight = rn.Parameter(rn.ones((3,)) * 2)
    weight.requires_grad = False
    weight.requires_grad = True
    offset = $(weight.detach()||rn.Parameter(rn.ones(())))
    losses.clear()
    losses = [rn.ones(())]
    best = None
    best = rn.zeros(())
    ema['weight'] = weight
    ema['weight'] = weight.detach()
    data = data * 2
    data = data[0]
    inner = lambda v, k=2: v
    def loss_of(v): return (v * offset).sum()
    inner_calls = 0
    opt.zero_grad()
    loss_of(data).backward()
"""  # noqa: E501
