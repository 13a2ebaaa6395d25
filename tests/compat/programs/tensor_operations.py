"""One line each of what is done with tensors: indices, scatter, statistics, Fourier transforms, errors."""

import numpy as np
import torch

TOLERANCE = 5e-4

x = torch.arange(24.0).view(2, 3, 4)
print(
    torch.einsum("bij,bkj->bik", x, x),
    torch.einsum("...i->...", x),
    torch.einsum("ij,jk->ik", x[0], x[1].T),
    torch.einsum("ii", torch.eye(3)),
    torch.einsum("i,j->ij", torch.arange(3.0), torch.arange(2.0)),
)
y = torch.zeros(5)
y.index_put_((torch.tensor([0, 2, 2]),), torch.tensor([1.0, 2.0, 3.0]), accumulate=True)
print(y)
print(
    torch.zeros(3, 4).scatter_(1, torch.tensor([[0], [2], [3]]), 1.0),
    torch.zeros(2, 3).scatter_reduce(
        1, torch.tensor([[0, 0, 2], [1, 1, 1]]), torch.arange(6.0).view(2, 3), reduce="amax", include_self=False
    ),
    torch.zeros(3).scatter_add(0, torch.tensor([0, 0, 2]), torch.ones(3)),
)
print(
    torch.segment_reduce(torch.arange(6.0), "sum", lengths=torch.tensor([2, 1, 3]))
    if hasattr(torch, "segment_reduce")
    else 0
)
print(
    torch.quantile(torch.arange(10.0), torch.tensor([0.1, 0.5, 0.9])),
    torch.median(torch.tensor([3.0, 1.0, 2.0, 4.0])),
    torch.mode(torch.tensor([1, 2, 2, 3])),
    torch.nanmean(torch.tensor([1.0, float("nan"), 3.0])),
    torch.kthvalue(torch.tensor([5.0, 1.0, 3.0]), 2),
)


def kmeans(x, k, it=5):
    c = x[:k].clone()
    for _ in range(it):
        d = torch.cdist(x, c)
        a = d.argmin(dim=1)
        for j in range(k):
            if (a == j).any():
                c[j] = x[a == j].mean(dim=0)
    return (c, a, ((x - c[a]) ** 2).sum())


