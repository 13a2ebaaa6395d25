"""Functions of tensors that not every program needs: their modules are imported when one is first asked for."""
