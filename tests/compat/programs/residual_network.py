"""A residual network from scratch: groups of Parameters, label smoothing, top-k accuracy, frozen layers, a hook."""

from collections.abc import Callable

import torch
import torch.nn as nn
from torch import Tensor

TOLERANCE = 5e-4


def conv3x3(in_planes: int, out_planes: int, stride: int = 1, groups: int = 1, dilation: int = 1) -> nn.Conv2d:
    return nn.Conv2d(
        in_planes,
        out_planes,
        kernel_size=3,
        stride=stride,
        padding=dilation,
        groups=groups,
        bias=False,
        dilation=dilation,
    )


class BasicBlock(nn.Module):
    expansion: int = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        if norm_layer is None:
            norm_layer = nn.BatchNorm2d
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = norm_layer(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = norm_layer(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(
        self, block: type[BasicBlock], layers: list[int], num_classes: int = 10, zero_init_residual=False
    ) -> None:
        super().__init__()
        self._norm_layer = nn.BatchNorm2d
        self.inplanes = 4
        self.conv1 = nn.Conv2d(3, self.inplanes, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = self._norm_layer(self.inplanes)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(block, 4, layers[0])
        self.layer2 = self._make_layer(block, 8, layers[1], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(8 * block.expansion, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)
        if zero_init_residual:
            for m in self.modules():
                if isinstance(m, BasicBlock) and m.bn2.weight is not None:
                    nn.init.constant_(m.bn2.weight, 0)

    def _make_layer(self, block, planes: int, blocks: int, stride: int = 1) -> nn.Sequential:
        downsample = None
        if stride != 1 or self.inplanes != planes * block.expansion:
            downsample = nn.Sequential(
                nn.Conv2d(self.inplanes, planes * block.expansion, kernel_size=1, stride=stride, bias=False),
                self._norm_layer(planes * block.expansion),
            )
        layers = [block(self.inplanes, planes, stride, downsample)]
        self.inplanes = planes * block.expansion
        for _ in range(1, blocks):
            layers.append(block(self.inplanes, planes))
        return nn.Sequential(*layers)

    def _forward_impl(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer2(self.layer1(x))
        x = torch.flatten(self.avgpool(x), 1)
        return self.fc(x)

    def forward(self, x: Tensor) -> Tensor:
        return self._forward_impl(x)


torch.backends.cudnn.benchmark = True
torch.backends.cudnn.deterministic = False
model = ResNet(BasicBlock, [1, 2], zero_init_residual=True)
model = torch.nn.DataParallel(model) if torch.cuda.device_count() > 1 else model
g = torch.Generator().manual_seed(0)
for i, (name, p) in enumerate(model.named_parameters()):
    if p.ndim < 2 and "fc" in name:
        p.data.zero_()
    if p.ndim >= 2:
        n = p.numel()
        p.data = ((torch.arange(n) * 0.7 + i) % 1.0 - 0.5).reshape(p.size()).mul_(0.5)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
decay = [p for n, p in model.named_parameters() if p.ndim > 1]
no_decay = [p for n, p in model.named_parameters() if p.ndim <= 1]
optimizer = torch.optim.SGD(
    [{"params": decay, "weight_decay": 0.01}, {"params": no_decay, "weight_decay": 0.0}],
    lr=0.05,
    momentum=0.9,
    nesterov=True,
)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2, 3], gamma=0.1)
images = torch.linspace(-1, 1, 4 * 3 * 32 * 32).view(4, 3, 32, 32).sin() * torch.arange(1, 5).view(-1, 1, 1, 1)
target = torch.tensor([0, 3, 5, 9])


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        maxk = max(topk)
        batch_size = target.size(0)
        _, pred = output.topk(maxk, 1, True, True)
        pred = pred.t()
        correct = pred.eq(target.view(1, -1).expand_as(pred))
        res = []
        for k in topk:
            correct_k = correct[:k].reshape(-1).float().sum(0, keepdim=True)
            res.append(correct_k.mul_(100.0 / batch_size))
        return res


for epoch in range(4):
    output = model(images)
    loss = criterion(output, target)
    acc1, acc5 = accuracy(output, target, topk=(1, 5))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    print("%.4f %.1f %.1f" % (loss.item(), acc1[0], acc5[0]), scheduler.get_last_lr())
for name, child in model.named_children():
    if name not in ["fc", "layer2"]:
        for param in child.parameters():
            param.requires_grad = False
print(sum(p.numel() for p in filter(lambda p: p.requires_grad, model.parameters())))
num_ftrs = model.fc.in_features
model.fc = nn.Linear(num_ftrs, 2)
model.layer1.register_forward_hook(lambda m, i, o: print("hook", tuple(i[0].shape), o.shape))
model.eval()(images)
print(model.bn1.running_mean, model.bn1.num_batches_tracked, model.state_dict()["layer2.0.downsample.1.running_var"])
