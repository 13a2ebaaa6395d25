"""Utilities for modules and their Parameters: gradient clipping, parametrized weights, pruning."""

from runnel.core.namespaces import namespace

NAMES = {
    "clip_grad_norm": "runnel.nn.utils.parameters:clip_grad_norm_",
    "clip_grad_norm_": "runnel.nn.utils.parameters:clip_grad_norm_",
    "clip_grad_value_": "runnel.nn.utils.parameters:clip_grad_value_",
    "clip_grads_with_norm_": "runnel.nn.utils.parameters:clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format": "runnel.nn.utils.parameters:unchanged",
    "convert_conv3d_weight_memory_format": "runnel.nn.utils.parameters:unchanged",
    "fuse_conv_bn": "runnel.nn.utils.fusion:fuse_conv_bn",
    "fuse_conv_bn_eval": "runnel.nn.utils.fusion:fuse_conv_bn",
    "fuse_conv_bn_weights": "runnel.nn.utils.fusion:fuse_conv_bn_weights",
    "fuse_linear_bn_eval": "runnel.nn.utils.fusion:fuse_linear_bn_eval",
    "fuse_linear_bn_weights": "runnel.nn.utils.fusion:fuse_linear_bn_weights",
    "get_total_norm": "runnel.nn.utils.parameters:get_total_norm",
    "parameters_to_vector": "runnel.nn.utils.parameters:parameters_to_vector",
    "parametrizations": "runnel.nn.utils.parametrizations",
    "parametrize": "runnel.nn.utils.parametrize",
    "prune": "runnel.nn.utils.prune",
    "remove_spectral_norm": "runnel.nn.utils.reparametrized:remove_spectral_norm",
    "remove_weight_norm": "runnel.nn.utils.reparametrized:remove_weight_norm",
    "rnn": "runnel.nn.utils.rnn",
    "skip_init": "runnel.nn.utils.parameters:skip_init",
    "spectral_norm": "runnel.nn.utils.reparametrized:spectral_norm",
    "vector_to_parameters": "runnel.nn.utils.parameters:vector_to_parameters",
    "weight_norm": "runnel.nn.utils.reparametrized:weight_norm",
}

__all__, __getattr__, __dir__ = namespace(__name__, NAMES)
