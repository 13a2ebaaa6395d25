"""The course's second assignment: a graph executor, and the kernels that it runs."""
