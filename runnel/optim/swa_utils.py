"""Averages of a model's Parameters over training, and the rate that goes with them, with PyTorch's names."""

from runnel.core.namespaces import namespace

NAMES = {
    "SWALR": "runnel.optim.averaging:SWALR",
    "AveragedModel": "runnel.optim.averaging:AveragedModel",
    "get_ema_avg_fn": "runnel.optim.averaging:get_ema_avg_fn",
    "get_ema_multi_avg_fn": "runnel.optim.averaging:get_ema_multi_avg_fn",
    "get_swa_avg_fn": "runnel.optim.averaging:get_swa_avg_fn",
    "get_swa_multi_avg_fn": "runnel.optim.averaging:get_swa_multi_avg_fn",
    "update_bn": "runnel.optim.averaging:update_bn",
}

__all__, __getattr__, __dir__ = namespace(__name__, NAMES)
