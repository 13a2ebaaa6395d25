"""Programs as practitioners write them: gradients of gradients, inner loops, checkpoints, rules and transforms."""

from __future__ import annotations

from typing import Final

import pytest

from tests.compile.stories import Story, stories

NET: Final = """
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), lr=0.1)
"""

GRADIENTS: Final = stories(
    """
## gradient_penalty
weight = 1.0
def step(x):
    x = x.detach().requires_grad_(True)
    y = net(x).sum() ** 2
    g, = rn.autograd.grad(y, [x], create_graph=True)
    opt.zero_grad()
    loss = y + weight * ((g ** 2).sum() - 1) ** 2
    loss.backward(); opt.step()
    return loss
#> weight = 0.5
## one_inner_step_by_functions
rate = 0.1
def loss_of(weights, x): return (rn.functional_call(net, weights, x) ** 2).mean()
def step(x):
    weights = dict(net.named_parameters())
    inner = rn.grad(loss_of)(weights, x)
    opt.zero_grad()
    loss = loss_of({k: w - rate * inner[k] for k, w in weights.items()}, x * 2)
    loss.backward(); opt.step()
    return loss
#> rate = 0.5
## inner_steps_by_autograd
steps = 2
def step(x):
    w = net.weight
    for _ in range(steps):
        g, = rn.autograd.grad(((w @ x) ** 2).sum(), [w], create_graph=True)
        w = w - 0.01 * g
    opt.zero_grad()
    loss = ((w @ x) ** 2).sum()
    loss.backward(); opt.step()
    return loss
#> steps = 1
## gradients_of_tasks_projected
heads = [nn.Linear(2, 1), nn.Linear(2, 1)]
def step(x):
    grads = []
    for head in heads:
        net.zero_grad(); head.zero_grad()
        head(net(x)).sum().backward()
        grads.append(net.weight.grad)
    a, b = grads
    dot = (a * b).sum()
    a = rn.where(dot < 0, a - dot / ((b * b).sum() + 1e-8) * b, a)
    net.weight.grad = a + b
    opt.step()
    return dot
## deep_supervision_with_several_backwards
outs = nn.ModuleList([nn.Linear(2, 1), nn.Linear(2, 1)])
def step(x):
    opt.zero_grad()
    h = rn.tanh(net(x))
    total = 0.0
    for i, out in enumerate(outs):
        loss = (out(h) ** 2).sum()
        loss.backward(retain_graph=i + 1 < len(outs))
        total = total + loss.detach()
    opt.step()
    return total
#> del outs[0]
## fast_gradient_sign_inside
epsilon = 0.1
def step(x):
    x = x.detach().requires_grad_(True)
    loss = (net(x) ** 2).sum()
    g, = rn.autograd.grad(loss, [x])
    opt.zero_grad()
    attacked = (net(x.detach() + epsilon * rn.sign(g)) ** 2).mean()
    attacked.backward(); opt.step()
    return attacked
#> epsilon = 0.01
## projected_descent_inside
def attack(x, steps=3, size=0.1):
    delta = rn.zeros_like(x)
    for _ in range(steps):
        delta = delta.detach().requires_grad_(True)
        g, = rn.autograd.grad((net(x + delta) ** 2).sum(), [delta])
        delta = rn.clip(delta + size * rn.sign(g), -0.2, 0.2)
    return delta.detach()
def step(x): return net(x + attack(x))
## gradients_logged_after_backward
log = {}
def step(x):
    opt.zero_grad(); loss = (net(x) ** 2).mean(); loss.backward()
    for name, p in net.named_parameters(): log[name] = rn.sqrt((p.grad ** 2).sum())
    opt.step()
    return loss
## zero_grad_after_the_step
def step(x):
    loss = (net(x) ** 2).mean(); loss.backward(); opt.step(); opt.zero_grad()
    return loss
## backward_inside_step_outside
def step(x):
    loss = (net(x) ** 2).mean()
    loss.backward()
    return loss
def arguments(i):
    opt.step(); opt.zero_grad()
    return (tensor(1.0, 2.0, float(i)),)
## gradients_accumulated_over_calls
def step(x):
    loss = (net(x) ** 2).mean()
    loss.backward()
    return loss, net.weight.grad
#> opt.step(); opt.zero_grad()
## step_inside_backward_outside
def step(x): opt.step()
def arguments(i):
    net.zero_grad(); (net(tensor(1.0, 2.0, float(i))) ** 2).mean().backward()
    return (tensor(1.0),)
## loss_compiled_alone
net = nn.Linear(3, 2); criterion = nn.MSELoss()
def step(y): return criterion(y, rn.zeros(2))
def arguments(i): return (net(tensor(1.0, 2.0, float(i))).detach(),)
#> criterion.reduction = 'sum'
## value_and_gradient
def loss_of(w, x): return ((w @ x) ** 2).mean()
def step(x):
    loss, g = rn.value_and_grad(loss_of)(net.weight.detach(), x)
    with rn.no_grad(): net.weight.sub_(0.1 * g)
    return loss
## gradient_of_a_compiled_function
@rn.compile
def loss_of(w, x): return ((w @ x) ** 2).mean()
def step(x): return rn.grad(loss_of)(net.weight.detach(), x)
## hessian_times_vector
def energy(x): return (rn.tanh(net(x)) ** 2).sum()
def step(x): return rn.jvp(rn.grad(energy), (x,), (rn.ones(3),))
#> net.bias = None
## gradients_of_gradients_outside
def step(x): return (net(x) ** 3).sum()
def arguments(i):
    x = tensor(1.0, 2.0, float(i)).requires_grad_(True)
    return (x,)
## gradient_scaled_for_a_part
def step(x):
    opt.zero_grad()
    h = net(x)
    loss = ((h * 0.1 + h.detach() * 0.9) ** 2).sum()
    loss.backward(); opt.step()
    return loss
## class_activation_map
def step(x):
    h = net(x)
    g, = rn.autograd.grad((h ** 2).sum(), [h])
    return rn.relu((g.mean() * h).detach())
""",
    NET,
)