pts = torch.stack([torch.sin(torch.arange(30.0) * 1.7), torch.cos(torch.arange(30.0) * 2.3)], 1)
print(kmeans(pts, 3))
t = torch.arange(64) / 64
s = torch.sin(2 * torch.pi * 5 * t) + 0.5 * torch.sin(2 * torch.pi * 20 * t)
f = torch.fft.rfft(s)
fr = torch.fft.rfftfreq(64, 1 / 64)
f[fr > 10] = 0
print(
    f.abs().argmax(),
    torch.fft.irfft(f, n=64)[:5],
    torch.fft.fftshift(torch.arange(4)),
    torch.fft.fft2(torch.eye(4)).real.sum(),
    fr[:3],
)
S = torch.stft(s, n_fft=16, hop_length=8, window=torch.hann_window(16), return_complex=True)
print(S.shape, S.abs().sum(), torch.istft(S, 16, 8, window=torch.hann_window(16), length=64)[:4], torch.angle(S[5, 1]))
A = torch.stack([t**0, t, t**2], 1)
sol = torch.linalg.lstsq(A, (1 + 2 * t - t**2).unsqueeze(1))
print(
    sol.solution.squeeze(),
    torch.linalg.solve(A.T @ A, A.T @ s),
    torch.linalg.inv(A.T @ A).shape,
    torch.linalg.det(A.T @ A),
    torch.linalg.norm(A),
    torch.linalg.cond(A) > 1,
)
U, Sg, Vh = torch.linalg.svd(A, full_matrices=False)
print(
    Sg,
    torch.dist(U @ torch.diag(Sg) @ Vh, A) < 1e-05,
    torch.linalg.eigvalsh(A.T @ A),
    torch.linalg.matrix_rank(A),
    torch.trace(A.T @ A),
    torch.linalg.qr(A)[1].abs().diagonal(),
)
b = torch.arange(12).view(3, 4)
b[b % 2 == 0] = -1
b[:, -1] += 100
b[1, 1:3] = torch.tensor([7, 8])
b[[0, 2], [0, 1]] = 55
print(
    b, b[..., ::2], b[None].shape, b[:, None, :].shape, b[torch.tensor([0, 2])][:, torch.tensor([1])], b[-1], b[1:, :-1]
)
mask = torch.zeros(3, 4, dtype=torch.bool)
mask[0] = True
mask |= b > 50
mask ^= True
print(mask, mask.sum(), (~mask).float().mean(), b.masked_fill_(mask, 0))
n = x.numpy()
print(
    type(n),
    n.dtype,
    np.mean(n),
    np.asarray(x).shape,
    torch.as_tensor(n).shape,
    torch.tensor(np.float64(3.0)).dtype,
    torch.from_numpy(np.arange(3)).dtype,
    np.stack([a.numpy() for a in x]).shape,
    (torch.tensor([1.0, 2.0]) * np.array([2.0, 3.0])).__class__.__name__,
)
print(
    torch.add(x[0], 1, alpha=2)[0],
    torch.clamp(x, 3, 5).sum(),
    x.clip(min=2).min(),
    torch.lerp(torch.zeros(2), torch.ones(2), 0.3),
    torch.addmm(torch.ones(2, 2), torch.ones(2, 3), torch.ones(3, 2), beta=0.5),
    torch.addcmul(torch.zeros(2), torch.ones(2), torch.ones(2), value=3),
    torch.baddbmm(torch.zeros(2, 3, 3), x, x.transpose(1, 2)).sum(),
)
print(
    x.flip(0)[0, 0],
    x.roll(1, -1)[0, 0],
    torch.rot90(x[0]).shape,
    x.movedim(0, -1).shape,
    x.swapaxes(0, 1).shape,
    torch.tril(torch.ones(3, 3), -1),
    torch.diag(torch.tensor([1, 2])),
    torch.block_diag(torch.ones(1, 1), torch.eye(2)),
    torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4])),
    torch.combinations(torch.tensor([1, 2, 3])),
)
print(
    torch.unique(torch.tensor([3, 1, 3, 2]), return_inverse=True, return_counts=True),
    torch.bincount(torch.tensor([0, 1, 1])),
    torch.histc(torch.arange(10.0), bins=5, min=0, max=10),
    torch.bucketize(torch.tensor([1.5, 3.2]), torch.tensor([1.0, 2.0, 3.0])),
    torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([3, 4]), right=True),
    torch.isin(torch.tensor([1, 2]), torch.tensor([2])),
)
z = x.clone()
z[0].zero_() if False else None
z[0] = 0
z += 1
z *= 2
z.sub_(1).div_(3).clamp_(max=4)
print(
    z.sum(),
    z.fill_(2).sum(),
    z.normal_().shape,
    z.uniform_(0, 1).max() <= 1,
    z.random_(0, 3).max() <= 2,
    z.exponential_().min() >= 0,
    z.bernoulli_(0.5).max() <= 1,
)
u = x.unfold(2, 2, 1)
print(
    u.shape,
    x.as_strided((2, 2), (12, 1)),
    x.narrow(1, 0, 2).shape,
    x.select(1, 1),
    x.diagonal(dim1=1, dim2=2),
    x.take(torch.tensor([0, 5])),
    x.take_along_dim(x.argmax(2, keepdim=True), 2).squeeze(),
    torch.gather(x[0], 1, torch.tensor([[0], [1], [2]])),
)
print(
    torch.logsumexp(x, (1, 2)),
    x.softmax(-1).sum(-1),
    torch.cummax(torch.tensor([1, 3, 2]), 0),
    torch.cumprod(torch.arange(1.0, 5.0), 0),
    torch.logcumsumexp(torch.zeros(3), 0),
    torch.trapz(torch.arange(4.0)),
    torch.diff(torch.tensor([1, 4, 9])),
    torch.cross(torch.tensor([1.0, 0, 0]), torch.tensor([0.0, 1, 0]), dim=0),
    torch.outer(torch.ones(2), torch.ones(2)),
    torch.kron(torch.eye(2), torch.ones(1, 2)),
)
print(
    torch.tensor([1, 2]).to(torch.float),
    torch.tensor(1.7).int(),
    torch.tensor([1.2]).long(),
    torch.tensor(3).float() / 2,
    torch.tensor(7) // 2,
    torch.tensor([5, -5]) % 3,
    torch.fmod(torch.tensor([5.0, -5.0]), 3),
    torch.remainder(torch.tensor(-5), 3),
    torch.true_divide(torch.tensor(1), 2),
    torch.floor_divide(torch.tensor(7), 2),
    torch.bitwise_and(torch.tensor(6), 3),
    torch.tensor(1) << 3,
    torch.result_type(torch.tensor(1), 1.0),
    torch.promote_types(torch.int32, torch.float16),
    torch.can_cast(torch.float, torch.int),
)
try:
    torch.ones(2, 3) @ torch.ones(2, 3)
except RuntimeError:
    print("RuntimeError")
try:
    torch.ones(2) + torch.ones(3)
except RuntimeError:
    print("RuntimeError")
try:
    torch.ones(2, 3).view(5)
except RuntimeError:
    print("RuntimeError")
try:
    torch.cat([torch.ones(2, 2), torch.ones(3, 3)])
except RuntimeError:
    print("RuntimeError")
try:
    torch.ones(3)[5]
except IndexError:
    print("Error")
try:
    torch.tensor([1.0, 2.0]).item()
except (RuntimeError, ValueError):
    print("RuntimeError")
try:
    bool(torch.ones(2))
except RuntimeError:
    print("RuntimeError")
try:
    torch.nn.Linear(2, 2)(torch.ones(1, 3))
except RuntimeError:
    print("RuntimeError")
try:
    torch.ones(2, requires_grad=True).numpy()
except RuntimeError:
    print("RuntimeError")
try:
    torch.zeros(2, dtype=torch.long, requires_grad=True)
except RuntimeError:
    print("RuntimeError")
try:
    torch.nn.functional.cross_entropy(torch.zeros(2, 3), torch.tensor([0, 5]))
except IndexError:
    print("Error")
try:
    torch.mm(torch.ones(2), torch.ones(2))
except RuntimeError:
    print("RuntimeError")
try:
    torch.ones(2).foo()
except AttributeError:
    print("Error")
try:
    torch.ones(2, dtype=torch.int) @ torch.ones(2)
except RuntimeError:
    print("RuntimeError")
