"""Settings that are more than plain numbers and texts: enums of numbers, texts and flags, classes that inherit from
them, views, and indices made of slices and tuples."""

TEXT = r"""
## settings
code:
    class Way(str, enum.Enum):
        SUM, MEAN = 'sum', 'mean'
    class Level(enum.IntEnum):
        OFF, LOW, HIGH = 0, 1, 2
    class Bits(enum.$(Int||)Flag):
        A, B, C = 1, 2, 4
    class Count(int):
        def __init__(self, value): self.note = value
    class Named(str): pass
    class Ratio(float): pass
    table_of_ways, table_of_levels = {Way.SUM: 2, Way.MEAN: 3}, {0: 'off', 1: 'low', Level.HIGH: 'high'}
    way, level, bits = Way.SUM, Level.LOW, Bits.A
    counted_n, named_s, ratio_f = Count(2), Named('sum'), Ratio(0.5)
    shown_config, raw_bytes = types.MappingProxyType(config), bytearray(b'ab')
    wide = rn.asarray(np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    rows_at, window, corner = ((0, 1), (2, 0)), slice(0, 2), (slice(None), 1, [0, 2])
    places = {'one': (0, slice(1, 3)), 'all': (Ellipsis, None), 'some': [1, 0]}
leaf:
    level
    ~ counted_n
    level.value
    len(way)
num:
    (1 if $setting else 2)
    level $(+||-||*||//||%||&) $num
    $num $(+||-||*) level
    len($settext)
    table_of_levels.get($(level||$small), 'none') == 'low'
    [4, 5, 6][level]
    sum(Level) + len(Bits)
    (bits & Bits.$(A||B)).value
    (bits | Bits.$(A||C)).value
    int(level)
    $(min||max)(level, $num)
    sum(range(level))
    isinstance($setting, $(int||str||float))
    window.stop - (window.start or 0)
    divmod(level, 3)[1] + abs(level) + round(level)
    [$setting, 2, 'sum'].count($setting)
setting:
    way
    level
    bits & Bits.$(A||B||C)
    counted_n
    named_s
    ratio_f
    ~ shown_config
    ~ raw_bytes
    level - 1
    Level($(0||1||2))
    frozenset(numbers[:$small])
    numbers[level:]
settext:
    f'{way}'
    f'{level:>4}'
    way.value
    way.upper()
    '%s/%d' % (way.value, level)
    ','.join([way, 'x'])
    str(bits)
    way.replace('m', 'qq')
cond:
    way == $('sum'||'mean'||Way.SUM)
    way is Way.$(SUM||MEAN)
    $('su'||'me'||'') in way
    way in ('sum', 'z')
    level $(>||<||==||!=) $(1||Level.LOW)
    Bits.$(A||B) in bits
    bool(bits & Bits.B)
    not $setting
    $setting
    way.startswith('s')
tensor:
    y * level
    wide[rows_at].sum()
    wide[window, level].sum() * y
    wide[corner].sum() + y
    wide[places['one']].sum() * y
    wide[places['all']].mean() + y
    wide[places['some'], 1].sum() - y
    wide[(rows_at[0], level)].sum() + y
    wide[..., level:].sum() * y
    wide.sum(**{'dim': level}).sum() + y
    rn.full((2,), level).sum() + y
    y[:1] * (way == 'sum')
stat:
    way = Way.$(SUM||MEAN)
    level = Level.$(OFF||LOW||HIGH)
    bits = bits ^ Bits.$(A||B)
    bits |= Bits.B
    window = slice($(0||1), $(2||3))
    places['one'] = ($(0||1), window)
    log.append(way == 'sum')
    last = (wide[rows_at] * level, way)
change:
    way = Way.$(SUM||MEAN)
    level = Level.$(OFF||LOW||HIGH)
    bits = Bits.$(A||B||C) | Bits.A
    bits = Bits(0)
    counted_n = Count($(0||1||2))
    counted_n.note = 4
    named_s = Named($(''||'sum'||'mean'))
    ratio_f = Ratio($(0.0||1.5))
    raw_bytes.clear()
    raw_bytes.extend(b'xyz')
    table_of_ways[Way.MEAN] = $num
    table_of_levels.pop(1, None)
    rows_at = ((0, 1), ($(1||2), $(0||1)))
    rows_at = ($(0||1), (1, 2))
    window = slice($(0||1||None), $(2||3))
    corner = (slice(0, $(1||2)), $(0||2), [$(0||3), 1])
    corner[2][0] = $(1||3)
    places['some'][0] = $(0||1)
    places['one'] = ($(0||1), slice(0, $(2||4)))
    places['all'] = (Ellipsis, $(0||None||slice(0, 2)))
    wide = wide * 2
extra:
    way
    level
    Bits.B
    ~ counted_n
    window
    places
"""
