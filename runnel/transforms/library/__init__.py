"""Differentiation as PyTorch spells it: imported when a name of it is first used."""
