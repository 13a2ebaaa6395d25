"""Runnel under other libraries' names: :mod:`runnel.compat.torch`."""
