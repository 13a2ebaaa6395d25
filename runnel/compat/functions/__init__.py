"""Functions and classes of ``runnel.compat.torch`` that differ from Runnel's, by PyTorch's areas."""
