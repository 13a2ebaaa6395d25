"""Operations and layers of vision networks: ``torchvision.ops``."""

from runnel.core.namespaces import namespace

_PLACES = """
boxes: batched_nms box_area box_convert box_iou clip_boxes_to_image complete_box_iou distance_box_iou
    generalized_box_iou masks_to_boxes nms remove_small_boxes
losses: complete_box_iou_loss distance_box_iou_loss generalized_box_iou_loss sigmoid_focal_loss
misc: Conv2dNormActivation Conv3dNormActivation ConvNormActivation DropBlock2d DropBlock3d FrozenBatchNorm2d MLP
    Permute SqueezeExcitation StochasticDepth drop_block2d drop_block3d stochastic_depth
regions: RoIAlign RoIPool roi_align roi_pool
"""
PLACED = {
    name: f"{__name__}.{row.partition(':')[0]}:{name}"
    for row in _PLACES.strip().replace("\n    ", " ").splitlines()
    for name in row.partition(":")[2].split()
}
__all__, __getattr__, __dir__ = namespace(__name__, PLACED, checked=False)
