"""Workloads on images and volumes: classifiers, generators, segmentation, contrastive learning."""

from __future__ import annotations

from typing import Any

from names import F, Step, draws, inferred, ints, nn, torch, trained
from text import Block


def classified(model: Any, x: Any, classes: int = 10, **how: Any) -> Step:
    def loss(x: Any, y: Any) -> Any:
        return F.cross_entropy(model(x), y)

    return trained(loss, model.parameters(), x, ints(classes, len(x)), **how)


class Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.GroupNorm(8, outputs), nn.GroupNorm(8, outputs)
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Any) -> Any:
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + self.shortcut(x))


def resnet18_gn() -> Step:
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.GroupNorm(8, 64), nn.ReLU()]
    inputs = 64
    for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Residual(inputs, width, stride), Residual(width, width, 1)]
        inputs = width
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))
    return classified(model, draws(16, 3, 32, 32))


class Squeeze(nn.Module):
    """Scale channels by what the whole picture says of them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(width, width // 4, 1), nn.Conv2d(width // 4, width, 1)

    def forward(self, x: Any) -> Any:
        return x * torch.sigmoid(self.up(F.silu(self.down(x.mean((2, 3), keepdim=True)))))


class Inverted(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int, squeeze: bool = False) -> None:
        super().__init__()
        wide, act = 4 * inputs, nn.SiLU if squeeze else nn.ReLU6
        layers = [nn.Conv2d(inputs, wide, 1, bias=False), nn.BatchNorm2d(wide), act()]
        layers += [nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide), act()]
        layers += [Squeeze(wide)] if squeeze else []
        self.layers = nn.Sequential(*layers, nn.Conv2d(wide, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.same = stride == 1 and inputs == outputs

    def forward(self, x: Any) -> Any:
        return x + self.layers(x) if self.same else self.layers(x)


def inverted(squeeze: bool = False) -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU6()]
    inputs = 16
    for width, stride, count in ((24, 2, 2), (40, 2, 2), (80, 2, 3), (112, 1, 2)):
        for number in range(count):
            layers.append(Inverted(inputs, width, stride if number == 0 else 1, squeeze))
            inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10))


def mobilenet() -> Step:
    return classified(inverted(), draws(16, 3, 96, 96))


def mobilenet_infer() -> Step:
    return inferred(inverted(), draws(4, 3, 128, 128))


def efficientnet_se() -> Step:
    return classified(inverted(squeeze=True), draws(8, 3, 64, 64))


class VisionTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches, self.places = nn.Conv2d(3, 192, 4, 4), nn.Parameter(draws(1, 64, 192) * 0.02)
        self.blocks, self.norm = nn.Sequential(*(Block(192, 3, causal=False) for _ in range(6))), nn.LayerNorm(192)
        self.output = nn.Linear(192, 10)

    def forward(self, x: Any) -> Any:
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        return self.output(self.norm(self.blocks(x)).mean(1))


def vit_tiny() -> Step:
    return classified(VisionTransformer(), draws(32, 3, 32, 32), optimizer="AdamW")


class ConvNext(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise, self.norm = nn.Conv2d(width, width, 7, padding=3, groups=width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        return x + self.down(F.gelu(self.up(y))).permute(0, 3, 1, 2)


def convnext() -> Step:
    layers = [
        nn.Conv2d(3, 64, 4, 4),
        ConvNext(64),
        ConvNext(64),
        nn.Conv2d(64, 128, 2, 2),
        ConvNext(128),
        ConvNext(128),
    ]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))
    return classified(model, draws(8, 3, 64, 64), optimizer="AdamW")


def conv57() -> Step:
    layers = [nn.Conv2d(3, 32, 7, 2, 3), nn.ReLU(), nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(64, 96, 5, padding=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, 10)]
    return classified(nn.Sequential(*layers), draws(16, 3, 64, 64), optimizer="SGD")


def small_cnn(*sizes: int) -> nn.Module:
    layers: list[nn.Module] = []
    for inputs, outputs in zip((3, *sizes), sizes, strict=False):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten())


def eager_cnn() -> Step:
    return classified(nn.Sequential(small_cnn(16, 32), nn.Linear(2048, 10)), draws(32, 3, 32, 32), eager=True)


def conv3d() -> Step:
    layers = [nn.Conv3d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool3d(2), nn.Conv3d(16, 32, 3, padding=1), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(32, 10))
    return classified(model, draws(4, 1, 24, 24, 24))


def dcgan() -> Step:
    def up(inputs: int, outputs: int) -> list[nn.Module]:
        return [nn.ConvTranspose2d(inputs, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]

    def down(inputs: int, outputs: int) -> list[nn.Module]:
        return [nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False), nn.LeakyReLU(0.2)]

    first = [nn.ConvTranspose2d(64, 128, 4, 1, 0, bias=False), nn.BatchNorm2d(128), nn.ReLU()]
    make = nn.Sequential(*first, *up(128, 64), *up(64, 32), nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Tanh())
    judge = nn.Sequential(*down(3, 32), *down(32, 64), *down(64, 128), nn.Conv2d(128, 1, 4), nn.Flatten())
    maker = torch.optim.Adam(make.parameters(), lr=2e-4)

    def loss(z: Any, real: Any) -> Any:
        maker.zero_grad()
        made = make(z)
        score = judge(made)
        F.binary_cross_entropy_with_logits(score, torch.ones_like(score)).backward()
        maker.step()
        judge.zero_grad()
        right, wrong = judge(real), judge(made.detach())
        return F.softplus(-right).mean() + F.softplus(wrong).mean()

    return trained(loss, judge.parameters(), draws(16, 64, 1, 1), draws(16, 3, 32, 32))


def twice(inputs: int, outputs: int) -> nn.Module:
    layers = [nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(8, outputs), nn.SiLU()]
    return nn.Sequential(*layers, nn.Conv2d(outputs, outputs, 3, padding=1), nn.GroupNorm(8, outputs), nn.SiLU())


class UNet(nn.Module):
    """Two halvings; with ``times`` it is told how noisy the picture is, and attends in the middle."""

    def __init__(self, inputs: int, width: int, outputs: int, times: bool = False) -> None:
        super().__init__()
        self.down1, self.down2, self.middle = twice(inputs, width), twice(width, 2 * width), twice(2 * width, 4 * width)
        self.up1, self.up2 = twice(6 * width, 2 * width), twice(3 * width, width)
        self.output = nn.Conv2d(width, outputs, 1)
        self.attention = Block(4 * width, 4, causal=False) if times else None
        self.time = nn.Linear(1, 4 * width) if times else None

    def forward(self, x: Any, time: Any = None) -> Any:
        first = self.down1(x)
        second = self.down2(F.max_pool2d(first, 2))
        x = self.middle(F.max_pool2d(second, 2))
        if self.attention is not None:
            batch, width, rows, columns = x.shape
            x = (x + self.time(time)[:, :, None, None]).flatten(2).transpose(1, 2)
            x = self.attention(x).transpose(1, 2).reshape(batch, width, rows, columns)
        x = self.up1(torch.cat([F.interpolate(x, scale_factor=2), second], 1))
        return self.output(self.up2(torch.cat([F.interpolate(x, scale_factor=2), first], 1)))


def unet64() -> Step:
    model = UNet(3, 32, 2)

    def loss(x: Any, y: Any) -> Any:
        return F.cross_entropy(model(x), y)

    return trained(loss, model.parameters(), draws(4, 3, 64, 64), ints(2, 4, 64, 64))


def diffusion() -> Step:
    model = UNet(3, 32, 3, times=True)

    def loss(x: Any, noise: Any, time: Any) -> Any:
        keep = torch.cos(time * 1.5)[:, :, None, None]
        return F.mse_loss(model(keep * x + torch.sqrt(1 - keep * keep) * noise, time), noise)

    return trained(loss, model.parameters(), draws(8, 3, 32, 32), draws(8, 3, 32, 32, seed=1), draws(8, 1).abs() % 1)


def vae_conv() -> Step:
    read = nn.Sequential(nn.Conv2d(1, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 4, 2, 1), nn.ReLU(), nn.Flatten())
    mean, spread, back = nn.Linear(3136, 20), nn.Linear(3136, 20), nn.Linear(20, 3136)
    write = nn.Sequential(nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(32, 1, 4, 2, 1))
    parts = nn.ModuleList([read, mean, spread, back, write])

    def loss(x: Any, noise: Any) -> Any:
        h = read(x)
        m, s = mean(h), spread(h)
        drawn = write(F.relu(back(m + torch.exp(0.5 * s) * noise)).view(-1, 64, 7, 7))
        wrong = F.binary_cross_entropy_with_logits(drawn, x, reduction="sum")
        return (wrong - 0.5 * (1 + s - m * m - torch.exp(s)).sum()) / len(x)

    return trained(loss, parts.parameters(), torch.sigmoid(draws(64, 1, 28, 28)), draws(64, 20))


def contrastive() -> Step:
    model = nn.Sequential(small_cnn(16, 32), nn.Linear(2048, 128), nn.ReLU(), nn.Linear(128, 64))

    def loss(a: Any, b: Any) -> Any:
        scores = F.normalize(model(a), dim=-1) @ F.normalize(model(b), dim=-1).T / 0.1
        same = torch.arange(len(a))
        return F.cross_entropy(scores, same) + F.cross_entropy(scores.T, same)

    return trained(loss, model.parameters(), draws(64, 3, 32, 32), draws(64, 3, 32, 32, seed=1))


WORKLOADS = {
    made.__name__: made
    for made in (
        resnet18_gn, mobilenet, mobilenet_infer, efficientnet_se, vit_tiny, convnext, conv57, eager_cnn, conv3d, dcgan,
        unet64, diffusion, vae_conv, contrastive,
    )
}  # fmt: skip
