"""Squeeze-and-excitation, a vision transformer, boxes, interpolation, padding and image losses."""

import torch
import torch.nn as nn
import torch.nn.functional as F

TOLERANCE = 5e-4

x = torch.sin(torch.arange(2 * 3 * 8 * 8.0) * 0.37).view(2, 3, 8, 8)


class SE(nn.Module):
    def __init__(self, c, r=2):
        super().__init__()
        self.avg_pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Sequential(
            nn.Linear(c, c // r, bias=False), nn.ReLU(inplace=True), nn.Linear(c // r, c, bias=False), nn.Sigmoid()
        )

    def forward(self, x):
        b, c, _, _ = x.size()
        y = self.avg_pool(x).view(b, c)
        y = self.fc(y).view(b, c, 1, 1)
        return x * y.expand_as(x)


class MBConv(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(c, c * 2, 1, bias=False),
            nn.BatchNorm2d(c * 2, momentum=0.01, eps=0.001),
            nn.Hardswish(),
            nn.Conv2d(c * 2, c * 2, 3, padding="same", groups=c * 2),
            SE(c * 2),
            nn.Conv2d(c * 2, c, 1),
        )

    def forward(self, x):
        return x + self.net(x)


class PatchEmbed(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Conv2d(3, 8, kernel_size=4, stride=4)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, 8))
        self.pos_embed = nn.Parameter(torch.zeros(1, 5, 8))

    def forward(self, x):
        x = self.proj(x).flatten(2).transpose(1, 2)
        return torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1) + self.pos_embed


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.pe = PatchEmbed()
        self.blocks = nn.Sequential(
            *[nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True, norm_first=True) for _ in range(2)]
        )
        self.norm = nn.LayerNorm(8, eps=1e-06)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.pe(x)))[:, 0])


def fill(m):
    for i, (n, p) in enumerate(m.named_parameters()):
        if p.dim() > 1:
            p.data.copy_(torch.sin(torch.arange(p.numel()) * (0.7 + i)).reshape(p.shape) * 0.3)
        elif "bias" in n:
            nn.init.zeros_(p)
    return m


m = fill(nn.Sequential(MBConv(3), MBConv(3), nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(3, 4)))
v = fill(ViT())
t = torch.tensor([1, 3])
for net in (m, v):
    opt = torch.optim.Adam(net.parameters(), 0.01)
    for _ in range(3):
        opt.zero_grad()
        l = F.cross_entropy(net(x), t, label_smoothing=0.05, weight=torch.tensor([1.0, 2.0, 1.0, 0.5]))
        l.backward()
        opt.step()
        print(l.item())


class Focal(nn.Module):
    def __init__(self, g=2):
        super().__init__()
        self.g = g

    def forward(self, i, t):
        ce = F.cross_entropy(i, t, reduction="none")
        pt = torch.exp(-ce)
        return ((1 - pt) ** self.g * ce).mean()


