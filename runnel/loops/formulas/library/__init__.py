"""Formulas of functions that not every program needs: ``ops.library`` adds them to the tables when it is imported."""
