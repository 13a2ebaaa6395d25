"""Programs as practitioners write them: batches, metrics, printing, logging, seeds and threads."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.stories import Story, stories

DATA: Final = stories("""
## batches_of_numpy_arrays
net = nn.Linear(3, 2)
def step(x, y): return ((net(rn.asarray(x)) - rn.asarray(y)) ** 2).mean()
def arguments(i): return np.full((2, 3), i, np.float32), np.ones((2, 2), np.float32)
## converted_between_calls
net, mean = nn.Linear(3, 2), np.ones(3, np.float32)
def step(x): return net(x)
def arguments(i): return (rn.asarray((np.full((2, 3), i, np.float32) - mean) / 2),)
## mixed_up_outside
net = nn.Linear(3, 2)
def step(x, weight, order): return net(weight * x + (1 - weight) * x[order])
def arguments(i): return rn.ones((2, 3)) * i, float(np.random.beta(1.0, 1.0)), rn.asarray(np.random.permutation(2))
## normalized_by_constants_of_a_module
class Normalize(nn.Module):
    def __init__(self, mean, std): super().__init__(); self.mean, self.std = mean, std
    def forward(self, x): return (x - rn.asarray(self.mean)) / rn.asarray(self.std)
net = Normalize([1.0, 2.0, 3.0], [1.0, 1.0, 2.0])
def step(x): return net(x)
#> net.mean = [0.0, 0.0, 0.0]
## labels_and_weights_of_classes
net, weights = nn.Linear(3, 4), rn.asarray([1.0, 2.0, 1.0, 0.5])
def step(x, y): return F.cross_entropy(net(x), y, weight=weights, label_smoothing=smoothing)
smoothing = 0.0
def arguments(i): return rn.ones((2, 3)) * i, rn.asarray([i % 4, 1])
#> smoothing = 0.1
#> weights = None
## tables_of_numbers
table = {'a': [1.0, 2.0, 3.0], 'b': [0.0, 1.0, 0.0]}
def step(x): return x * rn.asarray(table['a']) + rn.asarray(table['b'])
#> table['a'][1] = 5.0
#> table['b'] = [1.0, 1.0, 1.0]
""")

METRICS: Final = stories("""
## accuracy_as_tensors
correct, total = rn.asarray(0), 0
def step(x, y):
    global correct, total
    correct = correct + (x.argmax(axis=1) == y).sum()
    total += y.shape[0]
    return correct
def arguments(i): return rn.asarray(np.eye(4, dtype=np.float32)[[i % 4, 1]]), rn.asarray([1, 1])
#> correct, total = rn.asarray(0), 0
## accuracy_divided_by_a_counter
correct, total = rn.asarray(0), 0
def step(x, y):
    global correct, total
    correct = correct + (x.argmax(axis=1) == y).sum()
    total += y.shape[0]
    return correct / total
def arguments(i): return rn.asarray(np.eye(4, dtype=np.float32)[[i % 4, 1]]), rn.asarray([1, 1])
## meter_of_losses
class Meter:
    def __init__(self): self.total, self.n = 0.0, 0
    def update(self, value, n=1): self.total, self.n = self.total + value * n, self.n + n
    @property
    def mean(self): return self.total / max(self.n, 1)
meter = Meter()
def step(x):
    loss = (x ** 2).mean()
    meter.update(loss.detach(), x.shape[0])
    return loss, meter.mean
