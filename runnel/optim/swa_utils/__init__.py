"""Averages of a model's Parameters over training, and the rate that goes with them, with PyTorch's names."""

from runnel.core.namespaces import namespace

NAMES = {
    "SWALR": "runnel.optim.swa_utils.rate:SWALR",
    "AveragedModel": "runnel.optim.swa_utils.averages:AveragedModel",
    "get_ema_avg_fn": "runnel.optim.swa_utils.averages:get_ema_avg_fn",
    "get_ema_multi_avg_fn": "runnel.optim.swa_utils.averages:get_ema_multi_avg_fn",
    "get_swa_avg_fn": "runnel.optim.swa_utils.averages:get_swa_avg_fn",
    "get_swa_multi_avg_fn": "runnel.optim.swa_utils.averages:get_swa_multi_avg_fn",
    "update_bn": "runnel.optim.swa_utils.statistics:update_bn",
}

__all__, __getattr__, __dir__ = namespace(__name__, NAMES)
