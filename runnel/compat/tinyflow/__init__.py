"""TinyFlow's interface (github.com/tqchen/tinyflow): run its programs with ``import runnel.compat.tinyflow as tf``.

Symbols are tensors of a declared graph (``runnel.declarative``). ``Session`` runs them as one program if its
configuration contains ``fusion``, else operation by operation.
"""

from runnel.compat.tinyflow import datasets as datasets, nn as nn, train as train
from runnel.compat.tinyflow.base import (
    Session as Session,
    Variable as Variable,
    assign as assign,
    float32 as float32,
    gradients as gradients,
    group as group,
    infer_variable_shapes as infer_variable_shapes,
    initialize_all_variables as initialize_all_variables,
    placeholder as placeholder,
)
from runnel.compat.tinyflow.functions import (
    argmax as argmax,
    equal as equal,
    exp as exp,
    log as log,
    matmul as matmul,
    normal as normal,
    ones as ones,
    ones_like as ones_like,
    pad as pad,
    reduce_mean as reduce_mean,
    reduce_sum as reduce_sum,
    relu as relu,
    softmax as softmax,
    sqrt as sqrt,
    tanh as tanh,
    zeros as zeros,
    zeros_like as zeros_like,
)
from runnel.compat.tinyflow.nn import (
    avg_pool as avg_pool,
    batch_normalization as batch_normalization,
    conv2d as conv2d,
    flatten_layer as flatten_layer,
    linear as linear,
    max_pool as max_pool,
    mean_sparse_softmax_cross_entropy_with_logits as mean_sparse_softmax_cross_entropy_with_logits,
)
