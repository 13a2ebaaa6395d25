"""Variational inference, transforms to constraints, and every distribution's density."""

import torch
import torch.distributions as dist
from torch import nn, optim
from torch.distributions import biject_to, constraints, kl_divergence, transform_to

TOLERANCE = 5e-4

torch.manual_seed(0)
x = torch.linspace(-2, 2, 20)
y = 1.5 * x - 0.5 + 0.3 * torch.sin(5 * x)
mu, rho = (torch.zeros(2, requires_grad=True), torch.full((2,), -1.0, requires_grad=True))
opt = optim.Adam([mu, rho], lr=0.05)
eps = torch.tensor([[0.3, -0.7], [1.1, 0.2], [-0.5, 0.9]])
for step in range(5):
    opt.zero_grad()
    q = dist.Normal(mu, nn.functional.softplus(rho))
    p = dist.Normal(torch.zeros(2), 2 * torch.ones(2))
    w = q.loc + q.scale * eps
    pred = w[:, :1] * x + w[:, 1:]
    ll = dist.Normal(pred, 0.5).log_prob(y).sum(-1).mean()
    elbo = ll - kl_divergence(q, p).sum()
    (-elbo).backward()
    opt.step()
    print(elbo.item())
un = torch.tensor([0.2, -0.4], requires_grad=True)
for c in (
    constraints.positive,
    constraints.unit_interval,
    constraints.simplex,
    constraints.interval(-1.0, 2.0),
    constraints.greater_than(3.0),
    constraints.less_than(0.0),
):
    t = transform_to(c)
    v = t(un)
    print(v, c.check(v), biject_to(c)(un if c is not constraints.simplex else un).shape)
t = transform_to(constraints.lower_cholesky)
m = torch.tensor([[0.1, 5.0], [0.3, -0.2]])
print(t(m))
print(transform_to(constraints.positive_definite)(m))
print(biject_to(constraints.corr_cholesky)(torch.tensor([0.1, -0.3, 0.5])))
L = dist.LKJCholesky(3, concentration=1.5)
s = L.sample((4,))
print(s.shape, torch.allclose((s @ s.mT).diagonal(dim1=-1, dim2=-2), torch.ones(4, 3), atol=1e-05))
print(L.log_prob(torch.linalg.cholesky(torch.tensor([[1.0, 0.2, 0.1], [0.2, 1.0, 0.3], [0.1, 0.3, 1.0]]))))
W = dist.Wishart(torch.tensor([4.0]), torch.eye(2).unsqueeze(0))
print(W.log_prob(torch.tensor([[[2.0, 0.5], [0.5, 1.0]]])), W.mean, W.variance, W.entropy())
for d in (
    dist.Gamma(torch.tensor([2.0, 3.0]), 1.5),
    dist.Beta(2.0, torch.tensor([3.0, 0.5])),
    dist.Dirichlet(torch.tensor([1.0, 2.0, 3.0])),
    dist.StudentT(5.0),
    dist.Laplace(0.0, 2.0),
    dist.LogNormal(0.1, 0.5),
    dist.Weibull(2.0, 1.5),
    dist.Gumbel(1.0, 2.0),
    dist.Cauchy(0.0, 1.0),
    dist.HalfNormal(2.0),
    dist.HalfCauchy(1.0),
    dist.Pareto(1.0, 3.0),
    dist.Kumaraswamy(2.0, 3.0),
    dist.Exponential(1.5),
    dist.Uniform(-1.0, 3.0),
    dist.InverseGamma(3.0, 2.0),
    dist.FisherSnedecor(4.0, 6.0),
    dist.Chi2(3.0),
    dist.ContinuousBernoulli(0.3),
    dist.LogisticNormal(torch.zeros(2), torch.ones(2)),
    dist.LowRankMultivariateNormal(torch.zeros(2), torch.ones(2, 1), torch.ones(2)),
    dist.MultivariateNormal(torch.zeros(2), torch.tensor([[2.0, 0.5], [0.5, 1.0]])),
    dist.GeneralizedPareto(0.0, 1.0, 0.2),
    dist.RelaxedBernoulli(torch.tensor(0.5), probs=torch.tensor(0.3)),
    dist.RelaxedOneHotCategorical(torch.tensor(0.7), torch.tensor([0.2, 0.3, 0.5])),
):
    s = d.sample()
    out = [type(d).__name__, tuple(d.batch_shape), tuple(d.event_shape), d.has_rsample]
    v = (
        d.mean
        if torch.isfinite(
            d.mean
            if type(d).__name__
            not in ("LogisticNormal", "RelaxedBernoulli", "RelaxedOneHotCategorical", "Cauchy", "HalfCauchy")
            else torch.tensor(float("nan"))
        ).all()
        else torch.full(d.event_shape or (), 0.25)
    )
    if type(d).__name__ in ("LogisticNormal", "RelaxedOneHotCategorical"):
        v = torch.tensor([0.2, 0.3, 0.5])
    print(out, d.log_prob(v), (d.support.check(v) if True else 0).all())
    for f in ("entropy",):
        try:
            print(getattr(d, f)())
        except NotImplementedError:
            print("no")
    for f, a in (("cdf", v), ("icdf", torch.tensor(0.3))):
        try:
            print(getattr(d, f)(a))
        except NotImplementedError:
            print("no")