#> meter = Meter()
## streaming_metric_of_a_module
class Accuracy(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('hits', rn.zeros(()))
        self.register_buffer('seen', rn.zeros(()))
    def update(self, x, y):
        self.hits.add_((x.argmax(axis=1) == y).sum().astype(rn.float32))
        self.seen.add_(float(y.shape[0]))
    def compute(self): return self.hits / self.seen
accuracy = Accuracy()
def step(x, y):
    accuracy.update(x, y)
    return accuracy.compute()
def arguments(i): return rn.asarray(np.eye(4, dtype=np.float32)[[i % 4, 1]]), rn.asarray([1, 1])
#> accuracy.hits.assign(rn.asarray(5.0))
## confusion_matrix
matrix = rn.zeros((3, 3))
def step(x, y):
    global matrix
    matrix = matrix + F.one_hot(y, 3).astype(rn.float32).T @ F.one_hot(x.argmax(axis=1), 3).astype(rn.float32)
    return matrix
def arguments(i): return rn.asarray(np.eye(3, dtype=np.float32)[[i % 3, 1]]), rn.asarray([1, 2])
## losses_appended_to_a_list
losses = []
def step(x):
    loss = (x ** 2).sum()
    losses.append(loss.detach())
    return loss
#> losses.clear()
## history_as_a_dict_of_lists
history, n = collections.defaultdict(list), 0
def step(x):
    global n
    n += 1
    loss = (x ** 2).sum()
    history['loss'].append(loss.detach()); history['step'].append(n)
    return loss
#> history.clear()
## losses_of_the_last_steps, traces: 4
recent = collections.deque(maxlen=3)
def step(x):
    recent.append((x ** 2).sum().detach())
    return sum(recent) / len(recent)
#> recent.clear()
## several_losses_returned_in_a_dict
weights = {'l1': 0.1, 'l2': 1.0}
def step(x):
    parts = {'l1': abs(x).sum(), 'l2': (x ** 2).sum()}
    return {'total': sum(weights[k] * v for k, v in parts.items()), **{k: v.detach() for k, v in parts.items()}}
#> weights['l1'] = 1.0
#> weights.update(l2=0.0)
""")

REPORTS: Final = stories("""
## printed_every_n, traces: 5
n, every = 0, 3
def step(x):
    global n
    n += 1
    if n % every == 0: print(f'step {n}')
    return x * 2
#> every = 2
## shapes_printed_while_debugging
debug = True
def step(x):
    if debug: print('x', x.shape, x.dtype)
    return x * 2
#> debug = False
## verbose_levels
class Logger:
    def __init__(self): self.level, self.lines = 1, []
    def log(self, level, text):
        if level <= self.level: self.lines.append(text)
logger, n = Logger(), 0
def step(x):
    global n
    n += 1
    logger.log(1, f'step {n}'); logger.log(2, 'details')
    return x * 2
#> logger.level = 2
#> logger.level = 0
## standard_logging, eager: perhaps
_log = logging.getLogger('train'); _log.setLevel(logging.INFO); n = 0
def step(x):
    global n
    n += 1
    _log.info('step %d', n); _log.debug('details')
    return x * 2
#> _log.setLevel(logging.WARNING)
#> _log.setLevel(logging.DEBUG)
## timed_outside
times = []
def step(x): return x * 2
def arguments(i):
    times.append(i)
    return (tensor(1.0, 2.0, 3.0),)
## seeded_each_epoch
epoch = 0
def step(x):
    rn.manual_seed(epoch)
    return x + rn.rand(3)
#> epoch = 1
#> epoch = 0
## seeded_between_epochs
def step(x): return x + rn.rand(3)
#> rn.manual_seed(3)
#> rn.manual_seed(3)
## generator_of_ones_own
g = rn.Generator(); g.manual_seed(5)
def step(x): return x + rn.rand(3, generator=g)
#> g.manual_seed(5)
## two_threads_with_two_models
nets = [nn.Linear(3, 2), nn.Linear(3, 2)]
losses = [None, None]
@rn.compile
def loss(net, x): return (net(x) ** 2).mean()
def work(i): losses[i] = [loss(nets[i], tensor(1.0, 2.0, 3.0)) for _ in range(3)]
def step(x): return loss(nets[0], x) + loss(nets[1], x)
#> threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
#> [t.start() for t in threads]; [t.join() for t in threads]; del threads
""")


@pytest.mark.parametrize("story", DATA + METRICS + REPORTS)
def test_like_eager(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
