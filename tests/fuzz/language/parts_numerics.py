"""NumPy arrays read and written, random numbers, conditionals and scans of graphs."""

TEXT = r"""
## numerics
code:
    samples, labels = np.float32([[1, 2, 3], [4, 5, 6], [7, 8, 9]]), np.array([0, 2, 1])
    mean_of, kept_rows = samples.mean(0), [samples[0], samples[1].copy()]
    typed = np.zeros(2, dtype=[('a', 'i4'), ('b', 'f4')])
    counter_array, zero_d = np.zeros(3, np.int64), np.array(2.5, np.float32)
    def normalized(a): return (a - a.mean()) / (a.std() + 1e-3)
    def one_hot_of(k, n=3):
        row = np.zeros(n, np.float32)
        row[int(k) % n] = 1
        return row
    def histogram_of(values):
        bins = np.zeros(4, np.int64)
        for v in values: bins[int(v) % 4] += 1
        return bins
    def window_mean(a, n):
        kernel = np.ones(n) / n
        return np.convolve(a, kernel, 'valid')
arr:
    samples
    samples[$(0||-1||1)]
    samples[:, 1]
    mean_of
    kept_rows[0]
    normalized($arr)
    one_hot_of($num)
    ($arr * 2)
    np.clip($arr, 0, $leaf)
    np.stack(kept_rows)
    samples[labels]
    samples.T
    np.sort($arr)[..., ::-1]
    np.where($arr > 2, $arr, 0)
    np.float32([$leaf, 2])
    counter_array
leaf:
    len(samples)
    int(labels[0])
    samples.shape[1]
num:
    float($arr.sum())
    int($arr.argmax())
    $arr.ndim
    $arr.size
    len(np.unique(labels))
    float(samples[labels[0], 1])
    int((samples > 3).sum())
    float(np.dot(mean_of, mean_of))
    samples.item(0)
    labels.tolist()[-1]
    int(histogram_of(numbers)[1])
    float(zero_d)
    float(np.linalg.norm($arr))
    int(np.count_nonzero($arr))
    float($arr.flat[0])
    int(counter_array[0])
    float(window_mean(mean_of, 2)[0])
    bool(np.array_equal($arr, samples))
    bool(np.allclose($arr, $arr))
    int(typed['a'][0])
    int(labels[labels > 0].sum())
    int(np.argsort(labels)[0])
    ~ np.random.randint(3)
    ~ float(np.random.rand())
    ~ int(np.random.default_rng(3).integers(9))
    int(np.bincount(labels)[0])
    round(float($arr.max()), 2)
tensor:
    (y + rn.asarray($arr).sum())
    (y * float($arr.mean()))
    (y + $arr.sum())
    (y * np.float32($leaf))
    (y + zero_d)
    rn.asarray(np.asarray($arr, np.float32)).mean()
    rn.asarray(one_hot_of($num))[0] * y
    (rn.asarray(samples)[labels].sum() + y)
    (y + rn.asarray(samples.astype(np.float64)).astype(rn.float32).max())
    rn.asarray(samples) @ rn.ones((3,)) @ rn.ones((3,))
cond:
    $arr.any()
    samples[0, 0] > $num
    $arr.dtype == np.float32
    labels[0] == $leaf
    (samples == samples.T).all()
    $arr.shape == (3,)
    mean_of is kept_rows[0]
    np.isfinite($arr).all()
    samples.flags.writeable
seq:
    $arr
    [$arr, mean_of]
    labels.tolist()
    list(mean_of)
    samples.shape
    histogram_of(numbers)
    {'a': $arr}
text:
    str($arr.shape)
    repr(labels)
    f'{float(mean_of[0]):.3f}'
stat:
    mean_of = $arr
    mean_of = mean_of * 0.9 + 0.1
    samples = samples + 1
    samples = np.roll(samples, 1, axis=$(0||1))
    labels = (labels + 1) % 3
    labels = np.random.permutation(3) if False else labels[::-1]
    kept_rows.append($arr)
    del kept_rows[3:]
    kept_rows[0] = mean_of
    zero_d = np.float32($num)
    log.append($arr.sum())
    config['row'] = $arr
    ~ samples[0] = $num
    ~ counter_array[$(0||1)] += 1
    ~ mean_of += 1
    ~ samples[samples > 5] = 0
    ~ np.add(mean_of, 1, out=mean_of)
    ~ mean_of.sort()
    ~ samples.fill(1)
    local$id = $arr.copy(); local$id[0] = $leaf; y = y + float(local$id.sum())
    local$id = np.zeros(3); local$id += mean_of[:1]; total += float(local$id[0])
    mean_of = np.asarray(samples[0])
    mean_of = np.asarray([v * 2 for v in mean_of])
    samples = samples.copy()
block:
    for row$id in samples:
        y = y + float(row$id.sum())
        $body

    for k$id, v$id in np.ndenumerate(labels):
        total += int(v$id) * k$id[0]

    if $arr.max() > $num:
        $body
    else:
        samples = samples * 1.5

    rows$id = np.zeros((2, 3), np.float32)
    for k$id in range(2): rows$id[k$id] = samples[k$id] * $leaf
    y = y + rn.asarray(rows$id).sum()
    $body

    hot$id = one_hot_of(labels[0])
    hot$id[1:] += $leaf
    y = y + rn.asarray(hot$id) @ rn.ones((3,))
change:
    samples[0] = 9
    samples = $(np.ones((3, 3), np.float32)||samples.T||samples.astype(np.float64)||samples[:2]||samples.copy())
    labels = $(np.array([1, 1, 0])||labels.astype(np.int32)||np.array([0, 1]))
    labels[0] = 1
    mean_of = $(samples[0]||np.zeros(3)||mean_of.copy())
    mean_of[...] = 3
    kept_rows[0] = $(mean_of||np.ones(2))
    counter_array += 1
    zero_d = $(np.array(3.0)||np.float64(1)||2.0)
    typed['a'] = 5
    samples.flags.writeable = False
    def one_hot_of(k, n=3): return np.ones(n)
    def normalized(a): return a
argument:
    rn.asarray(samples[0])
    rn.asarray(mean_of)
extra:
    samples
    labels
    mean_of
    [samples, samples]
    samples[0]
number:
    samples[0, 0]
    labels[0]

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
    ~ int(rn.randint(0, 5, (1,))[0])
    rn.initial_seed() % 7
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
    ~ rn.cond(y.sum() > 0, told_branch, double_it, y)
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