RULES: Final = stories(
    """
## function_checkpointed
net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2)); opt = optim.SGD(net.parameters(), lr=0.1)
def block(x): return net[1](net[0](x)) * gain
gain = 2.0
def step(x):
    opt.zero_grad(); loss = (net[2](rn.checkpoint(block, x)) ** 2).mean(); loss.backward(); opt.step()
    return loss
#> gain = 3.0
## module_checkpointed_with_dropout
block, head = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)), nn.Linear(3, 1)
opt = optim.SGD([*block.parameters(), *head.parameters()], lr=0.1)
def step(x):
    opt.zero_grad(); loss = (head(rn.checkpoint(block, x)) ** 2).sum(); loss.backward(); opt.step()
    return loss
#> block.eval()
## checkpointed_module_as_a_function
block = nn.Linear(3, 3)
def step(x):
    loss = (rn.checkpoint(block)(x) ** 2).sum()
    block.zero_grad(); loss.backward()
    with rn.no_grad():
        for p in block.parameters(): p.sub_(0.1 * p.grad)
    return loss
## straight_through
class Round(rn.autograd.Function):
    @staticmethod
    def forward(ctx, x): return rn.round(x)
    @staticmethod
    def backward(ctx, g): return g
def step(x):
    opt.zero_grad(); loss = (Round.apply(net(x) * levels) ** 2).mean(); loss.backward(); opt.step()
    return loss
levels = 4.0
#> levels = 8.0
## gradient_reversed
class Reverse(rn.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.weight = weight
        return x * 1.0
    @staticmethod
    def backward(ctx, g): return -ctx.weight * g, None
weight = 1.0
def step(x):
    opt.zero_grad(); loss = (Reverse.apply(net(x), weight) ** 2).mean(); loss.backward(); opt.step()
    return loss
#> weight = 0.1
## gradients_of_each_example
def loss_of(w, x): return ((w @ x) ** 2).sum()
def step(x): return rn.vmap(rn.grad(loss_of), in_axes=(None, 0))(net.weight.detach(), x)
def arguments(i): return (rn.asarray(np.arange(6, dtype=np.float32).reshape(2, 3) + i),)
## batched_by_vmap
def one(x): return rn.tanh(net(x)) * gain
gain = 2.0
def step(x): return rn.vmap(one)(x)
def arguments(i): return (rn.asarray(np.arange(6, dtype=np.float32).reshape(2, 3) + i),)
#> gain = 3.0
## vmap_of_a_module
batched = nn.Linear(3, 2)
def step(x): return rn.vmap(batched)(x)
def arguments(i): return (rn.ones((2, 3)) * i,)
## vmap_of_a_compiled_function
@rn.compile
def one(x): return rn.tanh(net(x))
def step(x): return rn.vmap(one)(x)
def arguments(i): return (rn.ones((2, 3)) * i,)
## loop_with_python_hyper_parameters
decay = 0.5
def step(x):
    def body(carry, row):
        carry = carry * decay + row
        return carry, carry.sum()
    return rn.scan(body, rn.zeros(3), rn.stack([x, x * 2]))
#> decay = 0.9
## loop_over_a_cell
cell = nn.GRUCell(3, 2); opt = optim.SGD(cell.parameters(), lr=0.1)
def step(xs):
    def body(h, x):
        h = cell(x, h)
        return h, h
    opt.zero_grad()
    _, ys = rn.scan(body, rn.zeros((1, 2)), xs)
    loss = (ys ** 2).mean(); loss.backward(); opt.step()
    return loss
def arguments(i): return (rn.ones((3, 1, 3)) * (i + 1),)
## branch_in_the_program
def step(x): return rn.cond(x.sum() > limit, lambda x: net(x) * 2, lambda x: net(x) - 1, x)
limit = 0.0
def arguments(i): return (tensor(1.0, 2.0, float(-5 * (i % 2))),)
#> limit = 100.0
## loop_until_small
def step(x): return rn.while_loop(lambda x: (x ** 2).sum() > 0.1, lambda x: x * rate, x)
rate = 0.5
#> rate = 0.1
## jacobian_of_a_layer
def step(x): return rn.jacrev(lambda x: rn.tanh(net(x).detach() + x[:2]))(x)
""",
    NET,
)


@pytest.mark.parametrize("story", GRADIENTS + RULES)
def test_like_eager(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.run(monkeypatch)
