"""What is under PyTorch's names in ``runnel.compat.torch`` and differs from what Runnel has."""