for d in (
    dist.Bernoulli(0.3),
    dist.Binomial(5, torch.tensor(0.4)),
    dist.Categorical(torch.tensor([0.1, 0.2, 0.7])),
    dist.OneHotCategorical(torch.tensor([0.1, 0.2, 0.7])),
    dist.Poisson(3.0),
    dist.Geometric(0.3),
    dist.NegativeBinomial(3, 0.4),
    dist.Multinomial(4, torch.tensor([0.2, 0.8])),
    dist.OneHotCategoricalStraightThrough(torch.tensor([0.4, 0.6])),
):
    v = d.sample()
    print(type(d).__name__, d.mean, d.variance, d.has_enumerate_support, d.support, d)
    try:
        print(d.enumerate_support(), d.entropy(), d.mode)
    except NotImplementedError:
        print("no")
try:
    dist.Normal(0.0, -1.0)
except ValueError:
    print("Error")
try:
    dist.Bernoulli(0.5).log_prob(torch.tensor(0.3))
except ValueError:
    print("Error")
print(
    dist.Normal(0.0, -1.0, validate_args=False).scale,
    dist.Normal(0.0, 1.0).expand((2, 3)).batch_shape,
    dist.Independent(dist.Normal(torch.zeros(2, 3), 1.0), 1),
    dist.Normal(torch.zeros(2), torch.ones(2)),
)
a, b = (dist.Gamma(2.0, 1.0), dist.Gamma(3.0, 2.0))
print(
    kl_divergence(a, b),
    kl_divergence(dist.Beta(1.0, 2.0), dist.Beta(2.0, 1.0)),
    kl_divergence(dist.Laplace(0.0, 1.0), dist.Normal(0.0, 1.0)),
    kl_divergence(dist.Categorical(torch.tensor([0.5, 0.5])), dist.Categorical(torch.tensor([0.1, 0.9]))),
)


class MyD(dist.Distribution):
    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate, validate_args=None):
        self.rate = torch.as_tensor(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    def log_prob(self, v):
        if self._validate_args:
            self._validate_sample(v)
        return self.rate.log() - self.rate * v

    def rsample(self, sample_shape=torch.Size()):
        return torch.empty(self._extended_shape(sample_shape)).exponential_() / self.rate


print(MyD(torch.tensor([1.0, 2.0])).log_prob(torch.tensor(0.5)), MyD(2.0).sample((3,)).shape)


@dist.kl.register_kl(MyD, MyD)
def _k(p, q):
    return p.rate.log() - q.rate.log() + q.rate / p.rate - 1


print(kl_divergence(MyD(1.0), MyD(2.0)))
conc = torch.tensor([0.7, 2.5], requires_grad=True)
dist.Gamma(conc, torch.ones(2)).rsample((1000,)).mean(0).sum().backward()
print((conc.grad - 1).abs().max() < 0.2)
