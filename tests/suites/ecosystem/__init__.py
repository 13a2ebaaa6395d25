"""Libraries that take arrays of any library: they are given tensors, where they are installed."""
