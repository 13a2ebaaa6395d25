"""Vision networks with torchvision's constructors, names of weights, and initialization."""

from runnel.compat.torchvision.models import alexnet as _alexnet, googlenet as _googlenet, weights
from runnel.core.namespaces import namespace

_PLACES = """
alexnet: AlexNet alexnet
catalog: get_model list_models
convnext: ConvNeXt convnext_tiny convnext_small convnext_base convnext_large
densenet: DenseNet densenet121 densenet161 densenet169 densenet201
efficientnet: EfficientNet efficientnet_b0 efficientnet_b1 efficientnet_b2 efficientnet_b3 efficientnet_b4
    efficientnet_b5 efficientnet_b6 efficientnet_b7 efficientnet_v2_s efficientnet_v2_m efficientnet_v2_l
googlenet: GoogLeNet GoogLeNetOutputs googlenet
inception: Inception3 InceptionOutputs inception_v3
mobilenetv2: MobileNetV2 mobilenet_v2
mobilenetv3: MobileNetV3 mobilenet_v3_large mobilenet_v3_small
resnet: ResNet resnet18 resnet34 resnet50 resnet101 resnet152 resnext50_32x4d resnext101_32x8d resnext101_64x4d
    wide_resnet50_2 wide_resnet101_2
shufflenetv2: ShuffleNetV2 shufflenet_v2_x0_5 shufflenet_v2_x1_0 shufflenet_v2_x1_5 shufflenet_v2_x2_0
squeezenet: SqueezeNet squeezenet1_0 squeezenet1_1
vgg: VGG vgg11 vgg11_bn vgg13 vgg13_bn vgg16 vgg16_bn vgg19 vgg19_bn
vision_transformer: VisionTransformer vit_b_16 vit_b_32 vit_l_16 vit_l_32 vit_h_14
"""
PLACED = {
    name: f"{__name__}.{row.partition(':')[0]}:{name}"
    for row in _PLACES.strip().replace("\n    ", " ").splitlines()
    for name in row.partition(":")[2].split()
}
__all__, _getattr, __dir__ = namespace(__name__, PLACED, checked=False)
alexnet, googlenet = _alexnet.alexnet, _googlenet.googlenet  # these functions replace the modules of their names


def __getattr__(name: str) -> object:
    """Return a network, or the names of its trained weights."""
    return getattr(weights, name) if name.endswith("_Weights") else _getattr(name)
