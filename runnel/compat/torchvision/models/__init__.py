"""Vision networks with torchvision's constructors, names of weights, and initialization."""

from runnel.compat.torchvision.models import alexnet as _alexnet, weights  # its function replaces the module below
from runnel.core.namespaces import namespace

_PLACES = """
alexnet: AlexNet alexnet
catalog: get_model list_models
resnet: ResNet resnet18 resnet34 resnet50 resnet101 resnet152 resnext50_32x4d resnext101_32x8d resnext101_64x4d
    wide_resnet50_2 wide_resnet101_2
squeezenet: SqueezeNet squeezenet1_0 squeezenet1_1
vgg: VGG vgg11 vgg11_bn vgg13 vgg13_bn vgg16 vgg16_bn vgg19 vgg19_bn
"""
PLACED = {
    name: f"{__name__}.{row.partition(':')[0]}:{name}"
    for row in _PLACES.strip().replace("\n    ", " ").splitlines()
    for name in row.partition(":")[2].split()
}
__all__, _getattr, __dir__ = namespace(__name__, PLACED, checked=False)
alexnet = _alexnet.alexnet


def __getattr__(name: str) -> object:
    """Return a network, or the names of its trained weights."""
    return getattr(weights, name) if name.endswith("_Weights") else _getattr(name)
