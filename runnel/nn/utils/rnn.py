"""Packed sequences under PyTorch's name for the place."""

from runnel.nn.packing import PackedSequence, pack_padded_sequence, pad_packed_sequence

__all__ = ["PackedSequence", "pack_padded_sequence", "pad_packed_sequence"]
