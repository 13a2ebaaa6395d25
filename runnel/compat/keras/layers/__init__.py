"""Layers under Keras' names."""

from runnel.compat.keras.layers.base import Input as Input, Layer as Layer
from runnel.compat.keras.layers.core import (
    Activation as Activation,
    Add as Add,
    Concatenate as Concatenate,
    Dense as Dense,
    Dropout as Dropout,
    Embedding as Embedding,
    Flatten as Flatten,
    Multiply as Multiply,
    Permute as Permute,
    ReLU as ReLU,
    Rescaling as Rescaling,
    Reshape as Reshape,
    Softmax as Softmax,
)
from runnel.compat.keras.layers.images import (
    AveragePooling2D as AveragePooling2D,
    Conv1D as Conv1D,
    Conv2D as Conv2D,
    GlobalAveragePooling2D as GlobalAveragePooling2D,
    GlobalMaxPooling2D as GlobalMaxPooling2D,
    MaxPooling2D as MaxPooling2D,
    ZeroPadding2D as ZeroPadding2D,
)
from runnel.compat.keras.layers.sequences import (
    GRU as GRU,
    LSTM as LSTM,
    BatchNormalization as BatchNormalization,
    LayerNormalization as LayerNormalization,
    MultiHeadAttention as MultiHeadAttention,
)
