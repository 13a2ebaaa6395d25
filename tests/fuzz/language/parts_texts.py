"""Texts of things outside: formats, reports, printing."""

TEXT = r"""
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
    f'{$plain:,.2f}'
    title.translate({ord('E'): 'e'})
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
block:
    for i$id, line$id in enumerate(history_text):
        print(f'{i$id}: {line$id}', end=';')
        if i$id > 2: break

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
