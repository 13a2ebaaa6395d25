"""Functions of tensors that few programs need: their modules are imported at first use."""
