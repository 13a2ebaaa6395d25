"""Ops that change shapes and order, and put arrays together."""