def iou(a, b):
    area = lambda z: (z[:, 2] - z[:, 0]).clamp(min=0) * (z[:, 3] - z[:, 1]).clamp(min=0)
    lt = torch.max(a[:, None, :2], b[:, :2])
    rb = torch.min(a[:, None, 2:], b[:, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[:, :, 0] * wh[:, :, 1]
    return inter / (area(a)[:, None] + area(b) - inter)


def nms(boxes, scores, thr):
    order = scores.argsort(descending=True)
    keep = []
    while order.numel() > 0:
        i = order[0]
        keep.append(i.item())
        if order.numel() == 1:
            break
        ious = iou(boxes[i].unsqueeze(0), boxes[order[1:]]).squeeze(0)
        order = order[1:][ious <= thr]
    return torch.tensor(keep)


bx = torch.tensor([[0.0, 0, 4, 4], [1, 1, 5, 5], [6, 6, 8, 8], [0, 0, 3, 4]])
print(Focal()(v(x), t), iou(bx, bx), nms(bx, torch.tensor([0.9, 0.8, 0.7, 0.95]), 0.3))
print(
    F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)[0, 0, 0, :4],
    F.interpolate(x, size=(4, 4), mode="nearest").sum(),
    F.interpolate(x, size=5, mode="bicubic").sum(),
    F.interpolate(x[:, :, 0], scale_factor=0.5, mode="linear").sum(),
    F.adaptive_avg_pool2d(x, (3, 2))[0, 0],
    F.max_pool2d(x, 3, 2, 1, return_indices=True)[1][0, 0],
    F.avg_pool2d(x, 2).sum(),
    F.lp_pool2d(x.abs(), 2, 2).sum(),
)
theta = torch.tensor([[[1.0, 0.2, 0.1], [0, 1.0, 0]]]).repeat(2, 1, 1)
print(
    F.grid_sample(
        x, F.affine_grid(theta, x.shape, align_corners=False), align_corners=False, padding_mode="border"
    ).sum(),
    F.pixel_shuffle(torch.arange(16.0).view(1, 4, 2, 2), 2),
    F.pixel_unshuffle(torch.arange(16.0).view(1, 1, 4, 4), 2).shape,
    F.unfold(x, 3, padding=1).shape,
    F.fold(F.unfold(x, 2, stride=2), (8, 8), 2, stride=2).equal(x),
)
print(
    F.pad(torch.arange(4.0).view(1, 1, 2, 2), (1, 1, 1, 1), mode="reflect"),
    F.pad(x, (1, 2), "constant", 0).shape,
    F.pad(x, [1, 1, 1, 1], mode="replicate").sum(),
    F.pad(x, (1, 1, 0, 0), mode="circular").sum(),
    F.local_response_norm(x, 2).sum(),
    F.instance_norm(x).std(),
    F.group_norm(x, 3).mean().abs() < 1e-05,
    F.layer_norm(x, (8, 8)).sum().abs() < 0.001,
    F.normalize(x, dim=1).norm(dim=1).mean(),
)
img = (x[0] - x[0].min()) / (x[0].max() - x[0].min())
mean, std = (torch.tensor([0.5, 0.4, 0.3]), torch.tensor([0.2, 0.2, 0.2]))
n = (img - mean[:, None, None]) / std[:, None, None]
print(
    n.mean((1, 2)),
    img.permute(1, 2, 0).numpy().shape,
    (img * 255).byte().dtype,
    (img * 255).clamp(0, 255).to(torch.uint8).float().mean(),
    img.flip(-1).rot90(1, (1, 2)).sum(),
    torch.stack([img, img]).mean(0).shape,
)
k = torch.tensor([[1.0, 2, 1], [2, 4, 2], [1, 2, 1]]) / 16
print(
    F.conv2d(x, k.expand(3, 1, 3, 3), padding=1, groups=3).sum(),
    F.conv_transpose2d(x, torch.ones(3, 2, 2, 2), stride=2).shape,
    F.conv1d(x[:, :, 0], torch.ones(2, 3, 3), padding="valid").shape,
    nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect")(x).shape,
    F.dropout2d(x, 0.5, training=False).equal(x),
)
gram = torch.bmm(x.view(2, 3, -1), x.view(2, 3, -1).transpose(1, 2)).div(3 * 64)
tv = (x[:, :, 1:] - x[:, :, :-1]).abs().mean() + (x[..., 1:] - x[..., :-1]).abs().mean()
print(
    gram,
    tv,
    F.kl_div(F.log_softmax(gram, -1), F.softmax(gram * 2, -1), reduction="batchmean"),
    F.binary_cross_entropy_with_logits(gram, (gram > 0).float(), pos_weight=torch.tensor(2.0)),
    F.poisson_nll_loss(gram, gram.abs()),
    F.gaussian_nll_loss(gram, gram * 0, torch.ones_like(gram)),
    F.multilabel_margin_loss(gram[0], torch.tensor([[0, -1, 1]] * 3)),
    F.hinge_embedding_loss(gram, torch.ones_like(gram)),
    F.multi_margin_loss(gram[0], torch.tensor([0, 1, 2])),
    F.smooth_l1_loss(gram, gram * 2, beta=0.01),
)
