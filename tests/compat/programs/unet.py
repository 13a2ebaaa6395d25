"""A U-Net with skip connections, bilinear or transposed upsampling, and the Dice loss."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

TOLERANCE = 5e-4


class DoubleConv(nn.Module):
    """(convolution => [BN] => ReLU) * 2"""

    def __init__(self, in_channels, out_channels, mid_channels=None):
        super().__init__()
        if not mid_channels:
            mid_channels = out_channels
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, mid_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(mid_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(mid_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(in_channels, out_channels))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, in_channels, out_channels, bilinear=True):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(in_channels, out_channels, in_channels // 2)
        else:
            self.up = nn.ConvTranspose2d(in_channels, in_channels // 2, kernel_size=2, stride=2)
            self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        diffY = x2.size()[2] - x1.size()[2]
        diffX = x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [diffX // 2, diffX - diffX // 2, diffY // 2, diffY - diffY // 2])
        x = torch.cat([x2, x1], dim=1)
        return self.conv(x)


class UNet(nn.Module):
    def __init__(self, n_channels, n_classes, bilinear=False):
        super().__init__()
        self.inc = DoubleConv(n_channels, 4)
        self.down1 = Down(4, 8)
        factor = 2 if bilinear else 1
        self.down2 = Down(8, 16 // factor)
        self.up1 = Up(16, 8 // factor, bilinear)
        self.up2 = Up(8, 4, bilinear)
        self.outc = nn.Conv2d(4, n_classes, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x = self.up1(x3, x2)
        x = self.up2(x, x1)
        return self.outc(x)


def dice_coeff(input, target, reduce_batch_first=False, epsilon=1e-06):
    assert input.size() == target.size()
    sum_dim = (-1, -2) if input.dim() == 2 or not reduce_batch_first else (-1, -2, -3)
    inter = 2 * (input * target).sum(dim=sum_dim)
    sets_sum = input.sum(dim=sum_dim) + target.sum(dim=sum_dim)
    sets_sum = torch.where(sets_sum == 0, inter, sets_sum)
    dice = (inter + epsilon) / (sets_sum + epsilon)
    return dice.mean()


def dice_loss(input, target, multiclass=False):
    fn = (lambda a, b: dice_coeff(a.flatten(0, 1), b.flatten(0, 1), True)) if multiclass else dice_coeff
    return 1 - fn(input, target)


rng = np.random.RandomState(0)
for bilinear in (True, False):
    net = UNet(3, 2, bilinear)
    net = net.to(memory_format=torch.channels_last)
    for p in net.parameters():
        p.data.copy_(torch.as_tensor(rng.randn(*p.shape) * 0.2))
    images = torch.as_tensor(rng.rand(2, 3, 13, 14)).float().contiguous()
    images = images.to(device="cpu", dtype=torch.float32, memory_format=torch.channels_last)
    masks = torch.as_tensor(rng.randint(0, 2, (2, 13, 14)), dtype=torch.long)
    optimizer = torch.optim.RMSprop(net.parameters(), lr=0.001, weight_decay=1e-08, momentum=0.9, foreach=True)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", patience=0)
    grad_scaler = torch.cuda.amp.GradScaler(enabled=False)
    criterion = nn.CrossEntropyLoss() if 2 > 1 else nn.BCEWithLogitsLoss()
    for step in range(3):
        with torch.autocast("cpu", enabled=False):
            pred = net(images)
            loss = criterion(pred, masks)
            loss += dice_loss(
                F.softmax(pred, dim=1).float(), F.one_hot(masks, 2).permute(0, 3, 1, 2).float(), multiclass=True
            )
        optimizer.zero_grad(set_to_none=True)
        grad_scaler.scale(loss).backward()
        grad_scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        grad_scaler.step(optimizer)
        grad_scaler.update()
        scheduler.step(-loss.item())
        print(pred.shape, round(loss.item(), 5), optimizer.param_groups[0]["lr"])
    net.eval()
    with torch.inference_mode():
        print(net(images).argmax(dim=1).sum().item())
