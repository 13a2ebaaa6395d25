"""Formulas of special functions, which their ops pass in: nothing else in the package imports them."""
