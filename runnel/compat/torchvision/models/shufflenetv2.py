"""ShuffleNet version 2: half of the channels pass, and all are shuffled."""

from __future__ import annotations

from typing import Any

from runnel import nn
from runnel.compat.torchvision.models.weights import constructor
from runnel.ops.shapes.pieces import concat


class InvertedResidual(nn.Module):
    """Convolutions of half the channels; with stride 2, of all of them, in two branches."""

    def __init__(self, inp: int, oup: int, stride: int) -> None:
        super().__init__()
        if stride not in (1, 2, 3) or (stride == 1 and inp != oup):
            raise ValueError(f"[InvertedResidual] stride must be 1 to 3, and 1 keeps channels; got {stride}.")
        self.stride = stride
        half = oup // 2
        self.branch1 = nn.Sequential() if stride == 1 else nn.Sequential(*_single(inp, stride), *_full(inp, half))
        before = inp if stride > 1 else half
        self.branch2 = nn.Sequential(*_full(before, half), *_single(half, stride), *_full(half, half))

    def forward(self, x: Any) -> Any:
        if self.stride == 1:
            kept, changed = x.chunk(2, 1)
            return nn.functional.channel_shuffle(concat([kept, self.branch2(changed)], axis=1), 2)
        return nn.functional.channel_shuffle(concat([self.branch1(x), self.branch2(x)], axis=1), 2)


def _single(channels: int, stride: int) -> tuple[nn.Module, ...]:
    conv = nn.Conv2d(channels, channels, 3, stride, 1, groups=channels, bias=False)
    return conv, nn.BatchNorm2d(channels)


def _full(before: int, after: int) -> tuple[nn.Module, ...]:
    return nn.Conv2d(before, after, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(inplace=True)


class ShuffleNetV2(nn.Module):
    """N. Ma et al., "ShuffleNet V2: practical guidelines for efficient CNN architecture design", 2018."""

    def __init__(
        self,
        stages_repeats: list[int],
        stages_out_channels: list[int],
        num_classes: int = 1000,
        inverted_residual: Any = InvertedResidual,
    ) -> None:
        super().__init__()
        first, *widths, last = self._stage_out_channels = stages_out_channels
        conv = nn.Conv2d(3, first, 3, 2, 1, bias=False)
        self.conv1 = nn.Sequential(conv, nn.BatchNorm2d(first), nn.ReLU(inplace=True))
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        before = first
        for number, (repeats, width) in enumerate(zip(stages_repeats, widths, strict=True), 2):
            blocks = [inverted_residual(before, width, 2)]
            blocks += [inverted_residual(width, width, 1) for _ in range(repeats - 1)]
            setattr(self, f"stage{number}", nn.Sequential(*blocks))
            before = width
        self.conv5 = nn.Sequential(*_full(before, last))
        self.fc = nn.Linear(last, num_classes)

    def forward(self, x: Any) -> Any:
        x = self.maxpool(self.conv1(x))
        return self.fc(self.conv5(self.stage4(self.stage3(self.stage2(x)))).mean([2, 3]))


_WIDTHS = {
    "shufflenet_v2_x0_5": [24, 48, 96, 192, 1024],
    "shufflenet_v2_x1_0": [24, 116, 232, 464, 1024],
    "shufflenet_v2_x1_5": [24, 176, 352, 704, 1024],
    "shufflenet_v2_x2_0": [24, 244, 488, 976, 2048],
}
(shufflenet_v2_x0_5, shufflenet_v2_x1_0, shufflenet_v2_x1_5, shufflenet_v2_x2_0) = (
    constructor(name, lambda name, **options: ShuffleNetV2([4, 8, 4], _WIDTHS[name], **options)) for name in _WIDTHS
)
