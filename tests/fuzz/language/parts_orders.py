"""Queues, windows and sorting; texts of what is outside."""

TEXT = r"""
## orders
code:
    class Cache:
        def __init__(self, most): self.most, self.rows, self.hits = most, collections.OrderedDict(), 0
        def get(self, k, make):
            if k in self.rows:
                self.hits += 1
                self.rows.move_to_end(k)
                return self.rows[k]
            self.rows[k] = make(k)
            if len(self.rows) > self.most: self.rows.popitem(last=False)
            return self.rows[k]
    class Window:
        def __init__(self, n): self.values, self.total_ = collections.deque(maxlen=n), 0
        def add(self, v):
            if len(self.values) == self.values.maxlen: self.total_ -= self.values[0]
            self.values.append(v)
            self.total_ += v
            return self.total_ / len(self.values)
    Item = collections.namedtuple('Item', 'rank name')
    lru, moving, tensors_seen = Cache(3), Window($(2||3)), collections.deque(maxlen=3)
    queue_of = [(2, 'b'), (1, 'a'), (1, 'c')]
    heapq.heapify(queue_of)
    items_ = [Item(2, 'b'), Item(1, 'z'), Item(2, 'a')]
    words_count, by_rank = collections.Counter(a=2, b=1), collections.defaultdict(lambda: collections.deque(maxlen=2))
    scores_of = {'p': 2.5, 'q': 1, 'r': 2.5}
    layered = collections.ChainMap({}, {'deep': 1}, scores_of)
    best_of, running = collections.defaultdict(float), collections.defaultdict(int, a=1)
leaf:
    lru.hits
    len(lru.rows)
    moving.total_
    running['a']
num:
    lru.get($num, lambda k: k * 2)
    lru.get($key, len)
    moving.add($num)
    len(moving.values)
    len(tensors_seen)
    heapq.heappop(queue_of)[0]
    heapq.heappushpop(queue_of, ($num, 'n'))[0]
    sorted(items_)[0].rank
    sorted(items_, key=operator.attrgetter('name'))[0].rank
    sorted(items_, key=lambda i: (-i.rank, i.name))[-1].rank
    min(items_, key=lambda i: i.rank + $leaf).rank
    max(scores_of, key=scores_of.get) == 'p'
    max(scores_of.items(), key=operator.itemgetter(1))[1]
    words_count.most_common(1)[0][1]
    (words_count + collections.Counter(a=$small)).total()
    (words_count - collections.Counter('ab'))['a']
    len(by_rank[$small])
    layered.get('deep', 0)
    len(layered)
    bisect.bisect_left(sorted(scores_of.values()), $num)
    bisect.bisect([i.rank for i in sorted(items_)], $num)
    next(reversed(lru.rows), $num) == 'a'
    heapq.nlargest(2, numbers)[-1]
    len(list(heapq.merge(sorted(numbers), [1, 2])))
    best_of[$key]
    sum(1 for _, g in itertools.groupby(sorted(items_), key=lambda i: i.rank))
    queue_of[0][0]
    sorted(numbers, reverse=$cond)[0]
    list(dict.fromkeys([3, 1, 3, $leaf]))[-1]
cond:
    $key in lru.rows
    queue_of == sorted(queue_of)
    items_[0] < items_[-1]
    'deep' in layered
    len(tensors_seen) == tensors_seen.maxlen
    words_count['a'] > $num
text:
    sorted(items_)[0].name
    ''.join(i.name for i in items_)
    f'{moving.total_:.1f}/{len(moving.values)}'
    str(dict(words_count))
seq:
    list(lru.rows.items())
    list(moving.values)
    sorted(items_)
    [(k, len(list(g))) for k, g in itertools.groupby(sorted(items_), key=operator.itemgetter(0))]
    words_count.most_common()
    sorted(scores_of, key=lambda k: (-scores_of[k], k))
    tensors_seen
    queue_of
    layered.maps[0]
tensor:
    (y + sum(tensors_seen))
    (y * moving.add($leaf))
    (lru.get('t', lambda k: rn.ones(())) + y)
    rn.stack([y.sum(), *tensors_seen]).mean()
stat:
    tensors_seen.append(y.sum())
    tensors_seen.append($num)
    moving.add($num % 20)
    heapq.heappush(queue_of, ($num % 20, $key))
    heapq.heappush(queue_of, (1, 'a'))
    del queue_of[4:]
    queue_of.sort()
    items_.append(Item($num % 9, $key))
    items_.sort()
    items_.sort(key=lambda i: i.name, reverse=$cond)
    items_[:] = items_[-3:]
    words_count[$key] += 1
    words_count.update($text)
    words_count -= collections.Counter('a')
    words_count = +words_count
    by_rank[$small].append($num % 20)
    scores_of[$key] = $num % 20
    layered['own'] = $num
    layered = layered.new_child({'k': 1}) if len(layered.maps) < 5 else layered
    running[$key] += $num % 5
    best_of[$key] = max(best_of[$key], $num % 50)
    lru.rows.clear()
    lru.most = $(1||2||3)
    lru.get($key, lambda k: y.sum())
block:
    while queue_of and total < 40:
        rank$id, name$id = heapq.heappop(queue_of)
        total += rank$id
        if rank$id > 5: heapq.heappush(queue_of, (rank$id // 2, name$id))

    for rank$id, group$id in itertools.groupby(sorted(items_), key=lambda i: i.rank):
        total += rank$id * len(list(group$id))
        $body

    for k$id, n$id in words_count.most_common(2):
        total += n$id
        $body

    for t$id in tensors_seen: y = y + t$id
    $body

    if len(tensors_seen) > 2:
        old$id = tensors_seen.popleft()
        y = y - old$id
        $body
change:
    lru.rows.clear()
    lru.rows['a'] = 9
    lru.most = 1
    lru = Cache(2)
    moving = Window(2)
    moving.values.append(30)
    tensors_seen.append(rn.ones(()))
    tensors_seen.clear()
    heapq.heappush(queue_of, (0, 'z'))
    queue_of = [(5, 'q')]
    items_.append(Item(0, 'n'))
    items_ = [Item('b', 1), Item('a', 2)]
    words_count['z'] = 5
    words_count = collections.Counter()
    scores_of['s'] = 9
    layered.maps[0]['deep'] = 5
    running.default_factory = lambda: 3
    by_rank[1].append(4)
    Cache.get = lambda self, k, make: 2

## formats
code:
    class Record:
        def __init__(self, name, level): self.name, self.level = name, level
        def __str__(self): return f'{self.name}@{self.level}'
        def __repr__(self): return f'<Record {self.name!r}>'
        def __format__(self, spec): return f'{self.level:{spec or "d"}}'
    class Sink:
        def __init__(self): self.lines = []
        def write(self, text): self.lines.append(text)
        def flush(self): self.lines.append('flush')
    record, sink, history_text = Record('r', 2), Sink(), ['start']
    layout, percent = '{name:>6}|{level:03d}', '%(name)s=%(level)5.2f'
    title, buffer_text = 'Epoch', __import__('io').StringIO()
    options_text = {'width': 8, 'digits': 2}
    def report_line(**names): return ' '.join(f'{k}={v}' for k, v in sorted(names.items()))
    def slug(text): return re.sub(r'\W+', '-', text.lower()).strip('-')
leaf:
    record.level
    len(history_text)
    options_text['width']
num:
    len(str(record))
    len(f'{record:>4}')
    len(sink.lines)
    len(report_line(n=$leaf, total=total))
    int(f'{record.level}0')
    len(title.split())
    title.find('o')
    int('7' * ($leaf % 3 + 1))
    len(buffer_text.getvalue())
    sum(c.isdigit() for c in $text)
text:
    f'{title} {count:0{options_text["width"]}d}'
    layout.format(name=record.name, level=record.level)
    percent % {'name': title, 'level': $leaf}
    f'{record} {record!r} {record:>3}'
    report_line(count=count, rate=rate)
    slug(f'{title} {count}!')
    title.center(options_text['width'], '*')
    ' '.join(history_text[-2:])
    '{:>{w}.{d}f}'.format($num, w=options_text['width'], d=2)
    f'{$plain:,.2f}'
    '{0[gain]} {1.name}'.format(config, record)
    title.translate({ord('E'): 'e'})
    str([record, $leaf])
    f'{[v for v in numbers]}'
    f'{x.shape}{y.dtype}'
    f'{count!s:>5}|{flag!r:<6}'
    title.encode().hex()
    json.dumps({'count': count, 'numbers': numbers})
    repr($text)
    title + '-' * ($leaf % 5)
    '%d%%' % $leaf
    'abc'[$leaf % 3]
    title.removeprefix('E').title()
cond:
    title.endswith('h')
    str(record) == 'r@2'
    $text in history_text
    title > 'D'
    re.match(r'[A-Z]', title)
    title
seq:
    history_text[-3:]
    sink.lines[-3:]
    title.partition('o')
    re.findall(r'\d+', $text)
    sorted($text)
stat:
    print($text)
    print(title, count, flag, sep=' - ', end='!\n')
    print(record, *numbers[:2])
    print('to sink', $num, file=sink)
    print(f'{title:<8}|{count:>4}|{rate:.3f}')
    print(y.shape, y.dtype, record.level)
    buffer_text.write($text)
    sink.write($text)
    sink.lines[:] = sink.lines[-4:]
    history_text.append($text)
    history_text[:] = history_text[-3:]
    title = $('Epoch'||f'Epoch {count}'||'Step one')
    title += $key
    title = title[:8]
    record.level = $leaf if isinstance($leaf, int) else 1
    record.name = title
    options_text['width'] = $small + 4
    layout = '{level}:{name}'
    log.append(f'{record}')
    record = Record($text, $small)
    warnings.warn(f'{title} {$plain}')
block:
    for i$id, line$id in enumerate(history_text):
        print(f'{i$id}: {line$id}', end=';')
        if i$id > 2: break

    with contextlib.redirect_stdout(sink):
        print('captured', $num)
        $body

    if f'{count}'.isdigit() and int(f'{count}') > $num:
        $body

    lines$id = [f'{k}={config[k]}' for k in sorted(config) if isinstance(config[k], (int, str))]
    print('; '.join(lines$id))
    total += len(lines$id)

    match title.split():
        case [only$id]:
            $body
        case [first$id, second$id]:
            total += len(second$id)
        case _:
            pass
change:
    title = $('Epoch'||'step'||'')
    record = Record('s', 5)
    record.level = $(1||30)
    Record.__str__ = lambda self: 'new'
    Record.__format__ = lambda self, spec: spec
    options_text['width'] = 12
    layout = '{level} {name}'
    percent = '%(level)d'
    history_text = ['a', 'b']
    sink.lines.clear()
    Sink.write = lambda self, text: None
    def slug(text): return text
    def report_line(**names): return str(len(names))
"""
