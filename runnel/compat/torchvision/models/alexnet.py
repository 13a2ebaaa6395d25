"""AlexNet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runnel import nn
from runnel.compat.torchvision.models.weights import constructor


class AlexNet(nn.Module):
    """A. Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014."""

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        relu: Callable[[], nn.Module] = lambda: nn.ReLU(inplace=True)  # noqa: E731
        pool: Callable[[], nn.Module] = lambda: nn.MaxPool2d(3, 2)  # noqa: E731
        self.features = nn.Sequential(
            *(nn.Conv2d(3, 64, 11, 4, 2), relu(), pool()),
            *(nn.Conv2d(64, 192, 5, padding=2), relu(), pool()),
            *(nn.Conv2d(192, 384, 3, padding=1), relu()),
            *(nn.Conv2d(384, 256, 3, padding=1), relu()),
            *(nn.Conv2d(256, 256, 3, padding=1), relu(), pool()),
        )
        self.avgpool = nn.AdaptiveAvgPool2d((6, 6))
        self.classifier = nn.Sequential(
            *(nn.Dropout(dropout), nn.Linear(256 * 6 * 6, 4096), relu()),
            *(nn.Dropout(dropout), nn.Linear(4096, 4096), relu()),
            nn.Linear(4096, num_classes),
        )

    def forward(self, x: Any) -> Any:
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


alexnet = constructor("alexnet", lambda name, **options: AlexNet(**options))
