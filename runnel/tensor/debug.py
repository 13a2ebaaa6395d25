"""``rn.debug``: printing and calling back from running programs."""

from runnel.tensor.callbacks import callback as callback, print_values as print

__all__ = ["callback", "print"]
