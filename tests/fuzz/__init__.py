"""Generators of random programs, and how they are run in every mode."""
