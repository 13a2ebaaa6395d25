"""Random numbers, conditionals and scans of graphs."""

TEXT = r"""
## chance
code:
    rn.manual_seed(11)
    generator_one = rn.Generator(3)
    noise_layer, kept_noise = nn.Dropout(0.5), rn.rand(3)
    class Noisy(nn.Module):
        def __init__(self): self.std, self.draws = 0.1, 0
        def forward(self, v):
            if not self.training: return v
            self.draws += 1
            return v + rn.randn(*v.shape) * self.std
    noisy, draws_told = Noisy(), []
    def shuffled(t): return t[rn.randperm(t.shape[0])]
    def pick_mask(t, p=0.5): return rn.where(rn.rand(*t.shape) < p, t, 0.0)
leaf:
    noisy.draws
    len(draws_told)
num:
    noisy.draws
    noise_layer.p
    kept_noise.shape[0]
    ~ random_module.random()
tensor:
    (y + rn.rand())
    (y * rn.randn())
    rn.rand(3).sum()
    rn.randint(0, 5, (2,)).sum() * y
    noise_layer(rn.ones((3,))).sum()
    noisy(y)
    shuffled(kept_noise)[0]
    pick_mask(y)
    pick_mask(kept_noise, 0.3).sum()
    (y + rn.rand(generator=generator_one))
    rn.bernoulli(rn.ones((2,)) * 0.5).sum()
    rn.normal(0.0, 1.0, (2,)).mean()
    rn.rand_like(y)
    rn.nn.functional.dropout(y, 0.5)
    (y + kept_noise.mean())
cond:
    noisy.training
    draws_told
seq:
    kept_noise
    draws_told[-2:]
stat:
    kept_noise = rn.rand(3)
    kept_noise.uniform_()
    kept_noise.normal_()
    kept_noise += rn.randn(3)
    noisy.std = $num
    noisy.train($cond)
    noise_layer.train($cond)
    draws_told.append(rn.rand())
    del draws_told[:-2]
    noise_layer.p = 0.3
    noisy.draws = 0
    ~ rn.manual_seed($small)
    ~ generator_one.manual_seed($small)
block:
    if $cond:
        y = y + rn.rand()
    else:
        y = y + rn.randn()
        $body

    for k$id in range($small):
        y = y + rn.rand() * k$id
        $body

    with rn.no_grad():
        kept_noise = rn.rand(3)
        $body

    try:
        y = y + rn.rand()
        y = y @ rn.rand(7, 7, 2)
    except Exception:
        y = y + rn.rand()

    y = y + rn.checkpoint(lambda t: noise_layer(t) * 2, rn.ones((3,))).sum()
    $body
change:
    rn.manual_seed(4)
    rn.rand(2)
    generator_one = rn.Generator(5)
    rn.rand(2, generator=generator_one)
    noisy.eval()
    noisy.train()
    noise_layer.eval()
    noise_layer = nn.Dropout($(0.2||0.0))
    kept_noise = rn.rand($(3||2))
    noisy.std = $(0.5||rn.ones(()))
    noisy.draws = 4
    rn.set_rng_state(rn.get_rng_state())
    def pick_mask(t, p=0.5): return t * p

## flow
code:
    threshold, gain_t, steps_taken = 0.5, rn.ones(()) * 2, [0]
    carry_kept = rn.zeros(())
    xs_of = rn.asarray(np.arange(6, dtype=np.float32).reshape(3, 2))
    def double_it(t): return t * 2
    def shift_it(t): return t + gain_t
    def told_branch(t):
        steps_taken.append(1)
        return t * 3
    def cell_of(carry, v): return carry * 0.5 + v.sum(), carry
    branches = {'up': double_it, 'down': shift_it}
    weight_w = rn.Parameter(rn.ones((2,)))
leaf:
    threshold
    len(steps_taken)
    xs_of.shape[0]
num:
    len(branches)
    steps_taken[0]
tensor:
    rn.cond(y.sum() > $num, double_it, shift_it, y)
    rn.cond(y.sum() > 0, lambda t: t * $num, lambda t: t + $leaf, y)
    rn.cond(y.sum() > 0, branches['up'], branches[$('up'||'down')], y)
    rn.cond(y.mean() > threshold, lambda t: t * gain_t, lambda t: t, y)
    rn.cond(x.sum() > 0, lambda: y * 1, lambda: y * 2)
    rn.scan(cell_of, carry_kept, xs_of)[0]
    rn.scan(cell_of, y.sum(), xs_of)[1].sum()
    rn.scan(lambda c, v: (c + v * $num, c * gain_t), rn.zeros((2,)), xs_of)[0].sum()
    rn.scan(lambda c, _: (rn.tanh(c) + threshold, None), y, None, length=3)[0]
    rn.scan(lambda c, v: (rn.cond(c > 0, lambda t: t - 1, lambda t: t + 2, c), v * c), y.sum(), xs_of)[0]
    rn.while_loop(lambda c: c[0] < $(3||2), lambda c: (c[0] + 1, c[1] * 0.5), (rn.zeros(()), y))[1]
    rn.vmap(lambda v: v.sum() * $num)(xs_of).sum()
    rn.vmap(double_it)(xs_of).mean()
    rn.vmap(lambda v, w: v @ w, in_axes=(0, None))(xs_of, gain_t * rn.ones((2,))).sum()
    rn.grad(lambda t: (t * t * $num).sum())(y)
    rn.value_and_grad(lambda t: (rn.tanh(t) * gain_t).sum())(y)[1]
    rn.jvp(double_it, (y,), (y * 0 + 1,))[1]
    rn.checkpoint(shift_it, y)
    rn.scan(lambda c, v: (c + (v * weight_w).sum(), None), rn.zeros(()), xs_of)[0].detach()
    rn.grad(lambda t: rn.scan(lambda c, v: (c * t + v.sum(), None), t, xs_of)[0])(y.sum())
    rn.stop_gradient(y * $num)
    rn.where(y > threshold, y * gain_t, $leaf)
cond:
    threshold > $num
    branches['up'] is double_it
    gain_t.ndim == 0
stat:
    threshold = $num
    threshold *= 0.5
    gain_t = gain_t * 0.5 + y.mean() * 0.1
    gain_t += 1
    carry_kept, seen$id = rn.scan(cell_of, carry_kept, xs_of)
    branches[$('up'||'down')] = $(double_it||shift_it||lambda t: t - $num)
    xs_of = xs_of + 1
    xs_of[0] = y.sum()
    steps_taken[0] += 1
    steps_taken[1:] = []
    y = rn.cond(y.sum() > 0, lambda t: t * total, lambda t: -t, y)
block:
    for k$id in range($small):
        y = rn.cond(y.sum() > k$id, double_it, shift_it, y)
        $body

    def body$id(carry, v):
        if threshold > 0: carry = carry + v.sum()
        else: carry = carry * 2
        return carry, v * $num
    out$id, seen$id = rn.scan(body$id, y.sum(), xs_of, reverse=$cond)
    y = y + out$id + seen$id.mean()

    if $cond:
        y = rn.cond(gain_t > 1, double_it, shift_it, y)
        $body
    else:
        carry_kept = rn.scan(cell_of, carry_kept, xs_of)[0]

    states$id = []
    for v$id in xs_of:
        carry_kept = carry_kept * 0.5 + v$id.sum()
        states$id.append(carry_kept)
    y = y + rn.stack(states$id).mean()

    try:
        y = rn.cond(y.sum() > 0, lambda t: t, lambda t: rn.ones((7,)), y)
    except Exception as problem:
        log.append(type(problem).__name__)
change:
    threshold = $(0.9||-1||2)
    gain_t = $(rn.ones(()) * 3||gain_t * 1||2.0)
    carry_kept = rn.ones(())
    xs_of = $(rn.ones((3, 2))||rn.ones((2, 2)))
    branches['up'] = shift_it
    def double_it(t): return t * 4
    def cell_of(carry, v): return carry + v.max(), carry * 2
    def shift_it(t): return t - 1
    shift_it = double_it
    steps_taken.clear()
    steps_taken[:] = [3]
    weight_w.assign(rn.ones((2,)) * 3)
"""
