"""Gradients that are read and written, modules with buffers and hooks."""

TEXT = r"""
## gradients
code:
    rn.manual_seed(9)
    keep_grads = $(True||True||False)
    theta, phi = rn.Parameter(rn.asarray(np.float32([1, -2, 3]))), rn.Parameter(rn.ones(()) * 0.5)
    frozen_p = rn.Parameter(rn.ones((3,)))
    frozen_p.requires_grad = False
    learned, grads_seen, accumulated = [theta, phi], [], {'n': 0}
    target_of = rn.asarray(np.float32([0.5, 1, 2]))
    def energy(v): return ((theta * v + phi) ** 2).mean()
    def descend(rate=0.1):
        with rn.no_grad():
            for p in learned:
                if p.grad is not None: p -= rate * p.grad
    def zero_all():
        for p in learned: p.grad = None
    def norm_of():
        found = [p.grad for p in learned if p.grad is not None]
        return sum(((g ** 2).sum() for g in found), rn.zeros(()))
    held_loss = None
leaf:
    accumulated['n']
    len(grads_seen)
    len(learned)
num:
    accumulated['n']
    (theta.grad is None) * 1
    sum(p.grad is not None for p in learned)
    theta.requires_grad
tensor:
    energy(target_of).detach()
    energy(target_of)
    (y * phi)
    (y + theta.sum())
    (y + (theta * frozen_p).sum().detach())
    norm_of()
    rn.grad(lambda t: energy(t))(target_of).sum().detach()
    rn.value_and_grad(energy)(target_of)[0].detach()
cond:
    theta.grad is None
    phi.grad is not None
    rn.is_grad_enabled()
    y.requires_grad
    theta.requires_grad
    accumulated['n'] % 2
seq:
    grads_seen[-2:]
    [p.requires_grad for p in learned]
stat:
    zero_all()
    theta.grad = None
    descend($float)
    grads_seen.append(norm_of())
    del grads_seen[:-2]
    accumulated['n'] = (accumulated['n'] + 1) % 12
    energy(target_of).backward()
    (energy(target_of) * $num).backward()
    held_loss = energy(target_of)
    held_loss = None
    phi.grad = rn.ones(())
    y = y.detach()
    target_of[0] = $num
    learned.reverse()
    theta.assign(theta.detach() * 0.5)
    if theta.grad is not None: theta.grad *= 0.5
    if theta.grad is not None: theta.grad = rn.clip(theta.grad, -1, 1)
    if phi.grad is not None: phi.grad.zero_()
block:
    zero_all()
    energy(target_of).backward()
    descend()
    $body

    loss$id = energy(target_of)
    loss$id.backward()
    y = y + loss$id.detach()
    if accumulated['n'] % 2:
        descend()
        zero_all()

    for k$id in range(2):
        (energy(target_of) * k$id).backward()
    grads_seen.append(norm_of())
    $body

    with rn.no_grad():
        theta *= 0.9
        y = y + energy(target_of)
        $body

    with rn.no_grad():
        if theta.grad is not None:
            theta -= 0.1 * theta.grad
            theta.grad = None

    try:
        energy(target_of).backward()
        raise ValueError('after')
    except ValueError:
        $body

    value$id, grads$id = rn.value_and_grad(lambda v: energy(v) * $num)(target_of)
    y = y + grads$id.mean().detach()
    $body

    g$id = rn.autograd.grad(energy(target_of), [theta])
    y = y + g$id[0].sum().detach()
    $body

    noise$id = y.detach() * 1.0
    noise$id.requires_grad_(True)
    (noise$id ** 2).sum().backward()
    y = y + noise$id.grad
change:
    energy(target_of).backward()
    last[0].sum().backward()
    (last[0].sum() * 2).backward()
    if held_loss is not None: held_loss.backward()
    zero_all()
    theta.grad = None
    theta.grad = rn.ones((3,))
    phi.grad = rn.ones(()) * 3
    descend()
    theta.requires_grad = $(True||False)
    theta = rn.Parameter(rn.ones((3,)))
    learned = [phi]
    learned[:] = [theta, phi]
    target_of = $(rn.ones((3,))||target_of * 2||rn.ones(()))
    def energy(v): return (theta * v).sum() * phi
    accumulated['n'] = 1
    phi.assign(rn.ones(()) * 2)
    frozen_p.requires_grad = True
    x = theta * 2
    acc = acc.detach()
argument:
    theta
    (tensor(1.0, 2.0, 3.0) * phi)
    target_of

## modules
code:
    rn.manual_seed(21)
    class Normed(nn.Module):
        def __init__(self, n=3, momentum=0.9):
            self.lin, self.momentum, self.updates = nn.Linear(n, n), momentum, 0
            self.register_buffer('mean', rn.zeros((n,)))
            self.register_buffer('steps', rn.zeros((), dtype=rn.int32), persistent=False)
        def forward(self, v):
            out = self.lin(v)
            if self.training:
                self.updates += 1
                self.steps += 1
                with rn.no_grad(): self.mean = self.mean * self.momentum + out.detach() * (1 - self.momentum)
            return out - self.mean
    class Cached_(nn.Module):
        def __init__(self):
            self.memo, self.offset = {}, rn.Parameter(rn.zeros((3,)))
        def forward(self, v, key='k'):
            if key not in self.memo: self.memo[key] = (v * 2).detach()
            return v + self.memo[key].sum() + self.offset
        def extra_repr(self): return f'{len(self.memo)}'
    class Stacked(nn.Module):
        def __init__(self, *blocks):
            self.blocks, self.heads = nn.ModuleList(blocks), nn.ModuleDict({'one': nn.Linear(3, 2), 'two': nn.Linear(3, 3)})
            self.head, self.used, self.captured = 'one', [], {}
        def forward(self, v, depth=None):
            for block in self.blocks[:depth]:
                v = block(v)
                self.used.append(type(block).__name__)
            del self.used[:-3]
            self.captured['v'] = v.detach()
            return self.heads[self.head](v)
    class Tied(nn.Module):
        def __init__(self):
            self.encode, self.decode = nn.Linear(3, 3), nn.Linear(3, 3)
            self.decode.weight = self.encode.weight
        def forward(self, v): return self.decode(rn.tanh(self.encode(v)))
    normed, cached_layer = Normed(), Cached_()
    stacked, tied = Stacked(normed, nn.ReLU(), cached_layer, nn.Tanh()), Tied()
    seen_shapes, activations = [], {}
    def keep_shape(module, args, out): seen_shapes.append(out.shape)
    def keep_activation(module, args, out): activations[type(module).__name__] = out.detach()
    def double_input(module, args): return (args[0] * 2,)
    def change_output(module, args, out): return out + len(seen_shapes)
    hook_one = $(None||normed.register_forward_hook(keep_shape)||tied.register_forward_hook(keep_activation)||stacked.blocks[0].register_forward_pre_hook(double_input)||tied.encode.register_forward_hook(change_output))
    feed = rn.asarray(np.float32([0.5, -1, 2]))
    batch_feed, norm_layer = rn.asarray(np.float32([[1, 2, 3], [4, 5, 7]])), nn.BatchNorm1d(3)
    saved_state = {k: v.numpy().copy() for k, v in stacked.state_dict().items()}
leaf:
    normed.updates
    len(stacked.blocks)
    len(seen_shapes)
    len(cached_layer.memo)
feedable:
    feed
    (feed * $num)
    normed(feed)
    tied($feedable)
    cached_layer($feedable)
    cached_layer(feed, $key)
    stacked.blocks[0]($feedable)
    norm_layer(batch_feed)[0]
tensor:
    (y + $feedable.sum())
    stacked(feed).sum()
    stacked(feed, $(1||2||None)).mean()
    (y + norm_layer(batch_feed).sum())
    (y + normed.mean.sum())
    (y + activations.get('Tied', feed).sum())
    (y * stacked.captured.get('v', feed).mean())
    (y + normed.steps)
    rn.functional_call(tied, {k: v * 2 for k, v in tied.named_parameters()}, (feed,)).sum()
num:
    normed.updates
    len(list(stacked.parameters()))
    len(stacked.state_dict())
    len(list(tied.named_parameters()))
    stacked.training
    len(activations)
    sum(1 for m in stacked.modules() if isinstance(m, nn.Linear))
    sum(p.size for p in stacked.parameters() if p.requires_grad)
    (tied.encode.weight is tied.decode.weight)
    [n for n, _ in stacked.named_modules()].index('heads')
    norm_layer.training
    normed.momentum
cond:
    normed.training
    stacked.head == 'one'
    'k' in cached_layer.memo
    isinstance(stacked.blocks[0], Normed)
    tied.decode.weight is tied.encode.weight
    activations
    all(p.requires_grad for p in tied.parameters())
text:
    repr(cached_layer)
    ','.join(stacked.state_dict())
    stacked.head
seq:
    stacked.used
    seen_shapes[-2:]
    [n for n, _ in normed.named_buffers()]
stat:
    stacked.head = $('one'||'two')
    normed.train($cond)
    stacked.eval()
    stacked.train()
    norm_layer.train($cond)
    normed.momentum = $float
    cached_layer.memo.clear()
    cached_layer.memo[$key] = $feedable
    seen_shapes.clear()
    activations.clear()
    normed.mean = rn.zeros((3,))
    normed.mean += 1
    normed.steps.zero_()
    normed.updates = 0
    feed = $feedable.detach()
    feed = feed * 0.5
    stacked.note = $num
    stacked.captured['w'] = tied.encode.weight.sum().detach()
    stacked.used.append($text)
block:
    for block$id in stacked.blocks:
        y = y + block$id(feed).sum()
        $body

    for name$id, p$id in tied.named_parameters():
        total += len(name$id)
        y = y + p$id.sum().detach()

    before$id = normed.training
    normed.eval()
    y = y + normed(feed).sum()
    normed.train(before$id)
    $body

    with rn.no_grad():
        y = y + stacked(feed).sum()
        for p$id in normed.lin.parameters(): p$id *= 0.9
        $body

    for b$id in normed.buffers():
        y = y + b$id.sum()

    if normed.updates % 3 == 0:
        normed.mean = normed.mean * 0.5
        $body
change:
    stacked.load_state_dict({k: rn.asarray(v) for k, v in saved_state.items()})
    normed.eval()
    normed.train()
    stacked.requires_grad_(False)
    stacked.requires_grad_(True)
    stacked.head = $('one'||'two')
    stacked.blocks.append(nn.ReLU())
    stacked.blocks[1] = nn.Tanh()
    stacked.blocks = nn.ModuleList([normed])
    stacked.heads['one'] = nn.Linear(3, 3)
    normed.lin = nn.Linear(3, 3)
    normed.mean = rn.ones((3,))
    normed.mean.fill_(2.0)
    normed = $(Normed()||stacked.blocks[0]||nn.Linear(3, 3))
    tied.decode.weight = rn.Parameter(rn.ones((3, 3)))
    tied.encode.weight.assign(rn.ones((3, 3)))
    tied.register_forward_hook(keep_shape)
    stacked.register_forward_pre_hook(double_input)
    hook_one.remove() if hook_one else None
    Normed.forward = lambda self, v: v * 2
    tied.forward = lambda v: v + 1
    cached_layer.memo.clear()
    cached_layer.memo['k'] = rn.ones((3,))
    norm_layer.eval()
    norm_layer.running_mean.fill_(1.0)
    stacked.apply(lambda m: m.eval())
    feed = rn.ones((3,))
    def keep_shape(module, args, out): seen_shapes.append(1)
    activations['Tied'] = feed
"""  # noqa: E501
