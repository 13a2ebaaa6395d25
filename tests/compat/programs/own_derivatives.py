"""Functions with custom derivatives in all styles, hooks, and tangents inside a block."""

import torch
import torch.nn as nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

TOLERANCE = 5e-4


class LinearFunction(Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return (grad_input, grad_weight, grad_bias)


class Exp(Function):
    @staticmethod
    def forward(ctx, i):
        result = i.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad_output):
        (result,) = ctx.saved_tensors
        return grad_output * result


class MulConstant(Function):
    @staticmethod
    def forward(tensor, constant):
        return tensor * constant

    @staticmethod
    def setup_context(ctx, inputs, output):
        tensor, constant = inputs
        ctx.constant = constant

    @staticmethod
    def backward(ctx, grad_output):
        return (grad_output * ctx.constant, None)


class RoundSTE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x)

    @staticmethod
    def backward(ctx, g):
        return g


class GradReverse(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return (grad_output.neg() * ctx.alpha, None)


class Two(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        idx = x.argsort()
        ctx.mark_non_differentiable(idx)
        ctx.save_for_backward(idx)
        return (x[idx], idx)

    @staticmethod
    @once_differentiable
    def backward(ctx, g, g2):
        if g is None:
            return None
        out = torch.zeros_like(g)
        out[ctx.saved_tensors[0]] = g
        return out


class MyLinear(nn.Module):
    def __init__(self, i, o, bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(o, i))
        if bias:
            self.bias = nn.Parameter(torch.empty(o))
        else:
            self.register_parameter("bias", None)
        nn.init.uniform_(self.weight, -0.1, 0.1)
        if self.bias is not None:
            nn.init.uniform_(self.bias, -0.1, 0.1)

    def forward(self, input):
        return LinearFunction.apply(input, self.weight, self.bias)

    def extra_repr(self):
        return f"input_features={1}, output_features={2}, bias={self.bias is not None}"


from torch.autograd import gradcheck, gradgradcheck

inp = (
    torch.randn(4, 3, dtype=torch.double, requires_grad=True),
    torch.randn(2, 3, dtype=torch.double, requires_grad=True),
)
print(
    gradcheck(LinearFunction.apply, inp, eps=1e-06, atol=0.0001),
    gradgradcheck(Exp.apply, (torch.randn(3, dtype=torch.double, requires_grad=True),)),
)
x = torch.tensor([0.5, 1.5], requires_grad=True)
Exp.apply(x).sum().backward()
print(x.grad)
x.grad = None
MulConstant.apply(x, 3.0).sum().backward()
print(x.grad)
x.grad.zero_()
(RoundSTE.apply(x) * 2).sum().backward()
print(x.grad, RoundSTE.apply(x))
x.grad = None
GradReverse.apply(x, 0.5).pow(2).sum().backward()
print(x.grad)
x.grad = None
s, i = Two.apply(torch.flip(x, [0]))
print(s, i, i.requires_grad)
s[0].backward()
print(x.grad)
m = MyLinear(3, 2)
m.weight.data = torch.arange(6.0).view(2, 3)
m.bias.data.fill_(1.0)
print(m(torch.ones(1, 3)))
m(torch.ones(1, 3)).sum().backward()
print(m.weight.grad, m.bias.grad, m)


class Cube(Function):
    @staticmethod
    def forward(x):
        return (x**3, 3 * x**2)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output[1])
        ctx.save_for_forward(inputs[0], output[1])

    @staticmethod
    def backward(ctx, g, gd):
        x, dx = ctx.saved_tensors
        return g * dx + gd * 6 * x

    @staticmethod
    def vmap(info, in_dims, x):
        return (Cube.apply(x), (in_dims[0], in_dims[0]))


x = torch.tensor([1.0, 2.0], requires_grad=True)
(g,) = torch.autograd.grad(Cube.apply(x)[0].sum(), x, create_graph=True)
print(g)
print(torch.autograd.grad(g.sum(), x))
print(
    torch.func.grad(lambda x: Cube.apply(x)[0].sum())(torch.tensor(3.0)),
    torch.func.vmap(lambda x: Cube.apply(x)[0])(torch.arange(3.0)),
)
h = x.register_hook(lambda g: g * 2) if x.requires_grad else None
(x**2).sum().backward()
print(x.grad)
h.remove()
y = x * 2
y.register_hook(lambda g: print("grad", g))
y.sum().backward()
acc = []
x.register_post_accumulate_grad_hook(lambda p: acc.append(p.grad.clone()))
(x * 3).sum().backward()
print(acc)
try:
    LinearFunction()(1)
except Exception:
    print("Error")
with torch.autograd.graph.save_on_cpu():
    z = x.sin()
with torch.autograd.profiler.profile() as prof:
    (x * 2).sum()
with torch.autograd.profiler.record_function("a"):
    pass
from torch.autograd import forward_ad as fwAD

with fwAD.dual_level():
    d = fwAD.make_dual(torch.tensor(2.0), torch.tensor(1.0))
    o = d**3
    print(fwAD.unpack_dual(o).tangent)
