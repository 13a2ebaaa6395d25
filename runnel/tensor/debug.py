"""``rn.debug``: looking into programs while they run."""

from runnel.tensor.callbacks import callback as callback, print_values as print

__all__ = ["callback", "print"]
