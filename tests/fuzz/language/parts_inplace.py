"""One tensor by several paths, and changes in place."""

TEXT = r"""
## aliases
code:
    class Holder_:
        def __init__(self, t): self.t, self.twin = t, t
    shared = rn.asarray(np.float32([1, 2, 3]))
    slice_of, detached, same_shared = shared[1:], shared.detach(), shared
    pool, slot_of = [shared, shared, rn.ones((3,))], {'a': shared, 'b': rn.zeros((3,))}
    holder_one, holder_two = Holder_(shared), Holder_(rn.ones((3,)))
    holder_two.other = holder_one
    def bump_tensor(t, by=1.0):
        t += by
        return t
    def swap_in(p, q):
        before = p * 1
        p[:] = q
        q[:] = before
        return before.sum()
    def is_one(p, q): return 1 if p is q else 2
one:
    shared
    slice_of
    detached
    same_shared
    pool[$(0||1||-1)]
    slot_of[$('a'||'b')]
    holder_one.t
    holder_two.twin
    holder_two.other.t
leaf:
    len(pool)
    is_one(shared, same_shared)
num:
    is_one($one, $one)
    sum(t is shared for t in pool)
    pool.index(pool[-1]) if all(t is pool[0] for t in pool) else 1
    $one.shape[0]
tensor:
    (y + $one.sum())
    (y * $one[0])
    bump_tensor($one, $num).mean()
    bump_tensor(y)
    ($one.sum() + $one.mean())
    swap_in($one, $one)
    rn.concat([$one, $one]).sum()
cond:
    $one is $one
    shared is same_shared
    holder_one.t is holder_one.twin
    $one.shape == $one.shape
stat:
    bump_tensor($one)
    bump_tensor($one, by=y.sum())
    pool[$(0||-1)] = $one
    slot_of[$('a'||'b')] = $one
    shared = $one
    same_shared = shared
    slice_of = $one[1:]
    holder_one.t = $one
    holder_two.twin = holder_two.t
    holder_two.other = holder_two
    $one.add_($one)
    x += 1
    x *= $one.mean()
    y += $one.sum()
    y[...] = $leaf
    kept$id = $one; kept$id *= 0.5; y = y + kept$id.sum()
    before$id = $one * 1; bump_tensor($one); y = y + before$id.sum()
    swap_in(shared, pool[-1])
    last = ($one, $num)
    config['tensor'] = $one
    log.append($one)
    del log[:-3]
block:
    for t$id in pool:
        bump_tensor(t$id, 0.5)
        $body

    for name$id, t$id in slot_of.items():
        y = y + t$id.sum()
        slot_of[name$id] = $(t$id||t$id * 0.5||shared)

    if $one is $one:
        bump_tensor(shared)
        $body

    view$id = $one[1:]
    bump_tensor($one)
    y = y + view$id.sum()
    $body
change:
    shared = $(rn.ones((3,))||pool[-1]||same_shared||shared * 1)
    same_shared = $(shared||rn.ones((3,)))
    pool[0] = $(shared||pool[-1]||shared * 1)
    pool = [same_shared, shared]
    slot_of['b'] = $(shared||rn.ones((2,)))
    holder_one.twin = $(holder_one.t||rn.zeros((3,)))
    holder_two.other = $(holder_one||holder_two)
    shared.add_(1.0)
    detached[0] = 5.0
    slice_of[0] = 4.0
    slice_of = shared
    acc = shared
    last = (shared, 1)
    x = shared
    def bump_tensor(t, by=1.0): return t + by
argument:
    shared
    same_shared
    pool[0]
    slice_of
extra:
    shared
    pool
    slot_of
    [shared, shared]
    [x, shared]

## updates
code:
    state_vec, table_of_rows = rn.zeros((4,)), rn.asarray(np.arange(12, dtype=np.float32).reshape(4, 3))
    counts_vec, mask_vec = rn.zeros((4,), dtype=rn.int32), rn.asarray(np.array([True, False, True, False]))
    where_to, out_vec = rn.asarray(np.array([0, 2])), rn.ones((4,))
    def decay(t, rate=0.5):
        t *= rate
        t -= t.mean()
        return t
    class Running:
        def __init__(self): self.mean, self.n = rn.zeros((4,)), 0
        def update(self, v):
            self.n += 1
            self.mean += (v - self.mean) / self.n
            return self.mean
    running_stats = Running()
leaf:
    running_stats.n
    len(state_vec)
spot:
    state_vec
    out_vec
    running_stats.mean
    table_of_rows[$(0||-1||1)].sum() * rn.ones((4,))
num:
    table_of_rows.shape[$(0||1)]
    counts_vec.ndim
    running_stats.n
tensor:
    (y + $spot.sum())
    ($spot[$(0||-1)] * y)
    decay($spot * 1).max()
    running_stats.update($spot).sum()
    (y + table_of_rows[$(0||1)].mean())
    (y + counts_vec.sum())
    table_of_rows[where_to].sum()
    state_vec[mask_vec].sum()
    rn.where(mask_vec, $spot, 0.0).sum()
    out_vec.add_($leaf).sum()
cond:
    state_vec.dtype == rn.float32
    out_vec is state_vec
stat:
    state_vec[$(0||-1||1:3||:||::2||...)] = $($num||y.sum()||0.5)
    state_vec[where_to] = $(1.0||y.sum()||rn.ones((2,)))
    state_vec[mask_vec] = $(0.0||$num)
    state_vec[$(0||1:)] += $(1.0||y.sum())
    state_vec[where_to] += 1.0
    table_of_rows[$(0||-1)] = $(1.0||$num||rn.ones((3,)))
    table_of_rows[:, $(0||1)] = $(state_vec||2.0)
    table_of_rows[1, 2] = y.sum()
    table_of_rows[1:3, :2] *= 0.5
    table_of_rows[0] += table_of_rows[1]
    table_of_rows += state_vec[:, None]
    table_of_rows = table_of_rows[::-1]
    counts_vec[$(0||1)] += 1
    counts_vec += $int
    counts_vec.add_(1)
    counts_vec[$leaf % 4] = 2
    decay($(state_vec||out_vec))
    out_vec.copy_($spot)
    out_vec.clamp_($(-1||0), $(1||2))
    out_vec.$(neg_||abs_||relu_||exp_||zero_||tanh_)()
    out_vec.masked_fill_(mask_vec, $leaf)
    out_vec.mul_($spot)
    out_vec.sub_($num)
    out_vec.div_(2)
    out_vec.index_add_(0, where_to, rn.ones((2,)))
    out_vec.lerp_(state_vec, 0.5)
    np.add(1, 2)
    rn.add(state_vec, 1.0, out=out_vec)
    rn.multiply($spot, $leaf, out=state_vec)
    state_vec -= $spot
    state_vec **= 1
    state_vec = state_vec / 2
    out_vec @= rn.eye(4)
    running_stats.update(state_vec)
    running_stats.mean = state_vec
    running_stats = Running()
    new$id = rn.zeros((4,)); new$id[0] = y.sum(); new$id += 1; y = y + new$id.sum()
block:
    for k$id in range(4):
        state_vec[k$id] = state_vec[k$id - 1] + $num

    for row$id in table_of_rows:
        y = y + row$id.sum()
        $body

    with rn.no_grad():
        state_vec += 1
        out_vec[0] = state_vec.sum()
        $body

    made$id = rn.zeros((2, 3))
    for k$id in range(2): made$id[k$id] = table_of_rows[k$id] * $leaf
    $body
    y = y + made$id.sum()

    if $cond:
        state_vec[0] = 1
    else:
        out_vec[-1] = state_vec[0]
        $body
change:
    state_vec = $(rn.ones((4,))||out_vec||state_vec * 1)
    state_vec[0] = 7.0
    out_vec = $(rn.zeros((4,))||state_vec)
    counts_vec = rn.ones((4,), dtype=rn.$(int32||int64||float32))
    counts_vec[0] = 5
    table_of_rows = rn.ones((4, 3))
    table_of_rows = table_of_rows[:3]
    mask_vec = rn.asarray(np.array([False, True, True, False]))
    where_to = rn.asarray(np.array([$(1, 3||0, 0||3)]))
    running_stats.mean = out_vec
    running_stats.n = 0
    state_vec.fill_(3.0)
    def decay(t, rate=0.5): return t * rate
"""
