"""Several optimizers, and compiled functions in compiled ones."""

TEXT = r"""
## optimizers
code:
    rn.manual_seed(31)
    keep_grads = $(True||False)
    actor, critic = nn.Linear(3, 2), nn.Linear(2, 1)
    opt_actor = optim.$(SGD(actor.parameters(), lr=0.1)||SGD(actor.parameters(), lr=0.05, momentum=0.9, nesterov=True)||Adam(actor.parameters(), lr=0.01)||RMSprop(actor.parameters(), lr=0.01))
    opt_critic = optim.$(AdamW([{'params': [critic.weight], 'lr': 0.02}, {'params': [critic.bias], 'weight_decay': 0.1}], lr=0.01)||SGD(critic.parameters(), lr=0.1)||Adagrad(critic.parameters(), lr=0.1))
    scheduler = $(None||None||optim.lr_scheduler.StepLR(opt_actor, 2, 0.5)||optim.lr_scheduler.ExponentialLR(opt_actor, 0.9)||optim.lr_scheduler.CosineAnnealingLR(opt_actor, 10))
    inputs_of, wanted = rn.asarray(np.float32([[1, 2, 3], [0, -1, 1]])), rn.asarray(np.float32([[1], [0]]))
    class Average:
        def __init__(self): self.sum, self.n = 0.0, 0
        def add(self, v):
            self.sum, self.n = self.sum + v, self.n + 1
            return self
        @property
        def mean(self): return self.sum / max(self.n, 1)
    class Stopper:
        def __init__(self, patience): self.patience, self.bad, self.stopped = patience, 0, False
        def tick(self, improved):
            self.bad = 0 if improved else self.bad + 1
            if self.bad > self.patience: self.stopped = True
            return self.stopped
    average, stopper, loss_log = Average(), Stopper(2), collections.deque(maxlen=3)
    schedule_state = {'step': 0, 'warmup': 2, 'every': 2}
    shadow_weights = [p.detach() * 1.0 for p in actor.parameters()]
    checkpoint_of = {}
    def total_loss(): return ((critic(rn.tanh(actor(inputs_of))) - wanted) ** 2).mean()
    def warm_rate(n): return 0.1 * min(1.0, (n + 1) / schedule_state['warmup'])
    def both_steps():
        opt_actor.step()
        opt_critic.step()
    def both_zero():
        opt_actor.zero_grad()
        opt_critic.zero_grad()
leaf:
    schedule_state['step']
    average.n
    len(loss_log)
    stopper.bad
num:
    schedule_state['step']
    stopper.tick($cond)
    len(opt_critic.param_groups)
    opt_actor.param_groups[0]['lr']
    opt_critic.param_groups[-1]['lr']
    warm_rate($leaf)
    average.n
    len(opt_actor.param_groups[0]['params'])
tensor:
    total_loss().detach()
    total_loss()
    (y + average.mean)
    (y + sum(loss_log))
    (y + shadow_weights[0].sum())
    (y + actor.weight.sum().detach())
    actor(inputs_of).mean().detach()
cond:
    stopper.stopped
    schedule_state['step'] % schedule_state['every'] == 0
    actor.weight.grad is None
    checkpoint_of
seq:
    loss_log
    [g['lr'] for g in opt_critic.param_groups]
    list(checkpoint_of)
stat:
    schedule_state['step'] = (schedule_state['step'] + 1) % 20
    schedule_state['every'] = $(1||2||3)
    average.add($num)
    average.add(total_loss().detach())
    average = Average()
    loss_log.append(total_loss().detach())
    stopper.bad = 0
    stopper.stopped = False
    both_zero()
    opt_actor.zero_grad()
    checkpoint_of['w'] = actor.weight.detach() * 1
    checkpoint_of.clear()
    shadow_weights[0] = shadow_weights[0] * 0.9 + actor.weight.detach() * 0.1
    shadow_weights[0].lerp_(actor.weight.detach(), 0.1)
    inputs_of = inputs_of * 0.9
    if scheduler: scheduler.step()
block:
    both_zero()
    loss$id = total_loss()
    loss$id.backward()
    both_steps()
    loss_log.append(loss$id.detach())

    loss$id = total_loss() / schedule_state['every']
    loss$id.backward()
    schedule_state['step'] += 1
    if schedule_state['step'] % schedule_state['every'] == 0:
        both_steps()
        both_zero()

    opt_actor.zero_grad()
    total_loss().backward()
    opt_actor.step()
    y = y + total_loss().detach()
    $body

    both_zero()
    total_loss().backward()
    nn.utils.clip_grad_norm_(actor.parameters(), $(1.0||0.5))
    opt_actor.step()
    if scheduler: scheduler.step()
    $body

    for k$id in range(2):
        both_zero()
        loss$id = total_loss() * (k$id + 1)
        loss$id.backward()
        both_steps()
        average.add(loss$id.detach())

    if not stopper.tick($cond):
        both_zero()
        total_loss().backward()
        opt_critic.step()
        $body
    else:
        checkpoint_of['b'] = critic.bias.detach() * 1

    with rn.no_grad():
        for s$id, p$id in zip(shadow_weights, actor.parameters()): s$id.mul_(0.9).add_(p$id * 0.1)
        y = y + total_loss()

    try:
        both_zero()
        total_loss().backward()
        if $cond: raise ValueError('skipped')
        both_steps()
    except ValueError as problem:
        log.append(str(problem))
change:
    opt_actor.param_groups[0]['lr'] = 0.3
    opt_critic.param_groups[-1]['lr'] = 0.0
    opt_actor.load_state_dict(opt_actor.state_dict())
    opt_actor = optim.SGD(actor.parameters(), lr=0.2)
    opt_critic = optim.Adam(critic.parameters())
    actor.weight.requires_grad = $(False||True)
    actor.weight.assign(rn.ones((2, 3)))
    actor = nn.Linear(3, 2)
    critic.bias = None
    scheduler.step() if scheduler else None
    scheduler = None
    both_zero()
    total_loss().backward()
    both_steps()
    inputs_of = rn.ones((2, 3))
    inputs_of = rn.ones((4, 3))
    average.n = 5
    stopper.stopped = False
    stopper.patience = 9
    schedule_state['step'] = 0
    loss_log.clear()
    shadow_weights[0] = rn.ones((2, 3))
    shadow_weights = [p.detach() * 1.0 for p in actor.parameters()]
    opt_critic.add_param_group({'params': [rn.Parameter(rn.ones(()))]}) if len(opt_critic.param_groups) < 3 else None
    actor.weight.grad = rn.ones((2, 3))
    def total_loss(): return (actor(inputs_of) ** 2).mean()

## compiled
code:
    calls_inside, factor_of, table_inside = {'n': 0}, 2, {}
    @rn.compile
    def scale_inside(v, by=1):
        calls_inside['n'] += 1
        return v * by * factor_of
    @rn.compile
    def keeps_state(v):
        table_inside['last'] = v
        table_inside['n'] = table_inside.get('n', 0) + 1
        return v + table_inside['n']
    @rn.compile
    def outer_inside(v, n=1): return scale_inside(keeps_state(v), by=n) + scale_inside(v)
    class Service:
        def __init__(self): self.k, self.seen = 1, []
        @rn.compile
        def serve(self, v):
            self.k += 1
            self.seen.append(self.k)
            del self.seen[:-3]
            return v * self.k
        @rn.uncompiled
        def plainly(self, v): return v + self.k
    @rn.compile
    def raising_inside(v, n):
        calls_inside['n'] += 1
        if n > 3: raise ValueError('n')
        return v * n
    @rn.compile
    def recursive_inside(v, n):
        if n <= 0: return v
        return recursive_inside(v * 2, n - 1) + 1
    service, compiled_list = Service(), [scale_inside, keeps_state]
    compiled_closure = (lambda k: rn.compile(lambda v: v * k + count))(3)
    compiled_layer = rn.compile(nn.Linear(3, 3))
    weight_inside = rn.Parameter(rn.ones((3,)))
    compiled_loss = rn.compile(lambda v: ((weight_inside * v) ** 2).sum())
    host_double = lambda a: np.asarray(a) * 2
    partial_inside = functools.partial(scale_inside, by=3)
leaf:
    calls_inside['n']
    factor_of
    service.k
    table_inside.get('n', 0)
num:
    calls_inside['n']
    len(service.seen)
    compiled_list.index(keeps_state)
    len(table_inside)
tensor:
    scale_inside(y)
    scale_inside(y, by=$num)
    scale_inside(y, $leaf)
    keeps_state(y)
    outer_inside(y)
    outer_inside(y, n=$num)
    service.serve(y)
    ~ service.plainly(y)
    raising_inside(y, $num)
    recursive_inside(y, $small)
    compiled_closure(y)
    compiled_list[$(0||-1)](y)
    compiled_layer(rn.ones((3,))).sum()
    partial_inside(y)
    compiled_loss(rn.ones((3,)) * $leaf)
    (y + compiled_loss(rn.ones((3,))).detach())
    rn.grad(lambda t: scale_inside(t).sum())(y)
    rn.vmap(scale_inside)(rn.stack([y, y])).sum()
    rn.pure_callback(host_double, rn.ShapeDtypeStruct(y.shape, y.dtype), y)
    sum((f(y) for f in compiled_list), y)
cond:
    calls_inside['n'] > $num
    'last' in table_inside
    scale_inside is compiled_list[0]
seq:
    service.seen
    list(table_inside)
    table_inside
stat:
    factor_of = $num % 9
    calls_inside['n'] = 0
    table_inside.clear()
    table_inside['n'] = $num % 20
    service.k = $num % 9
    service = Service()
    compiled_list.reverse()
    y = scale_inside(scale_inside(y, 2))
    compiled_list[0] = $(scale_inside||keeps_state||compiled_closure)
    config['compiled'] = scale_inside
block:
    for f$id in compiled_list:
        y = f$id(y)
        $body

    try:
        y = raising_inside(y, $num)
    except ValueError:
        $body

    with rn.no_grad():
        y = y + compiled_loss(rn.ones((3,)))
        $body

    compiled_loss(rn.ones((3,))).backward()
    if weight_inside.grad is not None: y = y + weight_inside.grad.sum()
    weight_inside.grad = None

    inner$id = rn.compile(lambda v: v * $num + total)
    y = inner$id(y)
    $body
change:
    factor_of = $(3||2.5||1)
    calls_inside['n'] = 7
    table_inside.clear()
    table_inside['last'] = 3
    service.k = 5
    service = Service()
    scale_inside(tensor(1.0))
    keeps_state(tensor(1.0, 2.0))
    compiled_list[0] = lambda v: v
    scale_inside = lambda v, by=1: v
    Service.serve = lambda self, v: v * 2
    compiled_layer.weight.assign(rn.ones((3, 3))) if hasattr(compiled_layer, 'weight') else None
    compiled_loss(rn.ones((3,))).backward()
    weight_inside.assign(rn.ones((3,)) * 2)
    weight_inside.requires_grad = $(False||True)
    compiled_closure = rn.compile(lambda v: v)
    scale_inside.clear_cache()
"""  # noqa: E501
