"""Models between programs: other dtypes and back, parametrizations, swapped Parameters, draws by run-time numbers."""

TEXT = r"""
## moved
code:
    class Scaling(nn.Module):
        factor = 2.0
        def __init__(self):
            super().__init__()
            self.shift, self.parts = 0.5, [1.0]
        def forward(self, w): return w * self.factor * self.parts[0] + self.shift
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.gain = rn.Parameter(rn.ones((2,)) * 0.3), 1.5
            self.register_buffer('total', rn.zeros(()))
        def forward(self, y):
            self.total += y.sum().detach().to(self.total.dtype)
            return y.sum() * self.w.float() * self.gain
    class Holding:
        def __init__(self, a, b): self.a, self.b = a, b
    factor_of = 1
    with contextlib.suppress(Exception):
        rn.tree_util.register_pytree_node(
            Holding, lambda h: ((h.a,), (h.b, factor_of)), lambda known, parts: Holding(parts[0] * known[1], known[0]))
    rn.manual_seed(5)
    line, plain_m, spread = nn.Linear(2, 2), Plain(), 0.1
    nn.utils.parametrize.register_parametrization(line, 'weight', Scaling())
    opt_moved = optim.SGD(plain_m.parameters(), lr=0.1, momentum=0.5)
    other_w, chosen = rn.asarray(np.float32([1, 2])), np.array([True, False])
    mask_of = rn.asarray(np.array([True, False]))
    def moved_loss(): return (plain_m(rn.ones((2,))) ** 2).sum()
leaf:
    spread
    plain_m.gain
tensor:
    (plain_m(y).sum() + y)
    (line(rn.ones((2,)) * y.sum()).sum() * y)
    rn.functional_call(plain_m, {'w': other_w}, (y,)).sum() + y
    (other_w[chosen].sum() * y)
    (other_w[mask_of].sum() + y)
    (plain_m.w.float().sum() * y)
    (line.weight.sum() - y)
    rn.vmap(plain_m)(rn.stack([other_w, other_w + y.sum()])).sum() + y
    rn.checkpoint(lambda t: t * $leaf, y)
stat:
    nn.init.normal_(plain_m.w, std=spread)
    nn.init.uniform_(plain_m.w, 0.0, spread)
    nn.init.constant_(plain_m.w, spread)
    spread = spread * 1.5 if spread < 2 else 0.1
    plain_m.gain = $num % 7
    other_w = plain_m.w.float().detach() * 1
    log.append(float(spread))
    last = (plain_m.total * 1, spread)
block:
    opt_moved.zero_grad()
    moved_loss().backward()
    opt_moved.step()

    with rn.no_grad():
        plain_m.w.mul_(0.5)
change:
    plain_m.to(rn.$(bfloat16||float64||float32||float16))
    plain_m.float()
    plain_m.to(rn.bfloat16).float()
    plain_m.w.data = plain_m.w.data * 2
    plain_m.w = rn.Parameter(rn.ones((2,)))
    plain_m.load_state_dict({k: v * 2 for k, v in plain_m.state_dict().items()})
    plain_m.gain = $num
    plain_m.requires_grad_($(True||False))
    with rn.no_grad(): plain_m.w.add_(0.25)
    y = plain_m(rn.ones((2,)))
    Scaling.factor = $(2.0||3.0)
    line.parametrizations.weight[0].shift = $num
    line.parametrizations.weight[0].parts[0] = 1.5
    line.weight = rn.ones((2, 2))
    nn.utils.parametrize.remove_parametrizations(line, 'weight')
    nn.utils.parametrize.register_parametrization(line, 'weight', Scaling())
    spread = $(0.1||0.5||1)
    factor_of = $(1||2)
    chosen[1] = $(True||False)
    chosen = np.array([True, True])
    mask_of = rn.asarray(np.array([False, True]))
    other_w = other_w * 3
"""
